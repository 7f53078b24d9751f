"""`dpaa compare`: several runs or recommendation files side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from dpaa._io import check_file_target
from dpaa.cli import options
from dpaa.cli.checks import FailIf, applied, fail_if_any, parse_checks
from dpaa.cli.console import cells, number, out, print_json, print_notes, print_objects, print_table, titled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpaa.auditing.checks import Check, CheckResult
    from dpaa.comparison.result import Comparison, Delta, Example, Exposure, NoHarm, Overlap, Place

SHOWN_ITEMS = 5
"""Items shown as gaining, and as losing; JSON has more."""
SHOWN_PLACES = 5
"""First places of an example's lists; below them only those with a hit."""


def compare(
    paths: Annotated[list[Path], Argument(help="Runs or recommendation files (user_id, item_id, rank or score).")],
    dataset: options.DatasetOption = None,
    baseline: Annotated[str | None, Option(help="The baseline, by name or path; default: the first.")] = None,
    metric: Annotated[
        list[str] | None,
        Option(
            help="Metric to compare, such as ndcg or recall/niche; repeatable.  Default: recall, ndcg, "
            "recall/popular, recall/niche, arp, aplt, coverage, gini."
        ),
    ] = None,
    k: options.K = 20,
    overlap: options.Overlap = "drop",
    mask_valid: options.MaskValid = False,
    group_by: options.GroupBy = None,
    margin: Annotated[
        float, Option(help="Non-inferiority margin, a share of the baseline's recall on popular items.")
    ] = 0.05,
    seed: Annotated[int, Option(help="Random seed of the resamples.")] = 0,
    resamples: Annotated[int, Option(help="Resamples (random sign flips), for one run on each side.")] = 2000,
    fail_if: FailIf = None,
    examples: Annotated[int, Option(min=0, help="Users shown side by side, for each entry.")] = 2,
    as_json: options.AsJson = False,
    out_file: Annotated[
        Path | None,
        Option("--out", help="Write the comparison: .json for dpaa report, or a table as .tex, .md or .csv."),
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Compare recommenders on one test split: deltas, intervals, corrected p-values, winners and losers.

    Runs of one method that differ in their seed alone become one entry.  With one run on each side, intervals (95 %)
    and p-values come from random sign flips of the users' differences; with several, from Student's t for users
    crossed with runs, which also accounts for the randomness of training.  p is below .05 exactly where the interval
    excludes 0; p-values are then Holm-corrected over all tests of the call.

    \b
    Example:
      dpaa compare runs/lightgcn runs/dpaa
      dpaa compare runs/lightgcn runs/dpaa --group-by genre
      dpaa compare runs/live runs/tonight --fail-if "ndcg@20 < 0.98 * runs/live"
      dpaa compare old.csv new.csv --dataset data/shop --k 10 --out comparison.json
      dpaa compare runs/lightgcn runs/dpaa --metric ndcg --metric recall/niche --out table.tex
    """
    from dpaa.comparison.compare import Choices
    from dpaa.comparison.compare import compare as hold_against
    from dpaa.comparison.entries import read_entries
    from dpaa.comparison.tables import ENDINGS, write_table

    if out_file is not None:
        check_file_target(out_file, ENDINGS, "a comparison", overwrite=overwrite)
    metrics = tuple(metric or ())
    choices = Choices(baseline, metrics, margin=margin, resamples=resamples, seed=seed, examples=examples)
    choices.check()
    checks = parse_checks(fail_if)
    evaluator, entries = read_entries(
        paths,
        dataset,
        k=k,
        overlap=overlap,  # type: ignore[arg-type]
        mask_valid=mask_valid,
        group_by=group_by,
    )
    found = hold_against(evaluator, entries, choices)
    if out_file is not None:
        write_table(found, out_file)
    results = list(_checked(found, checks))
    if as_json:
        checked = {"checks": [one.as_json() | {"entry": name} for name, one in results]} if checks else {}
        print_json(found.as_json() | checked)
    else:
        print_comparison(found)
        print_notes(found.notes)
        _print_written(out_file)
    fail_if_any(results)


def _checked(found: Comparison, checks: list[Check]) -> Iterator[tuple[str, CheckResult]]:
    """Each check of each entry but the one that it names, or the baseline where it names none."""
    from dpaa.comparison.compare import find_baseline

    for check in checks:
        base = find_baseline(found.entries, check.reference)
        for entry in found.entries:
            if entry is not base:
                yield entry.name, applied(check, entry.metrics, found.k, base.metrics)


def _print_written(out_file: Path | None) -> None:
    if out_file is not None:
        following = f"; next: dpaa report {out_file} --out page.html" if out_file.suffix.lower() == ".json" else ""
        out.print(f"written to {out_file}{following}")


def print_comparison(found: Comparison) -> None:
    """Tables, and the same in plain words."""
    _print_metrics(found)
    for overlap in found.overlap:
        if overlap.entry == found.baseline:
            out.print(overlap_in_words(overlap, found.k))
    for entry in found.entries[1:]:
        _print_entry(found, entry.name)
    out.print(f"{found.confidence:.0%} intervals and p-values {found.design}; p corrected: {found.family}")
    out.print(found.protocol_in_words)


def _print_entry(found: Comparison, name: str) -> None:
    """One entry against the baseline."""
    deltas = [delta for delta in found.deltas if delta.entry == name]
    _print_deltas(found, name, deltas)
    lines = _in_words(found, deltas)
    lines += [_harm_in_words(found, harm) for harm in found.no_harm if harm.entry == name]
    lines += [overlap_in_words(overlap, found.k) for overlap in found.overlap if overlap.entry == name]
    for line in lines:
        out.print(line)
    for exposure in (one for one in found.exposure if one.entry == name):
        _print_exposure(found, exposure)
    for example in (one for one in found.examples if one.entry == name):
        _print_example(found, example)


def _print_metrics(found: Comparison) -> None:
    rows = []
    # Users without training pairs get one list whatever the model: shown, not tested.
    apart = [f"ndcg@{found.k}/{group}" for group in ("warm-users", "cold-users")]
    apart = [name for name in apart if all(name in entry.metrics for entry in found.entries)]
    for name in dict.fromkeys([*(delta.metric for delta in found.deltas), *apart]):
        spreads = [f" ± {number(entry.deviation[name])}" if entry.deviation else "" for entry in found.entries]
        means = [number(entry.metrics[name]) for entry in found.entries]
        rows.append([name, *(mean + spread for mean, spread in zip(means, spreads, strict=True))])
    header = [f"{entry.name} ({len(entry.seeds)} seeds)" if entry.deviation else entry.name for entry in found.entries]
    print_table(f"Test split of {found.dataset['name']}, lists of {found.k}", ["", *header], rows)


def _print_deltas(found: Comparison, name: str, deltas: list[Delta]) -> None:
    rows = []
    for delta in deltas:
        size = [number(delta.delta, "+"), *cells("+.1%", delta.relative), _interval(delta.interval)]
        rows.append([delta.metric, *size, _p(delta.p), _p(delta.p_holm), delta.verdict])
    header = ["", "difference", "relative", f"{found.confidence:.0%} interval", "p", "p corrected", "verdict"]
    print_table(f"{name} against {found.baseline}", header, rows)


def _in_words(found: Comparison, deltas: list[Delta]) -> list[str]:
    """A sentence for what is shown, one for what is not."""
    lines = []
    for words in ("better", "worse", "higher", "lower"):
        shown = [f"{delta.metric} ({_change(delta)})" for delta in deltas if delta.verdict == words]
        if shown:
            lines.append(f"{deltas[0].entry} is {words} than {found.baseline} in {', '.join(shown)}")
    open_ = [delta.metric for delta in deltas if delta.verdict == "not shown"]
    if open_:
        lines.append(f"no difference shown in {', '.join(open_)}: what is seen may be luck")
    untested = [delta.metric for delta in deltas if delta.verdict == "not tested"]
    if untested:
        lines.append(f"not tested: {', '.join(untested)} (of all lists together, no mean over users)")
    return lines


def _harm_in_words(found: Comparison, harm: NoHarm) -> str:
    """The line on popular items, with its numbers."""
    from dpaa.comparison.result import harm_in_words

    verdicts = {(delta.entry, delta.metric): delta.verdict for delta in found.deltas}
    difference = verdicts.get((harm.entry, harm.metric), "not tested")
    says = harm_in_words(harm.entry, found.baseline, harm.margin, harm.verdict, difference)
    numbers = f"{harm.metric} {number(harm.value)} against {number(harm.baseline)}, margin {harm.margin:.0%}"
    return f"{says} ({numbers}, one-sided p {harm.p:.3g})"


def overlap_in_words(overlap: Overlap, k: int) -> str:
    """How much of the lists is the same."""
    between = (
        f"two runs of {overlap.entry}" if overlap.entry == overlap.other else f"{overlap.entry} and {overlap.other}"
    )
    return (
        f"lists of {between} share {overlap.shared:.1f} of {k} items on average (Jaccard {overlap.jaccard:.2f}); "
        f"{overlap.unchanged:.1%} of the users have the same items"
    )


def _print_exposure(found: Comparison, exposure: Exposure) -> None:
    lists = {f"lists of {found.baseline}": "baseline:,.4g", f"lists of {exposure.entry}": "value:,.4g"}
    for title, moved, count in (
        ("gain", exposure.gaining, exposure.items_gaining),
        ("lose", exposure.losing, exposure.items_losing),
    ):
        columns = {"item": "item_id"} | titled(moved[:SHOWN_ITEMS]) | {"group": "group"}
        columns |= {"in training": "training_count:,"} | lists | {"change": "change:+,.4g"}
        print_objects(f"Items that {title} most ({count:,} {title} in all)", columns, moved[:SHOWN_ITEMS])


def _print_example(found: Comparison, example: Example) -> None:
    sides = (example.baseline_list, example.entry_list)
    hits = {place for side in sides for place, one in enumerate(side) if one.hit}
    longest = max(len(side) for side in sides)
    places = sorted({*range(min(SHOWN_PLACES, longest)), *hits})
    rows = [[str(place + 1), *(_place(side, place) for side in sides)] for place in places]
    print_table(f"User {example.user_id}", ["place", found.baseline, example.entry], rows, text=True)
    out.print(
        f"{example.metric} {example.baseline:.3g} → {example.value:.3g}: {example.history:,} training items, "
        f"{len(example.relevant):,} to find (✓), {example.shared} of {found.k} items in both lists; "
        f"shown are the first {SHOWN_PLACES} places and every hit"
    )


def _place(items: list[Place], place: int) -> str:
    if place >= len(items):
        return ""
    one = items[place]
    if one.item_id is None:
        return "(unknown item)"
    name = one.item_id if one.title is None else f"{one.title} [{one.item_id}]"
    return f"{'✓' if one.hit else ' '} {name}{' (niche)' if one.group == 'niche' else ''}"


def _interval(ends: tuple[float, float] | None) -> str:
    return "-" if ends is None or ends[0] != ends[0] else f"{number(ends[0], '+')} to {number(ends[1], '+')}"


def _change(delta: Delta) -> str:
    """Relative; the difference itself where the baseline is 0 or near it."""
    return cells("+.1%", delta.relative)[0] if delta.relative == delta.relative else number(delta.delta, "+")


def _p(value: float | None) -> str:
    return "< 0.0001" if value is not None and value < 0.0001 else cells(".4f", value)[0]

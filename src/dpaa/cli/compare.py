"""`dpaa compare`: several runs or recommendation files side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from dpaa._io import check_file_target
from dpaa.cli import options
from dpaa.cli.checks import FailIf, applied, parse_checks, print_failed
from dpaa.cli.console import cells, number, out, print_json, print_notes, print_objects, print_table, titled

if TYPE_CHECKING:
    from dpaa.comparison import Comparison, Place
    from dpaa.comparison._result import Delta, Example, Overlap

SHOWN_ITEMS = 5
"""Items shown as gaining, and as losing; JSON has more."""
SHOWN_RANKS = 5
"""First ranks of an example's lists; below them only those with a hit."""


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
    from dpaa.comparison import FORMATS, Choices, compare_entries, find_baseline, read_entries, write_table

    if out_file is not None:
        check_file_target(out_file, tuple(FORMATS), "a comparison", overwrite=overwrite)
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
    result = compare_entries(evaluator, entries, choices)
    if out_file is not None:
        write_table(result, out_file)
    checked = []
    for check in checks:  # of each entry but the one that it names, or the baseline where it names none
        base = find_baseline(result.entries, check.reference)
        others = [entry for entry in result.entries if entry is not base]
        checked += [(entry.name, applied(check, entry.metrics, result.k, base.metrics)) for entry in others]
    if as_json:
        more = {"checks": [one.as_json() | {"entry": name} for name, one in checked]} if checks else {}
        print_json(result.as_json() | more)
    else:
        print_comparison(result)
        print_notes(result.notes)
        if out_file is not None:
            following = f"; next: dpaa report {out_file} --out page.html" if out_file.suffix.lower() == ".json" else ""
            out.print(f"written to {out_file}{following}")
    print_failed(f"{name}: {one.sentence}" for name, one in checked if one.failed)


def print_comparison(result: Comparison) -> None:
    """Print tables, and the same in plain words."""
    _print_metrics(result)
    for overlap in result.overlap:
        if overlap.entry == result.baseline:
            out.print(_overlap_in_words(overlap, result.k))
    for entry in result.entries[1:]:
        _print_entry(result, entry.name)
    out.print(f"{result.confidence:.0%} intervals and p-values {result.design}; p corrected: {result.family}")
    out.print(result.protocol_in_words)


def _print_metrics(result: Comparison) -> None:
    # Users without training pairs get one list whatever the model: shown, not tested.
    apart = [f"ndcg@{result.k}/{group}" for group in ("warm-users", "cold-users")]
    names = [*result.compared, *(name for name in apart if all(name in entry.metrics for entry in result.entries))]
    header, columns = [], []
    for entry in result.entries:
        header.append(f"{entry.name} ({len(entry.seeds)} seeds)" if entry.deviation else entry.name)
        spread = {name: f" ± {number(value)}" for name, value in entry.deviation.items()}
        columns.append([f"{number(entry.metrics[name])}{spread.get(name, '')}" for name in names])
    rows = zip(names, *columns, strict=True)
    print_table(f"Test split of {result.dataset['name']}, lists of {result.k}", ["", *header], rows)


def _print_entry(result: Comparison, name: str) -> None:
    """One entry against the baseline."""
    deltas = [delta for delta in result.deltas if delta.entry == name]
    rows = [
        [
            *(delta.metric, number(delta.delta, "+"), _interval(delta.interval)),
            *(_p(delta.p_holm), delta.verdict),
        ]
        for delta in deltas
    ]
    header = ["", "difference", f"{result.confidence:.0%} interval", "p corrected", "verdict"]
    print_table(f"{name} against {result.baseline}", header, rows)
    for line in _in_words(result, name, deltas):
        out.print(line)
    for exposure in (one for one in result.exposure if one.entry == name):
        lists = {f"lists of {result.baseline}": "baseline:,.4g", f"lists of {name}": "value:,.4g"}
        sides = {"gain": (exposure.gaining, exposure.items_gaining), "lose": (exposure.losing, exposure.items_losing)}
        for verb, (moved, count) in sides.items():
            columns = {"item": "item_id"} | titled(moved[:SHOWN_ITEMS]) | {"group": "group"}
            columns |= {"in training": "training_count:,"} | lists | {"change": "change:+,.4g"}
            print_objects(f"Items that {verb} most ({count:,} {verb} in all)", columns, moved[:SHOWN_ITEMS])
    for example in (one for one in result.examples if one.entry == name):
        _print_example(result, example)


def _in_words(result: Comparison, name: str, deltas: list[Delta]) -> list[str]:
    """What is shown, what is not, whether popular items are harmed, and how much of the lists is the same."""
    from dpaa.comparison import harm_in_words

    lines = []
    for word in ("better", "worse", "higher", "lower"):
        shown = [f"{delta.metric} ({_change(delta)})" for delta in deltas if delta.verdict == word]
        if shown:
            lines.append(f"{name} is {word} than {result.baseline} in {', '.join(shown)}")
    if not_shown := [delta.metric for delta in deltas if delta.verdict == "not shown"]:
        lines.append(f"no difference shown in {', '.join(not_shown)}: what is seen may be luck")
    if untested := [delta.metric for delta in deltas if delta.verdict == "not tested"]:
        lines.append(f"not tested: {', '.join(untested)} (of all lists together, no mean over users)")
    verdicts = {delta.metric: delta.verdict for delta in deltas}
    for harm in (one for one in result.no_harm if one.entry == name):
        difference = verdicts.get(harm.metric, "not tested")
        sentence = harm_in_words(name, result.baseline, harm.margin, harm.verdict, difference)
        numbers = f"{harm.metric} {number(harm.value)} against {number(harm.baseline)}, margin {harm.margin:.0%}"
        lines.append(f"{sentence} ({numbers}, one-sided p {harm.p:.3g})")
    return lines + [_overlap_in_words(overlap, result.k) for overlap in result.overlap if overlap.entry == name]


def _overlap_in_words(overlap: Overlap, k: int) -> str:
    runs = f"two runs of {overlap.entry}"
    between = runs if overlap.entry == overlap.other else f"{overlap.entry} and {overlap.other}"
    return (
        f"lists of {between} share {overlap.shared:.1f} of {k} items on average (Jaccard {overlap.jaccard:.2f}); "
        f"{overlap.unchanged:.1%} of the users have the same items"
    )


def _print_example(result: Comparison, example: Example) -> None:
    sides = (example.baseline_list, example.entry_list)
    hits = {index for side in sides for index, one in enumerate(side) if one.hit}
    longest = max(len(side) for side in sides)
    shown = sorted({*range(min(SHOWN_RANKS, longest)), *hits})
    rows = [[index + 1, *(_place(side[index]) if index < len(side) else "" for side in sides)] for index in shown]
    print_table(f"User {example.user_id}", ["rank", result.baseline, example.entry], rows, text=True)
    out.print(
        f"{example.metric} {example.baseline:.3g} → {example.value:.3g}: {example.history:,} training items, "
        f"{len(example.relevant):,} to find (✓), {example.shared} of {result.k} items in both lists; "
        f"shown are the first {SHOWN_RANKS} ranks and every hit"
    )


def _place(one: Place) -> str:
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

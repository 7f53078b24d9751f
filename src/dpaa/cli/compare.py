"""`dpaa compare`: several runs or recommendation files side by side; `dpaa plan`: users that a test needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import dpaa
from dpaa._io import check_file_target
from dpaa.cli import options
from dpaa.cli.console import cells, number, out, print_json, print_notes, print_table
from dpaa.cli.options import apply_check, parse_checks, print_failed

SHOWN_ITEMS = 5
"""Items shown as gaining, and as losing; JSON has more."""
MOVED = ("training_count", "baseline", "value")
"""Their numbers."""


def compare(
    paths: Annotated[
        list[Path], Argument(metavar="RUN|RECS…", help="Runs or recommendation files; the first is the baseline.")
    ],
    dataset: options.DatasetOption = None,
    metric: options.Metrics = None,
    k: options.K = 20,
    overlap: options.Overlap = "drop",
    group_by: options.GroupBy = None,
    fail_if: options.FailIf = None,
    as_json: options.AsJson = False,
    out_file: Annotated[Path | None, Option("--out", help="File: .json for dpaa report, .tex, .md or .csv.")] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Compare recommenders on one test split: deltas, intervals, corrected p-values, items that gain and lose.

    Runs of one method that differ in their seed alone become one entry.  With one run on each side, intervals (95%)
    and p-values come from random sign flips of the users' differences; with several, from Student's t for users
    crossed with runs, which also accounts for the randomness of training.  p is below 0.05 exactly where the interval
    excludes 0; p-values are then Holm-corrected over all tests of the call.

    \b
    Example:
      dpaa compare runs/lightgcn runs/dpaa
      dpaa compare runs/lightgcn runs/dpaa --group-by genre
      dpaa compare runs/live runs/tonight --fail-if "ndcg@20 < 0.98 * runs/live"
      dpaa compare old.csv new.csv --dataset data/shop --k 10 --out \\
          comparison.json
      dpaa compare runs/lightgcn runs/dpaa --metric ndcg --metric recall/niche \\
          --out table.tex
    """
    from dpaa.comparison import FORMATS, compare_entries, find_baseline, read_entries, write_table

    if out_file is not None:
        check_file_target(out_file, tuple(FORMATS), "a comparison", overwrite=overwrite)
    checks = parse_checks(fail_if)
    how: Any = {"k": k, "overlap": overlap, "group_by": group_by}
    evaluator, entries = read_entries(paths, dataset, **how)
    result = compare_entries(evaluator, entries, metrics=metric or ())
    if out_file is not None:
        write_table(result, out_file)
    checked = []
    for check in checks:  # of each entry but the one that it names, or the baseline where it names none
        base = find_baseline(result.entries, check.reference)
        others = [entry for entry in result.entries if entry is not base]
        checked += [(entry.name, apply_check(check, entry.metrics, result.k, base.metrics)) for entry in others]
    if as_json:
        more = {"checks": [check.as_json() | {"entry": name} for name, check in checked]} if checks else {}
        print_json(result.as_json() | more)
    else:
        _print_comparison(result)
        print_notes([*result.notes, *([f"the comparison is written to {out_file}"] if out_file else [])])
    print_failed(f"{name}: {one.sentence}" for name, one in checked if one.failed)


def _print_comparison(result: dpaa.Comparison) -> None:
    """Print the metrics of all entries, then each entry against the baseline."""
    from dpaa.comparison import harm_in_words

    # Users without training pairs get one list whatever the model: shown, not tested.
    cold = [f"ndcg@{result.k}/cold-users"] if f"ndcg@{result.k}/cold-users" in result.entries[0].metrics else []
    rows = [[name, *(number(entry.metrics[name]) for entry in result.entries)] for name in [*result.compared, *cold]]
    header = ["", *(f"{e.name} ({len(e.seeds)} seeds)" if e.deviation else e.name for e in result.entries)]
    print_table(f"Test split of {result.dataset['name']}, lists of {result.k}", header, rows)
    for harm, overlap, exposure in zip(result.no_harm, result.overlap, result.exposure, strict=True):
        deltas = [delta for delta in result.deltas if delta.entry == harm["entry"]]
        rows = []
        for delta in deltas:
            relative = cells("+.1%", delta.relative)[0]
            ends = delta.interval or ()
            # Of counts, such as arp, fewer decimals: the verdict stays in the line of 80 columns.
            form = "+.4f" if max(map(abs, (delta.delta, *ends)), default=0.0) < 10 else "+.2f"
            change, interval = cells(form, delta.delta)[0], " to ".join(cells(form, *ends)) or "-"
            rows.append([delta.metric, change, relative, interval, *cells(".4f", delta.p_holm), delta.verdict])
        header = ["", "change", "relative", f"{result.confidence:.0%} interval", "p (Holm)", "verdict"]
        print_table(f"{harm['entry']} against {result.baseline}", header, rows)
        difference = next((delta.verdict for delta in deltas if delta.metric == harm["metric"]), "not tested")
        sentence = harm_in_words(harm["entry"], result.baseline, harm["margin"], harm["verdict"], difference)
        out.print(f"{sentence} (one-sided p {harm['p']:.3g})")
        out.print(f"lists share {overlap['shared']:.1f} of {result.k} items (Jaccard {overlap['jaccard']:.2f})")
        rows = [
            [item["title"] or item["item_id"], item["group"], *cells(",.4g", *map(item.get, MOVED))]
            for side in ("gaining", "losing")
            for item in exposure[side][:SHOWN_ITEMS]
        ]
        header = ["item", "group", "in training", f"lists of {result.baseline}", f"lists of {harm['entry']}"]
        print_table("Items that gain and lose most", header, rows)
    out.print(f"{result.confidence:.0%} intervals and p-values {result.design}; {result.family}")
    out.print(result.protocol_in_words)


def plan(
    run_a: Annotated[Path, Argument(help="The run in production, or its recommendations.")],
    run_b: Annotated[Path, Argument(help="The run that may replace it.")],
    detect: Annotated[str, Option(metavar="X[,power=X,confidence=X]", help="Relative difference to detect.")] = "0.01",
    dataset: options.DatasetOption = None,
    metric: options.Metrics = None,
    k: options.K = 20,
    users_per_day: Annotated[int | None, Option(min=1, help="New users per day, to compute the days.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Plan an online A/B test of two runs: users and days, from the variance over users measured offline.

    Half of the users get each run.  Prints how many users are needed to detect a difference of --detect, and to detect
    the difference measured offline, with power=0.8 and a two-sided confidence=0.95.  The variance online is assumed to
    equal that of the same metric offline.

    \b
    Example:
      dpaa plan runs/live runs/debiased --detect 0.01 --users-per-day 20000
    """
    from dpaa.comparison import read_entries
    from dpaa.simulation import PLANNED
    from dpaa.simulation import plan as make_plan

    _, entries = read_entries([run_a, run_b], dataset, k=k)
    how = options.parse_values(detect, "detect", value=float, power=float, confidence=float)
    how["detect"] = how.pop("value", 0.01)
    planned = make_plan(entries, k=k, metrics=metric or PLANNED, users_per_day=users_per_day, **how)
    if as_json:
        print_json(planned.as_json())
        return
    by_days = users_per_day is not None
    rows = []
    for need in planned.needs:
        seen = [*cells(",.0f", need.users), *(cells(",", need.days) if by_days else [])]
        promised = [*cells(",.0f", need.users_promised), *(cells(",", need.days_promised) if by_days else [])]
        rows.append([need.metric, number(need.one), number(need.other), *seen, *promised])
    header = ["", *planned.names, f"users ±{planned.detect:.1%}", *(["days"] if by_days else []), "users, offline Δ"]
    title = f"Users in both halves, power {planned.power:g}, confidence {planned.confidence:g}"
    print_table(title, [*header, *(["days"] if by_days else [])], rows)
    out.print(f"offline Δ: the difference between {planned.names[0]} and {planned.names[1]} measured offline")

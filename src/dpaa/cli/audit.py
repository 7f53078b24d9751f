"""`dpaa audit`: how biased a log is, and what recommendations make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import dpaa
from dpaa._io import write_file
from dpaa.cli import options
from dpaa.cli.console import cells, out, print_notes, print_records, print_result, print_table
from dpaa.cli.options import print_failed

TASTES = {"taste": "taste", "users": "users:,", "popular in history": "mean:.1%"}
TASTES |= {"history (median)": "history_median:,.0f"}
LIST_TASTES = {"taste": "taste", "arp of history": "arp_history:,.1f", "arp": "arp:,.1f"}
LIST_TASTES |= {"lift": "popularity_lift:+.1%", "upd": "upd:.3f"}
PERIODS = {"from": "from", "interactions": "interactions:,", "items": "items:,", "new items": "new_items:,"}
PERIODS |= {"Gini": "log_gini:.3f", "head share": "log_head_share:.1%", "niche share": "log_niche_share:.1%"}
SHIFTS = {"item": "item", "group": "group", "in log": "interactions:,", "in lists": "recommendations:,"}
SHIFTS |= {"share of log": "interaction_share:.3%", "share of lists": "recommendation_share:.3%"}
"""Column of a table → key and format."""


@options.grouped(log=options.LogOptions)
def audit(
    data: Annotated[list[str], Argument(metavar="DATASET|LOG…", help="A prepared dataset, or files of a log.")],
    log: options.LogOptions,
    recs: Annotated[Path | None, Option(help="Recommendations of any system: user_id, item_id[, score, rank].")] = None,
    k: Annotated[int | None, Option("--k", min=1, help="Use only the top k items of each list.")] = None,
    fail_if: Annotated[list[str] | None, Option(help='Exit with 1 if "log_gini>0.9", for example; repeatable.')] = None,
    against: Annotated[str | None, Option(metavar="OLDER|TIME", help="Drift since an older log or a date.")] = None,
    group_by: Annotated[str | None, Option(metavar="COLUMN", help="Exposure by a column of the items.")] = None,
    files: Annotated[list[Path] | None, Option("--out", help="FILE.html or OpenMetrics FILE.prom; repeatable.")] = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
) -> None:
    """Audit a log for popularity bias, and with --recs the recommendations of any system.

    Shows how unequally interactions are spread over items, time and users; with --recs also whether lists are more
    popular than the users' own histories, what share of the items is shown, and which items gain and lose.  No dpaa
    model is needed.  In checks, log_head_share refers to the log, head_share@20 to lists of 20; an unknown name
    prints all names.

    \b
    Example:
      dpaa audit data/coat --out audit.html
      dpaa audit clicks.csv --positive "rating>=4" --recs recs.parquet --k 20
      dpaa audit clicks.csv --fail-if "log_head_share>0.8" --fail-if \\
          "log_gini>=0.9"
      dpaa audit clicks.csv --recs recs.parquet --k 20 --fail-if \\
          "head_share@20>0.8"
      dpaa audit data/shop --recs recs.parquet --group-by publisher --fail-if \\
          "exposure@20/publisher<0.8"
      dpaa audit today.csv --against yesterday.csv --fail-if \\
          "drift_distance>0.3" --out dpaa.prom --overwrite
    """
    log.check(overwrite)
    pages, texts = options.check_outputs(files, (".prom", ".txt", ".om"), "an audit", overwrite)
    how: dict[str, Any] = {"names": log.names, "items": log.items, **log.reading, **log.rows}
    how |= {"against": against, "group_by": group_by}
    result = dpaa.audit(data, recs, k=k, fail_if=fail_if or [], **how)
    print_result(result, as_json, _print_audit)
    print_notes(result.notes)
    for file in texts:
        write_file(file, result.openmetrics(), "free some space or choose another file")
    for file in pages:
        from dpaa.report import audit_page

        audit_page(result, file)
    log.write_invalid(result.invalid)
    print_failed(check.sentence for check in result.failed)


def _print_audit(result: dpaa.Audit) -> None:
    """Print the result in words, then as tables."""
    from dpaa.auditing import readable_times

    log, recs = result.log, result.recommendations
    out.print((f"Audit of {result.source}", "bold"))
    for sentence in result.in_words():
        out.print(f"- {sentence}")
    shares = {"interactions": log.deciles} | ({"recommendations": recs.deciles} if recs else {})
    labels = ["1 (rarest)", *map(str, range(2, 10)), "10 (most popular)"]
    rows = [[label, *cells(".1%", *row)] for label, *row in zip(labels, *shares.values(), strict=True)]
    print_table("share by popularity of the item", ["decile of the items", *shares], rows)
    print_records("users by the share of popular items in their history", TASTES, log.tastes)
    starts = readable_times([period["start"] for period in log.periods])
    periods = [{"from": start} | period for start, period in zip(starts, log.periods, strict=True)]
    print_records("over time, in periods with about the same number of interactions", PERIODS, periods)
    if recs:
        groups = [name.removeprefix("exposure/") for name in recs.numbers if name.startswith("exposure/")]
        names = ("exposure", "exposure_of_catalogue")
        rows = [[group, *cells(".3f", *(recs.numbers[f"{name}/{group}"] for name in names))] for group in groups]
        if rows:
            header = ["the worst-off group, and each", "users' interactions", "the catalogue"]
            print_table("exposure (rank r is worth 1/log2(r + 1)) against", header, rows)
        title = f"list against history, by taste (lists of {recs.k}, means over users)"
        print_records(title, LIST_TASTES, recs.tastes)
        for title, items in {"winners: more": recs.winners, "losers: less": recs.losers}.items():
            named = [item | {"item": item["title"] or item["item_id"]} for item in items]
            print_records(f"{title} of the recommendations than of the interactions", SHIFTS, named)

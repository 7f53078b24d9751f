"""`dpaa audit`: how skewed a log is, and what the recommendations of any system make of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from dpaa._io import check_file_target, same_place, write_file
from dpaa.cli import options
from dpaa.cli.checks import print_failed
from dpaa.cli.console import (
    Styled,
    attributes,
    cells,
    err,
    out,
    print_json,
    print_notes,
    print_objects,
    print_table,
    titled,
)
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.auditing import Audit


def _show_schema(wanted: bool) -> None:
    if wanted:
        from dpaa.auditing import audit_schema

        print_json(audit_schema())
        raise typer.Exit


@options.grouped(log=options.LogOptions)
def audit(
    data: Annotated[
        list[str],
        Argument(
            metavar="DATASET|LOG…",
            help="A prepared dataset (its training split), or a log: files, folders, patterns or -, as in "
            "`dpaa data log`.",
        ),
    ],
    log: options.LogOptions,
    recs: Annotated[Path | None, Option(help="Recommendations of any system: user_id, item_id[, score, rank].")] = None,
    k: Annotated[int | None, Option("--k", min=1, help="Cut the lists after this many places.")] = None,
    fail_if: Annotated[
        list[str] | None,
        Option(
            metavar='"NAME OP NUMBER"',
            help="Exit with 1 if this holds: log_head_share>0.8 is about the log, head_share@20>0.8 about lists of 20; "
            "repeatable.  A wrong NAME lists them all.",
        ),
    ] = None,
    periods: Annotated[int, Option(min=1, help="Time periods, of equally many interactions each.")] = 10,
    per_user: Annotated[
        Path | None, Option(metavar="FILE", help="Write a table: list against history, per user.")
    ] = None,
    figure: Annotated[Path | None, Option(metavar="FILE", help="Draw the Lorenz curve: .png, .svg, .pdf …")] = None,
    html: Annotated[Path | None, Option(metavar="FILE", help="Write a self-contained HTML report.")] = None,
    against: Annotated[
        str | None,
        Option(
            metavar="OLDER|TIME",
            help="What has changed since an older log or dataset, or within this one since a time (a date, or a number "
            "where times are numbers).",
        ),
    ] = None,
    metrics_out: Annotated[
        Path | None,
        Option(metavar="FILE", help="Write the numbers as OpenMetrics text (.prom), for a textfile collector."),
    ] = None,
    _json_schema: Annotated[
        bool,
        Option("--json-schema", callback=_show_schema, is_eager=True, help="Print the JSON Schema of --json."),
    ] = False,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Replace the files of --per-user and --invalid-out.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Audit a log for popularity bias, and with --recs the recommendations of any system.

    Says how unequally interactions are spread over items, over time and over users; with --recs whether lists are more
    popular than the users' own histories, what share of the items is shown at all, and who wins and loses.  No model
    of this package is needed.

    \b
    Example:
      dpaa audit data/coat
      dpaa audit clicks.csv --positive "rating>=4" --recs recs.parquet --k 20
      dpaa audit clicks.csv --fail-if "log_head_share>0.8" --fail-if "log_gini>=0.9"
      dpaa audit clicks.csv --recs recs.parquet --k 20 --fail-if "head_share@20>0.8"
      dpaa audit today.csv --against yesterday.csv --fail-if "drift_distance>0.3" --metrics-out dpaa.prom
    """
    log.check(overwrite)
    _check_targets([*data, *([] if recs is None else [recs])], recs is not None, per_user, figure, html, overwrite)
    if metrics_out is not None:  # one that is there is replaced, as collectors expect
        check_file_target(metrics_out, (".prom", ".txt", ".om"), "a metrics file")
    from dpaa.auditing import audit as measure

    result = measure(
        data,
        recs,
        k=k,
        fail_if=fail_if or [],
        fmt=log.file_format,
        names=log.names,
        positive=log.positive,
        keep_duplicates=log.keep_duplicates,
        periods=periods,
        against=against,
        form=log.form,
        drop_invalid=log.drop_invalid,
        items=log.items,
    )
    if as_json:
        print_json(result.as_json())
    else:
        print_audit(result)
    print_notes(result.notes)
    if metrics_out is not None:
        write_file(metrics_out, result.openmetrics(), "make room or choose another place")
        err.print(f"metrics written to {metrics_out}")
    _write(result, per_user, figure, html)
    log.write_invalid(result.invalid, err.print)
    print_failed(check.sentence for check in result.failed)


def _check_targets(
    sources: list[str | Path],
    with_recs: bool,
    per_user: Path | None,
    figure: Path | None,
    html: Path | None,
    overwrite: bool,
) -> None:
    """Refuse files that could not be written, before any work."""
    if per_user is not None:
        from dpaa.runs.stream import check_target

        if not with_recs:
            raise InputError("--per-user compares lists with histories; name the lists with --recs")
        check_target(per_user, overwrite)
        if any(same_place(per_user, one) for one in sources):
            raise InputError(f"{per_user} is what is audited; name another file for --per-user")
    if figure is not None:
        from dpaa.report import check_figure

        check_figure(figure)
    if html is not None:
        from dpaa.report import check_page

        check_page(html)


def _write(result: Audit, per_user: Path | None, figure: Path | None, html: Path | None) -> None:
    """The file that is not replaced without --overwrite comes last: a call that was cut short can be repeated."""
    if figure is not None:
        from dpaa.report import lorenz_curve, save

        err.print(f"figure written to {save(lorenz_curve(result), figure)}")
    if html is not None:
        from dpaa.report import audit_page

        audit_page(result, html)
        err.print(f"page written to {html}")
    if per_user is not None and result.recommendations is not None:
        from dpaa.runs.stream import write_stream

        table = result.recommendations.per_user
        rows = write_stream(iter([table]), table.schema, per_user)
        err.print(f"{rows:,} users written to {per_user}")


def print_audit(result: Audit) -> None:
    """Print sentences, then tables."""
    from dpaa.auditing import readable_times

    log, recs = result.log, result.recommendations
    out.print(Styled(f"Audit of {result.source}", "bold"))
    for sentence in result.in_words():
        out.print(f"- {sentence}")
    header, shares = ["decile of the items", "interactions"], [log.deciles]
    if recs is not None:
        header, shares = [*header, "recommendations"], [log.deciles, recs.deciles]
    labels = ["1 (rarest)", *map(str, range(2, 10)), "10 (most popular)"]
    rows = [[label, *cells(".1%", *row)] for label, *row in zip(labels, *shares, strict=True)]
    if recs is not None and recs.outside_deciles:
        rows.append(["not in the log", *cells(".1%", 0.0, recs.outside_deciles)])
    print_table("share by popularity of the item", header, rows)

    columns = {"tastes": "taste", "users": "users:,", "popular items in history": "mean:.1%", "lowest": "lowest:.1%"}
    columns |= {"highest": "highest:.1%", "history (median)": "history_median:,.0f"}
    print_objects("users by the share of popular items in their history", columns, log.tastes)
    if recs is not None:
        columns = {"tastes": "taste", "users": "users:,", "arp of history": "arp_history:,.1f", "arp": "arp:,.1f"}
        columns |= {"popularity lift": "popularity_lift:+.1%", "aplt of history": "aplt_history:.1%"}
        columns |= {"aplt": "aplt:.1%", "upd": "upd:.3f"}
        print_objects(f"list against history, by taste (lists of {recs.k}, means over users)", columns, recs.tastes)

    columns = {"interactions": "interactions:,", "items": "items:,", "new items": "new_items:,", "Gini": "log_gini:.3f"}
    columns |= {
        "head share": "log_head_share:.1%",
        "niche share": "log_niche_share:.1%",
        "on new items": "new_share:.1%",
    }
    starts = readable_times([period.start for period in log.periods])
    rows = [[start, *attributes(one, *columns.values())] for start, one in zip(starts, log.periods, strict=True)]
    if rows:
        print_table("over time, in periods of about as many interactions each", ["from", *columns], rows)

    shifts = {} if recs is None else {"winners: more": recs.winners, "losers: less": recs.losers}
    for title, items in shifts.items():
        columns = {"item": "item_id"} | titled(items) | {"group": "group", "in log": "interactions:,"}
        columns |= {"in lists": "recommendations:,", "share of log": "interaction_share:.3%"}
        columns |= {"share of lists": "recommendation_share:.3%"}
        print_objects(f"{title} of the recommendations than of the interactions", columns, items)

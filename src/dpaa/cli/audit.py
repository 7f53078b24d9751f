"""`dpaa audit`: how skewed a log is, and what the recommendations of any system make of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from dpaa.cli import options
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
from dpaa.files import same_place

if TYPE_CHECKING:
    from dpaa.auditing.amplification import Amplification, ItemShift
    from dpaa.auditing.audit import Audit
    from dpaa.auditing.skew import Skew


def _show_schema(wanted: bool) -> None:
    if wanted:
        from dpaa.auditing.schema import audit_schema

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
    _check_targets(data, recs, per_user, figure, html, overwrite)
    if metrics_out is not None:
        from dpaa.auditing.openmetrics import check_metrics_file

        check_metrics_file(metrics_out)
    from dpaa.auditing.audit import audit as measure

    found = measure(
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
        print_json(found.as_json())
    else:
        print_audit(found)
    print_notes(found.notes)
    if metrics_out is not None:
        from dpaa.auditing.openmetrics import write_metrics

        write_metrics(found.openmetrics(), metrics_out)
        err.print(f"metrics written to {metrics_out}")
    _write(found, per_user, figure, html)
    log.write_invalid(found.invalid, err.print)
    for check in found.failed:
        err.print(Styled("check failed:", "bold red"), " ", check.sentence)
    if found.failed:
        raise typer.Exit(1)


def _check_targets(
    data: list[str], recs: Path | None, per_user: Path | None, figure: Path | None, html: Path | None, overwrite: bool
) -> None:
    """Refuse files that could not be written, before any work."""
    if per_user is not None:
        from dpaa.runs.stream import check_target

        if recs is None:
            raise InputError("--per-user compares lists with histories; name the lists with --recs")
        check_target(per_user, overwrite)
        if same_place(per_user, recs) or any(same_place(per_user, one) for one in data):
            raise InputError(f"{per_user} is what is audited; name another file for --per-user")
    if figure is not None:
        from dpaa.report.figures import check_figure

        check_figure(figure)
    if html is not None:
        from dpaa.report.page import check_page

        check_page(html)


def _write(found: Audit, per_user: Path | None, figure: Path | None, html: Path | None) -> None:
    """The file that is not replaced unasked comes last: a call that was cut short can be made again."""
    if figure is not None:
        from dpaa.report.audit_figures import lorenz_curve
        from dpaa.report.figures import save

        err.print(f"figure written to {save(lorenz_curve(found), figure)}")
    if html is not None:
        from dpaa.report.page import audit_page

        audit_page(found, html)
        err.print(f"page written to {html}")
    if per_user is not None and found.recommendations is not None:
        from dpaa.runs.stream import write_stream

        table = found.recommendations.per_user
        rows = write_stream(iter([table]), table.schema, per_user)
        err.print(f"{rows:,} users written to {per_user}")


def print_audit(found: Audit) -> None:
    """Sentences, then tables."""
    out.print(Styled(f"Audit of {found.source}", "bold"))
    for sentence in found.in_words():
        out.print(f"- {sentence}")
    _print_deciles(found.log, found.recommendations)
    _print_tastes(found)
    _print_periods(found.log)
    if found.recommendations is not None:
        _print_shifts("winners: more of the recommendations than of the interactions", found.recommendations.winners)
        _print_shifts("losers: less of the recommendations than of the interactions", found.recommendations.losers)


def _print_deciles(log: Skew, recs: Amplification | None) -> None:
    header, columns = ["tenth of the items", "interactions"], [log.deciles]
    if recs is not None:
        header.append("recommendations")
        columns.append(recs.deciles)
    labels = ["1 (rarest)", *map(str, range(2, 10)), "10 (most popular)"]
    rows = [[label, *cells(".1%", *shares)] for label, *shares in zip(labels, *columns, strict=True)]
    if recs is not None and recs.outside_deciles:
        rows.append(["not in the log", *cells(".1%", 0.0, recs.outside_deciles)])
    print_table("share by popularity of the item", header, rows)


def _print_tastes(found: Audit) -> None:
    """Users by taste; with recommendations, what happens to each."""
    from dpaa.auditing.names import full_name

    header = ["tastes", "users", "popular items in history", "history (median)"]
    rows: list[list[object]] = []
    for group in found.log.tastes:
        mean, lowest, highest = cells(".1%", group.mean, group.lowest, group.highest)
        known = [f"{mean} ({lowest} to {highest})", f"{group.history_median:,.0f}"] if group.users else ["-", "-"]
        rows.append([group.taste, f"{group.users:,}", *known])
    print_table("users by the share of popular items in their history", header, rows)
    if found.recommendations is None:
        return
    specs = ("arp_history:,.1f", "arp:,.1f", "popularity_lift:+.1%", "aplt_history:.1%", "aplt:.1%", "upd:.3f")
    columns = {full_name(spec.partition(":")[0], found.recommendations.k): spec for spec in specs}
    title = "list against history, by taste (means over users)"
    print_objects(title, {"tastes": "taste", "users": "users:,"} | columns, found.recommendations.tastes)


def _print_periods(log: Skew) -> None:
    from dpaa.auditing.sentences import moments

    shown = iter(moments([time for period in log.periods for time in (period.start, period.end)]))
    columns = {"interactions": "interactions:,", "items": "items:,", "new items": "new_items:,"}
    columns |= {"log_gini": "log_gini:.3f", "log_head_share": "log_head_share:.1%"}
    columns |= {"log_niche_share": "log_niche_share:.1%", "on new items": "new_share:.1%"}
    rows = [
        [number, next(shown), next(shown), *attributes(period, *columns.values())]
        for number, period in enumerate(log.periods, start=1)
    ]
    if rows:
        title = "over time, in periods of about as many interactions each"
        print_table(title, ["period", "from", "to", *columns], rows)


def _print_shifts(title: str, items: list[ItemShift]) -> None:
    columns = {"item": "item_id"} | titled(items) | {"group": "group", "interactions": "interactions:,"}
    columns |= {"recommendations": "recommendations:,", "share of interactions": "interaction_share:.3%"}
    print_objects(title, columns | {"of recommendations": "recommendation_share:.3%"}, items)

"""An audit (`dpaa audit --json`): how skewed a log is, and whether recommendations amplify it."""

from __future__ import annotations

from math import isfinite

from markupsafe import Markup

from dpaa.auditing import ItemShift, readable_times
from dpaa.report.charts import Line, curves
from dpaa.report.lenient import is_number
from dpaa.report.parts import Cell, Figure, Section, number, share, table
from dpaa.report.records import AuditFile
from dpaa.report.rendering import render, shown_item
from dpaa.report.sections.exposure import LOG, TENTHS, by_tenth

TASTES = {
    "users": ("users", 0),
    "mean": ("popular items in history", 3),
    "history_median": ("items in history (median)", 0),
    "arp_history": ("popularity of history", 1),
    "arp": ("popularity of list", 1),
    "popularity_lift": ("lift", 3),
    "upd": ("UPD", 3),
}
"""Columns of the table of tastes and their digits."""
PERIODS = {
    "log_head_share": "share of the most popular fifth",
    "log_niche_share": "share of niche items",
    "new_share": "on items new in the period",
}


def section(name: str, audit: AuditFile, suffix: str = "") -> Section:
    """Sentences, numbers, curves, and winners and losers where recommendations were audited."""
    drawn = {"lorenz": _lorenz(audit, suffix), "exposure": _exposure(audit, suffix), "periods": _periods(audit, suffix)}
    lists = audit.recommendations
    content = render(
        "audit.html",
        audit=audit,
        figures=drawn,
        checks=[(check.get("failed"), check.get("sentence") or check.get("check")) for check in audit.checks],
        tastes=_tastes(audit),
        shifts=[_shifts("Winners against the log", lists.winners), _shifts("Losers against the log", lists.losers)],
        numbers=_numbers(audit),
    )
    title = f"Audit of {audit.source or name}"
    return Section(f"audit{suffix}", title, "Audit", content, [figure for figure in drawn.values() if figure])


def _lorenz(audit: AuditFile, suffix: str) -> Figure | None:
    found = {"interactions of the log": audit.log.lorenz, "recommendations": audit.recommendations.lorenz}
    lines = []
    for place, (name, points) in enumerate(found.items()):
        # What is no share would stretch the figure beyond all bounds.
        kept = [point for point in points if len(point) == 2 and all(0 <= share <= 1 for share in point)]
        if kept:
            lines.append(Line(name, [1 - x for x, _ in kept], [1 - y for _, y in kept], place))
    if not lines:
        return None
    lines.append(Line("if all items were alike", [0.0, 1.0], [0.0, 1.0], None))
    gini = audit.log.log_gini
    axes = ("share of items, most popular first", "share of the total")
    return Figure(
        f"audit-concentration{suffix}",
        "How concentrated it is",
        "Cumulative share against share of items, most popular first."
        f"{f' Gini coefficient of the log: {gini:.3f}.' if isfinite(gini) else ''}",
        lambda theme: curves(lines, theme, *axes, percent="xy", top=1.0),
    )


def _exposure(audit: AuditFile, suffix: str) -> Figure | None:
    log, lists = audit.log.deciles, audit.recommendations.deciles
    if not len(log) == len(lists) == len(TENTHS) or not all(0 <= share <= 1 for share in (*log, *lists)):
        return None
    return by_tenth(
        f"audit-exposure{suffix}",
        "Exposure by popularity, before and after",
        "Share of interactions and of recommendations by popularity tenth of the items.",
        "share",
        {LOG: (log, None), "recommendations": (lists, 0)},
    )


def _periods(audit: AuditFile, suffix: str) -> Figure | None:
    periods = audit.log.periods
    if len(periods) < 2:
        return None
    places = [float(place + 1) for place in range(len(periods))]
    values = {name: [getattr(period, key) for period in periods] for key, name in PERIODS.items()}
    lines = [
        Line(name, places, found, place)
        for place, (name, found) in enumerate(values.items())
        if all(map(isfinite, found))
    ]
    times = [time for period in periods for time in (period.start, period.end)]
    said = readable_times(times) if all(time is not None for time in times) else [""] * len(times)
    rows = [
        [Cell(f"{place:g}", place), start, end, *map(number, shares)]
        for place, start, end, *shares in zip(places, said[::2], said[1::2], *values.values(), strict=True)
    ]
    return Figure(
        f"audit-over-time{suffix}",
        "Popularity over time",
        f"Shares over {len(periods)} periods of equally many interactions.",
        lambda theme: curves(
            lines, theme, "period, first to last", "share of interactions", percent="y", dots=True, whole=True
        ),
        table("Periods", ["period", "from", "to", *PERIODS.values()], rows),
    )


def _tastes(audit: AuditFile) -> Markup:
    """Users by how popular the items of their history are."""
    of_lists = {group.taste: vars(group) for group in audit.recommendations.tastes}
    groups = [vars(group) | of_lists.get(group.taste, {}) for group in audit.log.tastes]
    columns = {key: shown for key, shown in TASTES.items() if any(is_number(group.get(key)) for group in groups)}
    rows = [
        [str(group["taste"]), *(number(group.get(key), digits) for key, (_, digits) in columns.items())]
        for group in groups
    ]
    caption = (
        "Users by taste: niche, diverse or blockbuster, by the share of popular items in their history. Lift is how "
        "much more popular a list is than the history; UPD the distance between the two mixes (0 = alike)."
    )
    return table(caption, ["taste", *(name for name, _ in columns.values())], rows) if rows else Markup()


def _shifts(title: str, items: list[ItemShift]) -> Markup:
    rows = [
        [
            Cell(shown_item(item.item_id, item.title)),
            item.group,
            number(item.interactions, 0),
            number(item.recommendations, 0),
            share(item.interaction_share, 2),
            share(item.recommendation_share, 2),
        ]
        for item in items
    ]
    heads = ["item", "group", "used", "recommended", "share of log", "share of lists"]
    return table(title, heads, rows) if rows else Markup()


def _numbers(audit: AuditFile) -> Markup:
    rows = []
    for name, value in audit.numbers.items():
        shown = number(value if is_number(value) else None, 0 if isinstance(value, int) else 4)
        rows.append([name, shown, str(audit.meanings.get(name, ""))])
    return table("Numbers of the audit", ["name", "value", "meaning"], rows)

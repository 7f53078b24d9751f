"""An audit (`dpaa audit --json`): how skewed a log is, and whether recommendations amplify it."""

from __future__ import annotations

from typing import Any

from dpaa.auditing.sentences import moments
from dpaa.report.charts import Line, curves
from dpaa.report.foreign import is_number, list_at, object_at, objects_at, text_at
from dpaa.report.markup import Markup, tag
from dpaa.report.parts import Cell, Figure, Head, Section, bullets, number, paragraph, percent, shown_id, table

DIGITS = {"users": 0, "history_median": 0, "arp_history": 1, "arp": 1, "mean": 3, "popularity_lift": 3, "upd": 3}
"""Of the table of tastes."""


def section(name: str, audit: dict[str, Any], suffix: str = "") -> Section:
    """Sentences, numbers, curves, and winners and losers where recommendations were audited."""
    log, recs = object_at(audit, "log"), object_at(audit, "recommendations")
    parts: list[Figure | Markup] = [
        bullets([str(line) for line in list_at(audit, "in_words")]),
        *_checks(audit),
        *_lorenz(log, recs, suffix),
        *_deciles(log, recs, suffix),
        *_periods(log, suffix),
        *_tastes(log, recs),
        *_shifts(recs),
        _numbers(audit),
    ]
    if list_at(audit, "notes"):
        parts.append(
            tag("div", paragraph("To know:"), bullets([str(n) for n in list_at(audit, "notes")]), class_="notes")
        )
    return Section(f"audit{suffix}", f"Audit of {audit.get('source', name)}", "Audit", parts)


def _numbers(audit: dict[str, Any]) -> Markup:
    meanings = object_at(audit, "meanings")
    rows = [
        [Cell(key, key), _number(value), Cell(str(meanings.get(key, "")))]
        for key, value in object_at(audit, "numbers").items()
    ]
    heads = [Head("name", numeric=False), Head("value"), Head("meaning", numeric=False)]
    return tag("details", tag("summary", "All numbers of the audit"), table("Numbers of the audit", heads, rows))


def _checks(audit: dict[str, Any]) -> list[Markup]:
    """What `--fail-if` asked for."""
    lines = []
    for check in list_at(audit, "checks"):
        if isinstance(check, dict):
            verdict = "failed" if check.get("failed") else "passed"
            words = check.get("sentence") or check.get("expression") or check.get("check") or ""
            lines.append([tag("strong", verdict), f": {words}"])
    return [bullets(lines)] if lines else []


def _lorenz(log: dict[str, Any], recs: dict[str, Any], suffix: str) -> list[Figure]:
    found = {"interactions of the log": _pairs(log.get("lorenz")), "recommendations": _pairs(recs.get("lorenz"))}
    lines = [
        Line(name, [1 - x for x, _ in points], [1 - y for _, y in points], place)
        for place, (name, points) in enumerate(found.items())
        if points
    ]
    if not lines:
        return []
    lines.append(Line("if all items were alike", [0.0, 1.0], [0.0, 1.0], None))
    told = f" Gini coefficient of the log: {log['log_gini']:.3f}." if isinstance(log.get("log_gini"), float) else ""
    return [
        Figure(
            f"audit-concentration{suffix}",
            "How concentrated it is",
            f"Cumulative share against share of items, most popular first.{told}",
            "Go right until the share of items you care for, then up to a line: that is the share of all interactions "
            "(or recommendations) these items have. The dashed diagonal is what equal shares would give; the further a "
            f"line bends to the upper left, the fewer items have most of it.{told}",
            lambda look: curves(
                lines, look, "share of items, most popular first", "share of the total", percent="xy", top=1.0
            ),
        )
    ]


def _deciles(log: dict[str, Any], recs: dict[str, Any], suffix: str) -> list[Figure]:
    found = {"the log (what people did before)": log.get("deciles"), "recommendations": recs.get("deciles")}
    tenths = [float(tenth) for tenth in range(1, 11)]
    lines = [
        Line(name, tenths, values, place - 1 if place else None)
        for place, (name, values) in enumerate(found.items())
        if isinstance(values, list) and len(values) == len(tenths) and all(isinstance(v, int | float) for v in values)
    ]
    if len(lines) < 2:
        return []
    heads = [Head("share of", numeric=False), *(Head(str(tenth)) for tenth in range(1, 11))]
    rows = [[Cell(line.name), *(Cell(percent(v or 0.0), v) for v in line.y)] for line in lines]
    return [
        Figure(
            f"audit-exposure{suffix}",
            "Exposure by popularity, before and after",
            "Share of interactions and of recommendations by popularity tenth of the items.",
            "The items are sorted into ten equal groups from rarest (1) to most popular (10). Where the solid line is "
            "above the dashed one, these items are recommended more than people used them; above it at 10 means that "
            "the recommender amplifies popularity.",
            lambda look: curves(
                lines,
                look,
                "popularity tenth (1 = rarest items, 10 = most popular)",
                "share",
                percent="y",
                dots=True,
                whole=True,
            ),
            table("Share by popularity tenth", heads, rows),
        )
    ]


def _periods(log: dict[str, Any], suffix: str) -> list[Figure]:
    periods = [period for period in list_at(log, "periods") if isinstance(period, dict)]
    if len(periods) < 2:
        return []
    places = [float(place + 1) for place in range(len(periods))]
    shown = {
        "log_head_share": "share of the most popular fifth",
        "log_niche_share": "share of niche items",
        "new_share": "on items new in the period",
    }
    lines = [
        Line(name, places, [period.get(key) for period in periods], place)
        for place, (key, name) in enumerate(shown.items())
        if all(isinstance(period.get(key), int | float) for period in periods)
    ]
    heads = [Head("period", numeric=False), Head("from", numeric=False), Head("to", numeric=False)]
    heads += [Head(name) for name in shown.values()]
    times = [time for period in periods for time in (period.get("start"), period.get("end"))]
    known = [time for time in times if isinstance(time, str | int | float)]  # the file may be anybody's
    said = moments(known) if len(known) == len(times) else [""] * len(times)
    rows = [
        [
            Cell(str(place + 1), float(place)),
            *(Cell(time, "") for time in said[2 * place : 2 * place + 2]),
            *(_number(period.get(key)) for key in shown),
        ]
        for place, period in enumerate(periods)
    ]
    return [
        Figure(
            f"audit-over-time{suffix}",
            "Popularity over time",
            f"Shares over {len(periods)} periods of equally many interactions.",
            "The log is cut into periods with equally many interactions, in the order of time. A rising share of the "
            "most popular fifth means that the log becomes more lopsided; a share of new items that falls to nothing "
            "means that newcomers are no longer noticed.",
            lambda look: curves(
                lines, look, "period, first to last", "share of interactions", percent="y", dots=True, whole=True
            ),
            table("Periods", heads, rows),
        )
    ]


def _tastes(log: dict[str, Any], recs: dict[str, Any]) -> list[Markup]:
    """Users by how popular the items of their history are."""
    shown = {
        "users": "users",
        "mean": "popular items in history",
        "history_median": "items in history (median)",
        "arp_history": "popularity of history",
        "arp": "popularity of list",
        "popularity_lift": "lift",
        "upd": "UPD",
    }
    of_lists = {
        text_at(group, "taste"): {key.partition("@")[0]: value for key, value in group.items()}
        for group in objects_at(recs, "tastes")
    }
    groups = [group | of_lists.get(text_at(group, "taste"), {}) for group in objects_at(log, "tastes")]
    columns = {key: name for key, name in shown.items() if any(is_number(group.get(key)) for group in groups)}
    rows = [
        [
            Cell(text_at(group, "taste"), text_at(group, "taste")),
            *(_number(group.get(key), DIGITS[key]) for key in columns),
        ]
        for group in groups
    ]
    if not rows:
        return []
    heads = [Head("taste", numeric=False), *(Head(name) for name in columns.values())]
    caption = (
        "Users by taste: niche, diverse or blockbuster, by the share of popular items in their history. Lift is how "
        "much more popular a list is than the history; UPD the distance between the two mixes (0 = alike)."
    )
    return [table(caption, heads, rows)]


def _shifts(recs: dict[str, Any]) -> list[Markup]:
    tables = []
    for key, title in (("winners", "Winners against the log"), ("losers", "Losers against the log")):
        rows = [_shift(item) for item in list_at(recs, key) if isinstance(item, dict)]
        heads = [
            Head("item", numeric=False),
            Head("group", numeric=False),
            *(Head(name) for name in ("used", "recommended", "share of log", "share of lists")),
        ]
        if rows:
            tables.append(table(title, heads, rows))
    return [tag("div", tables, class_="pair")] if tables else []


def _shift(item: dict[str, Any]) -> list[Cell]:
    return [
        Cell(shown_id(item.get("item_id")), str(item.get("item_id"))[:80]),
        Cell(str(item.get("group", "")), str(item.get("group", ""))),
        _number(item.get("interactions"), 0),
        _number(item.get("recommendations"), 0),
        _share(item.get("interaction_share")),
        _share(item.get("recommendation_share")),
    ]


def _number(value: object, digits: int = 4) -> Cell:
    if isinstance(value, int):
        return number(value, 0)
    return number(value if isinstance(value, float) else None, digits)


def _share(value: object) -> Cell:
    return Cell(percent(value, 2), float(value)) if isinstance(value, int | float) else Cell("–")


def _pairs(content: object) -> list[tuple[float, float]]:
    """Points of a curve of shares; what is no share would stretch the figure beyond all bounds."""
    points = content if isinstance(content, list) else []
    pairs = [point for point in points if isinstance(point, list) and len(point) == 2 and all(map(is_number, point))]
    return [(float(x), float(y)) for x, y in pairs if 0 <= x <= 1 and 0 <= y <= 1]

"""Sections on JSON files: frontiers (`dpaa debias`), comparisons (`dpaa compare`), audits (`dpaa audit`).

The files may be damaged or of another version: what is missing is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from markupsafe import Markup

from dpaa._io import same_place
from dpaa.auditing import readable_times
from dpaa.comparison import harm_in_words, relative_change
from dpaa.evaluation.metrics import explain
from dpaa.report._charts import EQUAL, Dot, Interval, Line, curves, intervals, scatter
from dpaa.report._html import (
    Cell,
    Figure,
    Head,
    Section,
    absolute,
    minus,
    moved_items,
    number,
    records_table,
    render,
    shown_item,
    signed,
)
from dpaa.report._inputs import Run
from dpaa.report._partial import Partial, is_number
from dpaa.report._runs import LOG, by_decile

DEEPEST = -0.3
"""Points that lose more of the accuracy are no trade-off, and left out of the figure."""
SHOWN_ITEMS = 10
LONGEST_TITLE = 60
VERDICTS = {
    "better": "better, more than chance",
    "worse": "worse, more than chance",
    "higher": "higher, more than chance",
    "lower": "lower, more than chance",
    "not shown": "could be chance",
    "not tested": "not tested: no average over users",
}
TASTES = {
    "users": "users:,.0f",
    "popular items in history": "mean:.3f",
    "items in history (median)": "history_median:,.0f",
    "popularity of history": "arp_history:,.1f",
    "popularity of list": "arp:,.1f",
    "lift": "popularity_lift:.3f",
    "UPD": "upd:.3f",
}
SHIFTS = {
    "group": "group",
    "used": "interactions:,.0f",
    "recommended": "recommendations:,.0f",
    "share of log": "interaction_share:.2%",
    "share of lists": "recommendation_share:.2%",
}
PERIODS = {
    "log_head_share": "share of the most popular fifth",
    "log_niche_share": "share of niche items",
    "new_share": "on items new in the period",
}


# ---------------------------------------------------------------------- frontier


def frontier(content: Partial, suffix: str = "") -> Section:
    """Accuracy against each goal over models and re-rankers, and the point that was chosen."""
    goals = content.parts("goals")
    drawn = [_goal(content, goal, f"{suffix}-{index}" if index else suffix) for index, goal in enumerate(goals)]
    figures = [figure for figure in drawn if figure is not None]
    verdict, *sentences = content.texts("sentences") or [""]
    users = content.whole("users")
    # The sentences give the change on held-out users, where there are any; the figure counts all.
    chosen = content.part("chosen")
    held_out, over_all = (
        content.part("confirmation").part("change").number("estimate"),
        chosen.number("accuracy_change"),
    )
    differs = isfinite(held_out) and isfinite(over_all) and signed(held_out) != signed(over_all)
    rendered = render(
        "frontier.html",
        verdict=verdict,
        sentences=sentences,
        over_all=signed(over_all) if differs and chosen.text("name") != content.part("base").text("name") else "",
        figures=figures,
        users="the" if users is None else f"{users:,}",
        estimate=content.part("estimate").text("in_words"),
        exposure=content.part("exposure").text("in_words"),
        left_out=content.texts("notes"),
    )
    title = "The best trade-off between accuracy and popularity"
    return Section(f"trade{suffix}", title, "Trade-off", rendered, figures)


def _goal(content: Partial, goal: Partial, suffix: str) -> Figure | None:
    metric, points = goal.text("metric"), content.parts("points")
    models = list(dict.fromkeys(point.text("model") for point in points))
    special = {content.part("base").text("name"): "baseline"} | {content.part("chosen").text("name"): "chosen"}
    dots = []
    for point in points:
        change, value = point.number("accuracy_change"), point.part("metrics").number(metric)
        if isfinite(value) and change >= DEEPEST:
            tip = f"{point.text('name')}: accuracy {signed(change)}, {metric} {value:.4g}"
            best, mark = point.get("on_frontier") is True, special.get(point.text("name"), "")
            model, plain = point.text("model"), point.get("plain") is True
            dots.append(Dot(model, models.index(model), change, value, tip, plain, best, mark))
    if len(dots) < 2:
        return None
    low = goal.text("better") == "low"
    return Figure(
        f"frontier{suffix}",
        f"Accuracy against {goal.text('name')}",
        f"Accuracy against the baseline and {metric} of every point; the chosen one and the baseline are marked.",
        lambda theme: scatter(dots, theme, "accuracy against the baseline", metric, relative=True, falling=low),
        _frontier_table(content, metric),
    )


def _frontier_table(content: Partial, metric: str) -> Markup:
    chosen, base = content.part("chosen"), content.part("base").text("name")

    def name(point: Partial) -> str:
        marks = {"chosen": point.text("name") == chosen.text("name"), "baseline": point.text("name") == base}
        marks["beaten by another point"] = point.get("on_frontier") is not True
        shown = [mark for mark, given in marks.items() if given]
        return f"{point.text('name')} ({', '.join(shown)})" if shown else point.text("name")

    columns: dict[str, Any] = {"point": name, "accuracy": "accuracy:,.4f", "change": "accuracy_change:+.1%"}
    columns |= {"from": "accuracy_change_low:+.1%", "to": "accuracy_change_high:+.1%"}
    for each in dict.fromkeys((metric, *chosen.part("metrics").content)):
        columns[each] = lambda point, key=each: number(point.part("metrics").number(key))
    shown = [
        point for point in content.parts("points") if point.get("on_frontier") is True or point.get("plain") is True
    ]
    return records_table("The frontier, and the models as they are", shown, columns)


# ---------------------------------------------------------------------- comparison


def comparison(name: str, content: Partial, suffix: str = "", runs: Sequence[Run] = ()) -> Section:
    """Differences with intervals, the no-harm line, and what changes for items and users.

    Where all entries are among `runs`, which have sections of their own for items and users, these are left out.
    """
    baseline, entries, deltas = content.text("baseline"), content.parts("entries"), content.parts("deltas")
    figure, near_zero = _differences(baseline, deltas, suffix)
    sources = [source for entry in entries for source in entry.texts("sources")]
    shown_above = bool(sources) and all(any(same_place(one, run.folder.path) for run in runs) for one in sources)
    rendered = render(
        "comparison.html",
        comparison=content,
        baseline=baseline,
        protocol=content.part("protocol"),
        verdicts={(delta.text("entry"), delta.text("metric")): delta.text("verdict") for delta in deltas},
        harm_in_words=harm_in_words,
        figure=figure,
        near_zero=", ".join(near_zero),
        deltas=_deltas(baseline, deltas),
        moved=[] if shown_above else [(one.text("entry"), _moved(baseline, one)) for one in content.parts("exposure")],
        examples=[] if shown_above else [_example(baseline, one) for one in content.parts("examples")],
    )
    against = ", ".join(entry.text("name") for entry in entries if entry.text("name") != baseline)
    title = f"Significance: {f'{against} against {baseline}' if 0 < len(against) <= LONGEST_TITLE else name}"
    return Section(f"comparison{suffix}", title, "Comparison", rendered, [figure] if figure else [])


def _interval(delta: Partial) -> tuple[float, float] | None:
    edges = delta.items("interval")
    return (float(edges[0]), float(edges[1])) if len(edges) == 2 and all(map(is_number, edges)) else None


def _relative(delta: Partial) -> float:
    return relative_change(delta.number("baseline"), delta.number("delta"))


def _differences(baseline: str, deltas: Sequence[Partial], suffix: str) -> tuple[Figure | None, list[str]]:
    """Relative changes; and what is not drawn, since its baseline is near 0."""
    entries = list(dict.fromkeys(delta.text("entry") for delta in deltas))
    rows, near_zero = [], []
    for delta in deltas:
        entry, metric, edges, relative = delta.text("entry"), delta.text("metric"), _interval(delta), _relative(delta)
        if edges is not None and isfinite(relative):
            low, high = (edge / abs(delta.number("baseline")) for edge in edges)
            tip = f"{entry}, {metric}: {signed(relative)} ({signed(low)} to {signed(high)})"
            rows.append(Interval(metric, entry, entries.index(entry) + 1, relative, low, high, tip))
        elif edges is not None and isfinite(delta.number("baseline") + delta.number("delta")):
            near_zero.append(f"{metric} of {entry} ({absolute(delta.number('delta'))})")
    if not rows:
        return None, near_zero
    figure = Figure(
        f"differences{suffix}",
        f"Change against {baseline}",
        f"Relative change of each metric with its interval. {'; '.join(row.tip for row in rows[:12])}.",
        lambda theme: intervals(rows, theme, f"change relative to {baseline}"),
    )
    return figure, near_zero


def _deltas(baseline: str, deltas: Sequence[Partial]) -> Markup:
    def metric(delta: Partial) -> Cell:
        words = explain(delta.text("metric"))
        return Cell(delta.text("metric"), note=words.words if words else None)

    def interval(delta: Partial) -> Cell:
        edges = _interval(delta)
        return Cell(minus(f"{edges[0]:.4f} to {edges[1]:.4f}"), edges[0]) if edges else number(None)

    def p_value(delta: Partial) -> Cell:
        p = delta.number("p_holm")
        return Cell("< 0.001", p) if p < 0.001 else number(p, ".3f")

    columns: dict[Any, Any] = {
        "entry": "entry",
        "metric": metric,
        Head(baseline, "the baseline"): "baseline:,.4f",
        "value": "value:,.4f",
        "difference": "delta:,.4f",
        Head("relative", "difference / baseline; – where the baseline is 0 or near it"): lambda delta: number(
            _relative(delta), "+.1%"
        ),
        "interval": interval,
        Head("p (Holm)", "corrected p-value: how surprising the difference would be if there were none"): p_value,
        "verdict": lambda delta: VERDICTS.get(delta.text("verdict"), delta.text("verdict")),
    }
    return records_table(f"Differences from {baseline}", deltas, columns)


def _shown(item: Partial) -> Markup:
    return shown_item(item.get("item_id"), item.get("title"))


def _moved(baseline: str, exposure: Partial) -> list[Markup]:
    where = f"lists that hold the item; before = {baseline}, after = {exposure.text('entry')}"
    return [
        moved_items(
            f"{side}: {where}",
            [
                (_shown(one), one.number("training_count"), one.text("group"), *map(one.number, ("baseline", "value")))
                for one in exposure.parts(key)
            ],
        )
        for side, key in (("Winners", "gaining"), ("Losers", "losing"))
    ]


def _example(baseline: str, example: Partial) -> tuple[object, str, list[tuple[str, list[dict[str, Any]], bool]]]:
    """User, why, and both lists."""
    before, after = example.number("baseline"), example.number("value")
    change = f"{example.text('metric')} {before:.3f} → {after:.3f}; " if isfinite(after - before) else ""
    why = (
        f"{change}{example.text('history')} items in the history, {len(example.items('relevant'))} liked in the test, "
        f"{example.text('shared')} items in both lists"
    )

    def listed(item: Partial) -> dict[str, Any]:
        return {"shown": _shown(item), "rank": None, "group": item.text("group"), "hit": item.get("hit") is True}

    lists = [
        (title, list(map(listed, example.parts(key)[:SHOWN_ITEMS])), True)
        for title, key in ((baseline, "baseline_list"), (example.text("entry"), "entry_list"))
    ]
    return example.get("user_id"), why, lists


# ---------------------------------------------------------------------- audit


def audit(name: str, content: Partial, suffix: str = "") -> Section:
    """How skewed a log is, and whether recommendations amplify it."""
    log, lists = content.part("log"), content.part("recommendations")
    drawn = {"lorenz": _lorenz(log, lists, suffix), "exposure": _exposure(log, lists, suffix)}
    drawn["periods"] = _periods(log, suffix)
    shifts = {"item": _shown} | SHIFTS
    winners, losers = (
        records_table(f"{key.capitalize()} against the log", lists.parts(key), shifts) for key in ("winners", "losers")
    )
    meanings = content.part("meanings")
    numbers = [Partial({"name": key, "value": value}) for key, value in content.part("numbers").content.items()]
    columns: dict[Any, Any] = {
        "name": "name",
        "value": lambda one: number(one.number("value"), ",.4f" if one.whole("value") is None else ",.0f"),
        "meaning": lambda one: meanings.text(one.text("name")),
    }
    rendered = render(
        "audit.html",
        sentences=content.texts("in_words"),
        gini=log.number("log_gini"),
        figures=drawn,
        checks=[(each.get("failed"), each.text("sentence") or each.text("check")) for each in content.parts("checks")],
        tastes=_tastes(log, lists),
        shifts=[winners, losers],
        numbers=records_table("Numbers of the audit", numbers, columns),
        left_out=content.texts("notes"),
    )
    title = f"Audit of {content.text('source') or name}"
    return Section(f"audit{suffix}", title, "Audit", rendered, [figure for figure in drawn.values() if figure])


def _lorenz(log: Partial, lists: Partial, suffix: str) -> Figure | None:
    lines = []
    for index, (name, part) in enumerate((("interactions of the log", log), ("recommendations", lists))):
        points = [
            Partial({"point": point}).shares("point") for point in part.items("lorenz") if isinstance(point, list)
        ]
        kept = [point for point in points if len(point) == 2]
        if kept:
            lines.append(Line(name, [1 - x for x, _ in kept], [1 - y for _, y in kept], index))
    if not lines:
        return None
    gini = log.number("log_gini")
    axes = ("share of items, most popular first", "share of the total")
    return Figure(
        f"audit-concentration{suffix}",
        "How concentrated it is",
        "Cumulative share against share of items, most popular first."
        f"{f' Gini coefficient of the log: {gini:.3f}.' if isfinite(gini) else ''}",
        lambda theme: curves([*lines, EQUAL], theme, *axes, across="percent", upwards="percent", top=1.0),
    )


def _exposure(log: Partial, lists: Partial, suffix: str) -> Figure | None:
    shares = {LOG: log.shares("deciles"), "recommendations": lists.shares("deciles")}
    if any(len(values) != 10 for values in shares.values()):
        return None
    title = "Exposure by popularity, before and after"
    description = "Share of interactions and of recommendations by popularity decile of the items."
    return by_decile(f"audit-exposure{suffix}", title, description, "share", shares, (None, 0))


def _periods(log: Partial, suffix: str) -> Figure | None:
    periods = log.parts("periods")
    if len(periods) < 2:
        return None
    values = {name: [period.number(key) for period in periods] for key, name in PERIODS.items()}
    complete = [(name, shares) for name, shares in values.items() if all(map(isfinite, shares))]
    lines = [Line(name, range(1, len(periods) + 1), shares, index) for index, (name, shares) in enumerate(complete)]
    times = [period.get(edge) for period in periods for edge in ("start", "end")]
    known = all(isinstance(time, str) or is_number(time) for time in times)
    shown = iter(readable_times(times) if known else [""] * len(times))
    numbered = [Partial(each.content | {"period": index}) for index, each in enumerate(periods, 1)]
    columns: dict[Any, Any] = {"period": "period:.0f", "from": lambda _: next(shown), "to": lambda _: next(shown)}
    columns |= {title: f"{key}:,.4f" for key, title in PERIODS.items()}
    axes = ("period, first to last", "share of interactions")
    return Figure(
        f"audit-over-time{suffix}",
        "Popularity over time",
        f"Shares over {len(periods)} periods of equally many interactions.",
        lambda theme: curves(lines, theme, *axes, across="steps", upwards="percent"),
        records_table("Periods", numbered, columns),
    )


def _tastes(log: Partial, lists: Partial) -> Markup:
    """Users by how popular the items of their history are."""
    of_lists = {group.text("taste"): group.content for group in lists.parts("tastes")}
    groups = [Partial(group.content | of_lists.get(group.text("taste"), {})) for group in log.parts("tastes")]
    known = {
        head: key for head, key in TASTES.items() if any(isfinite(g.number(key.partition(":")[0])) for g in groups)
    }
    caption = (
        "Users by taste: niche, diverse or blockbuster, by the share of popular items in their history. Lift is how "
        "much more popular a list is than the history; UPD the distance between the two mixes (0 = alike)."
    )
    return records_table(caption, groups, {"taste": "taste"} | known)

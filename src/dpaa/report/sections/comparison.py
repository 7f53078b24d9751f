"""A comparison (`dpaa compare --json`): what differs from the baseline, and what is more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpaa.comparison.result import harm_in_words, relative_change
from dpaa.files import same_place
from dpaa.report.charts import intervals
from dpaa.report.foreign import list_at, number_at, object_at, objects_at, pair_at, text_at
from dpaa.report.inputs import Run
from dpaa.report.markup import Markup, tag
from dpaa.report.metric_words import explain
from dpaa.report.parts import (
    Cell,
    Figure,
    Head,
    Section,
    absolute,
    bullets,
    minus,
    number,
    paragraph,
    percent,
    shown_id,
    signed,
    table,
)

SHOWN_PLACES = 10
LONGEST_TITLE = 60
VERDICTS = {
    "better": "better, more than chance",
    "worse": "worse, more than chance",
    "higher": "higher, more than chance",
    "lower": "lower, more than chance",
    "not shown": "could be chance",
    "not tested": "not tested: no average over users",
}


def section(name: str, comparison: dict[str, Any], suffix: str = "", runs: Sequence[Run] = ()) -> Section:
    """Differences with intervals, the no-harm line, and what changes for items and users.

    Where all entries are among `runs`, which have chapters of their own for items and users, these are left out.
    """
    baseline = text_at(comparison, "baseline")
    parts: list[Figure | Markup] = [_what(comparison, baseline), *_no_harm(comparison, baseline)]
    parts += _figure(comparison, baseline, suffix)
    parts += _deltas(comparison, baseline)
    parts += _overlap(comparison)
    if not _all_among(comparison, runs):
        parts += _moved(comparison, baseline)
        parts += _examples(comparison, baseline)
    notes = [str(note) for note in list_at(comparison, "notes")]
    if notes:
        parts.append(tag("div", paragraph("To know:"), bullets(notes), class_="notes"))
    others = [text_at(entry, "name") for entry in objects_at(comparison, "entries")]
    against = ", ".join(other for other in others if other != baseline)
    title = f"{against} against {baseline}" if 0 < len(against) <= LONGEST_TITLE else name
    return Section(f"comparison{suffix}", f"More than chance? {title}", "Comparison", parts)


def _all_among(comparison: dict[str, Any], runs: Sequence[Run]) -> bool:
    sources = [source for entry in objects_at(comparison, "entries") for source in list_at(entry, "sources")]
    return bool(sources) and all(
        isinstance(source, str) and any(same_place(source, run.folder.path) for run in runs) for source in sources
    )


def _what(comparison: dict[str, Any], baseline: str) -> Markup:
    protocol = object_at(comparison, "protocol")
    users = number_at(protocol, "users")
    confidence = number_at(comparison, "confidence") or 0.95
    design = text_at(comparison, "design")
    return paragraph(
        "Everything is held against ",
        tag("strong", baseline),
        f" on the {text_at(protocol, 'split') or 'test'} split of {text_at(object_at(comparison, 'dataset'), 'name')}"
        f"{'' if users is None else f' ({users:,.0f} users)'}, lists of {text_at(comparison, 'k')}, overlap convention "
        f"“{text_at(protocol, 'overlap')}”. The {confidence:.0%} interval says how far a difference might move with "
        "other users of the same kind and, where there are several runs of a method, with other seeds"
        f"{f'; intervals and p-values come {design}' if design else ''}. p-values are corrected for the number of "
        f"tests ({text_at(comparison, 'family')}).",
    )


def _no_harm(comparison: dict[str, Any], baseline: str) -> list[Markup]:
    verdicts = {
        (text_at(delta, "entry"), text_at(delta, "metric")): text_at(delta, "verdict")
        for delta in objects_at(comparison, "deltas")
    }
    lines = []
    for line in objects_at(comparison, "no_harm"):
        margin, before, after = (number_at(line, key) for key in ("margin", "baseline", "value"))
        entry, metric = text_at(line, "entry"), text_at(line, "metric")
        difference = verdicts.get((entry, metric), "not tested")
        if margin is not None and before is not None and after is not None:
            says = harm_in_words(entry, baseline, margin, text_at(line, "verdict"), difference)
            lines.append(
                [
                    tag("strong", f"{says[:1].upper()}{says[1:]}"),
                    f" — {metric} {before:.4f} → {after:.4f}; a loss of up to {margin:.0%} of {baseline}'s value was "
                    "allowed.",
                ]
            )
    return [bullets(lines)] if lines else []


def _figure(comparison: dict[str, Any], baseline: str, suffix: str) -> list[Figure]:
    entries = list(dict.fromkeys(text_at(delta, "entry") for delta in objects_at(comparison, "deltas")))
    rows: list[Mapping[str, Any]] = []
    near_zero = []
    for delta in objects_at(comparison, "deltas"):
        before, change, interval = number_at(delta, "baseline"), number_at(delta, "delta"), pair_at(delta, "interval")
        if before is not None and change is not None and interval is not None:
            entry, metric = text_at(delta, "entry"), text_at(delta, "metric")
            relative = relative_change(before, change)
            if relative != relative:
                near_zero.append(f"{metric} of {entry} ({absolute(change)})")
                continue
            low, high = (edge / abs(before) for edge in interval)
            rows.append(
                {
                    "label": metric,
                    "name": entry,
                    "place": entries.index(entry) + 1,
                    "value": relative,
                    "low": low,
                    "high": high,
                    "tip": f"{entry}, {metric}: {signed(relative)} ({signed(low)} to {signed(high)})",
                }
            )
    if not rows:
        return []
    told = "; ".join(str(row["tip"]) for row in rows[:12])
    left_out = f" Not drawn, since {baseline}'s value is near 0: {', '.join(near_zero)}." if near_zero else ""
    return [
        Figure(
            f"differences{suffix}",
            f"Change against {baseline}",
            f"Relative change of each metric with its interval. {told}.",
            f"The dot is the change of a metric relative to {baseline}, the bar its interval: where the true value is "
            "likely to be. A bar that crosses the upright line at 0 "
            "means that the change could be chance; the verdict in the table is stricter, since it also corrects for "
            "the number of tests. Whether right is good depends on the metric: for accuracy it is, "
            f"for mean popularity (ARP) it is not.{left_out}",
            lambda look: intervals(rows, look, f"change relative to {baseline}"),
        )
    ]


def _deltas(comparison: dict[str, Any], baseline: str) -> list[Markup]:
    rows = []
    for delta in objects_at(comparison, "deltas"):
        interval, p = pair_at(delta, "interval"), number_at(delta, "p_holm")
        before, change = number_at(delta, "baseline"), number_at(delta, "delta")
        relative = float("nan") if before is None or change is None else relative_change(before, change)
        verdict = text_at(delta, "verdict")
        words = explain(text_at(delta, "metric"))
        rows.append(
            [
                Cell(text_at(delta, "entry"), text_at(delta, "entry")),
                Cell(text_at(delta, "metric"), text_at(delta, "metric"), note=words.words if words else None),
                number(before),
                number(number_at(delta, "value")),
                number(change),
                Cell(signed(relative), relative) if relative == relative else Cell("–", ""),
                Cell("–" if interval is None else _interval(*interval), interval and interval[0]),
                Cell("–" if p is None else _p(p), p),
                Cell(VERDICTS.get(verdict, verdict), verdict),
            ]
        )
    if not rows:
        return []
    heads = [
        Head("entry", numeric=False),
        Head("metric", numeric=False),
        Head(baseline, "the baseline"),
        Head("value"),
        Head("difference"),
        Head("relative", "difference / baseline; – where the baseline is 0 or near it"),
        Head("interval"),
        Head("p (Holm)", "corrected p-value: how surprising the difference would be if there were none"),
        Head("verdict", numeric=False),
    ]
    return [table(f"Differences from {baseline}", heads, rows)]


def _interval(low: float, high: float) -> str:
    return minus(f"{low:.4f} to {high:.4f}")


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _overlap(comparison: dict[str, Any]) -> list[Markup]:
    lines = []
    for overlap in objects_at(comparison, "overlap"):
        shared, unchanged = number_at(overlap, "shared"), number_at(overlap, "unchanged")
        if shared is not None:
            same = "" if unchanged is None else f"; {percent(unchanged)} of the users get the same items from both"
            lines.append(
                f"{text_at(overlap, 'entry')} and {text_at(overlap, 'other')} share {shared:.1f} of "
                f"{text_at(comparison, 'k')} items in a list{same}."
            )
    return [bullets(lines)] if lines else []


def _moved(comparison: dict[str, Any], baseline: str) -> list[Markup]:
    found = []
    for exposure in objects_at(comparison, "exposure"):
        entry = text_at(exposure, "entry")
        tables = []
        for key, title in (("gaining", "Winners"), ("losing", "Losers")):
            rows = [
                [
                    Cell(shown_id(item.get("item_id")), text_at(item, "item_id")[:80]),
                    number(number_at(item, "training_count"), 0),
                    Cell(text_at(item, "group"), text_at(item, "group")),
                    number(number_at(item, "baseline"), 0),
                    number(number_at(item, "value"), 0),
                    number(number_at(item, "change"), 0),
                ]
                for item in objects_at(exposure, key)
            ]
            heads = [
                Head("item", numeric=False),
                Head("used", "interactions in training"),
                Head("group", numeric=False),
                *(Head(name) for name in ("before", "after", "change")),
            ]
            if rows:
                caption = f"{title}: lists that hold the item; before = {baseline}, after = {entry}"
                tables.append(table(caption, heads, rows))
        if tables:
            found.append(tag("div", tag("h3", f"{entry} against {baseline}"), tag("div", tables, class_="pair")))
    return found


def _examples(comparison: dict[str, Any], baseline: str) -> list[Markup]:
    found = []
    for example in objects_at(comparison, "examples"):
        entry, metric = text_at(example, "entry"), text_at(example, "metric")
        before, after = number_at(example, "baseline"), number_at(example, "value")
        change = "" if before is None or after is None else f"{metric} {before:.3f} → {after:.3f}; "
        why = (
            f"{change}{text_at(example, 'history')} items in the history, {len(list_at(example, 'relevant'))} liked in "
            f"the test, {text_at(example, 'shared')} items in both lists"
        )
        columns = [
            tag(
                "div", tag("h4", title), tag("ol", [_place(place) for place in objects_at(example, key)[:SHOWN_PLACES]])
            )
            for title, key in ((baseline, "baseline_list"), (entry, "entry_list"))
        ]
        title = tag("h3", "User ", shown_id(example.get("user_id")))
        found.append(
            tag("article", title, tag("p", why, class_="why"), tag("div", columns, class_="lists"), class_="user")
        )
    return found


def _place(place: dict[str, Any]) -> Markup:
    hit = place.get("hit") is True
    mark = tag("span", "✓", tag("span", " liked in the test", class_="hidden"), class_="hit") if hit else None
    niche = tag("span", "niche", class_="badge niche") if place.get("group") == "niche" else None
    return tag("li", shown_id(place.get("item_id")), " ", niche, mark)

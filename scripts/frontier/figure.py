"""The frontier of each dataset on test, with every method as it is: docs/results/frontier.svg."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.frontier.lists import SWEPT
from scripts.frontier.rows import Record, order, title

from dpaa.report import PAPER, altair, save, styled

FIGURE = "frontier.svg"
COLUMNS = 2
LEFT_OUT = ("world:500x400:1", "world:1000x800:1")
"""The demo world is drawn at its own size."""
KINDS = ("frontier", "its models as they are", "other methods as they are")


def draw(place: Path, records: Sequence[Record]) -> None:
    """Of the first seed of each dataset that has a frontier."""
    drawn = [one for one in records if one.get("line")]
    first = {one["data"]: one for one in sorted(drawn, key=lambda one: -one["seed"])}
    shown = [first[data] for data in sorted(first, key=order) if data not in LEFT_OUT]
    alt = altair()
    panels = [_panel(alt, one) for one in shown]
    rows = [alt.hconcat(*panels[at : at + COLUMNS], spacing=30) for at in range(0, len(panels), COLUMNS)]
    save(styled(alt.vconcat(*rows, spacing=24)), place / FIGURE)


def _panel(alt: Any, record: Record) -> Any:
    line = [
        {"x": point["test"][0], "y": point["test"][1], "at": at, "kind": KINDS[0]}
        for at, point in enumerate(record["line"])
    ]
    plain = [
        {
            "x": found["test"]["ndcg"],
            "y": found["test"]["niche"],
            "name": name,
            "kind": KINDS[1 if name in SWEPT else 2],
        }
        for name, found in record["plain"].items()
    ]
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=list(KINDS), range=[PAPER.colour(place) for place in range(3)]),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    x = alt.X("x:Q", title="NDCG@20", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4))
    y = alt.Y("y:Q", title="niche recall@20", axis=alt.Axis(tickCount=4))
    chart = alt.Chart(alt.Data(values=line), title=title(record["data"]), width=330, height=250)
    drawn = chart.mark_line(strokeWidth=1.5, point=alt.OverlayMarkDef(size=16)).encode(
        x=x, y=y, color=colour, order="at:Q"
    )
    dots = (
        alt.Chart(alt.Data(values=plain)).mark_point(filled=True, size=45, opacity=0.9).encode(x=x, y=y, color=colour)
    )
    names = (
        alt.Chart(alt.Data(values=_apart([*plain, *line])))
        .mark_text(align="left", dx=5, dy=-5, fontSize=9)
        .encode(x=x, y=y, text="name:N", color=alt.value(PAPER.ink))
    )
    return drawn + dots + names


def _apart(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those whose names do not cover each other; the table has all."""
    wide, high = (max(one[axis] for one in points) - min(one[axis] for one in points) for axis in "xy")
    kept: list[dict[str, Any]] = []
    for one in sorted((one for one in points if "name" in one), key=lambda one: -one["y"]):
        near = (abs(one["x"] - other["x"]) < 0.3 * wide and abs(one["y"] - other["y"]) < 0.05 * high for other in kept)
        if not any(near):
            kept.append(one)
    return kept

"""The re-rankers along their strength: docs/results/reranking-curves.md and its figure, from the stored lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scripts.related.pages import ROOT, SHORT, TITLES, Line, mean, read_store
from scripts.related.trainings import CURVES, CURVES_ON, STEPS

from dpaa.report import PAPER, SHAPES, altair, save, styled

OUT = ROOT / "docs" / "results"
PAGE, FIGURE = OUT / "reranking-curves.md", "reranking-curves.svg"
TOLD = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Strengths in the tables; the figure has all."""
KEPT = (0.98, 0.95, 0.9)
"""Shares of the base's NDCG that may have to be kept."""
DRAWN = 2
"""Datasets in the figure; tables are of all."""
PREFIX = "curve "
NICHE, ARP, NDCG = "recall@20/niche", "arp@20", "ndcg@20"
INTRODUCTION = """\
Over LightGCN at its defaults, lists of 20 on the unbiased test split, means over seeds (a seed draws the data too).
Strength goes from 0 (the list as it was) to 1; the dial's κ is −2 times it. Candidates are the 100 best of each user
(all items for `dial`, `pc` and `scale`). All points: [results/related.parquet](../../results/related.parquet), rows
`curve …`. Speed, 200,000 users with 100 candidates each: [benchmarks/RERANK.md](../../benchmarks/RERANK.md)."""
Point = Mapping[str, float]


def write() -> None:
    """Page and figure."""
    found = curves(read_store())
    PAGE.write_text(page(found), encoding="utf-8")
    save(figure(found), OUT / FIGURE)


def curves(lines: Sequence[Line]) -> dict[str, dict[str, dict[float, dict[str, float]]]]:
    """Data → re-ranker → strength → means over seeds, with how many there are."""
    found: dict[str, dict[str, dict[float, dict[str, float]]]] = {}
    for data in CURVES_ON:
        here = [line for line in lines if line["data"] == data and line["method"].startswith(PREFIX)]
        for name in CURVES:
            for x in STEPS:
                same = [line for line in here if line["method"] == PREFIX + name and float(line["kind"]) == x]
                if same:
                    means = {
                        metric: mean(line[metric] for line in same)
                        for metric in ("recall@20", NDCG, NICHE, ARP, "coverage@20")
                    }
                    found.setdefault(data, {}).setdefault(name, {})[x] = means | {"seeds": len(same)}
    return found


def page(found: Mapping[str, Mapping[str, Mapping[float, Point]]]) -> str:
    """What each gives up and gains."""
    text = [
        "# Re-rankers along their strength",
        "",
        "Made by",
        "",
        "    python scripts/related_study.py --data DIR --work WORK --write",
        "",
        INTRODUCTION,
        "",
        f"![NDCG@20 against ARP@20 and against niche recall@20, a line for each re-ranker]({FIGURE})",
        "",
        "Each line starts at the common point of strength 0. Left: the further left a line gets before it falls, the",
        "more popularity it takes out for the accuracy. Right: the further right, the more niche items it finds.",
    ]
    for data, lines in found.items():
        base = next(iter(lines.values()))[0.0]
        text += ["", f"## {TITLES[data]}", ""]
        text += [
            f"Seeds: {base['seeds']:.0f}. Strength 0: NDCG {base[NDCG]:.4f}, recall {base['recall@20']:.4f}, niche "
            f"recall {base[NICHE]:.4f}, ARP {base[ARP]:.1f}, coverage {base['coverage@20']:.3f}.",
            "",
            "NDCG and ARP as multiples of strength 0, niche recall as it is: NDCG × · ARP × · niche recall:",
            "",
            _table(lines, base),
            "",
            "The most niche recall (and the lowest ARP) at a strength that keeps so much of NDCG; read off test, so it",
            "says what there is, not what a choice on validation would find:",
            "",
            _within(lines, base),
        ]
    return "\n".join(text) + "\n"


def _table(lines: Mapping[str, Mapping[float, Point]], base: Point) -> str:
    rows = [["re-ranker", *(f"{x:g}" for x in TOLD)], ["---"] * (len(TOLD) + 1)]
    for name, points in lines.items():
        cells = (
            f"{_times(points[x], base, NDCG)} · {_times(points[x], base, ARP)} · {points[x][NICHE]:.3f}" for x in TOLD
        )
        rows.append([name, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _within(lines: Mapping[str, Mapping[float, Point]], base: Point) -> str:
    rows = [["re-ranker", *(f"NDCG ≥ {100 * kept:g} %" for kept in KEPT)], ["---"] * (len(KEPT) + 1)]
    for name, points in lines.items():
        cells = []
        for kept in KEPT:
            there = {x: point for x, point in points.items() if point[NDCG] >= kept * base[NDCG]}
            most = max(there, key=lambda x: there[x][NICHE])
            least = min(point[ARP] for point in there.values()) / base[ARP]
            cells.append(f"niche {there[most][NICHE]:.3f} at {most:g}; ARP × {least:.2f}")
        rows.append([name, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _times(point: Point, base: Point, metric: str) -> str:
    return f"{point[metric] / base[metric]:.2f}" if base[metric] > 0 else "–"


def figure(found: Mapping[str, Mapping[str, Mapping[float, Point]]]) -> Any:
    """A row for each of the first datasets: NDCG against ARP, and against niche recall."""
    alt = altair()
    names = list(CURVES)
    colours = [PAPER.colour(place) for place in range(len(names))]
    legend = alt.Legend(title=None, orient="bottom", columns=4, columnPadding=16, symbolSize=60)
    style = {
        "color": alt.Color("re-ranker:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
        "shape": alt.Shape("re-ranker:N", scale=alt.Scale(domain=names, range=list(SHAPES)), legend=legend),
        "strokeDash": alt.StrokeDash(
            "re-ranker:N", scale=alt.Scale(domain=names, range=[[1, 0]] * 7 + [[5, 3]]), legend=None
        ),
        "order": alt.Order("strength:Q"),
    }
    rows = []
    for data, lines in list(found.items())[:DRAWN]:
        panels = []
        for metric in ("ARP@20", "niche recall@20"):
            base = alt.Chart(alt.Data(values=points_of(lines)), width=270, height=210)
            encoded = base.encode(
                x=alt.X(
                    f"{metric}:Q",
                    title=f"{metric}, {SHORT[data]}",
                    scale=alt.Scale(zero=False),
                    axis=alt.Axis(tickCount=5),
                ),
                y=alt.Y("NDCG@20:Q", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
                **style,
            )
            panels.append(
                encoded.mark_line(strokeWidth=1.6, aria=False) + encoded.mark_point(size=18, filled=True, aria=False)
            )
        rows.append(alt.hconcat(*panels, spacing=18))
    return styled(alt.vconcat(*rows, spacing=16), PAPER)


def points_of(lines: Mapping[str, Mapping[float, Point]]) -> list[dict[str, Any]]:
    """Of one dataset, for the figure."""
    shown = {"NDCG@20": NDCG, "ARP@20": ARP, "niche recall@20": NICHE}
    return [
        {"re-ranker": name, "strength": x} | {title: round(point[metric], 5) for title, metric in shown.items()}
        for name, points in lines.items()
        for x, point in points.items()
    ]

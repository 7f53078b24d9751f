"""The curve of the popularity dial: accuracy, niche accuracy, popularity and coverage against κ, one panel each."""

from __future__ import annotations

from typing import Any

import polars as pl

from dpaa.evaluation.dial_curve import DialCurve
from dpaa.report.figures import Chart, altair, by_name, styled
from dpaa.report.theme import PALETTE, PAPER

TICKS = (-2, -1, 0, 1, 2, 4, 8, 16, 32)
"""κ is drawn evenly around 0 and by its logarithm further out (a symmetric logarithm)."""


def dial_figure(curve: DialCurve, name: str) -> Chart:
    """Four panels over one axis; the dotted line marks κ in force, the thin one the method itself."""
    alt = altair()
    k = curve.k
    panels = {
        "ndcg": (f"accuracy: NDCG@{k}", ".3~f"),
        "niche_recall": (f"niche items: recall@{k}", ".3~f"),
        "arp": (f"popularity: ARP@{k}", "~s"),
        "coverage": (f"coverage@{k}", "%"),
    }
    table = pl.DataFrame(curve.per_kappa).fill_nan(None)
    marks = pl.DataFrame({"kappa": [0.0, curve.kappa], "mark": ["method", "in force"]})
    ticks = [tick for tick in TICKS if table["kappa"].min() <= tick <= table["kappa"].max()]  # type: ignore[operator]
    axis = alt.X(
        "kappa:Q",
        title="popularity dial κ",
        scale=alt.Scale(type="symlog", constant=1, nice=False),
        axis=alt.Axis(values=ticks, format="~g", labelFlush=False),
    )

    def panel(metric: str, place: int) -> Any:
        title, form = panels[metric]
        y = alt.Y(f"{metric}:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(format=form, tickCount=5))
        base = alt.Chart(table.filter(pl.col(metric).is_not_null()), width=300, height=170).encode(x=axis, y=y)
        line = base.mark_line(strokeWidth=2.2, color=PALETTE[place])
        dots = base.mark_point(filled=True, size=34, opacity=1, color=PALETTE[place])
        upright = (
            alt.Chart(marks)
            .mark_rule(color=PAPER.soft)
            .encode(
                x=axis,
                strokeDash=by_name("StrokeDash", "mark", ("method", "in force"), [[1, 0], [4, 4]]),
                strokeWidth=by_name("StrokeWidth", "mark", ("method", "in force"), [0.6, 1.6]),
            )
        )
        return alt.layer(upright, line, dots)

    title = alt.Title(
        f"{name}: turning the popularity dial",
        subtitle=[
            f"{curve.users:,} users of the validation split; thin line: the method itself (κ = 0); dotted: in force "
            f"(κ = {curve.kappa:g}); best for {curve.objective}: κ = {curve.suggested:g}",
            curve.exposure.in_words(),
        ],
    )
    drawn = [panel(metric, place) for place, metric in enumerate(panels)]
    return styled(
        alt.vconcat(alt.hconcat(*drawn[:2], spacing=30), alt.hconcat(*drawn[2:], spacing=30), spacing=20, title=title)
    )

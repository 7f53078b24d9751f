"""The curve of an audit: how interactions, and recommendations, are spread over items."""

from __future__ import annotations

import polars as pl

from dpaa.auditing import Audit
from dpaa.report.figures import Chart, altair, by_name, strokes, styled
from dpaa.report.theme import PALETTE


def lorenz_curve(audit: Audit) -> Chart:
    """Lorenz curves of the log and of the recommendations, beside the diagonal on which all items are alike."""
    alt = altair()
    log, recs = audit.log, audit.recommendations
    curves = {"all items alike": [[0.0, 0.0], [1.0, 1.0]], f"interactions (Gini {log.log_gini:.2f})": log.lorenz}
    if recs is not None:
        curves[f"recommendations (Gini {recs.gini:.2f})"] = recs.lorenz
    names = list(curves)
    table = pl.concat(
        pl.DataFrame(points, schema=["items", "share"], orient="row").with_columns(curve=pl.lit(name))
        for name, points in curves.items()
    )
    legend = strokes(orient="top-left", labelLimit=300, offset=8)
    subtitle = f"the top fifth of the items has {log.log_head_share:.0%} of the interactions"
    chart = (
        alt.Chart(table, title=alt.Title("How interactions are spread over items", subtitle=subtitle))
        .properties(width=420, height=380)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("items:Q", title="share of the items, those with least first", axis=alt.Axis(format="%")),
            y=alt.Y("share:Q", title="share of the total that they have", axis=alt.Axis(format="%")),
            color=by_name("Color", "curve", names, ["#888888", *PALETTE][: len(names)], legend),
            strokeDash=by_name("StrokeDash", "curve", names, [[4, 4], [1, 0], [8, 3]]),
        )
    )
    return styled(chart)

"""The chart of the README: processor hours to LightGCN's recall@20 on Gowalla, from the measured table.

python -m scripts.time_to_recall [--out docs/images/time-to-recall.svg]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import altair as alt
import polars as pl

from dpaa.report import Chart, save

UNFINISHED = "BPR, {} s × 1,000 epochs, not run to the end"
ROWS = {
    "dpaa ssm": ("dpaa, LightGCN-SL: softmax loss, run to the end, epochs chosen on validation; recall 0.1826", ""),
    "dpaa lightgcn": (f"dpaa, lightgcn: {UNFINISHED}", ""),
    "RecBole 1.2.1": (f"RecBole: {UNFINISHED}", " or more"),
    "LightGCN-PyTorch 947ca2b": (f"LightGCN-PyTorch: {UNFINISHED}; published recall 0.1824 to 0.1830", ""),
}
"""Code of the table → its line, and what follows the hours (RecBole's epoch lacks the start of its sampler)."""
INK, SOFT, MEASURED, PALE, EDGE = "#1a1f26", "#55606c", "#0072B2", "#e3e7eb", "#8a949e"


def chart(table: pl.DataFrame) -> Chart:
    """Bars from zero, so that lengths compare; pale and dashed where the training was not run to the end."""
    rows = []
    for code, (line, suffix) in ROWS.items():
        one = table.row(by_predicate=pl.col("code") == code, named=True)
        epoch, run = one["cpu_seconds_an_epoch"], one["cpu_hours_with_choice_of_epochs"]
        hours = run or epoch * 1000 / 3600  # the epochs of LightGCN's authors
        value = f"{hours:.2g} h{suffix}" if hours < 100 else f"{hours:.0f} h"
        rows.append({"line": line.format(int(epoch + 0.5)), "hours": hours, "value": value, "done": run is not None})
    base = alt.Chart(pl.DataFrame(rows)).encode(y=alt.Y("line:N", sort=None, axis=None))
    x = alt.X("hours:Q", axis=None, scale=alt.Scale(domain=[0, 150], nice=False))
    fill, edge = (alt.condition("datum.done", alt.value(MEASURED), alt.value(other)) for other in (PALE, EDGE))
    dash = alt.condition("datum.done", alt.value([1, 0]), alt.value([4, 3]))
    bars = base.mark_bar(height=20, yOffset=11, y2Offset=11).encode(x=x, color=fill, stroke=edge, strokeDash=dash)
    names = base.mark_text(align="left", dy=-11, fontSize=14, color=INK).encode(x=alt.value(0), text="line:N")
    hours = base.mark_text(align="left", dx=7, dy=11, fontSize=15, fontWeight="bold", color=INK)
    about = {"subtitle": "one thread, batches of 2,048, 64 dimensions", "subtitleColor": SOFT, "subtitleFontSize": 14}
    title = alt.Title("Processor hours to LightGCN's recall@20 on Gowalla", **about, anchor="start", fontSize=17)
    layers = alt.layer(bars, names, hours.encode(x=x, text="value:N"), width=720, height=alt.Step(58), title=title)
    return layers.properties(background="white", padding=18).configure(font="sans-serif").configure_view(stroke=None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/images/time-to-recall.svg"))
    save(chart(pl.read_csv("docs/results/time-to-quality-gowalla.csv")), parser.parse_args().out)

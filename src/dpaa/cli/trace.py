"""`dpaa trace`: where popularity enters a run's messages, and whether DPAA's premise holds on its data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from dpaa.cli import options
from dpaa.cli.console import cells, err, out, print_notes, print_records, print_result, print_table

if TYPE_CHECKING:
    from dpaa.trace import Trace


def trace(
    run: Annotated[Path, Argument(help="A finished run of a method that weights messages.")],
    figures: options.FigureFolder = None,
    as_json: options.AsJson = False,
) -> None:
    """Show where popularity enters: weights and contributions per layer, popularity decile and epoch.

    Starts with a verdict on DPAA's premise that the inverse interaction weight 1 − cos(e_u, e_i) is smaller for
    popular items.  Its mean over the edges of the rarest fifth of the items is compared with that of the most popular
    fifth: a change below 5% is flat, a lower value for popular items means that the premise holds, a higher one that it
    is reversed.  Only the run's files are used, not the test split.

    \b
    Example:
      dpaa trace runs/dpaa --figures figures
    """
    from dpaa.trace import trace_run

    if figures is not None:
        from dpaa.report import check_figures, save_figure, trace_figures

        check_figures(figures)
    traced = trace_run(run)
    print_result(traced, as_json, _print_trace)
    print_notes(traced.notes)
    if figures is not None:
        for name, chart in trace_figures(traced).items():
            save_figure(chart, figures, name)
        err.print(f"figures written to {figures}")


def _print_trace(trace: Trace) -> None:
    """Verdicts, then tables by decile, Lemma 1 and some epochs."""
    from dpaa.trace import RULE

    out.print(trace.verdict)
    for premise in trace.premises:
        out.print(f"  {premise.sentence}")
    out.print(RULE)
    tables = {}
    for layer in trace.weights:
        columns = {"items": cells("", *trace.items), "edges": cells(",", *trace.edges)}
        columns |= {"weight": cells(".4f", *layer.mean), "relative": cells(".3f", *layer.relative)}
        if layer.mass_share and layer.plain_mass_share:
            columns |= {"mass": cells(".1%", *layer.mass_share), "without": cells(".1%", *layer.plain_mass_share)}
        tables[f"messages of layer {layer.layer} by decile (1 = rarest items); mass with and without weights"] = columns
    for whose in dict.fromkeys(premise.vectors for premise in trace.premises):
        columns = {p.where: cells(".3f", *p.iiw) for p in trace.premises if p.vectors == whose}
        tables[f"inverse interaction weight 1 − cos(e_u, e_i), mean over edges: {whose} vectors"] = columns
    for title, columns in tables.items():
        print_table(title, ["decile", *columns], list(zip(map(str, range(1, 11)), *columns.values(), strict=True)))
    ratios = {"p / q": "groups", "I_p/I_q": "ratio_without:.4f", "I'_p/I'_q": "ratio_with:.4f"}
    title = "Lemma 1, contributions of popular (p) and rare items (q): I = Σ d‖e‖ without weights, I' with them"
    print_records(title, ratios, map(vars, trace.contributions))
    rows = [
        [line["epoch"], *cells(".5f", line.get("embedding_shift")), *cells(".3f", line.get("pretrained_share"))]
        for line in trace.epochs[:: max(1, len(trace.epochs) // 8)]
    ]
    if rows:
        print_table("some epochs: shift Δ, pre-trained share β; --json has all", ["epoch", "Δ", "β"], rows)

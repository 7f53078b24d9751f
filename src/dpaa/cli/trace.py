"""`dpaa trace`: where popularity enters a run's messages, and whether DPAA's premise holds on its data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from dpaa.cli import options
from dpaa.cli.console import cells, err, out, print_json, print_notes, print_objects, print_table

if TYPE_CHECKING:
    from dpaa.trace import Trace


def trace(
    run: Annotated[Path, Argument(help="A finished run of a method that weights messages.")],
    figures: options.FigureFolder = None,
    figure_format: options.FigureFormat = "png",
    as_json: options.AsJson = False,
) -> None:
    """Show where popularity enters: weights and contributions per layer, popularity decile and epoch.

    First comes a verdict: DPAA expects the inverse interaction weight 1 − cos(e_u, e_i) to be smaller for popular
    items.  Its means over the edges of the rarest and of the most popular fifth of the items are compared; a change
    below 5% is flat, a fall means that the premise holds, a rise that it is reversed.  Everything comes from the
    run's files; the test split is not opened.

    \b
    Example:
      dpaa trace runs/dpaa --figures figures
    """
    if figures is not None:
        from dpaa.report import check_figures

        check_figures(figures, figure_format)
    from dpaa.trace import trace_run

    traced = trace_run(run)
    if as_json:
        print_json(traced.as_json())
    else:
        _print_trace(traced)
    print_notes(traced.notes)
    if figures is not None:
        from dpaa.report import save, trace_figures

        for name, chart in trace_figures(traced).items():
            err.print(f"figure written to {save(chart, figures / f'{name}.{figure_format}')}")


def _print_trace(trace: Trace) -> None:
    """Verdicts, then tables."""
    from dpaa.trace import RULE

    out.print(trace.headline)
    for premise in trace.premises:
        out.print(f"  {premise.sentence}")
    out.print(RULE)
    for layer in trace.weights:
        columns = {"items": cells("", *trace.items), "edges": cells(",", *trace.edges)}
        columns |= {"weight": cells(".4f", *layer.mean), "relative": cells(".3f", *layer.relative)}
        if layer.mean_back is not None:
            columns["weight back"] = cells(".4f", *layer.mean_back)
        if layer.mass_share and layer.plain_mass_share:
            columns |= {"mass": cells(".1%", *layer.mass_share), "without": cells(".1%", *layer.plain_mass_share)}
        _by_decile(
            f"{trace.method}, messages of layer {layer.layer} by popularity decile of the item (1 = rarest): "
            "mean weight, relative to LightGCN's, share of message mass, and without the weights",
            columns,
        )
    for whose, title in (("own", "this run's vectors"), ("pretrained", "the pre-trained model's vectors")):
        columns = {one.place: cells(".3f", *one.iiw) for one in trace.premises if one.vectors == whose}
        _by_decile(f"inverse interaction weight 1 − cos(e_u, e_i), mean over edges: {title}", columns)
    print_objects(
        "Lemma 1, contributions I = Σ d‖e‖ without and I' = Σ d r̄ ‖e‖ with weights at layer 0: "
        "I_p/I_q − I'_p/I'_q (left, from edges) = (1 − r̄_p/r̄_q) · I_p/I_q (right, from items)",
        {"p / q": "groups", "I_p/I_q": "ratio_without:.4f", "I'_p/I'_q": "ratio_with:.4f"}
        | {"left": "reduction:.5f", "right": "reduction_by_items:.5f", "differ": "difference:.0e"},
        trace.contributions,
    )
    shares = {"ℓ": "layer", "read-out": "readout:.1%", "gradient": "gradient:.1%"}
    shares |= {"read-out*": "readout_of_hops:.1%", "gradient*": "gradient_of_hops:.1%"}
    by_emphasis = ""
    if trace.emphasis is not None:
        shares |= {"ℓ^η*": "last_hop:.1%", "(ℓ!)^η*": "compounded:.1%", "∏λ*": "in_force:.1%"}
        by_emphasis = f", and what λ alone would give (η = {trace.emphasis:g})"
    title = f"Lemma 2, share of each layer in read-out and gradient (*: among layers 1..L){by_emphasis}"
    print_objects(title, shares, trace.shares)
    direction = trace.direction
    rows = [
        ["read-out" if share.layer is None else str(share.layer), *cells(".1%", share.users, share.items)]
        for share in direction.shares
    ]
    title = (
        "share of the energy on the first singular vector of the training matrix, the direction of popularity "
        f"(its cosine with the items' counts: {direction.cosine:.2f})"
    )
    chance = ["by chance", *cells(".1%", direction.chance_users, direction.chance_items)]
    print_table(title, ["layer", "users", "items"], [*rows, chance])
    if trace.epochs:
        _print_epochs(trace.epochs)


def _by_decile(title: str, columns: dict[str, list[str]]) -> None:
    """A row per decile, rare → popular; nothing without columns."""
    if columns:
        rows = [[str(decile), *row] for decile, row in enumerate(zip(*columns.values(), strict=True), start=1)]
        print_table(title, ["decile", *columns], rows)


def _print_epochs(lines: list[dict[str, Any]]) -> None:
    """The first, the last and some epochs between; `--json` has all."""
    deciles, rows = (0, 3, 6, 9), []
    for line in (lines[index] for index in sorted({round(part * (len(lines) - 1) / 7) for part in range(8)})):
        weights = line.get("iiw_by_decile") or [None] * 10
        by_decile = cells(".3f", line.get("pretrained_share"), *(weights[decile] for decile in deciles))
        rows.append([line["epoch"], *cells(".5f", line.get("embedding_shift")), *by_decile])
    title = "over epochs: shift Δ, pre-trained share β, mean inverse interaction weight r applied in some deciles"
    print_table(title, ["epoch", "Δ", "β", *(f"r, {decile + 1}" for decile in deciles)], rows)

"""`dpaa trace`: where popularity enters a run's messages, and whether DPAA's premise holds on its data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from dpaa.cli import options
from dpaa.cli.console import cells, err, out, print_json, print_notes, print_objects, print_table

if TYPE_CHECKING:
    from dpaa.trace import Trace

DECILES = [str(decile) for decile in range(1, 11)]


def trace(
    run: Annotated[Path, Argument(help="A finished run of a method that weights messages.")],
    figures: options.FigureFolder = None,
    figure_format: options.FigureFormat = "png",
    as_json: options.AsJson = False,
) -> None:
    """Show where popularity enters: weights and contributions per layer, popularity decile and epoch.

    First comes a verdict: DPAA expects the inverse interaction weight 1 − cos(e_u, e_i) to be smaller for popular
    items.  Its means over the edges of the rarest and of the most popular fifth of the items are compared; a change
    below 5 % is flat, a fall means that the premise holds, a rise that it is reversed.  Everything comes from the
    run's files; the test split is not opened.

    \b
    Example:
      dpaa trace runs/dpaa --figures figures
    """
    if figures is not None:
        from dpaa.report import check_figures

        check_figures(figures, figure_format)
    from dpaa.trace import trace_run

    found = trace_run(run)
    if as_json:
        print_json(found.as_json())
    else:
        print_trace(found)
    print_notes(found.notes)
    if figures is not None:
        from dpaa.report import save, trace_figures

        for name, chart in trace_figures(found).items():
            err.print(f"figure written to {save(chart, figures / f'{name}.{figure_format}')}")


def print_trace(found: Trace) -> None:
    """Verdicts, then tables."""
    from dpaa.trace import RULE

    out.print(found.headline)
    for premise in found.premises:
        out.print(f"  {premise.sentence}")
    out.print(RULE)
    _weights(found)
    _strengths(found)
    _lemma_1(found)
    _lemma_2(found)
    _direction(found)
    _epochs(found)


def _weights(found: Trace) -> None:
    """A table per layer, a row per decile."""
    for layer in found.weights:
        columns = {
            "items": cells("", *found.items),
            "edges": cells(",", *found.edges),
            "weight": cells(".4f", *layer.mean),
            "relative": cells(".3f", *layer.relative),
        }
        if layer.mean_back is not None:
            columns["weight back"] = cells(".4f", *layer.mean_back)
        if layer.mass_share and layer.plain_mass_share:
            columns |= {"mass": cells(".1%", *layer.mass_share), "without": cells(".1%", *layer.plain_mass_share)}
        rows = [[decile, *cells] for decile, *cells in zip(DECILES, *columns.values(), strict=True)]
        title = (
            f"{found.method}, messages of layer {layer.layer} by popularity decile of the item (1 = rarest): "
            "mean weight, relative to LightGCN's, share of message mass, and without the weights"
        )
        print_table(title, ["decile", *columns], rows)


def _strengths(found: Trace) -> None:
    """Inverse interaction weights: a row per decile, a column per layer."""
    for whose, title in (("own", "this run's vectors"), ("pretrained", "the pre-trained model's vectors")):
        chosen = [premise for premise in found.premises if premise.vectors == whose]
        columns = [cells(".3f", *premise.iiw) for premise in chosen]
        rows = [[decile, *cells] for decile, *cells in zip(DECILES, *columns, strict=True)]
        if chosen:
            header = ["decile", *(premise.place for premise in chosen)]
            print_table(f"inverse interaction weight 1 − cos(e_u, e_i), mean over edges: {title}", header, rows)


def _lemma_1(found: Trace) -> None:
    title = (
        "Lemma 1, contributions I = Σ d‖e‖ without and I' = Σ d r̄ ‖e‖ with weights at layer 0: "
        "I_p/I_q − I'_p/I'_q (left, from edges) = (1 − r̄_p/r̄_q) · I_p/I_q (right, from items)"
    )
    columns = {"p / q": "groups", "I_p/I_q": "ratio_without:.4f", "I'_p/I'_q": "ratio_with:.4f"}
    columns |= {"left": "reduction:.5f", "right": "reduction_by_items:.5f", "differ": "difference:.0e"}
    print_objects(title, columns, found.contributions)


def _lemma_2(found: Trace) -> None:
    header = ["ℓ", "read-out", "gradient", "read-out*", "gradient*"]
    if found.emphasis is not None:
        header += ["ℓ^η*", "(ℓ!)^η*", "∏λ*"]
    rows = []
    for share in found.shares:
        values = [share.readout, share.gradient, share.readout_of_hops, share.gradient_of_hops]
        if found.emphasis is not None:
            values += [share.last_hop, share.compounded, share.in_force]
        rows.append([str(share.layer), *cells(".1%", *values)])
    if rows:
        eta = "" if found.emphasis is None else f", and what λ alone would give (η = {found.emphasis:g})"
        print_table(f"Lemma 2, share of each layer in read-out and gradient (*: among layers 1..L){eta}", header, rows)


def _direction(found: Trace) -> None:
    """How much of each layer is popularity."""
    direction = found.direction
    rows = [
        ["read-out" if share.layer is None else str(share.layer), *cells(".1%", share.users, share.items)]
        for share in direction.shares
    ]
    rows.append(["by chance", *cells(".1%", direction.chance_users, direction.chance_items)])
    title = (
        "share of the energy on the first singular vector of the training matrix, the direction of popularity "
        f"(its cosine with the items' counts: {direction.cosine:.2f})"
    )
    print_table(title, ["layer", "users", "items"], rows)


def _epochs(found: Trace) -> None:
    """The first, the last and some epochs between; `--json` has all."""
    lines = found.epochs
    if not lines:
        return
    places = sorted({round(part * (len(lines) - 1) / 7) for part in range(8)})
    shown = (0, 3, 6, 9)
    rows = []
    for line in (lines[place] for place in places):
        shift, share, weights = (line.get(key) for key in ("embedding_shift", "pretrained_share", "iiw_by_decile"))
        by_decile = [weights[decile] for decile in shown] if weights else [None] * len(shown)
        rows.append([line["epoch"], *cells(".5f", shift), *cells(".3f", share, *by_decile)])
    header = ["epoch", "Δ", "β", *(f"r, {decile + 1}" for decile in shown)]
    title = "over epochs: shift Δ, pre-trained share β, mean inverse interaction weight r in force of some deciles"
    print_table(title, header, rows)

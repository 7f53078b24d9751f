"""The popularity dial and re-rankers as commands take and show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from dpaa.cli.console import attributes, out, print_table

if TYPE_CHECKING:
    from dpaa.evaluation.dial_curve import DialCurve

PopularityDial = Annotated[
    str | None,
    Option(
        "--popularity-dial",
        metavar="X|run",
        help="κ: above 0 leans to popular items, below 0 away from them, 0 is the method itself; default: `run`, the κ "
        "that the run keeps.",
    ),
]
_RERANKER = "Re-ranker that makes lists from scores, by name or as package.module:Class"
_PARAMETERS = "NAME[,PARAMETER=VALUE…]"
Rerank = Annotated[
    str | None,
    Option("--rerank", metavar=_PARAMETERS, help=f"{_RERANKER}; default: the run's own; `none` for none."),
]
KeptRerank = Annotated[
    str | None, Option("--rerank", metavar=_PARAMETERS, help=f"{_RERANKER}; it is kept in the run.  Default: none.")
]


def print_dial(curve: DialCurve) -> None:
    """Print the curve, and in words what is active and suggested."""
    marks = {curve.suggested: " suggested"} | {curve.kappa: " active"}
    specs = ("ndcg:.4f", "recall:.4f", "niche_recall:.4f", "arp:,.1f", "coverage:.1%")
    rows = [[f"{one.kappa:g}{marks.get(one.kappa, '')}", *attributes(one, *specs)] for one in curve.points]
    header = ["κ", "ndcg", "recall", "niche recall", "arp", "coverage"]
    print_table(f"Popularity dial on validation, lists of {curve.k}", header, rows)
    out.print(curve.in_words())

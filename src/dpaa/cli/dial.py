"""The popularity dial as commands take and show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typer import Option

from dpaa.cli.console import attributes, out, print_notes, print_table
from dpaa.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from dpaa.data.dataset import Dataset
    from dpaa.evaluation.dial_curve import DialCurve
    from dpaa.runs.folder import RunFolder
    from dpaa.runs.model import Model

PopularityDial = Annotated[
    str | None,
    Option(
        "--popularity-dial",
        metavar="X|run",
        help="κ: above 0 leans to popular items, below 0 away from them, 0 is the method itself; default: `run`, the κ "
        "that the run keeps.",
    ),
]
RERANKER = "Re-ranker that makes lists from scores, by name or as package.module:Class"
Rerank = Annotated[
    str | None,
    Option("--rerank", metavar="NAME[,SETTING=VALUE…]", help=f"{RERANKER}; default: the run's own; `none` for none."),
]
KeptRerank = Annotated[
    str | None,
    Option("--rerank", metavar="NAME[,SETTING=VALUE…]", help=f"{RERANKER}; it is kept in the run.  Default: none."),
]
SPECS = ("ndcg:.4f", "recall:.4f", "niche_recall:.4f", "arp:,.1f", "coverage:.1%")
SHOWN = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Rows of the table beside those in force and suggested; --json and --dial-figure have every κ."""


@dataclass(frozen=True)
class DialOptions:
    """What `evaluate` was told about the dial."""

    kappa: str | None
    objective: str | None
    figure: Path | None

    def refuse_for_a_file(self) -> None:
        """Nothing of it goes with lists that are there already."""
        if (self.kappa, self.objective, self.figure) != (None, None, None):
            raise InputError(
                "the popularity dial needs the scores of a run and cannot be used with --recs; leave its options out"
            )

    def curve(self, model: Model, data: Dataset) -> DialCurve | None:
        """The curve the run has, or with an objective is to have from now on; wrong options are refused before."""
        from dpaa._text import finite
        from dpaa.report import check_figure
        from dpaa.runs.measure import choose_dial

        if self.figure is not None:
            check_figure(self.figure)
        if self.objective is None or self.kappa not in (None, "run"):
            model.kappa(self.kappa)
        if self.objective is not None:
            chosen = choose_dial(model, data, self.objective)
            model.manifest["dial"] = finite(chosen.as_json())
            return chosen
        curve = model.dial_curve
        if curve is None and self.figure is not None:
            raise InputError(_missing(model, data))
        return curve

    def commit(self, folder: RunFolder, curve: DialCurve | None, model: Model, data: Dataset) -> None:
        """Write what was asked for: the figure into its file, the choice into the run."""
        if curve is None:
            print_notes([_missing(model, data)])
            return
        if self.objective is not None:  # first: it is refused where the run was replaced meanwhile
            folder.write_dial(curve, model)
        if self.figure is not None:
            from dpaa.report import dial_figure, save

            save(dial_figure(curve, model.method.name), self.figure)


def _missing(model: Model, data: Dataset) -> str:
    """Why a run has no curve, and what to do."""
    reason = (
        "it was trained before there was one; draw it with --dial-objective ndcg"
        if len(data.valid)
        else "its dataset has no validation pairs"
    )
    return f"{model.path} has no curve of the popularity dial: {reason}"


def print_dial(curve: DialCurve, measured: float | None = None) -> None:
    """The curve in some rows, and in words what is in force and suggested; `measured` is κ of the numbers above."""
    marks = {curve.suggested: " suggested"} | {curve.kappa: " in force"}
    rows = [
        [f"{point.kappa:g}{marks.get(point.kappa, '')}", *attributes(point, *SPECS)]
        for point in curve.points
        if point.kappa in (*SHOWN, *marks)
    ]
    header = ["κ", "ndcg", "recall", "niche recall", "arp", "coverage"]
    print_table(f"Popularity dial on validation, lists of {curve.k}", header, rows)
    out.print(curve.in_words())
    if measured is not None and measured != curve.kappa:
        out.print(f"this call measured κ = {measured:g}; the run keeps κ = {curve.kappa:g}")

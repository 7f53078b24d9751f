"""`dpaa evaluate`: test metrics of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaa.cli.console import out, print_json, print_table
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.evaluation.evaluator import Evaluation


def evaluate(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    dataset: Annotated[Path | None, typer.Option(help="The dataset, if it has moved since training.")] = None,
    k: Annotated[
        list[int] | None, typer.Option("--k", min=1, help="Length of the lists; repeatable.  [default: 20]")
    ] = None,
    overlap: Annotated[
        str,
        typer.Option(help="Test pairs that are also training pairs: drop (not ranked, not relevant), mask or keep."),
    ] = "drop",
    mask_valid: Annotated[bool, typer.Option("--mask-valid", help="Treat validation pairs as known too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a run on the test split: overall, popular and niche items; the protocol stands beside the numbers.

    Writes metrics.json and per_user.parquet into the run folder.

    \b
    Example:
      dpaa evaluate runs/lightgcn --k 10 --k 20
    """
    from dpaa.data.dataset import read_dataset
    from dpaa.runs.fit import evaluate as measure
    from dpaa.runs.folder import RunFolder

    folder = RunFolder(run)
    model = folder.read_model()
    place = dataset or model.manifest.get("dataset", {}).get("path")
    if not place:
        raise InputError(f"{run} does not say where its dataset is; name it with --dataset")
    if not Path(place).exists():
        raise InputError(f"the dataset of {run} is no longer at {place}; name it with --dataset")
    found = measure(model, read_dataset(place), tuple(k or [20]), overlap, mask_valid)  # type: ignore[arg-type]
    folder.write_evaluation(found)
    if as_json:
        print_json(found.as_json())
    else:
        print_evaluation(model.method.name, found)
        out.print(f"written to {run / 'metrics.json'}; next: dpaa recommend {run} --out recs.parquet", markup=False)


def print_evaluation(name: str, found: Evaluation) -> None:
    """A table per list length, and the protocol in words."""
    metrics, protocol = found.metrics, found.protocol
    for k in protocol.k:
        rows = [
            [metric, *(_number(metrics[f"{metric}@{k}{group}"]) for group in ("", "/popular", "/niche"))]
            for metric in ("recall", "ndcg", "hit")
        ]
        print_table(f"{name}, lists of {k}", [f"@{k}", "all items", "popular", "niche"], rows)
        out.print(
            f"mean training count of recommended items (arp@{k}) {metrics[f'arp@{k}']:.1f}, "
            f"share of niche items (aplt@{k}) {metrics[f'aplt@{k}']:.3f}, "
            f"items recommended to anyone (coverage@{k}) {metrics[f'coverage@{k}']:.3f}",
            markup=False,
        )
    out.print(protocol.in_words(), markup=False)


def _number(value: float) -> str:
    return f"{value:.4f}" if value == value else "-"

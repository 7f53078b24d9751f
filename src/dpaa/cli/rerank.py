"""`dpaa rerank`: a re-ranker over any run or anybody's recommendations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from dpaa.cli import options
from dpaa.cli.console import out, print_notes
from dpaa.errors import InputError
from dpaa.files import same_place


def rerank(
    source: Annotated[
        Path,
        Argument(
            metavar="RECS|RUN",
            help="Recommendations of any system (user_id, item_id, score or rank), more than wanted: 100 to a user, "
            "say; or a finished run folder.",
        ),
    ],
    out_file: Annotated[Path, Option("--out", help="Parquet or CSV file to write (by its ending).")],
    method: Annotated[str, Option(help="Re-ranker; `dpaa methods` lists them, `dpaa methods NAME` its settings.")],
    dataset: Annotated[
        Path | None,
        Option(help="The dataset that popularity and histories come from; a run knows its own."),
    ] = None,
    strength: Annotated[
        float | None, Option(help="How strongly; 0 leaves lists as they are; default: the re-ranker's own.")
    ] = None,
    assignments: options.Assignments = None,
    k: Annotated[int, Option("--k", min=1, help="Items per user.")] = 20,
    overwrite: options.Overwrite = False,
) -> None:
    """Re-rank recommendations for less popularity bias, after the fact: nothing is trained.

    Scores in the new file are those of the old one where a re-ranker chooses among items, its own where it rescores
    them; the order is that of the rank.  docs/reranking.md explains each re-ranker.

    \b
    Example:
      dpaa rerank recs.parquet --dataset data/shop --method xquad --strength 0.3 --out fairer.parquet
      dpaa rerank runs/lightgcn --method calibrated-popularity --set depth=200 --out fairer.csv
      dpaa evaluate --recs fairer.parquet --dataset data/shop
    """
    from dpaa.cli.train import read_settings
    from dpaa.ranking.reranker import make_reranker
    from dpaa.runs.stream import check_target, write_stream

    settings = read_settings(None, assignments or [], None)
    if strength is not None:
        settings["strength"] = strength
    reranker = make_reranker(method, settings)
    check_target(out_file, overwrite)
    if same_place(out_file, source):
        raise InputError(f"{out_file} is what is re-ranked; name another file for --out")
    if source.is_dir():
        from dpaa.runs.model import load

        model = load(source)
        if dataset is not None:
            _check_dataset(source, model.manifest.get("dataset", {}).get("fingerprint"), dataset)
        lists = model.lists(None, k, rerank=reranker)
        blocks, schema = lists.blocks, lists.schema
    else:
        from dpaa.data.dataset import read_dataset
        from dpaa.evaluation.recommendations import rerank_file

        if dataset is None:
            raise InputError(f"{source} does not say how popular its items are; name the dataset with --dataset")
        made = rerank_file(source, read_dataset(dataset), reranker, k)
        print_notes(made.notes)
        blocks, schema = made.blocks, made.schema
    n_rows = write_stream(blocks, schema, out_file)
    out.print(f"{n_rows:,} recommendations written to {out_file}, re-ranked by {reranker.in_words()}")


def _check_dataset(run: Path, trained_on: object, dataset: Path) -> None:
    from dpaa.data.dataset import read_dataset

    if read_dataset(dataset).fingerprint != trained_on:
        raise InputError(
            f"{run} was trained on another dataset than {dataset}; a run knows its own: leave --dataset out"
        )

"""`dpaa rerank`: a re-ranker over any run or anybody's recommendations."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from dpaa._io import resolve_path
from dpaa.cli import options
from dpaa.cli.console import out, print_notes
from dpaa.errors import InputError


def rerank(
    source: Annotated[Path, Argument(metavar="RECS|RUN", help="Long recommendation lists of any system, or a run.")],
    out_file: Annotated[Path, Option("--out", help="File to write: .parquet, .csv, .tsv or .jsonl.")],
    method: Annotated[str, Option(help="Re-ranker; `dpaa methods` lists them, `dpaa methods NAME` its options.")],
    dataset: Annotated[Path | None, Option(help="Where popularity and histories come from; a run has its own.")] = None,
    strength: Annotated[float | None, Option(help="0 leaves lists as they are; default: the re-ranker's own.")] = None,
    assignments: options.Assignments = None,
    k: options.K = 20,
    overwrite: options.Overwrite = False,
) -> None:
    """Re-rank recommendations for less popularity bias, after the fact: nothing is trained.

    A file has user_id, item_id, score or rank, and more items than wanted: 100 to a user, say.  Scores in the new file
    are those of the old one where a re-ranker chooses among items, its own where it rescores them; the order is that of
    the rank.  docs/reranking.md explains each re-ranker.

    \b
    Example:
      dpaa rerank recs.parquet --dataset data/shop --method xquad --strength 0.3 --out fairer.parquet
      dpaa rerank runs/lightgcn --method calibrated-popularity --set depth=200 --out fairer.csv
      dpaa evaluate --recs fairer.parquet --dataset data/shop
    """
    from dpaa.data.dataset import read_dataset
    from dpaa.evaluation.recommendations import rerank_file
    from dpaa.ranking.reranker import make_reranker
    from dpaa.runs.model import load
    from dpaa.runs.stream import check_target, write_stream

    values = options.read_hyperparameters(assignments)
    reranker = make_reranker(method, values | ({} if strength is None else {"strength": strength}))
    check_target(out_file, overwrite)
    if resolve_path(out_file) == resolve_path(source):
        raise InputError(f"{out_file} is what is re-ranked; name another file for --out")
    data = None if dataset is None else read_dataset(dataset)
    notes: list[str] = []
    if source.is_dir():
        model = load(source)
        if data is not None:
            model.check_trained_on(data, "leave --dataset out")
        blocks = model.lists(None, k, rerank=reranker).blocks
    elif data is None:
        raise InputError(f"{source} does not say how popular its items are; name the dataset with --dataset")
    else:
        blocks, notes = rerank_file(source, data, reranker, k)
    first = next(blocks)
    print_notes(notes)
    n_rows = write_stream(chain([first], blocks), first.schema, out_file)
    out.print(f"{n_rows:,} recommendations written to {out_file}, re-ranked by {reranker.in_words()}")

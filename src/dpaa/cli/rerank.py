"""`dpaa rerank`: a re-ranker over any run or anybody's recommendations."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

import dpaa
from dpaa._io import resolve_path
from dpaa.cli import options
from dpaa.cli.console import out, print_notes
from dpaa.errors import InputError


def rerank(
    source: Annotated[Path, Argument(metavar="RECS|RUN", help="Long recommendation lists of any system, or a run.")],
    out_file: Annotated[Path, Option("--out", help="File to write: .parquet, .csv, .tsv or .jsonl.")],
    method: Annotated[
        str | None, Option(metavar="NAME[,PARAMETER=VALUE…]", help="See `dpaa methods`.", rich_help_panel="Lists")
    ] = None,
    recipe: Annotated[Path | None, Option(help="What `dpaa debias` chose, its recipe.json, instead.")] = None,
    dataset: Annotated[Path | None, Option(help="Where popularity and histories come from; a run has its own.")] = None,
    k: Annotated[int | None, Option("--k", min=1, help="Length of the lists; default: the recipe's, or 20.")] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Re-rank recommendations for less popularity bias, after the fact: nothing is trained.

    A file has user_id, item_id, score or rank, and more items than wanted: 100 to a user, say.  Scores in the new file
    are those of the old one where a re-ranker chooses among items, its own where it rescores them; the order is that of
    the rank.  strength=0 leaves lists as they are; docs/reranking.md explains each re-ranker.

    \b
    Example:
      dpaa rerank recs.parquet --dataset data/shop --method xquad,strength=0.3 --out fairer.parquet
      dpaa rerank runs/lightgcn --method calibrated-popularity,depth=200 --out fairer.csv
      dpaa rerank recs.parquet --dataset data/shop --recipe debiased/recipe.json --out fairer.parquet
      dpaa evaluate fairer.parquet --dataset data/shop
    """
    from dpaa.evaluation.recommendations import rerank_file
    from dpaa.ranking.reranker import parse_reranker
    from dpaa.runs.stream import check_target, write_stream

    reranker = None if method is None else parse_reranker(method)
    if (reranker is None) == (recipe is None):
        raise InputError("name a re-ranker with --method, or a recipe with --recipe; one of them")
    check_target(out_file, overwrite)
    if resolve_path(out_file) == resolve_path(source):
        raise InputError(f"{out_file} is what is re-ranked; name another file for --out")
    data = None if dataset is None else dpaa.read_dataset(dataset)
    model = dpaa.load(source) if source.is_dir() else None
    if model is not None and data is not None:
        model.check_trained_on(data, "leave --dataset out")
    if data is None and (model is None or recipe is not None):
        raise InputError(f"{source} does not say how popular its items are; name the dataset with --dataset")
    notes: list[str] = []
    if recipe is not None and data is not None:
        blocks = iter([dpaa.rerank(source if model is None else model, recipe, data, k, notes.append)])
    elif model is not None:
        blocks = model.lists(None, k or 20, rerank=reranker).blocks
    elif data is not None:
        blocks, notes = rerank_file(source, data, reranker, k or 20)
    first = next(blocks)
    print_notes(notes)
    n_rows = write_stream(chain([first], blocks), first.schema, out_file)
    how = recipe if reranker is None else reranker.in_words()
    out.print(f"{n_rows:,} recommendations written to {out_file}, re-ranked by {how}")

"""`dpaa recommend`: top-k lists, streamed to a file; `dpaa similar`: similar items; `dpaa rerank`: re-ranked lists."""

from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import dpaa
from dpaa._io import resolve_path
from dpaa.cli import options
from dpaa.cli.console import err, out, print_json, print_notes, print_table
from dpaa.errors import InputError


def recommend(
    run: options.RunArgument,
    k: options.K = 20,
    out_file: Annotated[Path | None, Option("--out", help="File: .csv, .tsv, .parquet or .jsonl.")] = None,
    users: options.Users = None,
    history: Annotated[Path | None, Option(help="Histories of users unseen in training.")] = None,
    columns: options.Columns = None,
    items: Annotated[list[str] | None, Option(help="Only these items: ID,ID or @FILE of ids; repeatable.")] = None,
    exclude: Annotated[list[str] | None, Option(help="Exclude these items: ID,ID or @FILE; repeatable.")] = None,
    exclude_pairs: Annotated[Path | None, Option(help="File of user_id and item_id to exclude.")] = None,
    only: Annotated[list[str] | None, Option(metavar="COLUMN=VALUE", help="Required value; repeatable.")] = None,
    at_most: Annotated[list[str] | None, Option(metavar="COLUMN=N", help="Items per value; repeatable.")] = None,
    at_least: Annotated[list[str] | None, Option(metavar="COLUMN=N", help="Distinct values; repeatable.")] = None,
    popularity_dial: options.PopularityDial = None,
    rerank: options.Rerank = None,
    shard: Annotated[str | None, Option(metavar="I/N", help="Part I of N of the users; --out is a folder.")] = None,
    seen: Annotated[bool, Option("--include-seen", help="Allow items that the user has in training.")] = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Recommend the top k items to all or some users, with the ids of your log.

    Unknown users get a list from --history, or the popularity list; a column `source` then says which.
    Without --out only the first lists are printed.  Existing shards are not recomputed.

    \b
    Example:
      dpaa recommend runs/lightgcn --k 20 --out recs.parquet
      dpaa recommend runs/lightgcn --users u0001,u0002
      dpaa recommend runs/lightgcn --history newcomers.csv --out recs.csv
      dpaa recommend runs/lightgcn --popularity-dial -0.5 --out recs.parquet
      dpaa recommend runs/lightgcn --items @in-stock.csv --exclude-pairs \\
          bought.csv --at-most genre=3 --out recs.csv
      dpaa recommend runs/lightgcn --shard 3/16 --out lists
    """
    from dpaa.data.shards import OF, Shard, digest_of, join_folder
    from dpaa.runs.lists import read_limits, read_only
    from dpaa.runs.stream import check_target, write_stream

    part = None if shard is None else Shard.parse(shard)
    if part is None and out_file is not None:
        check_target(out_file, overwrite)
    how: dict[str, Any] = {
        "seen": seen,
        "only": read_only(only or [], "--only", "--only in_stock=true"),
        "at_most": read_limits(at_most or [], "--at-most", "--at-most genre=3"),
        "at_least": read_limits(at_least or [], "--at-least", "--at-least genre=3"),
        "popularity_dial": popularity_dial,
        "rerank": rerank or "run",
    }
    model, names = dpaa.load(run), options.parse_columns(columns)[0]
    how["items"] = options.read_ids(items, model.item_ids, "item") if items else None
    how["exclude"] = options.read_ids(exclude, model.item_ids, "item") if exclude else ()
    if exclude_pairs is not None:
        how["exclude_pairs"] = options.read_pairs(exclude_pairs, model, names)
    if history is not None:
        how["histories"] = options.read_pairs(history, model, names, known_users=bool(users))
    chosen = options.read_ids(users, model.user_ids, "user") if users else None
    target = out_file
    if part is not None:
        if out_file is None:
            raise InputError("--shard needs a folder; name one with --out")
        choice = digest_of(how | {"users": chosen, "k": k})
        about = {"run": digest_of(model.manifest.get("files")), "k": k, OF: part.of}
        join_folder(out_file, about | {"choice of users and items": choice})
        target = part.file(out_file, ".parquet")
        if target.exists() and not overwrite:
            out.print(f"{part} is in {out_file} already; pass --overwrite to make it again")
            return
    preview = target is None and chosen is None and history is None
    lists = model.lists(model.user_ids.head(3) if preview else chosen, k, shard=part, **how)
    print_notes(lists.notes)
    if preview:
        err.print("preview of the first users; write all lists with --out FILE")
    if target is None:
        for block in lists.blocks:
            rows = [[user, item, f"{score:.4f}", *rest] for user, item, score, *rest in block.iter_rows()]
            print_table("Recommendations", block.columns, rows)
        return
    n_rows = write_stream(lists.blocks, lists.schema, target)
    kappa = model.kappa(popularity_dial)
    dial = f", popularity dial at κ = {kappa:g}" if kappa or popularity_dial is not None else ""
    out.print(f"{n_rows:,} recommendations written to {target}{dial}")


def similar(
    run: options.RunArgument,
    items: Annotated[list[str], Argument(metavar="ITEM…", help="Items to compare with: ID,ID or @FILE of ids.")],
    k: options.K = 10,
    out_file: Annotated[Path | None, Option("--out", help="File: .csv, .tsv, .parquet or .jsonl.")] = None,
    as_json: options.AsJson = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Show the most similar items of an item, by the cosine of their vectors.

    Items that the model does not know are skipped, with a note.

    \b
    Example:
      dpaa similar runs/lightgcn i0003
      dpaa similar runs/lightgcn @items.txt --k 20 --out similar.parquet
    """
    from dpaa.runs.lists import known_ids
    from dpaa.runs.stream import check_target, write_stream

    if out_file is not None:
        check_target(out_file, overwrite)
    model = dpaa.load(run)
    index, notes = known_ids(options.read_ids(items, model.item_ids, "item"), model.item_ids, "item")
    if not len(index):
        raise InputError(f"{notes[0]}; give an item of the training log")
    table = model.similar_items(model.item_ids.gather(index), k)
    print_notes(notes)
    if out_file is not None:
        out.print(f"{write_stream(iter([table]), table.schema, out_file):,} similar items written to {out_file}")
    elif as_json:
        print_json({"kind": "similar", "k": k, "similar": table.to_dicts()})
    else:
        rows = [[one, like, rank, f"{score:.4f}", *more] for one, like, score, rank, *more in table.iter_rows()]
        print_table("Similar items", ["item", "similar item", "rank", "cosine", *table.columns[4:]], rows)


def rerank(
    source: Annotated[Path, Argument(metavar="RECS|RUN", help="Long recommendation lists of any system, or a run.")],
    out_file: Annotated[Path, Option("--out", help="File to write: .parquet, .csv, .tsv or .jsonl.")],
    method: Annotated[
        str | None, Option(metavar="NAME[,PARAMETER=VALUE…]", help="See `dpaa methods`.", rich_help_panel="Lists")
    ] = None,
    recipe: Annotated[Path | None, Option(help="recipe.json of `dpaa debias`, instead of --method.")] = None,
    dataset: Annotated[Path | None, Option(help="Source of popularity and histories; a run has its own.")] = None,
    k: Annotated[int | None, Option("--k", min=1, help="Length of the lists; default: the recipe's, or 20.")] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Re-rank recommendations to reduce popularity bias; nothing is trained.

    A file has user_id, item_id and score or rank, and more items than needed, for example 100 per user.  The new file
    keeps the old scores, unless the re-ranker computes new ones; use rank for the order.  strength=0 leaves lists
    unchanged; docs/reranking.md explains each re-ranker.

    \b
    Example:
      dpaa rerank recs.parquet --dataset data/shop --method xquad,strength=0.3 \\
          --out fairer.parquet
      dpaa rerank runs/lightgcn --method calibrated-popularity,depth=200 --out \\
          fairer.csv
      dpaa rerank recs.parquet --dataset data/shop --recipe \\
          debiased/recipe.json --out fairer.parquet
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
        raise InputError(f"{out_file} is the input; name another file for --out")
    data = None if dataset is None else dpaa.read_dataset(dataset)
    model = dpaa.load(source) if source.is_dir() else None
    if model is not None and data is not None:
        model.check_trained_on(data, "leave --dataset out")
    if data is None and (model is None or recipe is not None):
        raise InputError(f"{source} does not contain item popularity; name the dataset with --dataset")
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

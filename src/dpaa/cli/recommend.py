"""`dpaa recommend`: top-k lists, streamed to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dpaa.cli import options
from dpaa.cli.console import err, out, print_notes, print_table
from dpaa.cli.dial import PopularityDial, Rerank
from dpaa.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from dpaa.data.shards import Shard
    from dpaa.runs.model import Model


def recommend(
    run: options.RunArgument,
    k: Annotated[int, Option("--k", min=1, help="Items per user.")] = 20,
    out_file: Annotated[
        Path | None,
        Option("--out", help="File to write: .csv, .tsv, .parquet or .jsonl; without it, some lists are shown."),
    ] = None,
    form: Annotated[
        str, Option("--format", metavar="csv|tsv|parquet|jsonl", help="Format of the parts of --shard.")
    ] = "parquet",
    users: Annotated[
        list[str] | None, Option("--users", help="Only these users: ID,ID or @FILE of ids; repeatable.")
    ] = None,
    history: Annotated[
        Path | None,
        Option(
            "--history",
            help="File of users unseen in training and their items; with --users, for those of them that are unknown.",
        ),
    ] = None,
    user_column: options.UserColumn = None,
    item_column: options.ItemColumn = None,
    items: Annotated[
        list[str] | None, Option("--items", help="Only these items: ID,ID or @FILE of ids; repeatable.")
    ] = None,
    exclude: Annotated[
        list[str] | None, Option("--exclude", help="Exclude these items: ID,ID or @FILE of ids; repeatable.")
    ] = None,
    exclude_pairs: Annotated[
        Path | None,
        Option(metavar="FILE", help="Exclude items for single users: a file of user_id and item_id."),
    ] = None,
    only: Annotated[
        list[str] | None,
        Option(metavar="COLUMN=VALUE", help="Only items with this value in a column of the items; repeatable."),
    ] = None,
    at_most: Annotated[
        list[str] | None,
        Option(metavar="COLUMN=N", help="At most N items of one value of a column in a list; repeatable."),
    ] = None,
    at_least: Annotated[
        list[str] | None,
        Option(metavar="COLUMN=N", help="At least N different values of a column in a list; repeatable."),
    ] = None,
    popularity_dial: PopularityDial = None,
    rerank: Rerank = None,
    shard: Annotated[
        str | None,
        Option(
            metavar="I/N",
            help="Only this part of the users, as 3/16; --out is then a folder of N parts, and a part that is there is "
            "left as it is.",
        ),
    ] = None,
    seen: Annotated[bool, Option("--seen", help="Allow items that the user already has in training.")] = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Recommend the k best items to all or some users, in the ids of your log.

    Unknown users get a list from --history, or the popularity list; a column `source` says so where there are such.

    \b
    Example:
      dpaa recommend runs/lightgcn --k 20 --out recs.parquet
      dpaa recommend runs/lightgcn --users u0001,u0002
      dpaa recommend runs/lightgcn --history newcomers.csv --out recs.csv
      dpaa recommend runs/lightgcn --popularity-dial -0.5 --out recs.parquet
      dpaa recommend runs/lightgcn --items @in-stock.csv --exclude-pairs bought.csv --at-most genre=3 --out recs.csv
      dpaa recommend runs/lightgcn --shard 3/16 --out lists
    """
    from dpaa.cli.ids import read_ids
    from dpaa.data.shards import Shard
    from dpaa.runs.lists import read_limits, read_only
    from dpaa.runs.model import load
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
    model = load(run)
    how["items"] = read_ids(items, model.item_ids, "item") if items else None
    how["exclude"] = read_ids(exclude, model.item_ids, "item") if exclude else ()
    if exclude_pairs is not None:
        how["exclude_pairs"] = read_pairs(exclude_pairs, model, user_column, item_column)
    if history is not None:
        how["histories"] = read_pairs(history, model, user_column, item_column, known_users=bool(users))
    chosen = read_ids(users, model.user_ids, "user") if users else None
    target = out_file if part is None else join_shards(out_file, part, form, model, how | {"users": chosen, "k": k})
    if part is not None and target is not None and target.exists() and not overwrite:
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
    turned = f", popularity dial at κ = {kappa:g}" if kappa or popularity_dial is not None else ""
    out.print(f"{n_rows:,} recommendations written to {target}{turned}")


def join_shards(folder: Path | None, part: Shard, form: str, model: Model, how: dict[str, Any]) -> Path:
    """Join the folder of the shards of one call; returns the file of this one."""
    from dpaa.data.shards import OF, digest_of, join_folder
    from dpaa.runs.stream import SINKS

    if folder is None or f".{form}" not in SINKS:
        raise InputError("--shard needs a folder with --out, and a --format of csv, tsv, parquet or jsonl")
    about = {"run": digest_of(model.manifest.get("files")), "k": how["k"], "format": form, OF: part.of}
    join_folder(folder, about | {"choice of users and items": digest_of(how)})
    return part.file(folder, f".{form}")


def read_pairs(
    file: Path, model: Model, user_column: str | None, item_column: str | None, known_users: bool = True
) -> pl.DataFrame:
    """Read `user_id, item_id` of a file, in the types of the model's ids.

    Parameters
    ----------
    file : any log
    model : whose ids they are
    user_column, item_column : names in the file
    known_users : whether users are the model's too

    Returns
    -------
    the pairs
    """
    import polars as pl

    from dpaa.data.columns import Column
    from dpaa.data.ids import is_text, kind
    from dpaa.data.inputs import open_table
    from dpaa.data.log import ColumnNames, Reading, read_log

    log = read_log(open_table(file), ColumnNames(user_column, item_column), reading=Reading(may_drop=False))
    table = log.frame.select(Column.USER, Column.ITEM)
    for column, ids in {Column.USER: model.user_ids if known_users else None, Column.ITEM: model.item_ids}.items():
        if ids is None:
            continue
        if is_text(ids) and not log.typed:  # whole numbers of a text file may be text as well
            table = table.with_columns(pl.col(column).cast(pl.String))
        given = table[column]
        if is_text(given) != is_text(ids):
            raise InputError(
                f"{file} has {column}s that are {kind(given)} such as {given[0]!r}, the model {kind(ids)} such as "
                f"{ids[0]!r}; use the ids of the training log"
            )
    return table

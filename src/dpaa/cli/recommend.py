"""`dpaa recommend`: top-k lists, streamed to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaa.cli.console import err, out, print_notes, print_table
from dpaa.errors import InputError

if TYPE_CHECKING:
    import polars as pl


def recommend(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    k: Annotated[int, typer.Option("--k", min=1, help="Items per user.")] = 20,
    out_file: Annotated[
        Path | None,
        typer.Option("--out", help="Parquet or CSV file to write (by its ending); without it, some lists are shown."),
    ] = None,
    users: Annotated[
        list[str] | None,
        typer.Option("--users", help="Only this user; repeatable, or a file with one id a line as @FILE."),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option("--history", help="Table user_id, item_id of people unseen in training: recommend to them."),
    ] = None,
    items: Annotated[
        list[str] | None, typer.Option("--items", help="Only these items (allow list); repeatable, or @FILE.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", help="Never these items (deny list); repeatable, or @FILE.")
    ] = None,
    seen: Annotated[bool, typer.Option("--seen", help="Items the user already took may be recommended again.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
) -> None:
    """Recommend the k best items to all or some users, with their own ids.

    \b
    Examples:
      dpaa recommend runs/lightgcn --k 20 --out recs.parquet
      dpaa recommend runs/lightgcn --users u0001 --users u0002
      dpaa recommend runs/lightgcn --history newcomers.csv --out recs.csv
    """
    from dpaa.cli.ids import read_ids
    from dpaa.runs.folder import RunFolder
    from dpaa.runs.stream import check_target, write_stream

    if users and history:
        raise InputError("--users are known to the model and --history is for those who are not; give one of them")
    if out_file is not None:
        check_target(out_file, overwrite)
    model = RunFolder(run).read_model()
    allowed = read_ids(items, model.item_ids, "item") if items else None
    denied = read_ids(exclude, model.item_ids, "item") if exclude else ()
    schema = model.recommendation_schema
    if history is not None:
        from dpaa.data.log import read_log
        from dpaa.data.tables import open_table

        table = read_log(open_table(history)).frame
        blocks, notes = model.recommend_for_histories(table, k, seen=seen, items=allowed, exclude=denied)
        schema = schema | {"user_id": table["user_id"].dtype}
        print_notes(notes)
    else:
        chosen = read_ids(users, model.user_ids, "user") if users else None
        if out_file is None and chosen is None:
            chosen = model.user_ids.head(3)
            err.print("a look at the first users; write all lists with --out FILE", markup=False)
        blocks = model.recommend_blocks(chosen, k, seen=seen, items=allowed, exclude=denied)
    if out_file is None:
        for block in blocks:
            show(block)
        return
    rows = write_stream(blocks, schema, out_file)
    out.print(f"{rows:,} recommendations written to {out_file}", markup=False)


def show(lists: pl.DataFrame) -> None:
    """A table of lists, one row per recommendation."""
    rows = [[str(user), str(item), f"{score:.4f}", str(rank)] for user, item, score, rank in lists.iter_rows()]
    print_table("Recommendations", lists.columns, rows)

"""`dpaa similar`: items like an item."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from dpaa.cli import options
from dpaa.cli.console import out, print_json, print_notes, print_table
from dpaa.errors import InputError


def similar(
    run: options.RunArgument,
    item: Annotated[list[str], Option("--item", help="Items like these: ID,ID or @FILE of ids; repeatable.")],
    k: options.K = 10,
    out_file: Annotated[Path | None, Option("--out", help="File: .csv, .tsv, .parquet or .jsonl.")] = None,
    as_json: options.AsJson = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Show the items most like an item, by the cosine of their vectors.

    Items that the model does not know are counted and left out.

    \b
    Example:
      dpaa similar runs/lightgcn --item i0003
      dpaa similar runs/lightgcn --item @items.txt --k 20 --out similar.parquet
    """
    from dpaa.cli.ids import read_ids
    from dpaa.runs.lists import known_ids
    from dpaa.runs.model import load
    from dpaa.runs.stream import check_target, write_stream

    if out_file is not None:
        check_target(out_file, overwrite)
    model = load(run)
    index, notes = known_ids(read_ids(item, model.item_ids, "item"), model.item_ids, "item")
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

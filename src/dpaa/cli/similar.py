"""`dpaa similar`: items like an item."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from dpaa.cli import options
from dpaa.cli.console import out, print_json, print_notes, print_table


def similar(
    run: options.RunArgument,
    item: Annotated[list[str], Option("--item", help="Items like these: ID,ID or @FILE of ids; repeatable.")],
    k: Annotated[int, Option("--k", min=1, help="Similar items for each.")] = 10,
    out_file: Annotated[
        Path | None, Option("--out", help="Parquet or CSV file to write (by its ending); without it, they are shown.")
    ] = None,
    strict: Annotated[bool, Option("--strict", help="Items that the model does not know are an error.")] = False,
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
    from dpaa.data.ids import look_up
    from dpaa.runs.lists import known_ids
    from dpaa.runs.model import load
    from dpaa.runs.stream import check_target, write_stream

    if out_file is not None:
        check_target(out_file, overwrite)
    model = load(run)
    asked = read_ids(item, model.item_ids, "item")
    known, notes = known_ids(asked, model.item_ids, "item", "asked for", strict)
    if not len(known):
        known = look_up(asked, model.item_ids, "item")  # says so
    found = model.similar_items(model.item_ids.gather(known), k)
    print_notes(notes)
    if out_file is not None:
        rows = write_stream(iter([found]), found.schema, out_file)
        out.print(f"{rows:,} similar items written to {out_file}")
    elif as_json:
        print_json({"kind": "similar", "k": k, "similar": found.to_dicts()})
    else:
        for (owner,), part in found.group_by("item_id", maintain_order=True):
            titled = ["title"] if "title" in part.columns else []
            shown = part.select("rank", "similar_item_id", "score", *titled)
            lines = [
                [rank, like, f"{score:.4f}", *(title or "" for title in rest)]
                for rank, like, score, *rest in shown.iter_rows()
            ]
            print_table(f"Items like {owner}", ["rank", "item", "cosine", *titled], lines)

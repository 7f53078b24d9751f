"""`dpaa recommend`: top-k lists, streamed to a file."""

from __future__ import annotations

from dataclasses import dataclass
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
        Option(
            "--out", help="File to write, in the form of its ending or of --format; without it, some lists are shown."
        ),
    ] = None,
    form: Annotated[
        str | None,
        Option(
            "--format",
            metavar="csv|parquet|jsonl|ranx|trec|rectools|recbole",
            help="Form of the file; default: by its ending (.csv, .parquet, .jsonl, .trec, .inter for RecBole, .json "
            "for ranx).",
        ),
    ] = None,
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
    strict: Annotated[bool, Option("--strict", help="Ids that the model does not know are an error.")] = False,
    popularity_dial: PopularityDial = None,
    rerank: Rerank = None,
    vectors: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Instead of lists: write the vectors of users and items that serve every κ, for an index of your own, "
            "as users.parquet and items.parquet.",
        ),
    ] = None,
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
      dpaa recommend runs/lightgcn --format trec --out run.trec
      dpaa recommend runs/lightgcn --shard 3/16 --out lists
      dpaa recommend runs/lightgcn --vectors vectors
    """
    from dpaa.cli.ids import read_ids
    from dpaa.runs.lists import read_limits, read_only
    from dpaa.runs.model import load
    from dpaa.runs.stream import write_recommendations

    if vectors is not None:
        if history or items or exclude or out_file or form or shard or popularity_dial is not None:
            raise InputError(
                "--vectors are of the model's own users and serve every κ and any choice of items; leave --history, "
                "--items, --exclude, --out, --format, --shard and --popularity-dial out"
            )
        export(run, vectors, users, overwrite, rerank)
        return
    target = find_target(out_file, form, shard, overwrite)
    how: dict[str, Any] = {
        "seen": seen,
        "only": read_only(only or [], "--only", "--only in_stock=true"),
        "at_most": read_limits(at_most or [], "--at-most", "--at-most genre=3"),
        "at_least": read_limits(at_least or [], "--at-least", "--at-least genre=3"),
        "popularity_dial": popularity_dial,
        "rerank": rerank or "run",
        "strict": strict,
    }
    model = load(run)
    how["items"] = read_ids(items, model.item_ids, "item") if items else None
    how["exclude"] = read_ids(exclude, model.item_ids, "item") if exclude else ()
    if exclude_pairs is not None:
        how["exclude_pairs"] = read_pairs(exclude_pairs, model, user_column, item_column)
    if history is not None:
        how["histories"] = read_history(history, model, user_column, item_column, alone=not users)
    chosen = read_ids(users, model.user_ids, "user") if users else None
    preview = out_file is None and chosen is None and history is None
    if target is not None and not target.begun(model, how | {"users": chosen, "k": k}, overwrite):
        return
    part = None if target is None else target.shard
    found = model.lists(model.user_ids.head(3) if preview else chosen, k, shard=part, **how)
    if preview:
        err.print("preview of the first users; write all lists with --out FILE")
    print_notes(found.notes)
    blocks, schema = found.blocks, found.schema
    if target is None:
        for block in blocks:
            rows = [[user, item, f"{score:.4f}", *rest] for user, item, score, *rest in block.iter_rows()]
            print_table("Recommendations", block.columns, rows)
        return
    n_rows, notes = write_recommendations(blocks, schema, target.file, target.form, f"dpaa-{model.method.name}")
    print_notes(notes)
    kappa = model.kappa(popularity_dial)
    turned = f", popularity dial at κ = {kappa:g}" if kappa or popularity_dial is not None else ""
    out.print(f"{n_rows:,} recommendations written to {target.file}{turned}")


@dataclass(frozen=True)
class Target:
    """Where lists go: a file, or one of the files of a folder of shards."""

    file: Path
    form: str
    shard: Shard | None = None

    def begun(self, model: Model, asked: dict[str, Any], overwrite: bool) -> bool:
        """Join the folder of shards that belong together; whether this one is still to be made."""
        from dpaa.data.shards import OF, digest_of, join_folder

        if self.shard is None:
            return True
        run, folder = digest_of(model.manifest.get("files")), self.file.parent
        about = {"run": run, "k": asked["k"], "format": self.form, OF: self.shard.of}
        join_folder(folder, about | {"choice of users and items": digest_of(asked)})
        if self.file.exists() and not overwrite:
            out.print(f"{self.shard} is in {folder} already; pass --overwrite to make it again")
            return False
        return True


def find_target(file: Path | None, form: str | None, shard: str | None, overwrite: bool) -> Target | None:
    """Where lists go, checked before any work; None shows some."""
    from dpaa.data.shards import Shard
    from dpaa.runs.stream import check_format, choose_format, shard_ending

    if file is None:
        if form is not None or shard is not None:
            option, what = ("--format", "that of a file") if shard is None else ("--shard", "written to a folder")
            raise InputError(f"{option} is {what}; name it with --out")
        return None
    if shard is None:
        return Target(file, choose_format(file, form, overwrite))
    part, chosen = Shard.parse(shard), check_format(form or "parquet")
    return Target(part.file(file, shard_ending(chosen)), chosen, part)


def export(run: Path, folder: Path, users: list[str] | None, overwrite: bool, rerank: str | None) -> None:
    """Write the vectors, and say how they are used."""
    from dpaa.cli.ids import read_ids
    from dpaa.runs.model import load
    from dpaa.runs.stream import check_vector_folder, write_vectors

    check_vector_folder(folder, overwrite)
    model = load(run)
    if (reranker := model.reranker(rerank or "run")) is not None:
        raise InputError(
            f"vectors cannot carry the re-ranker {reranker.in_words()}; add --rerank none for those of the scores "
            "alone, or write lists with --out"
        )
    chosen = read_ids(users, model.user_ids, "user") if users else None
    n_users, n_items = write_vectors(model, folder, chosen, overwrite)
    out.print(
        f"vectors of {n_users:,} users and {n_items:,} items written to {folder}; the score at κ is the inner product "
        "of v0, v1, … plus κ · deviation · popularity"
    )


def read_history(
    file: Path, model: Model, user_column: str | None, item_column: str | None, alone: bool = True
) -> pl.DataFrame:
    """The pairs of a history file; one of whose items the model knows none is somebody else's."""
    from dpaa.data.columns import Column
    from dpaa.data.ids import encode

    table = read_pairs(file, model, user_column, item_column, users=not alone)
    items, known = table[Column.ITEM], model.item_ids
    if (encode(items, known) < 0).all():
        raise InputError(
            f"no item in {file} is known to the model (it has {items[0]!r}, the model {known[0]!r}); "
            "use the item ids of the training log"
        )
    return table


def read_pairs(
    file: Path, model: Model, user_column: str | None, item_column: str | None, users: bool = True
) -> pl.DataFrame:
    """`user_id, item_id` of a file, in the types of the model's; its users' only where they are meant to be known."""
    import polars as pl

    from dpaa.data.columns import Column
    from dpaa.data.ids import is_text, kind
    from dpaa.data.inputs import open_table
    from dpaa.data.log import ColumnNames, Reading, read_log

    log = read_log(open_table(file), ColumnNames(user_column, item_column), reading=Reading(may_drop=False))
    table = log.frame.select(Column.USER, Column.ITEM)
    known = {Column.ITEM: model.item_ids} | ({Column.USER: model.user_ids} if users else {})
    for column, ids in known.items():
        if is_text(ids) and not log.typed:  # whole numbers of a text file may be text as well
            table = table.with_columns(pl.col(column).cast(pl.String))
        given = table[column]
        if is_text(given) != is_text(ids):
            what = column.removesuffix("_id")
            raise InputError(
                f"the {what}s in {file} are {kind(given)} (such as {given[0]!r}), those of the model are {kind(ids)} "
                f"(such as {ids[0]!r}); cast them"
            )
    return table

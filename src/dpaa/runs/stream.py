"""Recommendations and vectors as files that other tools read: streamed, each file whole or not written at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.io.plugins import register_io_source

from dpaa._io import check_file_target, check_folder_name, is_staging, settled, whole_folder, write_file
from dpaa._text import counted, json_text
from dpaa.data.columns import Column
from dpaa.errors import InputError
from dpaa.runs.lists import RANK, SCORE, Ids
from dpaa.runs.model import Model

Sink = Callable[[pl.LazyFrame, Path], object]
"""Writes a table to a file, a block at a time."""
SINKS: dict[str, Sink] = {
    ".parquet": lambda table, file: table.sink_parquet(file),
    ".csv": lambda table, file: table.sink_csv(file),
}
"""By the file's ending."""
REMEDY = "make room or choose another place"
USERS, ITEMS = "users.parquet", "items.parquet"


def check_target(file: Path, overwrite: bool) -> None:
    """Refuse, before any work, a Parquet or CSV file that could not be written."""
    check_file_target(file, tuple(SINKS), "a table", overwrite=overwrite)


def write_stream(
    blocks: Iterator[pl.DataFrame], schema: Mapping[str, Any], file: Path, sink: Sink | None = None
) -> int:
    """Write blocks of one schema to a file without holding more than one of them.

    Parameters
    ----------
    blocks : the rows
    schema : column → type, of every block
    file : the file to write
    sink : what writes it; by default Parquet or CSV, by the file's ending

    Returns
    -------
    the number of rows
    """
    rows = 0
    failures: list[Exception] = []

    def source(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        nonlocal rows
        del predicate, n_rows, batch_size  # nothing filters a sink
        try:
            for block in blocks:
                rows += len(block)
                yield block if with_columns is None else block.select(with_columns)
        except Exception as error:  # polars would wrap it in an error of its own
            failures.append(error)
            raise

    table = register_io_source(source, schema=dict(schema))

    def write(fresh: Path) -> None:
        try:
            (sink or SINKS[file.suffix.lower()])(table, fresh)
        except pl.exceptions.PolarsError:
            if failures:
                raise failures[0] from None
            raise

    write_file(file, write, REMEDY)
    return rows


# ------------------------------------------------------------------ recommendations in the form of a tool


def _separated(separator: str, header: bool) -> Sink:
    return lambda table, file: table.sink_csv(
        file, separator=separator, include_header=header, quote_style="never", null_value=""
    )


def _json_lines(table: pl.LazyFrame, file: Path) -> None:
    table.sink_ndjson(file)


@dataclass(frozen=True)
class Format:
    """How one tool reads lists."""

    sinks: Mapping[str, Sink]
    """Ending of the file → what writes it; the first is the usual one."""
    columns: Mapping[str, str] | None = None
    """Our column → the tool's, in its order; None keeps all columns."""
    text: bool = False
    """Whether ids are text there, whatever they are here."""
    by_score: bool = False
    """Whether its readers sort by score and ignore ranks."""
    forbidden: str = ""
    """A pattern that no id may contain, and …"""
    because: str = ""
    """… why."""


FORMATS = {
    "csv": Format({".csv": SINKS[".csv"]}),
    "parquet": Format({".parquet": SINKS[".parquet"]}),
    "jsonl": Format({".jsonl": _json_lines, ".ndjson": _json_lines}),
    "rectools": Format(
        {".csv": SINKS[".csv"], ".parquet": SINKS[".parquet"]},
        {name: name for name in (Column.USER, Column.ITEM, SCORE, RANK)},
    ),
    "recbole": Format(
        {".inter": _separated("\t", header=True)},
        {Column.USER: "user_id:token", Column.ITEM: "item_id:token", SCORE: "score:float", RANK: "rank:float"},
        text=True,
        forbidden='[\t\r\n]|^"',
        because="RecBole's columns are separated by tabs, without quotes",
    ),
    "trec": Format(
        {".trec": _separated(" ", header=False), ".txt": _separated(" ", header=False)},
        {Column.USER: "topic", "q0": "q0", Column.ITEM: "document", RANK: "rank", SCORE: "score", "tag": "tag"},
        text=True,
        by_score=True,
        forbidden=r"\s|^$",
        because="columns of a TREC run are separated by spaces",
    ),
    "ranx": Format(  # `.json` is one object, user → item → score: `_write_object`
        {".json": _json_lines, ".parquet": SINKS[".parquet"]},
        {Column.USER: "q_id", Column.ITEM: "doc_id", SCORE: SCORE},
        text=True,
        by_score=True,
    ),
}
"""Name → format."""
ENDINGS = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".inter": "recbole",
    ".trec": "trec",
    ".txt": "trec",
    ".json": "ranx",
}
"""Ending of a file → format where none is named."""


def choose_format(file: Path, name: str | None, overwrite: bool) -> str:
    """Name of the format, given or by the file's ending; a file that could not be written is refused."""
    if name is None:
        check_file_target(file, sorted(ENDINGS), "a table", overwrite=overwrite)
        return ENDINGS[file.suffix.lower()]
    chosen = check_format(name)
    check_file_target(file, sorted(FORMATS[chosen].sinks), f"format {chosen}", overwrite=overwrite)
    return chosen


def check_format(name: str) -> str:
    """Name of an existing format, in lower case."""
    if name.lower() not in FORMATS:
        raise InputError(f"there is no format {name!r}; choose one of {', '.join(FORMATS)}")
    return name.lower()


def shard_ending(name: str) -> str:
    """Ending of shards in a format: Parquet where it has that, since a JSON object cannot be split."""
    return ".parquet" if ".parquet" in FORMATS[name].sinks else next(iter(FORMATS[name].sinks))


def write_recommendations(
    blocks: Iterator[pl.DataFrame], schema: Mapping[str, Any], file: Path, name: str, tag: str = "dpaa"
) -> tuple[int, list[str]]:
    """Write lists in a format.

    Parameters
    ----------
    blocks : `user_id, item_id, score, rank, …`; whole lists in the order of their ranks
    schema : column → type
    file : the file to write
    name : a key of `FORMATS`
    tag : name of the recommender, where the format has a column for it

    Returns
    -------
    the number of rows, and notes
    """
    form = FORMATS[name]
    lowered = 0

    def shaped(block: pl.DataFrame) -> pl.DataFrame:
        nonlocal lowered
        if form.text:
            block = block.with_columns(pl.col(Column.USER, Column.ITEM).cast(pl.String))
        if form.forbidden:
            _check_ids(block, form)
        if form.by_score:
            falling = falling_scores(block)
            lowered += int((falling != block[SCORE].to_numpy()).sum())
            block = block.with_columns(pl.Series(SCORE, falling))
        if form.columns is None:
            return block
        constants = [pl.lit("Q0").alias("q0"), pl.lit(tag).alias("tag")]
        return block.with_columns(constants).select(pl.col(ours).alias(theirs) for ours, theirs in form.columns.items())

    empty = shaped(pl.DataFrame(schema=dict(schema)))
    ready = (shaped(block) for block in blocks)
    if name == "ranx" and file.suffix.lower() == ".json":
        rows = _write_object(ready, file)
    else:
        rows = write_stream(ready, empty.schema, file, form.sinks[file.suffix.lower()])
    scores = counted(lowered, "score was", "scores were")
    note = f"{scores} lowered to below the one before, since readers of {name} files sort by score alone"
    return rows, [note] if lowered else []


def falling_scores(block: pl.DataFrame) -> NDArray[np.float32]:
    """Scores that fall strictly from rank to rank of each list, as near to the given ones as float32 allows.

    Tools that evaluate retrieval runs (trec_eval, ranx) sort by score alone.  Where scores tie, or rise because a
    re-ranker made the list, they would see another order than ours.
    """
    scores = block[SCORE].to_numpy().astype(np.float32)
    ranks = block[RANK].to_numpy()
    for rank in range(2, int(ranks.max(initial=1)) + 1):
        rows = np.flatnonzero(ranks == rank)
        scores[rows] = np.minimum(scores[rows], np.nextafter(scores[rows - 1], np.float32(-np.inf)))
    return scores


def _check_ids(block: pl.DataFrame, form: Format) -> None:
    for column, what in ((Column.USER, "user"), (Column.ITEM, "item")):
        wrong = block[column].filter(block[column].str.contains(form.forbidden))
        if len(wrong):
            raise InputError(f"the {what} id {wrong[0]!r} cannot be written: {form.because}; use jsonl or csv")


def _write_object(blocks: Iterator[pl.DataFrame], file: Path) -> int:
    """One JSON object, a user's list after the other."""
    rows = 0

    def write(fresh: Path) -> None:
        nonlocal rows
        known: set[str] = set()
        with fresh.open("w", encoding="utf-8") as opened:
            opened.write("{")
            for block in blocks:
                rows += len(block)
                for (user,), of_user in block.group_by("q_id", maintain_order=True):
                    if user in known:
                        raise InputError(f"user {user!r} has two lists, and a JSON object has room for one; ask once")
                    listed = dict(zip(of_user["doc_id"].to_list(), of_user[SCORE].to_list(), strict=True))
                    opened.write(f"{',' if known else ''}\n{json_text(user, None)}: {json_text(listed, None)}")
                    known.add(str(user))
            opened.write("\n}\n")

    write_file(file, write, REMEDY)
    return rows


# ------------------------------------------------------------------ vectors


def check_vector_folder(folder: Path, overwrite: bool) -> None:
    """Refuse, before any work, a folder that could not be written; only an earlier export is ever replaced."""
    check_folder_name(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder for the vectors")
    if folder.is_dir():
        names = {file.name for file in folder.iterdir() if not is_staging(file)}
        if names - {USERS, ITEMS}:
            raise InputError(f"{folder} holds something else than exported vectors; name another folder")
        if names and not overwrite:
            raise InputError(f"{folder} already exists; pass --overwrite or name another folder")
    if not folder.resolve().parent.is_dir():
        raise InputError(f"there is no folder {folder.parent}; make it first or name another folder")


def write_vectors(model: Model, folder: Path, users: Ids | None = None, overwrite: bool = False) -> tuple[int, int]:
    """Write `users.parquet` and `items.parquet` of `Model.dial_vectors`; returns their numbers of rows."""
    check_vector_folder(folder, overwrite)
    of_users, of_items = model.dial_vectors(users)
    with whole_folder(settled(folder), REMEDY) as fresh:
        return _write_blocks(of_users, fresh / USERS), _write_blocks(of_items, fresh / ITEMS)


def _write_blocks(blocks: Iterator[pl.DataFrame], file: Path) -> int:
    first = next(blocks)
    return write_stream(chain([first], blocks), first.schema, file)

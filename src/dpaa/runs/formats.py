"""Recommendations in the forms that other tools read, streamed; the file appears whole or not at all.

Tools that evaluate runs of retrieval (trec_eval, ranx) sort by score alone.  Where a list's scores tie, or do not fall
because a re-ranker made the list, each score is lowered to just below the one before it, so that they see our order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpaa._io import check_file_target, write_file
from dpaa._text import counted, json_text
from dpaa.data.columns import Column
from dpaa.errors import InputError
from dpaa.runs.lists import RANK, SCORE
from dpaa.runs.stream import REMEDY, SINKS, Sink, write_stream

PLAIN = (Column.USER, Column.ITEM, SCORE, RANK)
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Format:
    """How one tool wants lists."""

    sinks: Mapping[str, Sink]
    """Ending of the file → what writes it; the first is the usual one."""
    columns: Mapping[str, str] | None = None
    """Ours → the tool's, in its order; None keeps all columns as they are."""
    text: bool = False
    """Whether ids are text there, whatever they are here."""
    by_score: bool = False
    """Whether its readers sort by score and look at no rank."""
    forbidden: str = ""
    """A pattern that no id may have in it, and …"""
    because: str = ""
    """… why, in words."""


def _separated(separator: str, header: bool) -> Sink:
    return lambda table, file: table.sink_csv(
        file, separator=separator, include_header=header, quote_style="never", null_value=""
    )


def _json_lines(table: pl.LazyFrame, file: Path) -> None:
    table.sink_ndjson(file)


TREC_COLUMNS = {Column.USER: "topic", "q0": "q0", Column.ITEM: "document", RANK: "rank", SCORE: "score", "tag": "tag"}
RECBOLE_COLUMNS = {
    Column.USER: "user_id:token",
    Column.ITEM: "item_id:token",
    SCORE: "score:float",
    RANK: "rank:float",
}
FORMATS = {
    "csv": Format({".csv": SINKS[".csv"]}),
    "parquet": Format({".parquet": SINKS[".parquet"]}),
    "jsonl": Format({".jsonl": _json_lines, ".ndjson": _json_lines}),
    "rectools": Format({".csv": SINKS[".csv"], ".parquet": SINKS[".parquet"]}, {name: name for name in PLAIN}),
    "recbole": Format(
        {".inter": _separated("\t", header=True)},
        RECBOLE_COLUMNS,
        text=True,
        forbidden='[\t\r\n]|^"',
        because="RecBole's columns are separated by tabs, without quotes",
    ),
    "trec": Format(
        {".trec": _separated(" ", header=False), ".txt": _separated(" ", header=False)},
        TREC_COLUMNS,
        text=True,
        by_score=True,
        forbidden=r"\s|^$",
        because="columns of a TREC run are separated by spaces",
    ),
    "ranx": Format(
        {".json": lambda _table, _file: None, ".parquet": SINKS[".parquet"]},
        {Column.USER: "q_id", Column.ITEM: "doc_id", SCORE: SCORE},
        text=True,
        by_score=True,
    ),
}
"""Name → form."""
OBJECT = ".json"
"""The ending of ranx's own form, one JSON object: user → item → score."""
ENDINGS = {".json": "ranx", ".txt": "trec"} | {
    ending: name for name, form in reversed(FORMATS.items()) for ending in form.sinks if ending not in (".json", ".txt")
}
"""What an ending stands for where no format is named."""


def choose_format(file: Path, name: str | None, overwrite: bool) -> str:
    """The format's name, by itself or by the file's ending; what could not be written is refused before any work."""
    if name is None:
        check_file_target(file, sorted(ENDINGS), "a table", overwrite=overwrite)
        return ENDINGS[file.suffix.lower()]
    chosen = check_format(name)
    check_file_target(file, sorted(FORMATS[chosen].sinks), f"format {chosen}", overwrite=overwrite)
    return chosen


def check_format(name: str) -> str:
    """The name of a format that there is."""
    if name.lower() not in FORMATS:
        raise InputError(f"there is no format {name!r}; choose one of {', '.join(FORMATS)}")
    return name.lower()


def shard_ending(name: str) -> str:
    """What shards in a format end in: Parquet where it has that, since a JSON object cannot be had in parts."""
    return ".parquet" if ".parquet" in FORMATS[name].sinks else next(iter(FORMATS[name].sinks))


def write_recommendations(
    blocks: Iterator[pl.DataFrame], schema: Schema, file: Path, name: str, tag: str = "dpaa"
) -> tuple[int, list[str]]:
    """Write lists in a format.  Returns the number of rows, and what to know of them, in words.

    Every block has whole lists, in the order of their ranks; `tag` names the recommender where the format has a place
    for it.
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
    made = (shaped(block) for block in blocks)
    if name == "ranx" and file.suffix.lower() == OBJECT:
        rows = _write_object(made, file)
    else:
        rows = write_stream(made, empty.schema, file, form.sinks[file.suffix.lower()])
    if not lowered:
        return rows, []
    return rows, [
        f"{counted(lowered, 'score was', 'scores were')} lowered to below the one before, since readers of {name} "
        "files sort by score alone"
    ]


def falling_scores(block: pl.DataFrame) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Scores that fall strictly from rank to rank of each list, as near to the given ones as float32 can be."""
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

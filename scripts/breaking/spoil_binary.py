"""Mutations of binary files: Parquet, safetensors, SQLite, gzip."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from . import parquet
from .spoil_bytes import HUGE, ODD_TEXTS, Spoil
from .spoil_text import json_number, json_top, json_value

# ---------------------------------------------------------------------- Parquet


def _table(change: Callable[[pl.DataFrame, random.Random], pl.DataFrame]) -> Spoil:
    """A valid file with other content."""

    def spoil(content: bytes, rng: random.Random) -> bytes:
        return _parquet_bytes(change(pl.read_parquet(content), rng))

    return spoil


def _parquet_bytes(frame: pl.DataFrame) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.parquet"
        frame.write_parquet(file)
        return file.read_bytes()


TYPES: dict[str, Callable[[str], pl.Expr]] = {
    "decimal": lambda name: pl.int_range(pl.len()).cast(pl.Decimal(20, 2)).alias(name),
    "int128": lambda name: pl.int_range(pl.len()).cast(pl.Int128).alias(name),
    "int8": lambda name: (pl.int_range(pl.len()) % 100).cast(pl.Int8).alias(name),
    "uint64": lambda name: (pl.int_range(pl.len()).cast(pl.UInt64) + pl.lit(2**63, dtype=pl.UInt64)).alias(name),
    "float": lambda name: (pl.int_range(pl.len()) / 3).alias(name),
    "nan": lambda name: pl.lit(float("nan")).alias(name),
    "infinity": lambda name: pl.lit(float("inf")).alias(name),
    "boolean": lambda name: (pl.int_range(pl.len()) % 2 == 0).alias(name),
    "date": lambda name: pl.int_range(pl.len()).cast(pl.Int32).cast(pl.Date).alias(name),
    "datetime": lambda name: pl.int_range(pl.len()).cast(pl.Datetime("ns", "UTC")).alias(name),
    "duration": lambda name: pl.int_range(pl.len()).cast(pl.Duration("us")).alias(name),
    "time": lambda name: pl.int_range(pl.len()).cast(pl.Time).alias(name),
    "binary": lambda name: pl.int_range(pl.len()).cast(pl.String).cast(pl.Binary).alias(name),
    "categorical": lambda name: pl.int_range(pl.len()).cast(pl.String).cast(pl.Categorical).alias(name),
    "list": lambda name: pl.concat_list(pl.int_range(pl.len())).alias(name),
    "struct": lambda name: pl.struct(a=pl.int_range(pl.len()), b=pl.lit("x")).alias(name),
    "null": lambda name: pl.lit(None).alias(name),
    "empty_text": lambda name: pl.lit("").alias(name),
    "negative": lambda name: (-pl.int_range(pl.len())).alias(name),
    "large": lambda name: (pl.int_range(pl.len()) + 2**62).alias(name),
    "number_as_text": lambda name: pl.int_range(pl.len()).cast(pl.String).alias(name),
}


def _with_type(frame: pl.DataFrame, rng: random.Random) -> pl.DataFrame:
    return frame.with_columns(rng.choice(list(TYPES.values()))(rng.choice(frame.columns)))


def _with_nulls(frame: pl.DataFrame, rng: random.Random) -> pl.DataFrame:
    name, place = rng.choice(frame.columns), rng.randrange(max(1, frame.height))
    return frame.with_columns(pl.when(pl.int_range(pl.len()) != place).then(pl.col(name)).alias(name))


def _with_odd_cell(frame: pl.DataFrame, rng: random.Random) -> pl.DataFrame:
    name, place = rng.choice(frame.columns), rng.randrange(max(1, frame.height))
    text = pl.lit(rng.choice(ODD_TEXTS))
    return frame.with_columns(
        pl.when(pl.int_range(pl.len()) == place).then(text).otherwise(pl.col(name).cast(pl.String)).alias(name)
    )


def _deep_column(frame: pl.DataFrame, rng: random.Random) -> pl.DataFrame:
    nested: Any = pl.lit(1)
    for _ in range(rng.choice((5, 50))):
        nested = pl.struct(a=nested)
    return frame.with_columns(nested.alias(frame.columns[0]))


def _renamed(frame: pl.DataFrame, rng: random.Random) -> pl.DataFrame:
    names = list(frame.columns)
    names[rng.randrange(len(names))] = rng.choice([text for text in ODD_TEXTS if text not in names])
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def _without_column(frame: pl.DataFrame, rng: random.Random) -> pl.DataFrame:
    return frame.drop(rng.choice(frame.columns))


def _names_of(content: bytes) -> tuple[str, str]:
    """Two columns of the file, for forged ones."""
    names = pl.read_parquet_schema(content)
    first, *rest = list(names)
    return first, rest[0] if rest else first + "2"


def _long_string(size: int) -> Spoil:
    """One text of so many bytes, in a file of a few kilobytes."""

    def spoil(content: bytes, rng: random.Random) -> bytes:
        names = list(_names_of(content))
        rng.shuffle(names)
        columns = [parquet.Column(names[0], b"a", size), parquet.Column(names[1], b"i01")]
        return parquet.forge(columns, rng.choice((1, 3)))

    return spoil


def _long_run(rows: int) -> Spoil:
    """Equal rows without end, in a file of a few hundred bytes."""

    def spoil(content: bytes, rng: random.Random) -> bytes:
        names = _names_of(content)
        values: tuple[bytes | int, bytes | int] = rng.choice(((b"u01", b"i01"), (1, 2)))
        return parquet.forge([parquet.Column(name, value) for name, value in zip(names, values, strict=True)], rows)

    return spoil


def _false_count(content: bytes, rng: random.Random) -> bytes:
    names = _names_of(content)
    columns = [parquet.Column(name, value) for name, value in zip(names, (b"u01", b"i01"), strict=True)]
    return parquet.forge(columns, 5, claimed_rows=rng.choice((0, 4, 6, 10**6, 10**9, 2**40, 2**62, -5)))


PARQUET: dict[str, Spoil] = {
    "other_type": _table(_with_type),
    "null_cell": _table(_with_nulls),
    "odd_cell": _table(_with_odd_cell),
    "deep_column": _table(_deep_column),
    "renamed_column": _table(_renamed),
    "column_missing": _table(_without_column),
    "no_rows": _table(lambda frame, _: frame.clear()),
    "one_row": _table(lambda frame, _: frame.head(1)),
    "rows_twice": _table(lambda frame, _: frame.vstack(frame)),
    "shuffled_rows": _table(lambda frame, rng: frame.sample(fraction=1.0, shuffle=True, seed=rng.randrange(99))),
    "many_columns": _table(lambda frame, _: frame.with_columns(pl.lit(1).alias(f"c{n}") for n in range(2000))),
    "footer_number": lambda content, rng: parquet.change_a_number(content, rng),
    "footer_length": lambda content, rng: content[:-8] + rng.randbytes(4) + content[-4:],
    "long_string": _long_string(600_000_000),
    "longest_string": _long_string(2**31 - 100),
    "long_run": _long_run(150_000_000),
    "longest_run": _long_run(2**31 - 1),
    "false_count": _false_count,
    "csv_inside": lambda _content, _rng: b"user_id,item_id\na,b\n",
}


# ---------------------------------------------------------------------- safetensors


def _header(change: Callable[[dict[str, Any], random.Random], object]) -> Spoil:
    """The header, which is JSON, edited."""

    def spoil(content: bytes, rng: random.Random) -> bytes:
        header, data = _opened(content)
        change(header, rng)
        return _closed(json.dumps(header).encode(), data)

    return spoil


def _opened(content: bytes) -> tuple[dict[str, Any], bytes]:
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def _closed(header: bytes, data: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + data


def _header_as_json(spoil: Spoil) -> Spoil:
    def change(content: bytes, rng: random.Random) -> bytes:
        size = int.from_bytes(content[:8], "little")
        return _closed(spoil(content[8 : 8 + size], rng), content[8 + size :])

    return change


def _one(header: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = header[rng.choice([name for name in header if name != "__metadata__"])]
    return found


def _other_shape(header: dict[str, Any], rng: random.Random) -> None:
    tensor = _one(header, rng)
    shape = tensor["shape"]
    tensor["shape"] = rng.choice(
        ([2**40, 2**40], [-1, 8], [*shape, 1], shape[::-1], [], [0], [2**31, 8], [1] * 5000, shape[:1], [2**63, 2])
    )


def _other_offsets(header: dict[str, Any], rng: random.Random) -> None:
    tensor = _one(header, rng)
    start, end = tensor["data_offsets"]
    tensor["data_offsets"] = rng.choice(
        (
            [end, start],
            [start, end + 4],
            [start, 2**60],
            [-4, end],
            [0, 0],
            [start + 1, end],
            [start],
            [start, end, end],
        )
    )


def _other_metadata(header: dict[str, Any], rng: random.Random) -> None:
    kept = header.get("__metadata__") or {}
    if "progress" in kept and rng.random() < 0.8:
        kept["progress"] = json_value(kept["progress"].encode(), rng).decode("utf-8", "replace")
    else:
        header["__metadata__"] = rng.choice(({}, {"a": "b"}, {"progress": "x"}, {"progress": "[]"}, {"a": "x" * 10**6}))


def _rename(header: dict[str, Any], rng: random.Random) -> None:
    header[rng.choice(ODD_TEXTS)] = header.pop(rng.choice(list(header)))


def _odd_numbers(content: bytes, rng: random.Random) -> bytes:
    """NaN, infinity and the largest numbers in the tensors."""
    header, data = _opened(content)
    tensors = [one for name, one in header.items() if name != "__metadata__" and one["data_offsets"][1] >= 4]
    start = rng.choice(tensors)["data_offsets"][0]
    odd = rng.choice((b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f", b"\x00\x00\x80\xff", b"\xff\xff\x7f\x7f", b"\1\0\0\0"))
    times = rng.choice((1, 8))
    data = data[:start] + odd * times + data[start + 4 * times :]
    return _closed(json.dumps(header).encode(), data)


SAFETENSORS: dict[str, Spoil] = {
    "other_shape": _header(_other_shape),
    "other_offsets": _header(_other_offsets),
    "other_dtype": _header(
        lambda header, rng: _one(header, rng).update(dtype=rng.choice(("F16", "BF16", "I64", "F64", "BOOL", "X")))
    ),
    "tensor_missing": _header(lambda header, rng: header.pop(rng.choice(list(header)))),
    "renamed_tensor": _header(_rename),
    "other_metadata": _header(_other_metadata),
    "odd_numbers": _odd_numbers,
    "header_length": lambda content, rng: (
        rng.choice((0, 1, 2**20, 2**31, 2**62, 2**64 - 1)).to_bytes(8, "little") + content[8:]
    ),
    "header_value": _header_as_json(json_value),
    "header_number": _header_as_json(json_number),
    "header_top": _header_as_json(json_top),
    "no_data": lambda content, _: content[: 8 + int.from_bytes(content[:8], "little")],
    "more_data": lambda content, _: content + bytes(4096),
    "long_header": lambda content, _: _closed(
        content[8 : 8 + int.from_bytes(content[:8], "little")] + b" " * 60_000_000, b""
    ),
}


# ---------------------------------------------------------------------- SQLite


def _cell(content: bytes, rng: random.Random) -> bytes:
    """Another value in one cell of one table."""

    def change(database: sqlite3.Connection) -> None:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        filled = [name for name in tables if database.execute(f"select count(*) from {name}").fetchone()[0]]
        table = rng.choice(filled)
        column = rng.choice([row[1] for row in database.execute(f"pragma table_info({table})")])
        rowid = rng.choice([one for (one,) in database.execute(f"select rowid from {table}")])
        value = rng.choice((None, -1, 2**62, 1e308, "text", "{}", "[" * 5000, "null", *ODD_TEXTS))
        database.execute("pragma foreign_keys = off")
        database.execute("pragma ignore_check_constraints = on")
        database.execute(f"update or ignore {table} set {column} = ? where rowid = ?", (value, rowid))

    return _database(content, change)


def _without_table(content: bytes, rng: random.Random) -> bytes:
    def change(database: sqlite3.Connection) -> None:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        database.execute(f"drop table {rng.choice(tables)}")

    return _database(content, change)


def _database(content: bytes, change: Callable[[sqlite3.Connection], None]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.sqlite"
        file.write_bytes(content)
        database = sqlite3.connect(file)
        try:
            with database:
                change(database)
        except sqlite3.Error:
            pass  # a constraint of the table: the file stays as it was
        finally:
            database.close()
        return file.read_bytes()


SQLITE: dict[str, Spoil] = {
    "cell": _cell,
    "table_missing": _without_table,
    "empty_database": lambda _content, _rng: _database(b"", lambda database: database.execute("create table t (a)")),
}


# ---------------------------------------------------------------------- gzip


def zipped(spoil: Spoil) -> Spoil:
    """A mutation of what is inside."""
    return lambda content, rng: gzip.compress(spoil(gzip.decompress(content), rng), 1, mtime=0)


def _members(first: bytes, repeated: bytes, total: int) -> bytes:
    """A gzip file of many members: the first text once, then another again and again, `total` bytes in all."""
    block = repeated * max(1, 8_000_000 // len(repeated))
    return gzip.compress(first, mtime=0) + gzip.compress(block, 9, mtime=0) * (total // len(block))


def _one_member(first: bytes, repeated: bytes, total: int) -> bytes:
    """The same as one member, whose checksum is wrong at the very end."""
    block = repeated * max(1, 8_000_000 // len(repeated))
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = packer.compress(first) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + start + packed * (total // len(block)) + b"\x03\0" + bytes(8)


def _first_lines(content: bytes) -> tuple[bytes, bytes]:
    lines = gzip.decompress(content).splitlines(keepends=True)
    return lines[0], lines[1] if len(lines) > 1 else lines[0]


GZIP: dict[str, Spoil] = {
    "one_endless_line": lambda content, _: _members(_first_lines(content)[0], b"a", HUGE),
    "endless_lines": lambda content, _: _members(*_first_lines(content), HUGE),
    "endless_lines_one_member": lambda content, _: _one_member(*_first_lines(content), HUGE),
    "endless_newlines": lambda content, _: _members(_first_lines(content)[0], b"\n", HUGE),
    "wrong_checksum": lambda content, _: content[:-8] + bytes(8),
    "trailing_noise": lambda content, rng: content + rng.randbytes(20),
    "gzip_in_gzip": lambda content, _: gzip.compress(content),
    "not_zipped": lambda content, _: gzip.decompress(content),
}

"""Ways to damage a file, by its format; and other things than files to put at its path."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

Spoil = Callable[[bytes, random.Random], bytes]
"""Takes the bytes of a valid file and a source of randomness; returns other bytes."""
Place = Callable[[Path, Path], None]
"""Puts a thing at the first path; the second is a folder that is none of the tool's business."""

DEEP, LONG, HUGE = 100_000, 20_000_000, 4_000_000_000
"""Levels of nesting beyond any recursive parser; characters of a long line; bytes not to be read as a whole."""
ODD_TEXTS = ("", " ", "\x1b[31mred\x1b[0m", "\x9b31mred", "[/bold][/]", "../../outside/new", "/etc/passwd", "~", "a\nb",
             "a\rb", "a\0b", "<script>alert(1)</script>", "%s{0}{x}", "\u202egnp.exe", "é" * 50, "NaN", "1e400", "-1",
             "9" * 30, "2024-13-45", "x" * 5_000)  # fmt: skip
NOT_UTF8 = (b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\x9b31m")


# ---------------------------------------------------------------------- any bytes


def _piece(content: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(max(len(content), 1))
    return start, min(len(content), start + rng.choice((1, 4, 16, 64, 400)))


def _edited_piece(change: Callable[[bytes, random.Random], bytes]) -> Spoil:
    def spoil(content: bytes, rng: random.Random) -> bytes:
        start, end = _piece(content, rng)
        return content[:start] + change(content[start:end], rng) + content[end:]

    return spoil


def flip(content: bytes, rng: random.Random) -> bytes:
    """Change a few bytes."""
    out = bytearray(content or b"\0")
    for _ in range(rng.randint(1, 4)):
        out[rng.randrange(len(out))] ^= rng.randint(1, 255)
    return bytes(out)


BYTES: dict[str, Spoil] = {
    "flip": flip,
    "cut": _edited_piece(lambda _piece, _rng: b""),
    "insert": _edited_piece(lambda piece, rng: rng.randbytes(rng.randint(1, 40)) + piece),
    "double": _edited_piece(lambda piece, _: piece + piece),
    "blank": _edited_piece(lambda piece, _: bytes(len(piece))),
    "truncate": lambda content, rng: content[: rng.randrange(max(len(content), 1))],
    "noise": lambda content, rng: rng.randbytes(rng.randint(1, max(2, len(content)))),
    "nothing": lambda _content, _rng: b"",
    "twice": lambda content, _: content + content,
}


# ---------------------------------------------------------------------- text


def _cell(separator: bytes, change: Callable[[bytes, random.Random], bytes]) -> Spoil:
    """Change one field of one line, the first line only if there is no other."""

    def spoil(content: bytes, rng: random.Random) -> bytes:
        lines = content.splitlines(keepends=True) or [b"\n"]
        index = rng.randrange(min(1, len(lines) - 1), len(lines))
        fields = lines[index].rstrip(b"\r\n").split(separator)
        field = rng.randrange(len(fields))
        fields[field] = change(fields[field], rng)
        lines[index] = separator.join(fields) + b"\n"
        return b"".join(lines)

    return spoil


def text(separator: bytes) -> dict[str, Spoil]:
    """Mutations of fields, lines and encodings; `separator` is that of fields."""
    return {
        "odd_cell": _cell(separator, lambda _, rng: rng.choice(ODD_TEXTS).encode()),
        "not_utf8": _cell(separator, lambda _, rng: rng.choice(NOT_UTF8)),
        "huge_number": _cell(separator, lambda _, rng: b"1" + b"0" * rng.choice((19, 30, 400, 5000))),
        "open_quote": _cell(separator, lambda cell, _: b'"' + cell),
        "nul": _cell(separator, lambda cell, _: cell + b"\0"),
        "long_cell": _cell(separator, lambda _cell, _rng: b"x" * LONG),
        "blank_lines": lambda content, rng: content.replace(b"\n", b"\n" * rng.randint(2, 4)),
        "no_newline": lambda content, _: content.replace(b"\n", b" "),
        "cr": lambda content, _: content.replace(b"\n", b"\r"),
        "crlf": lambda content, _: content.replace(b"\n", b"\r\n"),
        "bom": lambda content, _: b"\xef\xbb\xbf\xef\xbb\xbf" + content,
        "utf16": lambda content, _: content.decode("utf-8", "replace").encode("utf-16"),
        "long_line": lambda content, _: content + b"x" * LONG,
        "other_separator": lambda content, _: content.replace(separator, b";"),
    }


def table(separator: bytes) -> dict[str, Spoil]:
    """The same of a table with a header, and its rows and columns."""

    def row(change: Callable[[bytes, random.Random], bytes]) -> Spoil:
        return _cell(b"\n", change)  # a line is one field of itself

    def header(change: Callable[[list[bytes], random.Random], list[bytes]]) -> Spoil:
        def spoil(content: bytes, rng: random.Random) -> bytes:
            first, _, rest = content.partition(b"\n")
            return separator.join(change(first.split(separator), rng)) + b"\n" + rest

        return spoil

    return text(separator) | {
        "long_row": row(lambda line, rng: line + separator + rng.choice((b"x", b"", b"1"))),
        "extra_field_before": row(lambda line, rng: rng.choice((b"T3", b"")) + separator + line),
        "short_row": row(lambda line, _: line.rpartition(separator)[0]),
        "header_only": lambda content, _: content.partition(b"\n")[0] + b"\n",
        "no_header": lambda content, _: content.partition(b"\n")[2],
        "same_column_twice": header(lambda names, rng: [*names[:-1], rng.choice(names[:-1] or names)]),
        "other_columns": header(lambda names, rng: [rng.choice(ODD_TEXTS).encode() or b"x", *names[1:]]),
        "column_missing": header(lambda names, rng: names[: rng.randint(0, len(names) - 1)]),
        "many_columns": header(lambda names, _: [*names, *(b"c%d" % number for number in range(50_000))]),
    }


# ---------------------------------------------------------------------- JSON

JSON_VALUES = ("null", "true", "-1", "0.5", "1e400", "NaN", "-Infinity", "1" + "0" * 400, "1" + "0" * 5000, "{}", "[]",
               '"\\ud800"', "[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, '"' + "x" * 1_000_000 + '"',
               *(json.dumps(text) for text in ODD_TEXTS))  # fmt: skip
MARK = "\0value\0"


def _slots(value: Any) -> list[tuple[Any, Any]]:
    """Every (parent, key) of a nested value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [slot for key, inner in pairs for slot in ((value, key), *_slots(inner))]


def _json(change: Callable[[Any, Any, random.Random], object]) -> Spoil:
    """Change one entry; `change` gets its parent and its key."""

    def spoil(content: bytes, rng: random.Random) -> bytes:
        try:
            value = json.loads(content)
        except ValueError:
            return flip(content, rng)
        slots = _slots(value)
        if not slots:
            return rng.choice(JSON_VALUES).encode()
        change(*rng.choice(slots), rng)
        return json.dumps(value).replace(json.dumps(MARK), rng.choice(JSON_VALUES)).encode("utf-8", "surrogatepass")

    return spoil


JSON: dict[str, Spoil] = {
    "value": _json(lambda parent, key, _: parent.__setitem__(key, MARK)),
    "missing": _json(lambda parent, key, _: parent.pop(key)),
    "top": lambda _, rng: rng.choice(JSON_VALUES).encode(),
    "utf16": lambda content, _: content.decode("utf-8", "replace").encode("utf-16"),
    "padded": lambda content, _: content + b" " * 60_000_000,
}


def by_line(spoil: Spoil) -> Spoil:
    """The same for one line of a file of lines."""

    def spoil_line(content: bytes, rng: random.Random) -> bytes:
        lines = content.splitlines(keepends=True) or [b""]
        index = rng.randrange(len(lines))
        lines[index] = spoil(lines[index], rng) + b"\n"
        return b"".join(lines)

    return spoil_line


# ---------------------------------------------------------------------- binary formats

TYPES = (pl.Decimal(20, 2), pl.Int8, pl.UInt64, pl.Float32, pl.Date, pl.Datetime("ns"), pl.Time, pl.String, pl.Boolean)


def _frame(change: Callable[[pl.DataFrame, str, random.Random], pl.DataFrame]) -> Spoil:
    """A valid Parquet file with other content; `change` gets the name of a random column."""

    def spoil(content: bytes, rng: random.Random) -> bytes:
        try:
            frame = pl.read_parquet(content)
            changed = change(frame, rng.choice(frame.columns), rng)
        except (pl.exceptions.PolarsError, IndexError):
            return flip(content, rng)
        file = io.BytesIO()
        changed.write_parquet(file)
        return file.getvalue()

    return spoil


PARQUET: dict[str, Spoil] = {
    "other_type": _frame(lambda frame, name, rng: frame.with_columns(
        pl.int_range(pl.len()).cast(rng.choice(TYPES), strict=False).alias(name))),
    "nulls": _frame(lambda frame, name, _: frame.with_columns(pl.lit(None).alias(name))),
    "nan": _frame(lambda frame, name, rng: frame.with_columns(
        pl.lit(rng.choice((float("nan"), float("inf"), -1.0, 1e300))).alias(name))),
    "odd_text": _frame(lambda frame, name, rng: frame.with_columns(pl.lit(rng.choice(ODD_TEXTS)).alias(name))),
    "list_column": _frame(lambda frame, name, _: frame.with_columns(pl.concat_list(pl.lit(1), pl.lit(2)).alias(name))),
    "renamed_column": _frame(lambda frame, name, rng: frame.rename({name: rng.choice(ODD_TEXTS)})),
    "column_missing": _frame(lambda frame, name, _: frame.drop(name)),
    "no_rows": _frame(lambda frame, _name, _rng: frame.clear()),
    "rows_twice": _frame(lambda frame, _name, _rng: frame.vstack(frame)),
    "footer_length": lambda content, rng: content[:-8] + rng.randbytes(4) + content[-4:],
    "csv_inside": lambda _content, _rng: b"user_id,item_id\na,b\n",
}  # fmt: skip


def _header(spoil: Spoil) -> Spoil:
    """Damage the header of a safetensors file, which is JSON after its length."""

    def change(content: bytes, rng: random.Random) -> bytes:
        size = int.from_bytes(content[:8], "little")
        header = spoil(content[8 : 8 + size], rng)
        return len(header).to_bytes(8, "little") + header + content[8 + size :]

    return change


def _odd_numbers(content: bytes, rng: random.Random) -> bytes:
    """NaN, infinity and the largest number in the tensors."""
    start = 8 + int.from_bytes(content[:8], "little")
    return content[:start] + rng.choice((b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\xff\xff\x7f\x7f")) + content[start + 4 :]


SAFETENSORS: dict[str, Spoil] = {f"header_{name}": _header(spoil) for name, spoil in JSON.items()} | {
    "header_length": lambda content, rng: rng.choice((0, 2**31, 2**62, 2**64 - 1)).to_bytes(8, "little") + content[8:],
    "odd_numbers": _odd_numbers,
    "no_data": lambda content, _: content[: 8 + int.from_bytes(content[:8], "little")],
    "more_data": lambda content, _: content + bytes(4096),
}


def _members(content: bytes, repeated: bytes) -> bytes:
    """A gzip file of many members that unpacks to `HUGE` bytes after its first line."""
    first = gzip.decompress(content).splitlines(keepends=True)[0]
    block = repeated * (8_000_000 // len(repeated))
    return gzip.compress(first, mtime=0) + gzip.compress(block, 9, mtime=0) * (HUGE // len(block))


GZIP: dict[str, Spoil] = {
    "one_endless_line": lambda content, _: _members(content, b"a"),
    "endless_newlines": lambda content, _: _members(content, b"\n"),
    "endless_lines": lambda content, _: _members(content, gzip.decompress(content).splitlines(keepends=True)[-1]),
    "wrong_checksum": lambda content, _: content[:-8] + bytes(8),
    "trailing_noise": lambda content, rng: content + rng.randbytes(20),
    "not_zipped": lambda content, _: gzip.decompress(content),
}


# ---------------------------------------------------------------------- other things than files


def _link(target: str) -> Place:
    return lambda path, _: path.symlink_to(target)


def _sparse(path: Path, _outside: Path) -> None:
    path.touch()
    os.truncate(path, HUGE)


THINGS: dict[str, Place] = {
    "missing": lambda _path, _outside: None,
    "folder": lambda path, _: path.mkdir(),
    "fifo": lambda path, _: os.mkfifo(path),
    "endless_device": _link("/dev/zero"),
    "null_device": _link("/dev/null"),
    "standard_input": _link("/dev/stdin"),
    "broken_link": _link("nowhere"),
    "circular_link": lambda path, _: path.symlink_to(path.name),
    "link_to_folder": lambda path, outside: path.symlink_to(outside / "folder"),
    "link_to_secret": lambda path, outside: path.symlink_to(outside / "secret"),
    "sparse": _sparse,
}
FORMATS: dict[str, dict[str, Spoil]] = {
    "csv": table(b","),
    "tsv": table(b"\t"),
    "inter": table(b"\t"),
    "list": text(b" "),
    "lines": text(b" "),
    "matrix": text(b" "),
    "json": JSON,
    "jsonl": {name: by_line(spoil) for name, spoil in JSON.items()},
    "toml": text(b"="),
    "parquet": PARQUET,
    "safetensors": SAFETENSORS,
    "sqlite": {},
    "text": {"utf16": JSON["utf16"]},
}
ONCE = frozenset({"nothing", "twice", "cr", "crlf", "bom", "other_separator", "header_only", "no_header", "no_newline",
                  "many_columns", "no_rows", "rows_twice", "csv_inside", "no_data", "more_data", "padded",
                  "header_padded", "utf16", "header_utf16", "long_cell", "long_line", *GZIP, *THINGS})  # fmt: skip
"""Those that give (nearly) the same each time, or are large."""


def spoilers(kind: str, gz: bool = False) -> dict[str, Spoil]:
    """The mutations of a format's content; of a gzipped file inside and outside."""
    mutations = BYTES | FORMATS[kind]
    if not gz:
        return mutations

    def inside(spoil: Spoil) -> Spoil:
        return lambda content, rng: gzip.compress(spoil(gzip.decompress(content), rng), 1, mtime=0)

    zipped = {name: inside(spoil) for name, spoil in mutations.items()}
    return zipped | {f"zip_{name}": spoil for name, spoil in BYTES.items()} | GZIP

"""Ways to spoil a file, by its format; and other things than files to put in its place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .spoil_binary import GZIP, PARQUET, SAFETENSORS, SQLITE, zipped
from .spoil_bytes import BYTES, HUGE, Spoil
from .spoil_text import JSON, JSONL, TOML, text_table, utf16, words

Place = Callable[[Path, Path], None]
"""Puts a thing at the first path; the second is a folder that is none of the tool's business."""

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
    "random_device": _link("/dev/urandom"),
    "null_device": _link("/dev/null"),
    "standard_input": _link("/dev/stdin"),
    "broken_link": _link("nowhere"),
    "circular_link": lambda path, _: path.symlink_to(path.name),
    "link_to_folder": lambda path, outside: path.symlink_to(outside / "folder"),
    "link_to_secret": lambda path, outside: path.symlink_to(outside / "secret"),
    "sparse": _sparse,
}


# ---------------------------------------------------------------------- by format

FORMATS: dict[str, dict[str, Spoil]] = {
    "csv": text_table(","),
    "tsv": text_table("\t"),
    "inter": text_table("\t"),
    "list": words(b" "),
    "lines": words(b"\n"),
    "matrix": words(b" "),
    "json": JSON,
    "jsonl": JSONL,
    "toml": TOML,
    "parquet": PARQUET,
    "safetensors": SAFETENSORS,
    "sqlite": SQLITE,
    "text": {"utf16": utf16},
}
ONCE = frozenset({"nothing", "twice", "cr", "crlf", "bom", "two_boms", "other_separator", "header_only", "no_header",
                  "no_newline", "one_row", "repeated_rows", "many_columns", "long_header", "one_line", "tabs", "commas",
                  "no_rows", "rows_twice", "csv_inside", "long_string", "longest_string", "long_run", "longest_run",
                  "no_data", "more_data", "empty_database", "json_padded", "nul", "long_cell", "long_word", "long_line",
                  "many_words", *GZIP, *THINGS})  # fmt: skip
"""Those that give (nearly) the same each time, or are large."""


def spoilers(kind: str, gz: bool = False) -> dict[str, Spoil]:
    """The mutations of a format's content; of a gzipped file also what may be wrong with that."""
    found = BYTES | FORMATS[kind]
    if not gz:
        return found
    inside = {name: zipped(spoil) for name, spoil in found.items()}
    return inside | {f"zip_{name}": spoil for name, spoil in BYTES.items()} | GZIP

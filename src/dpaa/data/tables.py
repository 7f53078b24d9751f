"""Tables: files of one format each, or a dataframe, as rows that DuckDB reads.

A text file (CSV and its kin, JSON lines, list form) comes as text, and what the text means is decided in `_values.py`;
Parquet files and dataframes have types.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from dpaa._text import parse_json
from dpaa.data._engine import Engine, in_words, name, text
from dpaa.data.columns import Column
from dpaa.data.parquet import check_size
from dpaa.errors import InputError, reason

LONGEST_LINE = 4_000_000
"""Bytes.  A user's list in list form has that many with 400,000 items."""
QUOTING = (",", ";")
"""Quotes mean something in files with these separators alone."""
NO_SEPARATOR = "\x01"
"""Cuts lines nowhere: JSON may not contain it."""
csv.field_size_limit(LONGEST_LINE + 1)  # the lines of wrong rows are looked for with Python's reader
LOOKED_AT = 1_000
"""Lines of a JSON file from which its columns are told."""
REJECTED = {
    "TOO MANY COLUMNS": "fields",
    "MISSING COLUMNS": "fields",
    "UNQUOTED VALUE": "quotes",
    "INVALID ENCODING": "encoding",
    "LINE SIZE OVER MAXIMUM": "length",
}


@dataclass(frozen=True)
class TornRow:
    """A line that cannot be read as a row."""

    source: str
    line: int
    kind: str
    """What is wrong, in words that are the same for all of a kind."""
    sentence: str
    """What is wrong with this one, up to the remedy."""
    remedy: str
    content: str


@dataclass(frozen=True, eq=False)
class Part(ABC):
    """The rows of one file, or of a dataframe."""

    name: str
    """What messages call it."""
    columns: tuple[str, ...]
    constants: dict[str, str | None] = field(default_factory=dict, kw_only=True)
    """Columns whose value the path tells: `day=2024-05-01/part-0.csv`."""
    typed: ClassVar[bool] = True

    @abstractmethod
    def insert(self, engine: Engine, columns: Sequence[str]) -> list[TornRow]:
        """Append the rows to the table `raw`, as text.  Returns the lines that are no rows."""

    def locate(self, rows: Sequence[int], torn: Sequence[TornRow]) -> list[tuple[int, str | None]]:
        """Line (or number) and original text of some rows, ascending; None where it is no text."""
        del torn
        return [(row + 1, None) for row in rows]

    def place(self, number: int) -> str:
        """What a line or row is called."""
        return f"line {number:,}"

    def _selected(self, columns: Sequence[str], expression: Any) -> str:
        return ", ".join(
            f"{'NULL' if (value := self.constants[one]) is None else text(value)} AS {name(one)}"
            if one in self.constants
            else f"{expression(one)} AS {name(one)}"
            for one in columns
        )


@dataclass(frozen=True, eq=False)
class ParquetPart(Part):
    """A Parquet file; its rows are counted from 1."""

    path: Path

    @classmethod
    def open(cls, path: Path, shown: str) -> ParquetPart:
        """Read the names of the columns."""
        return cls(shown, tuple(check_size(path, ())), path)

    def insert(self, engine: Engine, columns: Sequence[str]) -> list[TornRow]:
        """Values of all types as text."""
        selected = self._selected(columns, lambda one: f"CAST({name(one)} AS VARCHAR)")
        engine.run(f"INSERT INTO raw SELECT {selected} FROM read_parquet({text(escape(str(self.path)))})")
        return []

    def place(self, number: int) -> str:
        """Its number."""
        return f"row {number:,}"


@dataclass(frozen=True, eq=False)
class FramePart(Part):
    """A dataframe in memory; rows are counted from 0, as dataframes do (those of a query from 1)."""

    frame: pl.DataFrame
    first: int = 0

    def insert(self, engine: Engine, columns: Sequence[str]) -> list[TornRow]:
        """Not needed: a frame is a table of its own."""
        raise NotImplementedError

    def locate(self, rows: Sequence[int], torn: Sequence[TornRow]) -> list[tuple[int, str | None]]:
        """Numbers alone."""
        del torn
        return [(row + self.first, None) for row in rows]

    def place(self, number: int) -> str:
        """Its number."""
        return f"row {number:,}" if self.first else f"row {number}"


@dataclass(frozen=True, eq=False)
class TextPart(Part):
    """A file with a record per line: separators between fields, and a header line unless the columns were given."""

    path: Path
    separator: str
    skipped: int
    """Lines up to the header line, that included."""
    lists: frozenset[str] = frozenset()
    """Columns whose values are words with blanks between them (`token_seq` of RecBole)."""
    typed: ClassVar[bool] = False

    def scan(self) -> str:
        """The rows, as a table function of DuckDB."""
        fields = ", ".join(f"{text(one)}: 'VARCHAR'" for one in self._fields)
        quote = text('"' if self.separator in QUOTING else "")
        options = {
            "auto_detect": "false",
            "delim": text(self.separator),
            "quote": quote,
            "escape": quote,
            "header": "false",
            "skip": self.skipped,
            "columns": f"{{{fields}}}",
            "strict_mode": self.separator != NO_SEPARATOR,  # which also refuses line ends of two kinds
            "store_rejects": "true",
            "max_line_size": LONGEST_LINE,
            "compression": "gzip" if is_gzipped(self.path) else "none",
        }
        how = ", ".join(f"{option} = {value}" for option, value in options.items())
        return f"read_csv({text(escape(str(self.path)))}, {how})"

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(one for one in self.columns if one not in self.constants)

    def insert(self, engine: Engine, columns: Sequence[str]) -> list[TornRow]:
        """Fields as they are; an empty one is NULL."""
        rows = f"SELECT {self._selected(columns, name)} FROM {self.scan()}"
        only = self._fields[0]
        engine.run(f"INSERT INTO raw {rows}" + (f" WHERE {name(only)} IS NOT NULL" if len(self._fields) == 1 else ""))
        return self._torn(engine)

    def _torn(self, engine: Engine) -> list[TornRow]:
        """What DuckDB has rejected since the last call."""
        rejects = engine.run(
            "SELECT line, error_type, min(error_message) FROM reject_errors GROUP BY ALL ORDER BY line"
        )
        engine.run("DELETE FROM reject_errors; DELETE FROM reject_scans")
        if not rejects:
            return []
        texts = {ordinal: (line, content) for ordinal, line, content in self._records(rejects[-1][0])}
        found = {}
        for ordinal, error, message in rejects:
            line, content = texts.get(ordinal, (ordinal, ""))
            found[ordinal] = self._reason(line, REJECTED.get(error, error), str(message), content)
        return list(found.values())

    def _reason(self, line: int, what: str, message: str, content: str) -> TornRow:
        remedy = "correct the line"
        if what == "fields":
            wanted, n = len(self._fields), int(message.split()[-1])
            kind = f"another number of fields than the header's {wanted}"
            says = f"has {n} field{'s' * (n != 1)} where the header has {wanted}"
            remedy = "correct the line, or the separator with --format"
        elif what == "quotes":
            kind, says = "wrong quotes", "has wrong quotes"
            if "\n" in content.strip("\r\n"):  # the rest of the file may hang on it, so it cannot be left out
                raise InputError(f"line {line:,} of {self.name} has wrong quotes (one is not closed); correct the line")
        elif what == "encoding":
            kind, says = "no UTF-8 text", "is not UTF-8 text"
            remedy = "save the file in UTF-8, or name its --encoding"
        elif what == "length":
            raise InputError(
                f"line {line:,} of {self.name} is longer than {LONGEST_LINE / 1e6:g} MB; check that the file is a "
                "table of text"
            )
        else:
            kind, says = "no row", f"cannot be read ({message})"
        return TornRow(self.name, line, kind, f"line {line:,} of {self.name} {says}", remedy, content)

    def _records(self, last: int | None = None) -> Iterator[tuple[int, int, str]]:
        """Records as DuckDB counts them, with their first line and their text; blank lines are records too."""
        lines: list[str] = []

        def remembered() -> Iterator[str]:
            with lines_of(self.path) as stream:
                for line in stream:
                    lines.append(line)
                    yield line

        quoted = self.separator in QUOTING
        cut: Any = csv.reader(remembered(), delimiter=self.separator) if quoted else remembered()
        line = 1
        for ordinal, _ in enumerate(cut, start=1):
            content = "".join(lines).rstrip("\r\n")
            yield ordinal, line, content.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            line += len(lines)
            lines.clear()
            if ordinal == last:
                return

    def locate(self, rows: Sequence[int], torn: Sequence[TornRow]) -> list[tuple[int, str | None]]:
        """Walk through the file: DuckDB does not tell the lines of rows that it could read."""
        left_out, wanted, row = {one.line for one in torn}, set(rows), -1
        found: list[tuple[int, str | None]] = []
        for ordinal, line, content in self._records():
            if ordinal <= self.skipped or line in left_out or not self._is_row(content):
                continue
            row += 1
            if row in wanted:
                found.append((line, content))
                if len(found) == len(wanted):
                    break
        return found

    def _is_row(self, content: str) -> bool:
        return bool(content)

    def shown_as(self, column: str) -> str:
        """The value of a column that is text in `raw`: of some columns a list."""
        return f"string_split({name(column)}, ' ') AS {name(column)}" if column in self.lists else name(column)


@dataclass(frozen=True, eq=False)
class JsonPart(TextPart):
    """JSON lines: an object per line, whose keys are the columns; ids keep the type that they have in JSON."""

    kinds: dict[str, set[type]] = field(default_factory=dict)
    """Types that the values of each column have in the first lines."""

    @classmethod
    def open(cls, path: Path, shown: str) -> JsonPart:
        """Look at the first lines."""
        kinds: dict[str, set[type]] = {}
        with lines_of(path) as stream:
            for line, _ in zip(stream, range(LOOKED_AT), strict=False):
                try:
                    found = parse_json(line)
                except ValueError:
                    continue
                for key, value in found.items() if isinstance(found, dict) else ():
                    kinds.setdefault(key, set()).update([] if value is None else [type(value)])
        if not kinds:
            raise InputError(
                f"{shown} has no JSON object in its first {LOOKED_AT:,} lines; JSON lines are one object per line"
            )
        lists = frozenset(key for key, types in kinds.items() if types == {list})
        return cls(shown, tuple(kinds), path, NO_SEPARATOR, 0, lists, kinds)

    def shown_as(self, column: str) -> str:
        """Lists, truth values and fractions as what they are in JSON; whole numbers stay text, as large ids may be."""
        types = self.kinds.get(column, set())
        for known, kind in (({list}, "VARCHAR[]"), ({bool}, "BOOLEAN"), ({int, float}, "DOUBLE"), ({float}, "DOUBLE")):
            if types == known:
                return f"TRY_CAST({name(column)} AS {kind}) AS {name(column)}"
        return name(column)

    @property
    def text_columns(self) -> frozenset[str]:
        """Columns with text in them, whose numbers are text as well."""
        return frozenset(key for key, types in self.kinds.items() if str in types)

    @property
    def _fields(self) -> tuple[str, ...]:
        return ("line",)

    def insert(self, engine: Engine, columns: Sequence[str]) -> list[TornRow]:
        """Values of the keys as text, NULL where an object lacks one."""
        engine.define("lines", f"SELECT line FROM {self.scan()}")
        torn = {one.line: one for one in self._torn(engine)}
        rejected = sorted(torn)
        blank = "line IS NULL OR trim(line) = ''"
        is_object = "CASE WHEN json_valid(line) THEN json_type(line) = 'OBJECT' ELSE false END"
        for row, line in engine.run(f"SELECT rowid, line FROM lines WHERE NOT ({blank}) AND NOT ({is_object})"):
            number = _shifted(row + 1, rejected)
            sentence = f"line {number:,} of {self.name} is no JSON object ({_why_no_object(line)})"
            torn[number] = TornRow(self.name, number, "no JSON object", sentence, "correct the line or remove it", line)

        def value(key: str) -> str:
            return f"nullif(json_extract_string(line, {text('$.' + name(key))}), '')"

        engine.run(
            f"INSERT INTO raw SELECT {self._selected(columns, value)} FROM lines WHERE NOT ({blank}) AND {is_object}"
        )
        engine.run("DROP TABLE lines")
        return [torn[line] for line in sorted(torn)]

    def _is_row(self, content: str) -> bool:
        return bool(content.strip())


@dataclass(frozen=True, eq=False)
class ListPart(TextPart):
    """List form: one line per user, `user item item …`, no header; pairs are counted."""

    @property
    def _fields(self) -> tuple[str, ...]:
        return ("line",)

    def insert(self, engine: Engine, columns: Sequence[str]) -> list[TornRow]:
        """User and item of every pair; a user without items has no pair."""
        words = (
            f"SELECT string_split_regex(trim(line, ' \t\r'), '\\s+') AS words FROM {self.scan()} WHERE line IS NOT NULL"
        )
        pairs = f"SELECT words[1] AS {Column.USER}, unnest(words[2:]) AS {Column.ITEM} FROM ({words})"
        engine.run(f"INSERT INTO raw SELECT {self._selected(columns, name)} FROM ({pairs})")
        return self._torn(engine)

    def words(self) -> list[str]:
        """All words of the file."""
        with lines_of(self.path) as stream:
            found = [word for line in stream for word in line.split()]
        if not all(map(is_utf8, found)):
            raise InputError(f"{self.name} is not UTF-8 text; save the file in UTF-8")
        return found

    def locate(self, rows: Sequence[int], torn: Sequence[TornRow]) -> list[tuple[int, str | None]]:
        """Numbers alone: a line has many pairs."""
        return Part.locate(self, rows, torn)

    def place(self, number: int) -> str:
        """Its number."""
        return f"pair {number:,}"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of one part after the other; columns are those that all parts have."""

    name: str
    """What messages call the table."""
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    """How it is read, where that was detected and may be wrong."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        every = [{*part.columns, *part.constants} for part in self.parts]
        shared = set.intersection(*every)
        first = self.parts[0]
        return tuple(one for one in dict.fromkeys((*first.columns, *first.constants)) if one in shared)

    @property
    def typed(self) -> bool:
        """Whether columns have types; in a text file every column is text."""
        return all(part.typed for part in self.parts)

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns as they are; a line that is no row is refused.

        Parameters
        ----------
        columns : names of columns of the table

        Returns
        -------
        a frame in the order of the rows; of a text file, all columns are text (lists of text where they have several)
        """
        if isinstance(self.parts[0], FramePart):
            return self.parts[0].frame.select(columns)
        with Engine() as engine, in_words(self.name):
            loaded = Loaded.of(engine, self, columns)
            if loaded.torn:
                raise InputError(f"{loaded.torn[0].sentence}; {loaded.torn[0].remedy}")
            first = self.parts[0]
            shown = (first.shown_as(one) if isinstance(first, TextPart) else name(one) for one in columns)
            return engine.frame(f"SELECT {', '.join(shown)} FROM rows")

    def place(self, row: int) -> str:
        """Where a row (from 0) is, in a user's words: `line 7 of clicks.csv`."""
        with Engine() as engine, in_words(self.name):
            loaded = Loaded.of(engine, self, self.columns[:1])
            part, number, _ = loaded.locate(engine.run(f"SELECT _file, _row FROM rows LIMIT 1 OFFSET {row}"))[0]
        return f"{part.place(number)} of {part.name}"


@dataclass(eq=False)
class Loaded:
    """A table in DuckDB: the view `rows` has its columns, `_file` and `_row`."""

    engine: Engine
    table: Table
    torn: list[TornRow] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """Rows up to the end of each part, where they were inserted one after the other."""

    @classmethod
    def of(cls, engine: Engine, table: Table, columns: Sequence[str]) -> Loaded:
        """Make the rows readable; text files are read here, Parquet files when somebody asks for their rows."""
        found = cls(engine, table)
        first = table.parts[0]
        if isinstance(first, FramePart):
            _writable(first.frame.select(columns)).write_parquet(file := engine.new_file(), compression="uncompressed")
            found._view([file], columns, {})
        elif all(isinstance(part, ParquetPart) for part in table.parts):
            parts = [part for part in table.parts if isinstance(part, ParquetPart)]
            for part in parts:
                check_size(part.path, columns)
            _check_types(engine, parts, columns)
            found._view([part.path for part in parts], columns, first.constants)
        else:
            found._insert(columns)
        return found

    def _view(self, files: Sequence[Path], columns: Sequence[str], constants: dict[str, str | None]) -> None:
        names = ", ".join(text(escape(str(file))) for file in files)
        how = f"union_by_name = true, filename = true, file_row_number = true, hive_partitioning = {bool(constants)}"
        rows = f"read_parquet([{names}], {how})"
        own = ", ".join(map(name, columns))
        self.engine.run(
            f"CREATE OR REPLACE TEMP VIEW rows AS SELECT {own}, filename AS _file, file_row_number AS _row FROM {rows}"
        )

    def _insert(self, columns: Sequence[str]) -> None:
        self.engine.run(f"CREATE OR REPLACE TEMP TABLE raw ({', '.join(f'{name(one)} VARCHAR' for one in columns)})")
        for part in self.table.parts:
            with in_words(part.name):
                self.torn += part.insert(self.engine, columns)
            self.ends.append(self.engine.row("SELECT count(*) FROM raw")[0])
        self.engine.run("CREATE OR REPLACE TEMP VIEW rows AS SELECT *, '' AS _file, rowid AS _row FROM raw")

    def locate(self, rows: Sequence[tuple[str, int]]) -> list[tuple[Part, int, str | None]]:
        """Part, line (or number) and original text of some rows, given by `_file` and `_row`, ascending."""
        found: list[tuple[Part, int, str | None]] = []
        if self.ends:
            for part, first, end in zip(self.table.parts, [0, *self.ends], self.ends, strict=False):
                inside = [row - first for _, row in rows if first <= row < end]
                if inside:
                    torn = [one for one in self.torn if one.source == part.name]
                    found += [(part, *one) for one in part.locate(inside, torn)]
            return found
        by_path = {str(part.path): part for part in self.table.parts if isinstance(part, ParquetPart)}
        for file, row in rows:
            part = by_path.get(file, self.table.parts[0])
            found += [(part, *one) for one in part.locate([row], [])]
        return found


def place(table: Table, part: Part, number: int) -> str:
    """Where a row is, in a user's words: `line 7`, and of which file where there are several."""
    return part.place(number) if len(table.parts) == 1 else f"{part.place(number)} of {part.name}"


def _check_types(engine: Engine, parts: Sequence[ParquetPart], columns: Sequence[str]) -> None:
    """Refuse files that have text in a column where others have numbers."""
    if len(parts) == 1:
        return
    names = ", ".join(text(escape(str(part.path))) for part in parts)
    kinds = engine.run(
        f"SELECT name, duckdb_type, min(file_name) FROM parquet_schema([{names}]) WHERE duckdb_type IS NOT NULL "
        "GROUP BY ALL ORDER BY 3, 1"
    )
    shown = {str(part.path): part.name for part in parts}
    for column in columns:
        types = [(kind, file) for one, kind, file in kinds if one == column]
        texts = [one for one in types if one[0] == "VARCHAR"]
        if texts and len(texts) < len(types):
            other = next(one for one in types if one[0] != "VARCHAR")
            raise InputError(
                f"column {column!r} is {texts[0][0]} in {shown[texts[0][1]]} and {other[0]} in {shown[other[1]]}; "
                "cast one of them"
            )


def as_table(frame: Any, shown: str, first: int = 0) -> Table:
    """A dataframe of any library (polars, pandas, pyarrow, a dict of columns) as a table.

    Parameters
    ----------
    frame : the dataframe
    shown : what messages call it
    first : number of its first row in messages
    """
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, pl.DataFrame):
        try:
            frame = _from_pandas(frame) if type(frame).__module__.startswith("pandas") else pl.DataFrame(frame)
        except (TypeError, ValueError, OverflowError, ImportError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{shown} is not a dataframe that polars can read ({reason(error)})") from error
    return Table(shown, (FramePart(shown, tuple(frame.columns), frame, first),))


def _from_pandas(frame: Any) -> pl.DataFrame:
    """Column by column, since the direct way needs pyarrow; what pandas calls missing is empty."""
    columns = {}
    for one in frame.columns:
        values = frame[one].to_numpy()
        if values.dtype.kind not in "iufM":
            values = frame[one].astype(object).where(frame[one].notna(), None).tolist()
        columns[str(one)] = pl.Series(values)
    return pl.DataFrame(columns)


def _writable(frame: pl.DataFrame) -> pl.DataFrame:
    """Types that Parquet has not, as text or in fewer bits."""
    odd = [one for one in frame.get_columns() if one.dtype in (pl.Int128, pl.UInt128, pl.Object, pl.Duration, pl.Null)]
    return frame.with_columns(one.cast(pl.String, strict=False) for one in odd) if odd else frame


def is_gzipped(path: Path) -> bool:
    """Whether a file is, by its first bytes."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def lines_of(path: Path) -> Iterator[Iterator[str]]:
    """The lines of a text file, plain or gzipped, for what DuckDB does not tell: headers, numbers of lines.

    Bytes that are not UTF-8 text come as lone surrogates.
    """
    with path.open("rb") as raw:
        stream = gzip.GzipFile(fileobj=raw) if is_gzipped(path) else raw
        lines = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
        try:
            yield iter(lambda: lines.readline(LONGEST_LINE + 1), "")
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path} cannot be read ({reason(error)}); check the file") from None


def is_utf8(line: str) -> bool:
    """Whether a line of `lines_of` is text."""
    return not any("\ud800" <= character <= "\udfff" for character in line)


def _shifted(number: int, left_out: Sequence[int]) -> int:
    """The line of the n-th record, where some lines are no records."""
    for line in left_out:
        number += line <= number
    return number


def _why_no_object(line: str) -> str:
    try:
        parse_json(line)
    except ValueError as error:
        return reason(error)
    return "it is another value"

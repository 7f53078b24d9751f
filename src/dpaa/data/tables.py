"""Tables: files of one format, or a dataframe, as rows that DuckDB reads.

A text file (CSV, JSON lines, list form) comes as text, and `_values.py` decides what the text means; Parquet files and
dataframes have types.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from dpaa.data._engine import Engine, in_words, listed, name, text
from dpaa.data.ids import Column
from dpaa.data.parquet import check_size
from dpaa.errors import InputError, import_extra, reason

LONGEST_LINE = 4_000_000
"""Bytes.  A user's list in list form has that many with 400,000 items."""
QUOTING = (",", ";")
"""Quotes have a meaning in files with these separators only."""
NO_SEPARATOR = "\x01"
"""Splits no line: JSON may not contain it."""
csv.field_size_limit(LONGEST_LINE + 1)  # the lines of invalid rows are located with Python's reader
NOT_UTF8 = "not UTF-8 text (or name the encoding: --format encoding=…)"


@dataclass(frozen=True, eq=False)
class Part:
    """One file.

    Parameters
    ----------
    name : of the file in messages
    columns : of the file itself
    path : absolute
    format : `csv`, `jsonl`, `list` or `parquet`
    separator : between fields
    skipped : lines up to the header line, including it
    encoding : of a text file
    lists : columns whose values are words with blanks between them (`token_seq` of RecBole)
    partitions : columns whose value is in the path, as in `day=2024-05-01/part-0.parquet`
    """

    name: str
    columns: tuple[str, ...]
    path: Path
    format: str
    separator: str = NO_SEPARATOR
    skipped: int = 0
    encoding: str = "utf-8"
    lists: frozenset[str] = frozenset()
    partitions: tuple[str, ...] = ()

    def query(self, columns: Sequence[str]) -> str:
        """SQL of the rows of a text file: columns, and why a line is no row."""
        if self.format == "csv":
            where = f" WHERE {name(self.columns[0])} IS NOT NULL" if len(self.columns) == 1 else ""
            return f"SELECT {listed(columns)}, NULL FROM {self._scan(self.columns)}{where}"
        lines = f"SELECT * FROM {self._scan(['line'])} WHERE trim(line, ' \t\r') <> ''"
        if self.format == "list":
            words = f"SELECT string_split_regex(trim(line, ' \t\r'), '\\s+') AS words FROM ({lines})"
            pairs = f"SELECT words[1] AS {Column.USER}, unnest(words[2:]) AS {Column.ITEM} FROM ({words})"
            return f"SELECT {listed(columns)}, NULL FROM ({pairs})"
        objects = f"SELECT *, CASE WHEN json_valid(line) THEN line END AS valid FROM ({lines})"
        checked = f"SELECT *, CASE WHEN json_type(valid) = 'OBJECT' THEN valid END AS object FROM ({objects})"
        values = ", ".join(f"nullif(json_extract_string(object, {text(f'$.{name(key)}')}), '')" for key in columns)
        return f"SELECT {values}, CASE WHEN object IS NULL THEN 'not a JSON object' END FROM ({checked})"

    def _scan(self, fields: Sequence[str]) -> str:
        """The records as a table function of DuckDB, every field as text."""
        quote = text('"' if self.separator in QUOTING else "")
        types = ", ".join(f"{text(field)}: 'VARCHAR'" for field in fields)
        # Nothing is detected: DuckDB guesses from a sample, and what a later row has would be an error or
        # another type.
        options = (
            f"auto_detect = false, header = false, columns = {{{types}}}, delim = {text(self.separator)}, "
            f"quote = {quote}, escape = {quote}, skip = {self.skipped}, encoding = {text(self.encoding)}, "
            f"compression = {text('gzip' if _is_gzipped(self.path) else 'none')}, max_line_size = {LONGEST_LINE}, "
            # Strict mode also refuses line ends of two kinds.
            f"store_rejects = true, strict_mode = {self.separator != NO_SEPARATOR}, hive_partitioning = false"
        )
        return f"read_csv({text(escape(str(self.path)))}, {options})"

    def records(self) -> Iterator[tuple[int, str]]:
        """First line and text of every record, blank ones included, as DuckDB counts them."""
        lines: list[str] = []

        def remembered() -> Iterator[str]:
            with lines_of(self.path, self.encoding) as stream:
                for line in stream:
                    lines.append(line)
                    yield line

        first = 1
        for _ in csv.reader(remembered(), delimiter=self.separator) if self.separator in QUOTING else remembered():
            yield first, "".join(lines).rstrip("\r\n").encode("utf-8", "replace").decode()
            first += len(lines)
            lines.clear()


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of several files of one format, one after the other, or of a dataframe.

    Parameters
    ----------
    name : of the table in messages
    parts : its files; none of a dataframe
    frame : the dataframe
    """

    name: str
    parts: tuple[Part, ...] = ()
    frame: pl.DataFrame | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that all parts have."""
        if self.frame is not None:
            return tuple(self.frame.columns)
        every = [dict.fromkeys((*part.columns, *part.partitions)) for part in self.parts]
        return tuple(field for field in every[0] if all(field in other for other in every))

    def named(self, names: Sequence[str]) -> str | None:
        """Find the column with the first of these names that there is, in any case.

        Parameters
        ----------
        names : in lower case

        Returns
        -------
        the column; None where there is none
        """
        by_lower = {column.strip().lower(): column for column in reversed(self.columns)}
        return next((by_lower[name] for name in names if name in by_lower), None)

    @property
    def typed(self) -> bool:
        """Whether columns have types; in a text file every column is text."""
        return self.frame is not None or self.parts[0].format == "parquet"

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Read some of the columns as they are; a line that is no row is refused.

        Parameters
        ----------
        columns : names of columns of the table

        Returns
        -------
        a frame in the order of the rows; all columns of a CSV file are text (or lists of text), those of JSON lines
        have the types that they have there
        """
        if self.frame is not None:
            return self.frame.select(columns)
        with Engine() as engine, in_words(self.name):
            define_rows(engine, self, columns)
            if torn := engine.run("SELECT _part, _row, _line, _torn FROM rows WHERE _torn IS NOT NULL LIMIT 1"):
                where = locate(engine, self, [torn[0][:3]])[0]
                raise InputError(f"{where} has {torn[0][3]}; correct it")
            rows = "rows"
            if self.parts[0].format == "jsonl":
                files = ", ".join(text(escape(str(part.path))) for part in self.parts)
                rows = f"read_json([{files}], format = 'newline_delimited', records = true, union_by_name = true)"
            lists = self.parts[0].lists
            shown = (f"string_split({name(c)}, ' ') AS {name(c)}" if c in lists else name(c) for c in columns)
            return engine.frame(f"SELECT {', '.join(shown)} FROM {rows}")

    def place(self, row: int) -> str:
        """Locate a row for messages.

        Parameters
        ----------
        row : from 0

        Returns
        -------
        such as `line 7 of clicks.csv`
        """
        with Engine() as engine, in_words(self.name):
            define_rows(engine, self, self.columns[:1])
            keys = engine.run(f"SELECT _part, _row, _line FROM rows WHERE _torn IS NULL LIMIT 1 OFFSET {row}")
            return str(locate(engine, self, keys)[0])


def define_rows(engine: Engine, table: Table, columns: Sequence[str]) -> None:
    """Make the rows of a table the view `rows`.

    It has the columns, `_part` (index of the file), `_row`, and of a text file `_torn` (why a line is no row, else
    NULL) and `_line` (of a line that DuckDB rejected, its number among the records).

    Parameters
    ----------
    engine : where the table is read; text files at once, Parquet files when their rows are queried
    table : the table
    columns : some of its columns
    """
    if table.typed:
        files = [part.path for part in table.parts]
        for file in files:
            check_size(file, columns)
        if table.frame is not None:
            table.frame.select(columns).write_parquet(file := engine.new_file(), compression="uncompressed")
            files = [file]
        names = f"[{', '.join(text(escape(str(file))) for file in files)}]"
        hive = bool(table.parts and table.parts[0].partitions)
        view = (
            f"SELECT {listed(columns)}, list_position({names}, filename) - 1 AS _part, file_row_number AS _row, "
            "CAST(NULL AS VARCHAR) AS _torn, CAST(NULL AS BIGINT) AS _line "
            f"FROM read_parquet({names}, union_by_name = true, filename = true, file_row_number = true, "
            f"hive_partitioning = {hive})"
        )
    else:
        own = ", ".join(f"{name(column)} VARCHAR" for column in columns)
        # A table and no view: which lines are rejected is known after a scan, and every scan rejects them
        # again.
        engine.run(f"CREATE OR REPLACE TEMP TABLE raw ({own}, _torn VARCHAR, _part INT, _line BIGINT)")
        for index, part in enumerate(table.parts):
            with in_words(part.name):
                engine.run(f"INSERT INTO raw SELECT *, {index}, NULL FROM ({part.query(columns)}) AS part")
            _insert_rejected(engine, part, index)
        view = "SELECT *, rowid AS _row FROM raw"
    engine.run(f"CREATE OR REPLACE TEMP VIEW rows AS {view}")


def _insert_rejected(engine: Engine, part: Part, index: int) -> None:
    """Append the lines that DuckDB has rejected since the last call."""
    # Grouped, since a line may be rejected for several reasons and is one row.
    rejected = engine.run("SELECT line, min(error_type), min(csv_line) FROM reject_errors GROUP BY line ORDER BY line")
    engine.run("DELETE FROM reject_errors; DELETE FROM reject_scans")
    for line, error, content in rejected:
        fields = f"number of fields is not {len(part.columns)}"
        what = NOT_UTF8 if "ENCODING" in error else fields if error.endswith("COLUMNS") else error.lower()
        if error == "LINE SIZE OVER MAXIMUM" or (error == "UNQUOTED VALUE" and "\n" in (content or "").strip()):
            # The rest of the file may depend on it, so it cannot be left out.
            raise InputError(f"{part.name} has {what}, from about line {line:,} on; correct it")
        engine.run(f"INSERT INTO raw (_torn, _part, _line) VALUES ({text(what)}, {index}, {line})")


class _Location(NamedTuple):
    """Where a row is."""

    source: str
    unit: str
    """`line` or `row`."""
    number: int
    content: str | None
    """The original text, where the row is text."""

    def __str__(self) -> str:
        return f"{self.unit} {self.number:,} of {self.source}"


def locate(engine: Engine, table: Table, keys: Sequence[tuple[int, int, int | None]]) -> list[_Location]:
    """Find rows of the view `rows` in their files.

    Parameters
    ----------
    engine : has the view
    table : the table of the view
    keys : `_part, _row, _line` of the rows

    Returns
    -------
    a location for each key
    """
    if table.typed or table.parts[0].format == "list":
        names, first = ([part.name for part in table.parts], 1) if table.parts else ([table.name], 0)
        return [
            _Location(names[part], "row" if line is None else "line", line or row + first, None)
            for part, row, line in keys
        ]
    located: dict[int, _Location] = {}
    for index, part in enumerate(table.parts):
        wanted = {row: line for number, row, line in keys if number == index}
        if not wanted:
            continue
        first, lines = engine.row(f"SELECT min(_row), list(_line) FROM rows WHERE _part = {index}")
        rejected: dict[int, int | None] = {line: None for line in lines if line is not None}
        row = first - 1
        rejected |= {line: key for key, line in wanted.items() if line is not None}
        for ordinal, (line, content) in enumerate(part.records(), start=1):
            if ordinal in rejected:
                key = rejected[ordinal]
            elif ordinal <= part.skipped or not (content.strip() if part.separator == NO_SEPARATOR else content):
                continue
            else:  # DuckDB does not number the rows that it could read
                row += 1
                key = row if wanted.get(row, ordinal) is None else None
            if key is not None:
                located[key] = _Location(part.name, "line", line, content)
    return [located[row] for _, row, _ in keys]


def as_table(frame: Any, shown: str) -> Table:
    """Take a dataframe of any library (polars, pandas, pyarrow, a dict of columns) as a table.

    Parameters
    ----------
    frame : the dataframe
    shown : its name in messages

    Returns
    -------
    a table whose rows are counted from 0
    """
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, pl.DataFrame):
        try:
            frame = _from_pandas(frame) if type(frame).__module__.startswith("pandas") else pl.DataFrame(frame)
        except (TypeError, ValueError, OverflowError, ImportError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{shown} is not a dataframe that polars can read ({reason(error)})") from error
    return Table(shown, frame=frame)


def _from_pandas(frame: Any) -> pl.DataFrame:
    """Convert column by column, since the direct way needs pyarrow; what pandas calls missing is empty."""
    columns = {str(column): frame[column].astype(object).where(frame[column].notna(), None) for column in frame.columns}
    return pl.DataFrame({column: values.tolist() for column, values in columns.items()})


def _is_gzipped(path: Path) -> bool:
    """Whether a file is gzipped, by its first bytes."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def lines_of(path: Path, encoding: str = "utf-8") -> Iterator[Iterator[str]]:
    """Open the lines of a text file, plain or gzipped; bytes that are not UTF-8 text come as lone surrogates.

    Parameters
    ----------
    path : the file
    encoding : its encoding
    """
    with path.open("rb") as raw:
        stream = gzip.GzipFile(fileobj=raw) if _is_gzipped(path) else raw
        codec = "utf-8-sig" if encoding == "utf-8" else encoding
        lines = io.TextIOWrapper(stream, codec, "surrogateescape", newline="")
        try:
            yield iter(lambda: lines.readline(LONGEST_LINE + 1), "")
        except (OSError, EOFError, zlib.error, UnicodeError) as error:
            raise InputError(f"{path} cannot be read ({reason(error)}); check the file") from None


def to_pandas(thing: Any) -> Any:
    """Convert a table to a pandas frame.

    Parameters
    ----------
    thing : a polars frame, or anything with `to_frame` (an evaluation, a comparison, an audit)

    Returns
    -------
    a `pandas.DataFrame` with the same columns
    """
    pandas = import_extra("pandas", "a pandas frame", "pandas")
    frame = thing.to_frame() if hasattr(thing, "to_frame") else thing
    if not isinstance(frame, pl.DataFrame):
        raise InputError(f"a {type(thing).__name__} is no table; give a frame, an evaluation, a comparison or an audit")
    return pandas.DataFrame({name: frame[name].to_numpy() for name in frame.columns}, columns=frame.columns)

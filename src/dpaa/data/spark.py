"""Spark instead of DuckDB, for logs that outgrow one machine (extra `spark`): the same statements, the same dataset.

Spark reads Parquet and text files with a header line; a log with faults is refused, and DuckDB is the one that says
where they are.  Every step is kept, so that it is computed once; the splits come back as one Parquet file each.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from dpaa.data._engine import Engine, text
from dpaa.data._values import WHOLE_NUMBER, Values
from dpaa.data.columns import Column
from dpaa.data.log import ColumnNames, Reading, find_columns
from dpaa.data.positive import PositiveRule
from dpaa.data.tables import ParquetPart, Table, TextPart
from dpaa.errors import InputError, MissingExtraError

FUNCTIONS = (
    "CREATE OR REPLACE TEMPORARY FUNCTION number(t STRING) RETURNS STRING RETURN substr(md5(t), 1, 16)",
    "CREATE OR REPLACE TEMPORARY FUNCTION fraction(t STRING, half INT) RETURNS DOUBLE RETURN shiftrightunsigned("
    "CAST(conv(substr(md5(t), 16 * half - 15, 16), 16, -10) AS BIGINT), 11) / 9007199254740992D",
)
"""As in `_engine.py`; the order of 16 hexadecimal digits is that of the number."""


class SparkEngine:
    """A Spark session: the one that is active, or a new one as the environment configures it.

    Parameters
    ----------
    folder : where the parts of a result are written before they become one file
    """

    first_by = "min_by"

    def __init__(self, folder: Path) -> None:
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise MissingExtraError("preparing a log with Spark", "spark") from None
        self._own = SparkSession.getActiveSession() is None
        self.session: Any = SparkSession.builder.appName("dpaa").getOrCreate()
        self.session.conf.set("spark.sql.session.timeZone", "UTC")
        self.session.conf.set("spark.sql.ansi.enabled", "true")
        self._folder = folder
        self._kept: dict[str, Any] = {}
        for statement in FUNCTIONS:
            self.session.sql(statement)

    def __enter__(self) -> SparkEngine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for frame in self._kept.values():
            frame.unpersist()
        if self._own:
            self.session.stop()

    def define(self, name: str, query: str) -> None:
        """Keep the result of a query, and make it a view."""
        frame = self.session.sql(query).persist()
        frame.count()  # before the view of that name, which the query may read, is another one
        self._kept[name] = frame
        frame.createOrReplaceTempView(name)

    def row(self, query: str) -> tuple[Any, ...]:
        """The one row of a result."""
        return tuple(self.session.sql(query).collect()[0])

    def write(self, query: str, file: Path) -> None:
        """Write a result to a Parquet file: Spark its parts, DuckDB all of them as one."""
        parts = self._folder / f"parts-{file.parent.parent.name}-{file.stem}"
        ordered = query.partition(" ORDER BY ")[2]
        self.session.sql(query).write.mode("overwrite").option("compression", "zstd").parquet(str(parts))
        with Engine(self._folder) as engine:
            rows = f"SELECT * FROM read_parquet({text(parts / '*.parquet')})"
            engine.write(f"{rows} ORDER BY {ordered}" if ordered else rows, file)


def define_spark_log(
    engine: SparkEngine, table: Table, names: ColumnNames | None, positive: PositiveRule | None, reading: Reading
) -> Values:
    """Make the positive rows of a table the view `log`, as `log.define_log` does.

    Parameters
    ----------
    engine : where the table is read
    table : Parquet files, or text files with the same header line
    names, positive, reading : as in `log.define_log`

    Returns
    -------
    the columns of the view, and notes
    """
    roles, rule_column = find_columns(table, names, positive)
    if reading.drop_invalid:
        raise InputError("Spark does not leave out invalid rows; prepare the log with --engine duckdb, or clean it")
    _read(engine, table).createOrReplaceTempView("rows")
    types = dict(engine.session.table("rows").dtypes)
    columns = {role: _value(engine, table, role, column, types[column]) for role, column in roles.items()}
    where = ""
    if rule_column is not None and positive is not None:
        where = f" WHERE CAST({_quoted(rule_column)} AS DOUBLE) {positive.sql}"
    total = engine.row("SELECT count(*) FROM rows")[0]
    complete = [Column.USER, Column.ITEM, *([Column.TIMESTAMP] if reading.times_needed else [])]
    for role in (role for role in complete if role in roles):
        if n := total - engine.row(f"SELECT count({_quoted(roles[role])}) FROM rows")[0]:
            raise InputError(
                f"column {roles[role]!r} of {table.name} is empty in {n:,} rows; --engine duckdb says in which"
            )
    engine.define(
        "log", f"SELECT {', '.join(f'{value} AS {role}' for role, value in columns.items())} FROM rows{where}"
    )
    rows = engine.row("SELECT count(*) FROM log")[0]
    notes = list(table.notes)
    if rows < total:
        notes.append(f"{table.name}: {total - rows:,} of {total:,} rows are not positive ({positive}) and were dropped")
    if not rows:
        raise InputError(f"no row of {table.name} is positive by the rule {str(positive)!r}; choose another --positive")
    return Values(columns, rows, notes)


def _read(engine: SparkEngine, table: Table) -> Any:
    """The rows of all parts, as Spark reads them."""
    if all(isinstance(part, ParquetPart) for part in table.parts):
        return engine.session.read.parquet(*(str(part.path) for part in table.parts if isinstance(part, ParquetPart)))
    texts = [part for part in table.parts if type(part) is TextPart]
    if len(texts) < len(table.parts) or len({(part.columns, part.separator, part.skipped) for part in texts}) > 1:
        raise InputError(f"Spark reads Parquet, or text files of one header, and {table.name} is neither; convert it")
    schema = ", ".join(f"{_quoted(column)} STRING" for column in texts[0].columns)
    reader = engine.session.read.schema(schema).option("sep", texts[0].separator).option("mode", "FAILFAST")
    return reader.option("header", texts[0].skipped > 0).csv([str(part.path) for part in texts])


def _value(engine: SparkEngine, table: Table, role: str, column: str, kind: str) -> str:
    """How the values of a column are read."""
    raw = _quoted(column)
    if kind != "string":
        return f"CAST({raw} AS BIGINT)" if role in (Column.USER, Column.ITEM) else raw
    if role == Column.RATING:
        return f"CAST({raw} AS DOUBLE)"
    whole = f"SELECT min(CASE WHEN {raw} IS NULL OR {raw} RLIKE '^({WHOLE_NUMBER})$' THEN 1 ELSE 0 END) FROM rows"
    is_whole = not table.typed and engine.row(whole)[0] == 1
    if role == Column.TIMESTAMP:
        return f"CAST({raw} AS BIGINT)" if is_whole else f"CAST({raw} AS TIMESTAMP)"
    return f"CAST({raw} AS BIGINT)" if is_whole else raw


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"

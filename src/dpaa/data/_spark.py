"""Spark instead of DuckDB, for logs that outgrow one machine (extra `spark`): the same statements, the same dataset.

Spark reads Parquet and text files with a header line; a log with faults is refused, and DuckDB locates them. Every step
is kept, so that it is computed once; the splits come back as one Parquet file each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpaa.data._engine import Engine, text
from dpaa.data._values import Values
from dpaa.data.ids import WHOLE_NUMBER, Column
from dpaa.data.log import ColumnNames, PositiveRule, Reading, find_columns, note_positives, rule_column
from dpaa.data.tables import Table
from dpaa.errors import InputError, import_extra

FUNCTIONS = (
    "CREATE OR REPLACE TEMPORARY FUNCTION number(t STRING) RETURNS STRING RETURN substr(md5(t), 1, 16)",
    "CREATE OR REPLACE TEMPORARY FUNCTION fraction(t STRING, half INT) RETURNS DOUBLE RETURN shiftrightunsigned("
    "CAST(conv(substr(md5(t), 16 * half - 15, 16), 16, -10) AS BIGINT), 11) / 9007199254740992D",
)
"""As in `_engine.py`; the order of 16 hexadecimal digits is that of the number."""


class SparkEngine(Engine):
    """A Spark session: the one that is active, or a new one as the environment configures it.

    Parameters
    ----------
    folder : where the parts of a result are written before they become one file
    """

    def __init__(self, folder: Path) -> None:
        sessions = import_extra("pyspark.sql", "preparing a log with Spark", "spark").SparkSession
        self._own = sessions.getActiveSession() is None
        self.session: Any = sessions.builder.appName("dpaa").getOrCreate()
        self.session.conf.set("spark.sql.session.timeZone", "UTC")
        self.session.conf.set("spark.sql.ansi.enabled", "true")
        self._folder = folder
        for statement in FUNCTIONS:
            self.session.sql(statement)

    def __enter__(self) -> SparkEngine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own:
            self.session.stop()

    def define(self, name: str, query: str) -> None:
        """Keep the result of a query, and make it a view."""
        frame = self.session.sql(query).persist()
        frame.count()  # before the view of that name, which the query may read, is another one
        frame.createOrReplaceTempView(name)

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of a result."""
        return tuple(self.session.sql(query).collect()[0])

    def write(self, query: str, file: Path, compression: str = "zstd") -> None:
        """Write a result to a Parquet file: Spark its parts, DuckDB all of them as one."""
        parts = self._folder / f"parts-{file.parent.parent.name}-{file.stem}"
        self.session.sql(query).write.mode("overwrite").option("compression", compression).parquet(str(parts))
        with Engine(self._folder) as engine:
            engine.write(f"SELECT * FROM read_parquet({text(parts / '*.parquet')}) ORDER BY user_id, item_id", file)


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
    if reading.drop_invalid:
        raise InputError("Spark does not leave out invalid rows; prepare the log with --engine duckdb, or clean it")
    roles = find_columns(table, names)
    rows = _read(engine, table)
    rows.createOrReplaceTempView("rows")
    types = dict(rows.dtypes)
    columns = {role: _value(engine, table, role, column, types[column]) for role, column in roles.items()}
    total = engine.row("SELECT count(*) FROM rows")[0]
    complete = (Column.USER, Column.ITEM, *((Column.TIMESTAMP,) if reading.times_needed else ()))
    for column in (roles[role] for role in complete if role in roles):
        if n := total - engine.row(f"SELECT count({_quoted(column)}) FROM rows")[0]:
            raise InputError(f"column {column!r} of {table.name} is empty in {n:,} rows; --engine duckdb locates them")
    where = ""
    if positive is not None:
        where = f" WHERE CAST({_quoted(rule_column(table, roles, positive))} AS DOUBLE) {positive.sql}"
    selected = ", ".join(f"{value} AS {role}" for role, value in columns.items())
    engine.define("log", f"SELECT {selected} FROM rows{where}")
    values = Values(list(columns), engine.row("SELECT count(*) FROM log")[0])
    if positive is not None:
        note_positives(values, table, positive, total)
    return values


def _read(engine: SparkEngine, table: Table) -> Any:
    """The rows of all parts, as Spark reads them."""
    first, paths = table.parts[0], [str(part.path) for part in table.parts]
    if first.format == "parquet":
        return engine.session.read.parquet(*paths)
    if first.format != "csv" or len({(part.columns, part.separator, part.skipped) for part in table.parts}) > 1:
        raise InputError(f"Spark reads Parquet, or text files of one header, and {table.name} is neither; convert it")
    schema = ", ".join(f"{_quoted(column)} STRING" for column in first.columns)
    reader = engine.session.read.schema(schema).option("sep", first.separator).option("mode", "FAILFAST")
    return reader.option("header", first.skipped > 0).csv(paths)


def _value(engine: SparkEngine, table: Table, role: str, column: str, kind: str) -> str:
    """SQL of the values of a column."""
    raw = _quoted(column)
    if kind != "string":
        return f"CAST({raw} AS BIGINT)" if role in (Column.USER, Column.ITEM) else raw
    if role == Column.RATING:
        return f"CAST({raw} AS DOUBLE)"
    whole = f"SELECT min(CASE WHEN {raw} IS NULL OR {raw} RLIKE '^({WHOLE_NUMBER})$' THEN 1 ELSE 0 END) FROM rows"
    if not table.typed and engine.row(whole)[0] == 1:
        return f"CAST({raw} AS BIGINT)"
    return f"CAST({raw} AS TIMESTAMP)" if role == Column.TIMESTAMP else raw


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"

"""Conversion of column values: ids of one type, numbers, comparable times.

A value of a text file is an id (integers where all ids of the column are), a number (`TRY_CAST` to a double) or a time
(a number, or an ISO date or time).  What cannot be read is a fault: one sentence names all kinds of them, or all such
rows are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from dpaa._text import counted, shortened
from dpaa.data._engine import Engine, in_words, name, text
from dpaa.data.ids import WHOLE_NUMBER
from dpaa.data.tables import Table, define_rows, locate
from dpaa.errors import InputError

LONGEST_VALUE = 80
"""Characters of a value that a sentence quotes."""
INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
NUMBERS = (*INTEGERS, "FLOAT", "DOUBLE", "HUGEINT", "UHUGEINT", "DECIMAL")
Kind = Literal["id", "number", "exact", "time"]


@dataclass(frozen=True)
class Wanted:
    """A column and what its values are.

    Parameters
    ----------
    column : its name in the table
    kind : `id`; `number`; `exact`, a number that is an integer where all of the column are; `time`
    required : whether an empty value is a fault; of a time also one that cannot be read
    """

    column: str
    kind: Kind
    required: bool = True


@dataclass
class Values:
    """The view `sound` of an engine: the rows without faults, columns under their roles."""

    columns: list[str]
    """Roles."""
    rows: int
    notes: list[str] = field(default_factory=list)
    invalid: pl.DataFrame | None = None
    """Rows that were left out: `source, row, fault, content`."""


def read_values(
    engine: Engine, table: Table, wanted: Mapping[str, Wanted], *, drop_invalid: bool = False, may_drop: bool = True
) -> Values:
    """Read columns of a table into the view `sound`.

    Parameters
    ----------
    engine : where the table is read
    table : the table
    wanted : role → column; several roles may share a column
    drop_invalid : leave out rows with faults; else they are refused
    may_drop : whether a refusal mentions `--invalid drop`

    Returns
    -------
    what is in the view, and notes
    """
    columns = list(dict.fromkeys(one.column for one in wanted.values()))
    define_rows(engine, table, columns)
    types = {column: str(kind) for column, kind, *_ in engine.run("DESCRIBE rows")}
    read, faults = {}, {}
    for role, one in wanted.items():
        raw, value = _expressions(engine, table, one, types[one.column])
        read[role] = f"{value} AS {name(role)}"
        if one.required:
            faults[f"empty value in column {one.column!r}"] = one.column, f"_torn IS NULL AND {raw} IS NULL"
        if one.kind != "id" and (one.required or one.kind != "time"):
            title = f"not a {'time' if one.kind == 'time' else 'number'} in column {one.column!r}"
            faults[title] = one.column, f"{raw} IS NOT NULL AND {value} IS NULL"
    if not table.typed:
        for (torn,) in engine.run("SELECT DISTINCT _torn FROM rows WHERE _torn IS NOT NULL"):
            faults[torn] = "", f"_torn IS NOT NULL AND _torn = {text(torn)}"
    # One pass counts the faults of all kinds; the slower search for where they are is made for those that occur.
    counts = "".join(f", count_if({holds})" for _, holds in faults.values())
    total, *numbers = engine.row(f"SELECT count(*){counts} FROM rows")
    if not total:
        raise InputError(f"{table.name} has no rows; add some or leave it out")
    occurring = {title: (*faults[title], n) for title, n in zip(faults, numbers, strict=True) if n}
    values = Values(list(read), total)
    any_fault = " OR ".join(f"({holds})" for _, holds, _ in occurring.values())
    if occurring:
        _refuse_or_note(engine, table, occurring, values, drop_invalid, may_drop)
        values.invalid = _invalid_rows(engine, table, columns, occurring, any_fault)
        values.rows -= len(values.invalid)
    # A view: the rows are read again by whoever needs them, and never stand in memory twice.
    where = f" WHERE NOT ({any_fault})" if occurring else ""
    engine.run(f"CREATE OR REPLACE TEMP VIEW readable AS SELECT {', '.join(read.values())} FROM rows{where}")
    _finish(engine, table, wanted, values)
    return values


def read_frame(table: Table, wanted: Mapping[str, Wanted]) -> pl.DataFrame:
    """Read columns of a small table as a frame, under their roles; a fault is refused.

    Parameters
    ----------
    table : the table
    wanted : role → column

    Returns
    -------
    a frame in the order of the rows
    """
    with Engine() as engine, in_words(table.name):
        read_values(engine, table, wanted, may_drop=False)
        return engine.frame("SELECT * FROM sound")


def _expressions(engine: Engine, table: Table, wanted: Wanted, kind: str) -> tuple[str, str]:
    """SQL of a column as it is, and of its value, NULL where it cannot be read."""
    raw = name(wanted.column)
    if is_text := kind in ("VARCHAR", '"NULL"', "UUID") or kind.startswith("ENUM"):
        raw = f"nullif(CAST({raw} AS VARCHAR), '')"
    number = f"TRY_CAST({raw} AS DOUBLE)"
    if wanted.kind == "id":
        if is_text or kind in INTEGERS:
            return raw, raw if is_text or kind == "UBIGINT" else f"CAST({raw} AS BIGINT)"
    elif is_text and wanted.kind != "number":
        whole = f"count_if(regexp_full_match({raw}, '{WHOLE_NUMBER}') AND TRY_CAST({raw} AS BIGINT) IS NOT NULL)"
        given, n_whole, n_numbers = engine.row(f"SELECT count({raw}), {whole}, count({number}) FROM rows")
        if given == n_whole:
            return raw, f"TRY_CAST({raw} AS BIGINT)"
        if wanted.kind == "time" and n_numbers <= given / 2:  # a few numbers among dates are mistakes, and vice versa
            value = f"TRY_CAST(upper(trim({raw})) AS TIMESTAMPTZ)"
            return raw, f"CASE WHEN isfinite({value}) THEN {value} END"
    elif wanted.kind == "time" and (kind == "DATE" or kind.startswith("TIMESTAMP")):
        return raw, f"CAST({raw} AS TIMESTAMPTZ)"
    # DuckDB casts `inf` and `nan` to numbers, and no rating is either.
    if wanted.kind != "id" and (is_text or kind.partition("(")[0] in NUMBERS):
        number = raw if kind in INTEGERS else number
        return raw, f"CASE WHEN isfinite(CAST({number} AS DOUBLE)) THEN {number} END"
    what = {"id": "ids must be integers or text", "time": "times must be dates, datetimes or numbers"}
    rule = what.get(wanted.kind, "it must be numbers")
    raise InputError(f"column {wanted.column!r} of {table.name} cannot be {kind}: {rule}; cast it")


Found = Mapping[str, tuple[str, str, int]]
"""Kinds of faults: title → column, SQL condition, number of rows."""


def _refuse_or_note(engine: Engine, table: Table, found: Found, values: Values, drop: bool, may_drop: bool) -> None:
    """Say which faults there are, how often, and where and what the first is."""
    kinds = []
    for title, (column, holds, n) in found.items():
        shown = f"CAST({name(column)} AS VARCHAR)" if column else "NULL"
        query = f"SELECT _part, _row, _line, {shown} FROM rows WHERE {holds} ORDER BY _part, _row LIMIT 1"
        part, row, line, value = engine.row(query)
        where = locate(engine, table, [(part, row, line)])[0]
        quoted = f"{shortened(repr(value), LONGEST_VALUE)} in " if value else ""
        place = where if len(table.parts) > 1 else f"{where.unit} {where.number:,}"
        kinds.append(f"{title} ({counted(n, 'row', 'rows')}, first {quoted}{place})")
    n = engine.row(f"SELECT count(*) FROM rows WHERE {' OR '.join(holds for _, holds, _ in found.values())}")[0]
    words = f"{counted(n, 'invalid row', 'invalid rows')}: {', '.join(kinds)}"
    if not drop or n == values.rows:
        instead = ", or leave such rows out with --invalid drop" if may_drop and not drop else ""
        raise InputError(f"{table.name} has {'only ' if n == values.rows else ''}{words}; correct them{instead}")
    values.notes.append(f"{table.name}: {n:,} of {values.rows:,} rows are left out, {words}")


def _invalid_rows(engine: Engine, table: Table, columns: list[str], found: Found, any_fault: str) -> pl.DataFrame:
    """The rows with faults: `source, row, fault, content`."""
    titles = ", ".join(f"CASE WHEN {holds} THEN {text(title)} END" for title, (_, holds, _) in found.items())
    content = f"to_json(struct_pack({', '.join(f'{name(c)} := {name(c)}' for c in columns)}))"
    query = f"SELECT _part, _row, _line, concat_ws('; ', {titles}), {content} FROM rows WHERE {any_fault}"
    rows = engine.run(query)
    where = locate(engine, table, [row[:3] for row in rows])
    found_rows = [
        (one.source, one.number, fault, values if one.content is None else one.content)
        for one, (*_, fault, values) in zip(where, rows, strict=True)
    ]
    return pl.DataFrame(sorted(found_rows), schema=["source", "row", "fault", "content"], orient="row")


def _finish(engine: Engine, table: Table, wanted: Mapping[str, Wanted], values: Values) -> None:
    """Make the view `sound`: ids of a text file as integers where all are, no column of times without a time."""
    types = {column: str(kind) for column, kind, *_ in engine.run("DESCRIBE readable")}
    selected = []
    for role, one in wanted.items():
        value = name(role)
        if one.kind == "id" and types[role] != "BIGINT":
            whole = f"regexp_full_match(CAST({value} AS VARCHAR), '{WHOLE_NUMBER}')"
            fits = (f"bool_and({whole} AND TRY_CAST({value} AS {kind}) IS NOT NULL)" for kind in ("BIGINT", "UBIGINT"))
            signed, unsigned = engine.row(f"SELECT {', '.join(fits)} FROM readable")
            if (signed or unsigned) and (types[role] == "UBIGINT" or not table.typed):
                value = f"CAST({value} AS {'BIGINT' if signed else 'UBIGINT'}) AS {value}"
        elif one.kind == "time" and not one.required:
            timed = engine.row(f"SELECT count({value}) FROM readable")[0]
            if timed < values.rows:
                rows = counted(values.rows - timed, "row has", "rows have")
                values.notes.append(f"{table.name}: {rows} no time in column {one.column!r}; nothing is split by it")
            if not timed:
                values.columns.remove(role)
                continue
        selected.append(value)
    engine.run(f"CREATE OR REPLACE TEMP VIEW sound AS SELECT {', '.join(selected)} FROM readable")

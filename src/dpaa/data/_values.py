"""What the values of columns mean: ids of one type, numbers (decimal commas too), times that can be compared.

What a column of text means is told by all of it, so it is looked at as a whole first; then every value is either read
or a fault.  Faults are collected kind by kind: one sentence names all kinds, or all such rows are left out at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from dpaa._text import counted, shortened
from dpaa.data._engine import Engine, in_words, name, text
from dpaa.data.tables import JsonPart, Loaded, Table, TornRow, place
from dpaa.errors import InputError

LONGEST_VALUE = 80
"""Characters of a value that a sentence about several kinds of faults quotes."""
INVALID_COLUMNS = ("source", "row", "fault", "content")
WHOLE_NUMBER = "0|-?[1-9][0-9]*"
ISO_TIME = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?"
ZONE = r":\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$"
SECONDS, MILLISECONDS = 1e8, 1e11
"""From these on, times look like seconds since 1970, and like milliseconds."""
NARROW = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
WIDE = ("UBIGINT", "HUGEINT", "UHUGEINT")
Kind = Literal["id", "number", "exact", "time"]


@dataclass(frozen=True)
class Wanted:
    """A column and what its values are.

    Parameters
    ----------
    column : its name in the table
    kind : `id`; `number`; `exact`, a number that is whole where all of the column are; `time`
    required : whether an empty value is a fault
    """

    column: str
    kind: Kind
    required: bool = True


@dataclass(frozen=True)
class Fault:
    """Values of a column that cannot be read."""

    column: str
    kind: str
    """`nothing`, `no number`, `no time`."""
    holds: str
    """SQL: whether a row has it."""
    why: str = ""
    """How the sentence goes on where it has named the value; in its place with `quoted` off."""
    remedy: str = "fill it in or remove the row"
    quoted: bool = True

    @property
    def title(self) -> str:
        """What it is, in words that are the same for all rows."""
        return f"{self.kind} in column {self.column!r}"


@dataclass
class Values:
    """The view `sound` of an engine: the rows without faults, columns under their roles."""

    columns: dict[str, str]
    """Role → SQL type."""
    rows: int
    notes: list[str] = field(default_factory=list)
    invalid: pl.DataFrame | None = None
    """Rows that were left out: source, row, fault, content."""


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
    may_drop : whether a refusal mentions `--drop-invalid`

    Returns
    -------
    what is in the view, and what was noted
    """
    columns = list(dict.fromkeys(one.column for one in wanted.values()))
    loaded = Loaded.of(engine, table, columns)
    readers = {role: _Column(loaded, one) for role, one in wanted.items()}
    _look(engine, [one for one in readers.values() if one.is_text and one.wanted.kind != "id"])
    for one in readers.values():
        one.decide()
    faults = list({(fault.column, fault.kind): fault for one in readers.values() for fault in one.faults}.values())
    any_fault = " OR ".join(f"coalesce({fault.holds}, false)" for fault in faults) or "false"
    sound = f"NOT ({any_fault})"
    counts = [f"count(*) FILTER (WHERE {fault.holds})" for fault in faults]
    stats = {role: one.statistics() for role, one in readers.items()}
    asked = [f"{expression} FILTER (WHERE {sound})" for each in stats.values() for expression in each]
    total, n_sound, *numbers = engine.row(
        f"SELECT {', '.join(['count(*)', f'count(*) FILTER (WHERE {sound})', *counts, *asked])} FROM rows"
    )
    told = dict(zip(faults, numbers, strict=False))
    found = {fault: int(n) for fault, n in told.items() if n}
    if not total and not loaded.torn:
        raise InputError(f"{table.name} has no rows; add some or leave it out")
    rest = iter(numbers[len(faults) :])
    for role, one in readers.items():
        one.seen = [next(rest) for _ in stats[role]]
    notes = dict.fromkeys(note for one in readers.values() for note in one.notes)
    values = Values({}, n_sound, [*table.notes, *notes])
    if found or loaded.torn:
        report = _Report(loaded, found, columns)
        if not drop_invalid:
            raise report.refusal(may_drop)
        if not n_sound:
            raise InputError(f"every row of {table.name} is invalid: {report.in_words()}; check how the file is read")
        values.notes.append(report.note(total, total - n_sound))
        values.invalid = report.as_table(any_fault)
    selected = []
    for role, one in readers.items():
        expression, kind = one.finish(sound, n_sound)
        values.notes += one.late_notes
        if expression is not None:
            selected.append(f"{expression} AS {name(role)}")
            values.columns[role] = kind
    engine.run(
        f"CREATE OR REPLACE TEMP VIEW sound AS SELECT {', '.join(selected)} FROM rows WHERE {sound}"
        if faults
        else f"CREATE OR REPLACE TEMP VIEW sound AS SELECT {', '.join(selected)} FROM rows"
    )
    return values


def _look(engine: Engine, columns: Sequence[_Column]) -> None:
    """Look at all values of columns of text, in one pass."""
    if not columns:
        return
    parts = [part for one in columns for part in one.looked_at()]
    found = iter(engine.row(f"SELECT {', '.join(parts)} FROM rows"))
    for one in columns:
        one.look = dict(zip(one.LOOKS, found, strict=False))


class _Column:
    """How the values of one column are read, as SQL."""

    LOOKS = ("given", "not_whole", "not_number", "points", "comma", "precise", "zoned", "fine", "not_iso")

    def __init__(self, loaded: Loaded, wanted: Wanted) -> None:
        self.loaded, self.wanted, self.table = loaded, wanted, loaded.table
        described = loaded.engine.run(f"DESCRIBE SELECT {name(wanted.column)} FROM rows")
        self.type = str(described[0][1])
        self.is_text = self.type in ("VARCHAR", '"NULL"') or self.type.startswith("ENUM") or self.type == "UUID"
        raw = name(wanted.column)
        self.raw = raw if not self.is_text else f"nullif(CAST({raw} AS VARCHAR), '')"
        self.value = self.raw
        self.sql_type = self.type
        self.faults: list[Fault] = []
        self.notes: list[str] = []
        self.late_notes: list[str] = []
        self.look: dict[str, Any] = {}
        self.seen: list[Any] = []
        self._unreadable = "false"

    # What a column of text shows.

    def looked_at(self) -> list[str]:
        """Aggregates over the whole column, in the order of `LOOKS`."""
        raw = self.raw
        number = _as_number(raw)
        plain = f"TRY_CAST({raw} AS BIGINT) IS NOT NULL AND NOT regexp_matches({raw}, '[._eE]')"
        comma = rf"regexp_full_match(trim({raw}), '[-+]?\d+,\d+')"
        thousands = rf"regexp_full_match(trim({raw}), '[-+]?[1-9]\d?\d?,\d\d\d')"
        iso = self.wanted.kind == "time"
        times = [
            f"coalesce(bool_or(contains({raw}, '.') AND length({raw}) > 17), false)",
            f"count(*) FILTER (WHERE regexp_matches(upper({raw}), {text(ZONE)}))",
            rf"coalesce(bool_or(regexp_matches({raw}, '\.\d{{7,}}')), false)",
            f"count_if(NOT regexp_full_match(upper(trim({raw})), {text(ISO_TIME)}))",
        ]
        return [
            f"count({raw})",
            f"count(*) FILTER (WHERE {raw} IS NOT NULL AND NOT ({plain}))",
            f"count(*) FILTER (WHERE {raw} IS NOT NULL AND {number} IS NULL)",
            f"coalesce(bool_or(contains({raw}, '.')), false)",
            f"min({raw}) FILTER (WHERE {comma} AND NOT {thousands})",
            *(times if iso else ["false", "0", "false", "0"]),
        ]

    # What its values become.

    def decide(self) -> None:
        """Choose how values are read, and which ones are faults."""
        kind = self.wanted.kind
        if self.wanted.required or kind == "time":
            self._empty()
        if kind == "id":
            self._check_id_type()
        elif kind == "time":
            self._decide_time()
        else:
            self._decide_number(exact=kind == "exact")
        if kind == "time" and not self.wanted.required:  # what is no time is kept without one
            self._unreadable = " OR ".join(f"coalesce({fault.holds}, false)" for fault in self.faults)
            self.faults = []

    def _empty(self) -> None:
        self.faults.append(Fault(self.wanted.column, "nothing", f"{self.raw} IS NULL"))

    def _check_id_type(self) -> None:
        if not self.is_text and self.type not in (*NARROW, *WIDE):
            raise InputError(
                f"the ids in column {self.wanted.column!r} of {self.table.name} cannot be {self.type}; cast them to "
                "integers or to text"
            )

    def _decide_number(self, exact: bool = False) -> None:
        column = self.wanted.column
        if self.is_text:
            self.sql_type, self.value = "DOUBLE", _as_number(self.raw)
            if exact and self.look["given"] and not self.look["not_whole"]:
                self.sql_type, self.value = "BIGINT", f"TRY_CAST({self.raw} AS BIGINT)"
            elif self.look["comma"] is not None and not self.look["points"]:
                self.value = _as_number(f"replace({self.raw}, ',', '.')")
                self.notes.append(
                    f"{self.table.name}: column {column!r} has decimal commas, such as {self.look['comma']!r}"
                )
        elif self.type.startswith("DECIMAL") or self.type in ("HUGEINT", "UHUGEINT"):
            self.sql_type, self.value = "DOUBLE", f"CAST({self.raw} AS DOUBLE)"
        elif self.type not in (*NARROW, "UBIGINT", "FLOAT", "DOUBLE"):
            raise InputError(f"column {column!r} of {self.table.name} is {self.type}; give a column of numbers")
        wrong = f"({self.raw} IS NOT NULL AND {self.value} IS NULL)"
        if self.sql_type in ("FLOAT", "DOUBLE"):
            wrong += f" OR NOT isfinite({self.value})"
        remedy = "correct the row or name another column"
        self.faults.append(Fault(column, "no number", f"({wrong})", "which is not a number", remedy))

    def _decide_time(self) -> None:
        column = self.wanted.column
        if self.is_text:
            look = self.look
            mostly_numbers = look["not_number"] < look["given"] / 2  # the odd one out is a mistake, no date
            if not look["not_number"] or mostly_numbers or not look["given"]:
                self._decide_number(exact=True)
                if look["precise"] and self.sql_type == "DOUBLE":  # fractions that a float would round
                    self.sql_type, self.value = "DECIMAL(38,9)", f"TRY_CAST({self.raw} AS DECIMAL(38, 9))"
                return
            self._decide_iso_time()
        elif self.type == "DATE" or self.type.startswith("TIMESTAMP"):
            self.sql_type = "TIMESTAMPTZ_NS" if self.type in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS") else "TIMESTAMPTZ"
            self.value = f"CAST({self.raw} AS {self.sql_type})"
            moment = f"CAST({self.raw} AS TIMESTAMP)"
            inside = f"{moment} >= TIMESTAMP '0001-01-01' AND {moment} < TIMESTAMP '9999-12-31 23:59:59.999999'"
            outside = f"({self.raw} IS NOT NULL AND NOT ({inside}))"
            if not self.sql_type.endswith("NS"):
                why = "a time outside of the years 1 to 9999"
                self.faults.append(Fault(column, "no time", outside, why, "correct the row", quoted=False))
        elif self.type.startswith(("TIME", "INTERVAL")):
            raise InputError(f"column {column!r} of {self.table.name} is {self.type}; give dates, datetimes or numbers")
        else:
            self._decide_number()

    def _decide_iso_time(self) -> None:
        column, clean = self.wanted.column, f"upper(trim({self.raw}))"
        self.sql_type = "TIMESTAMPTZ_NS" if self.look["fine"] else "TIMESTAMPTZ"
        valid = f"regexp_full_match({clean}, {text(ISO_TIME)})" if self.look["not_iso"] else "true"
        self.value = f"CASE WHEN {valid} THEN TRY_CAST({clean} AS {self.sql_type}) END"
        why = "which is neither a number nor an ISO date or time (2024-05-31T10:00:00Z)"
        remedy = "correct the row or name another column with --timestamp-column"
        wrong = f"({self.raw} IS NOT NULL AND {self.value} IS NULL)"
        self.faults.append(Fault(column, "no time", wrong, why, remedy))
        if 0 < self.look["zoned"] < self.look["given"] - self.look["not_iso"]:
            self.notes.append(
                f"{self.table.name}: column {column!r} has times with a zone and times without one; those without are "
                "taken as UTC"
            )

    # What the sound rows show, and the last word.

    def statistics(self) -> list[str]:
        """Aggregates over the sound rows."""
        if self.wanted.kind == "id":
            if self._may_be_integers:
                return [
                    f"count_if(NOT regexp_full_match({self.raw}, {text(WHOLE_NUMBER)}))",
                    f"count_if(TRY_CAST({self.raw} AS BIGINT) IS NULL)",
                    f"count_if(TRY_CAST({self.raw} AS UBIGINT) IS NULL)",
                    rf"min(CASE WHEN regexp_full_match({self.raw}, '-?[0-9]+\.0+') THEN {self.raw} END)",
                    f"count_if({self.raw} <> nfc_normalize({self.raw}))",
                ]
            if self.is_text:
                return [f"count_if({self.raw} <> nfc_normalize({self.raw}))"]
            return [f"min({self.raw})", f"max({self.raw})"] if self.type in WIDE else []
        if self.wanted.kind == "time":
            numbers = not self.sql_type.startswith("TIMESTAMP")
            value = f"CASE WHEN NOT ({self._unreadable}) THEN {self.value} END"
            return [f"count_if({self._unreadable})", *([f"min({value})", f"max({value})"] if numbers else [])]
        return []

    @property
    def _may_be_integers(self) -> bool:
        """Whether ids that are text may have been meant as integers: those of a text file."""
        stay = {one for part in self.table.parts if isinstance(part, JsonPart) for one in part.text_columns}
        return self.is_text and not self.table.typed and self.wanted.column not in stay

    def finish(self, sound: str, rows: int) -> tuple[str | None, str]:
        """The expression of the sound rows, and its type; None for a column that has nothing."""
        if self.wanted.kind == "id":
            return self._finish_id()
        if self.wanted.kind == "time":
            return self._finish_time(sound, rows)
        return self.value, self.sql_type

    def _finish_id(self) -> tuple[str, str]:
        if self.type in NARROW:
            return f"CAST({self.raw} AS BIGINT)", "BIGINT"
        if self.type in WIDE:
            low, high = (int(one or 0) for one in self.seen)
            if high < 2**63 and low >= -(2**63):
                return f"CAST({self.raw} AS BIGINT)", "BIGINT"
            if low < 0 or high >= 2**64:
                raise InputError(
                    f"the ids in column {self.wanted.column!r} of {self.table.name} cannot be {self.type}; cast them "
                    "to integers or to text"
                )
            return f"CAST({self.raw} AS UBIGINT)", "UBIGINT"
        if self._may_be_integers:
            not_whole, not_signed, not_unsigned, point, _ = self.seen
            for kind, wrong in (("BIGINT", not_signed), ("UBIGINT", not_unsigned)):
                if not not_whole and not wrong:
                    return f"CAST({self.raw} AS {kind})", kind
            if point is not None:
                self.late_notes.append(
                    f"{self.table.name}: column {self.wanted.column!r} has ids such as {point!r}, which is another id "
                    f"than {point.partition('.')[0]!r}; write them alike if they are one"
                )
        if self.seen[-1]:
            self._note_composed()
        return self.raw, "VARCHAR"

    def _note_composed(self) -> None:
        """Note ids that differ only in how their accents are composed."""
        odd = f"SELECT DISTINCT {self.raw} AS id FROM rows WHERE {self.raw} <> nfc_normalize({self.raw})"
        both = f"SELECT count(*) FROM ({odd}) WHERE nfc_normalize(id) IN (SELECT {self.raw} FROM rows)"
        if n := self.loaded.engine.row(both)[0]:
            self.late_notes.append(
                f"{self.table.name}: {counted(n, 'id', 'ids')} of column {self.wanted.column!r} differ from another "
                "only in how letters are composed (NFC or NFD); normalise them if they are one"
            )

    def _finish_time(self, sound: str, rows: int) -> tuple[str | None, str]:
        untimed, *bounds = self.seen
        low, high = (float(bounds[0]), float(bounds[1])) if bounds and bounds[0] is not None else (0.0, 0.0)
        if SECONDS <= low < MILLISECONDS <= high:
            self.late_notes.append(
                f"{self.table.name}: column {self.wanted.column!r} has times that look like seconds ({low:.0f}) and "
                f"times that look like milliseconds ({high:.0f}); write them alike"
            )
        if untimed:
            query = f"SELECT _file, _row FROM rows WHERE {sound} AND ({self._unreadable}) ORDER BY ALL LIMIT 1"
            part, number, _ = self.loaded.locate(self.loaded.engine.run(query))[0]
            self.late_notes.append(
                f"{self.table.name}: {counted(untimed, 'row has', 'rows have')} no time that can be read in column "
                f"{self.wanted.column!r} (first in {place(self.table, part, number)}); they are kept without a time, "
                "since nothing is split by it"
            )
        if untimed == rows:
            return None, ""
        return f"CASE WHEN NOT ({self._unreadable}) THEN {self.value} END" if untimed else self.value, self.sql_type


def _as_number(raw: str) -> str:
    """A number with a decimal point; DuckDB would also take `1_000`."""
    return f"CASE WHEN NOT contains({raw}, '_') THEN TRY_CAST({raw} AS DOUBLE) END"


@dataclass
class _Report:
    """What is wrong with the rows of a table, in words."""

    loaded: Loaded
    found: dict[Fault, int]
    """How many rows have each fault."""
    columns: list[str]

    def refusal(self, may_drop: bool) -> InputError:
        """One sentence that names every kind of fault, how often it occurs, and its first row and value."""
        instead = ", or leave such rows out with --drop-invalid" if may_drop else ""
        torn = self._torn()
        if len(self.found) + len(torn) > 1:
            kinds = f"{len(self.found) + len(torn)} kinds of faults: {self.in_words()}"
            return InputError(f"{self.loaded.table.name} has {kinds}; correct them{instead}")
        n = sum((*self.found.values(), *(len(rows) for rows in torn.values())))
        more = f" (and in {counted(n - 1, 'row', 'rows')} more)" if n > 1 else ""
        if torn:
            first = next(iter(torn.values()))[0]
            return InputError(f"{first.sentence}{more}; {first.remedy}{instead}")
        fault = next(iter(self.found))
        where, quoted = self._first(fault)
        where = where if " of " in where else f"{where} of {self.loaded.table.name}"
        what = f"column {fault.column!r} has {fault.why} in {where}"
        if fault.quoted:
            what = f"column {fault.column!r} has {quoted} in {where}, {fault.why}"
        if fault.kind == "nothing":
            what = f"column {fault.column!r} is empty in {where}"
        return InputError(f"{what}{more}; {fault.remedy}{instead}")

    def in_words(self) -> str:
        """Every kind of fault, how often it occurs, and its first row and value."""
        kinds = []
        for kind, rows in self._torn().items():
            first = f"line {rows[0].line:,}" + ("" if len(self.loaded.table.parts) == 1 else f" of {rows[0].source}")
            kinds.append(f"{kind} ({counted(len(rows), 'row', 'rows')}, first {first})")
        for fault, n in self.found.items():
            where, quoted = self._first(fault)
            value = f"{shortened(quoted, LONGEST_VALUE)} in " if fault.quoted and fault.kind != "nothing" else ""
            kinds.append(f"{fault.title} ({counted(n, 'row', 'rows')}, first {value}{where})")
        return ", ".join(kinds)

    def note(self, read: int, faulty: int) -> str:
        """What was left out."""
        left = faulty + len(self.loaded.torn)
        verb = "is" if left == 1 else "are"
        total = read + len(self.loaded.torn)
        return f"{self.loaded.table.name}: {left:,} of {total:,} rows {verb} invalid and left out: {self.in_words()}"

    def as_table(self, any_fault: str) -> pl.DataFrame:
        """The rows with faults: source, line or row, every fault, and the content as it is."""
        flags = ", ".join(f"coalesce({fault.holds}, false)" for fault in self.found)
        shown = ", ".join(f"{name(one)} := {name(one)}" for one in self.columns)
        rows = (
            self.loaded.engine.run(
                f"SELECT _file, _row, [{flags}], to_json(struct_pack({shown})) FROM rows WHERE {any_fault} ORDER BY ALL"
            )
            if self.found
            else []
        )
        found = [[one.source, one.line, one.kind, one.content] for one in self.loaded.torn]
        where = self.loaded.locate([(file, row) for file, row, *_ in rows])
        for (_, _, has, values), (part, number, content) in zip(rows, where, strict=True):
            kinds = "; ".join(fault.title for fault, one in zip(self.found, has, strict=True) if one)
            found.append([part.name, number, kinds, content if content is not None else values])
        schema = {one: pl.Int64 if one == "row" else pl.String for one in INVALID_COLUMNS}
        return pl.DataFrame(sorted(found), schema=schema, orient="row")

    def _torn(self) -> dict[str, list[TornRow]]:
        kinds: dict[str, list[TornRow]] = {}
        for row in self.loaded.torn:
            kinds.setdefault(row.kind, []).append(row)
        return kinds

    def _first(self, fault: Fault) -> tuple[str, str]:
        """Where the first row with a fault is, and its value as it is quoted."""
        column = name(fault.column)
        query = f"SELECT _file, _row, CAST({column} AS VARCHAR), typeof({column}) FROM rows WHERE {fault.holds} "
        file, row, value, kind = self.loaded.engine.row(query + "ORDER BY _file, _row LIMIT 1")
        part, number, _ = self.loaded.locate([(file, row)])[0]
        return place(self.loaded.table, part, number), repr(value) if kind == "VARCHAR" else str(value)


def read_frame(table: Table, wanted: Mapping[str, Wanted]) -> pl.DataFrame:
    """Columns of a small table as a frame, under their roles; a fault is refused.

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

"""A log that memory does not hold becomes a dataset in pieces on disk: the one that `prepare.one_table` makes.

1. The source as it is, block by block; what its columns of text have shown tells what they mean.
2. Rows that are sound and positive, and the ids that occur.
3. Indices instead of ids, in buckets of neighbouring users.
4. Bucket by bucket each pair once; over all of them, rare users and items out.
5. A label for every pair, in the order of their users and items.
6. Bucket by bucket the splits and their fingerprint.

In memory are a block or a bucket, the ids, and a few numbers per pair (13 to 21 bytes while labels are drawn).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.data.columns import Column
from dpaa.data.faults import Fault, Faults
from dpaa.data.ids import checked_type, encode, integers_if_unchanged, is_text
from dpaa.data.log import (
    ColumnNames,
    Log,
    Reading,
    all_invalid,
    duplicates_note,
    find_columns,
    negatives_note,
    none_positive,
    once_each,
)
from dpaa.data.pairs import Indices
from dpaa.data.positive import PositiveRule
from dpaa.data.splits import (
    Counts,
    Labels,
    Numbers,
    SplitRule,
    Work,
    check_times,
    label,
    none_left,
    pair_numbers,
    rare_note,
)
from dpaa.data.table import Table
from dpaa.data.values import Seen, complete_column, number_column, time_column, times_or_nothing, without_time
from dpaa.errors import InputError, need_whole

IDS = (Column.USER, Column.ITEM)
PARTS_TOGETHER = 16
"""Pieces of distinct ids that are made one."""


@dataclass
class LogInPieces:
    """The positive pairs of a table, each once, labelled, in files of a folder."""

    table: Table
    home: Path
    block_rows: int
    names: ColumnNames | None = None
    rule: PositiveRule | None = None
    reading: Reading = field(default_factory=Reading)
    notes: list[str] = field(default_factory=list)
    invalid: pl.DataFrame | None = None
    n_rows: int = 0
    """Sound and positive ones."""
    ids: dict[str, pl.Series] = field(default_factory=dict)
    """All that occur in sound rows, ascending."""
    alive: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    """Which of them have pairs that count."""
    n_pairs: int = 0
    """That count."""
    _buckets: int = 0
    _timed: bool = False
    _roles: dict[str, str] = field(default_factory=dict)
    _rule_column: str | None = None
    _wanted: list[str] = field(default_factory=list)
    _sound: _Sound = field(default_factory=lambda: _Sound())

    # ------------------------------------------------------------------ rows

    def read(self) -> None:
        """The rows that count, as they are, with their own ids."""
        self._roles, self._rule_column = find_columns(self.table, self.names, self.rule)
        self._wanted = list(dict.fromkeys([*self._roles.values(), *([self._rule_column] if self._rule_column else [])]))
        faults = _AllFaults(self.table)
        try:
            raw, seen = self._store_source()
        except InputError:
            self.table, torn = self.table.without_torn(self._wanted)
            if not torn:
                raise
            faults = _AllFaults(self.table)
            faults.add_torn(torn)
            raw, seen = self._store_source()
        types = _common_types(raw)
        sound = _Sound()
        place = 0
        for number, file in enumerate(raw):
            block = pl.read_ipc(file).cast(types)  # type: ignore[arg-type]
            file.unlink()
            self._keep_sound(block, seen, faults, place, sound, number)
            place += block.height
        self._tell(place, faults, sound)
        for column in IDS:
            found = sound.ids(column)
            if self.table.typed:
                found = checked_type(found, f"the ids in column {self._roles[column]!r} of {self.table.name}")
            elif is_text(found):
                found = integers_if_unchanged(found)
            self.ids[column] = found.sort()

    def _store_source(self) -> tuple[list[Path], dict[str, Seen]]:
        """The columns that are needed, block by block, and what they have shown."""
        files: list[Path] = []
        seen = {column: Seen() for column in self._wanted}
        for block in self.table.blocks(self._wanted, self.block_rows):
            for part in block.iter_slices(self.block_rows):
                for column in self._wanted:
                    seen[column].add(part[column])
                files.append(self.home / f"raw-{len(files):06}.arrow")
                part.write_ipc(files[-1], compression="lz4")
        return files, seen

    def _keep_sound(
        self, block: pl.DataFrame, seen: dict[str, Seen], faults: _AllFaults, place: int, sound: _Sound, number: int
    ) -> None:
        here = _From(self.table.name, self.table.columns, self.table, place)
        columns: dict[str, pl.Series] = {}
        turns = {turn: Faults(here) for turn in (*self._roles, "rule")}
        for role in IDS:
            ids = block[self._roles[role]]
            if self.table.typed:
                narrow = checked_type(ids, f"the ids in column {ids.name!r} of {self.table.name}")
                ids = narrow if is_text(narrow) else ids  # the type of numbers is told by all of them
            given = ids.replace("", None) if is_text(ids) else ids
            complete_column(given, here, turns[role])
            columns[role] = ids if self.table.typed else given
        if name := self._roles.get(Column.RATING):
            columns[Column.RATING] = number_column(block[name], here, turns[Column.RATING], seen[name])
        if name := self._roles.get(Column.TIMESTAMP):
            columns[Column.TIMESTAMP] = self._times(block[name], here, turns[Column.TIMESTAMP], seen[name], sound)
        values = None
        if self._rule_column is not None:
            values = number_column(block[self._rule_column], here, turns["rule"], seen[self._rule_column])
            complete_column(block[self._rule_column], here, turns["rule"])
        frame = pl.DataFrame([column.alias(role) for role, column in columns.items()])
        wrong = faults.join(list(turns.values()), place)
        if len(wrong):
            whole = pl.Series(~np.isin(np.arange(frame.height), wrong))
            frame, values = frame.filter(whole), None if values is None else values.filter(whole)
        sound.add(frame)
        if values is not None and self.rule is not None:
            frame = frame.filter(sound.positives(self.rule.holds(values), values))
        frame.write_ipc(self._sound_file(number), compression="lz4")
        sound.files.append(self._sound_file(number))

    def _times(self, values: pl.Series, here: _From, faults: Faults, seen: Seen, sound: _Sound) -> pl.Series:
        if self.reading.times_needed:
            times = time_column(values, here, faults, needed=True, seen=seen)
            assert times is not None
            return times
        apart = Faults(here)
        times, rows = times_or_nothing(values, here, apart, seen)
        faults.notes += apart.notes
        if len(rows) and sound.untimed == 0:
            sound.first_untimed = here.first + int(rows[0])
        sound.untimed += len(rows)
        return times

    def _tell(self, rows: int, faults: _AllFaults, sound: _Sound) -> None:
        """What is wrong with the rows is refused, or noted."""
        self._timed = Column.TIMESTAMP in self._roles and sound.untimed < rows
        if sound.untimed:
            turn, name = list(self._roles).index(Column.TIMESTAMP), self._roles[Column.TIMESTAMP]
            faults.said[turn].append(without_time(self.table, name, sound.untimed, sound.first_untimed))
        faults.settle()
        if not rows and not faults.found:
            raise InputError(f"{self.table.name} has no rows; add some or leave it out")
        self.notes += [*self.table.notes, *dict.fromkeys(faults.notes)]
        if faults.found:
            if not self.reading.drop_invalid:
                faults.raise_if_any(self.reading.may_drop)
            if not sound.rows:
                raise all_invalid(self.table.name, faults)
            self.notes.append(faults.note(rows))
            self.invalid = faults.as_table(self._wanted)
        if self.rule is not None and sound.judged == sound.negative:
            raise none_positive(self.table.name, self.rule, sound.low, sound.high)
        if self.rule is not None and sound.negative:
            self.notes.append(negatives_note(self.table.name, self.rule, sound.negative, sound.judged))
        self.n_rows = sound.judged - sound.negative if self.rule is not None else sound.rows
        self._sound = sound

    def _sound_file(self, number: int) -> Path:
        return self.home / f"sound-{number:06}.arrow"

    # ------------------------------------------------------------------ pairs

    def pair(self, keep_duplicates: bool, min_user: int, min_item: int) -> None:
        """Each pair once, without rare users and items."""
        self._into_buckets()
        for bucket in range(self._buckets):
            frame = self._bucket(bucket)
            once = once_each(Log(frame, "", typed=True), keep_duplicates).frame.sort(IDS)
            self.n_pairs += once.height
            once.write_ipc(self._pairs_file(bucket), compression="uncompressed")
        repeated = self.n_rows - self.n_pairs
        if repeated:
            self.notes.append(duplicates_note(self.table.name, repeated, keep_duplicates))
        self.alive = {column: self._counts(column) > 0 for column in IDS}
        if min_user > 1 or min_item > 1:
            self._drop_rare({Column.USER: min_user, Column.ITEM: min_item})

    def _into_buckets(self) -> None:
        self._buckets = max(-(-self.n_rows // (2 * self.block_rows)), 1)
        width = -(-max(len(self.ids[Column.USER]), 1) // self._buckets)
        files = self._sound.files
        types = _common_types(files)
        for number, file in enumerate(files):
            frame = pl.read_ipc(file).cast(types)  # type: ignore[arg-type]
            file.unlink()
            if not self._timed:
                frame = frame.drop(Column.TIMESTAMP, strict=False)
            codes = {column: encode(frame[column].cast(self.ids[column].dtype), self.ids[column]) for column in IDS}
            frame = frame.with_columns(
                *(pl.Series(column, codes[column]) for column in IDS),
                pl.Series("bucket", codes[Column.USER] // width),
            )
            for (bucket,), part in frame.partition_by("bucket", maintain_order=True, as_dict=True).items():
                place = self.home / f"bucket-{bucket:06}"
                place.mkdir(exist_ok=True)
                part.drop("bucket").write_ipc(place / f"{number:06}.arrow", compression="lz4")

    def _bucket(self, bucket: int) -> pl.DataFrame:
        place = self.home / f"bucket-{bucket:06}"
        frames = []
        for file in sorted(place.glob("*.arrow")):
            frames.append(pl.read_ipc(file))
            file.unlink()
        return pl.concat(frames) if frames else self._nothing()

    def _nothing(self) -> pl.DataFrame:
        """A bucket without rows, which only users have who count in none."""
        some = next(self.home.glob("bucket-*/*.arrow"), None) or next(self.home.glob("pairs-*.arrow"))
        return pl.read_ipc(some, n_rows=0).drop(Column.COUNT, strict=False)

    def _pairs_file(self, bucket: int) -> Path:
        return self.home / f"pairs-{bucket:06}.arrow"

    def pairs(self, *columns: str) -> Iterator[pl.DataFrame]:
        """The pairs that count, bucket by bucket, sorted by user and item; some columns of them."""
        wanted = list(dict.fromkeys([*IDS, *columns])) if columns else None
        for bucket in range(self._buckets):
            frame = pl.read_ipc(self._pairs_file(bucket), columns=wanted)
            if self.alive:
                live = [pl.Series(self.alive[column][frame[column].to_numpy()]) for column in IDS]
                frame = frame.filter(live[0] & live[1])
            yield frame

    def _counts(self, column: str) -> Counts:
        counts = np.zeros(len(self.ids[column]), dtype=np.int64)
        for frame in self.pairs(column):
            counts += np.bincount(frame[column].to_numpy(), minlength=len(counts))
        return counts

    def _drop_rare(self, least: dict[str, int]) -> None:
        """Users and items with fewer pairs go, until all that are left have enough of each other."""
        before = {column: int(self.alive[column].sum()) for column in IDS}
        while True:
            counts = {column: self._counts(column) for column in IDS}
            enough = {column: self.alive[column] & (counts[column] >= least[column]) for column in IDS}
            if all((enough[column] == self.alive[column]).all() for column in IDS):
                break
            self.alive = enough
        if not self.alive[Column.USER].any() or not self.alive[Column.ITEM].any():
            raise none_left(least[Column.USER], least[Column.ITEM])
        dropped = self.n_pairs - int(counts[Column.USER].sum())
        self.n_pairs -= dropped
        if dropped:
            gone = [before[column] - int(self.alive[column].sum()) for column in IDS]
            self.notes.append(rare_note(gone, (least[Column.USER], least[Column.ITEM]), dropped))

    # ------------------------------------------------------------------ splits

    def label(self, split: SplitRule | None, seed: int) -> Labels:
        """A label for every pair that counts, in the order of `pairs`."""
        if split is None:
            return np.zeros(self.n_pairs, dtype=np.int8)
        need_whole(seed, "seed", least=0)
        check_times(split, self._timed, self.table.name)
        labels, notes = label(_WorkInPieces(split, seed, 0, self))
        self.notes += notes
        return labels

    @property
    def timed(self) -> bool:
        """Whether pairs have times."""
        return self._timed


@dataclass(frozen=True, eq=False)
class _WorkInPieces(Work):
    """Pairs in files; what a rule asks for is made when it asks."""

    log: LogInPieces

    @property
    def has_times(self) -> bool:
        return self.log.timed

    @property
    def time(self) -> NDArray[Any]:
        return np.concatenate(
            [one[Column.TIMESTAMP].to_physical().to_numpy() for one in self.log.pairs(Column.TIMESTAMP)]
        )

    def ids(self, column: str) -> pl.Series:
        return self.log.ids[column].filter(pl.Series(self.log.alive[column]))

    def owners(self, column: str) -> Indices:
        index = np.cumsum(self.log.alive[column], dtype=np.int32) - 1
        return np.concatenate([index[frame[column].to_numpy()] for frame in self.log.pairs(column)])

    def trained(self, column: str) -> Counts:
        return np.zeros(int(self.log.alive[column].sum()), dtype=np.int64)

    @property
    def numbers(self) -> Numbers:
        found, first = np.empty(self.log.n_pairs, dtype=np.uint64), 0
        for frame in self.log.pairs(*IDS):
            users, items = (self.log.ids[column].gather(frame[column]) for column in IDS)
            found[first : first + frame.height] = pair_numbers(users, items, self.seed)
            first += frame.height
        return found


@dataclass(frozen=True, eq=False)
class _From(Table):
    """A table from one of its rows on, for sentences about a block."""

    of: Table
    first: int

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        raise NotImplementedError

    def place(self, row: int) -> str:
        return self.of.place(row + self.first)


@dataclass
class _AllFaults(Faults):
    """Those of all blocks: columns in turn, kinds as they come."""

    turns: dict[tuple[int, str], Fault] = field(default_factory=dict)
    said: dict[int, list[str]] = field(default_factory=dict)

    def join(self, block: Sequence[Faults], first: int) -> NDArray[np.int64]:
        """Take in the faults of a block that begins with this row, a column after the other.  Returns its rows."""
        for turn, column in enumerate(block):
            self.said.setdefault(turn, []).extend(column.notes)
            for fault in column.found:
                moved, known = replace(fault, rows=fault.rows + first), self.turns.get((turn, fault.kind))
                both = moved if known is None else replace(known, rows=np.concatenate([known.rows, moved.rows]))
                self.turns[turn, fault.kind] = both
        return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(column.rows for column in block)]))

    def settle(self) -> None:
        """All blocks were seen: faults and notes in the order of the columns."""
        self.found += [self.turns[key] for key in sorted(self.turns, key=lambda key: key[0])]
        self.notes += [note for turn in sorted(self.said) for note in self.said[turn]]


@dataclass
class _Sound:
    """What is known of the rows without faults."""

    files: list[Path] = field(default_factory=list)
    rows: int = 0
    judged: int = 0
    """Rows that the rule for positives has looked at …"""
    negative: int = 0
    """… and those among them that it does not hold for."""
    low: float = float("inf")
    high: float = float("-inf")
    untimed: int = 0
    """Rows without a time that can be read, where none is needed."""
    first_untimed: int = 0
    _ids: dict[str, list[pl.Series]] = field(default_factory=lambda: {column: [] for column in IDS})

    def add(self, frame: pl.DataFrame) -> None:
        self.rows += frame.height
        for column, parts in self._ids.items():
            parts.append(frame[column].unique())
            if len(parts) > PARTS_TOGETHER:
                parts[:] = [pl.concat(parts).unique()]

    def ids(self, column: str) -> pl.Series:
        return pl.concat(self._ids[column]).unique()

    def positives(self, kept: pl.Series, values: pl.Series) -> pl.Series:
        self.judged += len(kept)
        self.negative += len(kept) - int(kept.sum())
        if len(values):
            low, high = values.min(), values.max()
            self.low, self.high = min(self.low, float(low)), max(self.high, float(high))  # type: ignore[arg-type]
        return kept


def _common_types(files: Sequence[Path]) -> dict[str, pl.DataType]:
    """Types that all blocks fit in, as if they were one table; where there are none, an error that names a column."""
    empty = [pl.read_ipc(file, n_rows=0) for file in files]
    try:
        return dict(pl.concat(empty, how="vertical_relaxed").schema) if empty else {}
    except pl.exceptions.PolarsError:
        for column in empty[0].columns:
            kinds = list(dict.fromkeys(str(frame[column].dtype) for frame in empty))
            if len(kinds) > 1:
                raise InputError(
                    f"column {column!r} is {kinds[0]} in one file and {kinds[1]} in another; cast one of them"
                ) from None
        raise

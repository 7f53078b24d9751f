"""Datasets of logs that memory does not hold, written piece by piece: the folder that `Dataset.write` would write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa._io import as_json, digest, settled, whole_folder, write_into
from dpaa.data.attributes import ATTRIBUTES_FILE, ItemAttributes, attributes_of
from dpaa.data.columns import SPLITS, Column, SplitName
from dpaa.data.dataset import ABOUT_FILE, check_target
from dpaa.data.fingerprint import Blocks, fingerprint
from dpaa.data.lint import empty_splits, untrained
from dpaa.data.log import ColumnNames, Reading
from dpaa.data.pieces import IDS, LogInPieces
from dpaa.data.positive import PositiveRule
from dpaa.data.prepare import about_log
from dpaa.data.scratch import scratch_folder
from dpaa.data.splits import Labels, SplitRule
from dpaa.data.table import Table
from dpaa.errors import InputError

BYTES_PER_BLOCK_ROW = 2_000
"""Memory for each row of a block, in all that is made of it at once."""
FEWEST_ROWS = 1_000
NUMBERS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class LargeDataset:
    """What is known of a dataset that was written without being held."""

    name: str
    counts: dict[str, Any]
    notes: tuple[str, ...]
    invalid: pl.DataFrame | None
    fingerprint: str

    def __str__(self) -> str:
        sizes = [f"{self.counts[what]:,} {what}" for what in ("users", "items", "interactions")]
        return f"Dataset({self.name}: {sizes[0]} × {sizes[1]}, {sizes[2]})"


def fits(table: Table, memory: int) -> bool:
    """Whether a table can be prepared all at once in so many bytes."""
    return table.memory_needed() <= memory


def write_log(
    table: Table,
    folder: str | Path,
    name: str,
    *,
    memory: int,
    names: ColumnNames | None = None,
    positive: str | None = None,
    split: SplitRule | None = None,
    items: Table | None = None,
    item_column: str | None = None,
    drop_invalid: bool = False,
    overwrite: bool = False,
    block_rows: int | None = None,
    **how: Any,
) -> LargeDataset:
    """Prepare a log in about so many bytes, and write it; other arguments as in `prepare.one_table`.

    Temporary files, about twice the size of the log's columns as numbers, lie in the system's temporary directory.
    """
    check_target(Path(folder), overwrite)
    rule = None if positive is None else PositiveRule.parse(positive)
    reading = Reading(drop_invalid, times_needed=split is not None and split.needs_times)
    how = {"min_user_interactions": 1, "min_item_interactions": 1, "keep_duplicates": False, "seed": 0} | how
    rows = block_rows or max(memory // BYTES_PER_BLOCK_ROW, FEWEST_ROWS)
    with scratch_folder(table.name) as home:
        log = LogInPieces(table, home, rows, names, rule, reading)
        log.read()
        log.pair(how["keep_duplicates"], how["min_user_interactions"], how["min_item_interactions"])
        labels = log.label(split, how["seed"])
        splits = _Splits(log, labels, name)
        about = about_log(table.name, names, rule, split, **how)
        with whole_folder(settled(folder), "make room or choose another folder with --out") as fresh:
            return _write(fresh, splits, about, items, item_column)


def _write(
    fresh: Path, splits: _Splits, about: dict[str, object], items: Table | None, item_column: str | None
) -> LargeDataset:
    for split in SPLITS:
        write_into(fresh, f"{split}.parquet", splits.sink(split))
    found = fingerprint(splits.ids[Column.USER], splits.ids[Column.ITEM], splits.numbers())
    notes = [*splits.log.notes, *splits.odd()]
    known: ItemAttributes | None = None
    if items is not None:
        known, told = attributes_of(items, splits.ids[Column.ITEM], item_column)
        notes += told
    counts = splits.counts()
    written = {"name": splits.name, **about, "counts": counts, "fingerprint": found, "notes": notes}
    if known is not None:
        known.write_into(fresh, splits.ids[Column.ITEM])
        written["attributes"] = {"columns": known.columns, "digest": digest(fresh / ATTRIBUTES_FILE)}
    write_into(fresh, ABOUT_FILE, as_json(written))
    return LargeDataset(splits.name, counts, tuple(notes), splits.log.invalid, found)


@dataclass
class _Splits:
    """Labelled pairs, as they are written."""

    log: LogInPieces
    labels: Labels
    name: str
    ids: dict[str, pl.Series] = field(default_factory=dict)
    sizes: dict[SplitName, int] = field(default_factory=dict)
    present: dict[tuple[str, str], NDArray[np.bool_]] = field(default_factory=dict)
    """Split and column → which ids it has."""

    def __post_init__(self) -> None:
        if not (self.labels == 0).any():
            raise InputError(f"the training split of {self.name} is empty; there is nothing to learn from")
        used = self.log.alive
        if (self.labels < 0).any():  # pairs that are in no split, and ids that are in no other
            used = {column: np.zeros(len(self.log.ids[column]), dtype=np.bool_) for column in IDS}
            for frame, labels in self._labelled(*IDS):
                for column in IDS:
                    used[column][frame[column].to_numpy()[labels >= 0]] = True
        self.ids = {column: self.log.ids[column].filter(pl.Series(used[column])) for column in IDS}
        self._index = {column: np.cumsum(used[column], dtype=np.int32) - 1 for column in IDS}

    def _labelled(self, *columns: str) -> Iterator[tuple[pl.DataFrame, Labels]]:
        first = 0
        for frame in self.log.pairs(*columns):
            yield frame, self.labels[first : first + frame.height]
            first += frame.height

    def sink(self, split: SplitName) -> Callable[[Path], object]:
        """Writes a split, sorted, to a file; its indices stay for the fingerprint."""
        numbers = [*IDS, *([Column.COUNT] if split == "train" else [])]
        self.present |= {(split, column): np.zeros(len(self.ids[column]), dtype=np.bool_) for column in IDS}
        self.sizes[split] = 0
        parts: list[Path] = []
        for frame, labels in self._labelled():
            mine = frame.filter(pl.Series(labels == SPLITS.index(split)))
            if not mine.height and parts:
                continue
            index = {column: self._index[column][mine[column].to_numpy()] for column in IDS}
            for column in IDS:
                self.present[split, column][index[column]] = True
            rest = mine.drop(*IDS)
            if split != "train":
                rest = rest.drop(Column.COUNT, strict=False)
            self.sizes[split] += mine.height
            for column in numbers:
                if column in IDS or column in rest.columns:
                    self._keep(split, column, index[column] if column in IDS else rest[column].to_numpy())
            parts.append(self.log.home / f"{split}-{len(parts):06}.parquet")
            own = [self.ids[column].gather(index[column]).alias(column) for column in IDS]
            pl.DataFrame(own).hstack(rest).write_parquet(parts[-1], compression="lz4")
        return lambda file: pl.scan_parquet(parts, glob=False).sink_parquet(file, compression="zstd")

    def _keep(self, split: str, column: str, values: NDArray[Any]) -> None:
        with self._numbers_file(split, column).open("ab") as file:
            file.write(np.ascontiguousarray(values, dtype="<i4").tobytes())

    def _numbers_file(self, split: str, column: str) -> Path:
        return self.log.home / f"{split}-{column}.i4"

    def numbers(self) -> Iterator[Blocks]:
        """What a fingerprint is made of: users and items of every split, training counts, no candidates."""
        for split in SPLITS:
            for column in IDS:
                yield self.sizes[split], self._blocks(split, column)
        counted = self._numbers_file("train", Column.COUNT).exists()
        yield (self.sizes["train"], self._blocks("train", Column.COUNT)) if counted else None
        yield None

    def _blocks(self, split: str, column: str) -> Iterator[NDArray[np.int32]]:
        with self._numbers_file(split, column).open("rb") as file:
            while content := file.read(4 * NUMBERS_AT_ONCE):
                yield np.frombuffer(content, dtype="<i4")

    def counts(self) -> dict[str, Any]:
        """As `Dataset.counts`."""
        n_users, n_items = (len(self.ids[column]) for column in IDS)
        found = {
            split: {
                "pairs": self.sizes[split],
                "users": int(self.present[split, Column.USER].sum()),
                "items": int(self.present[split, Column.ITEM].sum()),
            }
            for split in SPLITS
        }
        return {
            "users": n_users,
            "items": n_items,
            "candidates": n_items,
            "interactions": sum(self.sizes.values()),
            "splits": found,
        }

    def odd(self) -> list[str]:
        """As the linter says it; pairs are in one split each."""

        def there(column: str) -> tuple[NDArray[Any], NDArray[Any]]:
            train, test = (np.flatnonzero(self.present[split, column]) for split in ("train", "test"))
            return train, test

        found = empty_splits(self.sizes)
        users, items = self.ids[Column.USER], self.ids[Column.ITEM]
        return found + untrained(users, items, there(Column.USER), there(Column.ITEM), None)

"""The prepared dataset: contiguous indices, the splits, and the folder they are kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import BaseModel, ConfigDict, StrictStr, ValidationError

from dpaa._html import html_facts
from dpaa._io import (
    LARGE_JSON,
    as_json,
    check_folder_name,
    digest,
    read_json,
    settled,
    whole_folder,
    write_into,
)
from dpaa.data.append import append_table, told_before
from dpaa.data.attributes import ATTRIBUTES_FILE, ItemAttributes, attributes_of, read_attributes
from dpaa.data.columns import ABOUT_FILE as ABOUT_FILE
from dpaa.data.columns import SPLITS, Column, SplitName
from dpaa.data.fingerprint import fingerprint
from dpaa.data.ids import checked_type, distinct_ids, encode, look_up, one_type
from dpaa.data.lint import lint
from dpaa.data.log import ColumnNames
from dpaa.data.pairs import Indices, Pairs, shared_keys
from dpaa.data.parquet import parquet_schema, read_parquet
from dpaa.data.popularity import popular_items, recent_popularity
from dpaa.data.prepare import Prepared, one_table, table_per_split
from dpaa.data.splits import SplitRule
from dpaa.data.tables import Table, as_table
from dpaa.errors import InputError, need_type

CANDIDATES_FILE, RANDOMISED_FILE = "candidates.parquet", "randomised.parquet"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Positive interactions with contiguous indices, split into train, validation and test."""

    name: str
    user_ids: pl.Series
    """Ascending, Int64, UInt64 or String; row i is the id of index i. (n_users,)"""
    item_ids: pl.Series
    """(n_items,)"""
    train: Pairs
    valid: Pairs
    test: Pairs
    candidates: Indices | None
    """Ascending indices of the items that may be recommended; None = all."""
    about: dict[str, Any]
    """Source, rule for positives, split rule and seed, counts."""
    notes: tuple[str, ...] = ()
    """What was dropped and why, and what the linter found."""
    path: Path | None = None
    """The folder it was read from."""
    columns: Mapping[SplitName, pl.DataFrame] = field(default_factory=dict)
    """Rating and timestamp of each pair, in the order of the pairs; not kept of a folder, where they can be read."""
    attributes: ItemAttributes | None = None
    """What is known of the items: titles, and any other columns."""
    randomised: Pairs | None = None
    """Pairs of randomised exposure that are for training (no validation, no test), for methods that ask for them."""
    invalid: pl.DataFrame | None = None
    """Rows of the source that were left out as invalid, `source, row, fault, content`; not kept in a folder."""

    @classmethod
    def of(
        cls,
        frames: Mapping[SplitName, pl.DataFrame],
        *,
        name: str,
        candidates: pl.Series | None = None,
        about: Mapping[str, object],
        notes: Iterable[str] = (),
        randomised: pl.DataFrame | None = None,
    ) -> Dataset:
        """A dataset from one frame of distinct pairs per split (`user_id`, `item_id` and what else is known).

        Ids have one type per column; splits that are left out are empty.
        """
        made = _assembled(frames, name, candidates, about, randomised)
        odd = lint({split: made.split(split) for split in SPLITS}, made.user_ids, made.item_ids, made.candidates)
        return replace(made, about={**about, "counts": made.counts}, notes=(*notes, *odd))

    @classmethod
    def of_prepared(cls, parts: Prepared, name: str) -> Dataset:
        """A dataset from what was made of one table or several."""
        made = cls.of(parts.frames, name=name, candidates=parts.candidates, about=parts.about, notes=parts.notes)
        return replace(made, invalid=parts.invalid)

    @classmethod
    def from_frame(
        cls,
        train: Any,
        *,
        valid: Any = None,
        test: Any = None,
        candidates: Any = None,
        items: Any = None,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        timestamp: str | None = None,
        positive: str | None = None,
        keep_duplicates: bool = False,
        drop_invalid: bool = False,
        split: SplitRule | str | None = None,
        seed: int = 0,
        name: str = "frame",
    ) -> Dataset:
        """A dataset from any dataframe: one per split, or one that is split by a rule ("random", "leave-last" …).

        Columns are found by their usual names unless they are given; `positive` is a rule such as "rating>=3".
        `candidates`, the items that may be recommended, is a dataframe with an item column, a list or a series of ids;
        `items` a dataframe of what is known of them: an item column, `title` and any others.  `drop_invalid` leaves out
        rows with faults (no id, a rating that is no number), which are otherwise refused; `invalid` has them.
        """
        need_type(name, str, "name", "give the dataset's name as text")
        names = ColumnNames(user, item, rating, timestamp)
        given = {"train": train, "valid": valid, "test": test}
        tables = {part: as_table(given[part], f"the {part} frame") for part in SPLITS if given[part] is not None}
        if "train" not in tables:
            raise InputError("there is no training frame; give a dataframe of users and items")
        if split is None:
            allowed = None if candidates is None else _candidates_table(candidates, item)
            found = table_per_split(tables, allowed, names, positive, keep_duplicates, drop_invalid)
            made = cls.of_prepared(found, name)
            return made if items is None else made.with_items(items, item)
        if len(tables) > 1 or candidates is not None:
            raise InputError("a split rule goes with the training frame alone; leave out split, or the other frames")
        rule = split if isinstance(split, SplitRule) else SplitRule(split)
        how: Any = {"keep_duplicates": keep_duplicates, "drop_invalid": drop_invalid, "seed": seed}
        found = one_table(tables["train"], rule, names=names, positive=positive, **how)
        made = cls.of_prepared(found, name)
        return made if items is None else made.with_items(items, item)

    def with_items(self, items: Any, item: str | None = None) -> Dataset:
        """The same with what is known of its items: a dataframe or table of an item column, `title` and any others.

        Rows of items that the dataset does not have are left out; a note says how many.  `item` is the item column,
        where it has none of the usual names.
        """
        table = items if isinstance(items, Table) else as_table(items, "the items frame")
        found, notes = attributes_of(table, self.item_ids, item)
        return replace(self, attributes=found, notes=(*self.notes, *notes))

    @property
    def items(self) -> pl.DataFrame:
        """`item_id` of every item, row i = index i, and what is known of it: `title`, and whatever else was given."""
        known = self.attributes or ItemAttributes(pl.DataFrame())
        return known.with_ids(self.item_ids)

    @property
    def titles(self) -> pl.Series | None:
        """What people call the items, row i = index i; None where nobody said."""
        return None if self.attributes is None else self.attributes.titles

    def with_all_pairs(self) -> Dataset:
        """The dataset with validation and test pairs among the training pairs, and nothing held out."""
        merged = pl.concat([self.frame(split) for split in SPLITS], how="diagonal_relaxed")
        merged = merged.unique([Column.USER, Column.ITEM], keep="first", maintain_order=True)
        if Column.COUNT in merged.columns:
            merged = merged.with_columns(pl.col(Column.COUNT).fill_null(1))
        allowed = self.item_ids.gather(np.arange(self.n_items) if self.candidates is None else self.candidates)
        about = {key: value for key, value in self.about.items() if key != "counts"}
        made = _assembled({"train": merged}, self.name, allowed, about, self._sample())
        return replace(made, about={**about, "counts": made.counts}, attributes=self.attributes)

    def append(
        self, rows: Any, *, names: ColumnNames | None = None, items: Any = None, drop_invalid: bool = False
    ) -> Dataset:
        """The dataset with the rows of a dataframe in it, by the rules that it was made with (`dpaa.data.append`).

        What is known of items is kept; `items`, as in `with_items`, adds to it.  `drop_invalid` as in `from_frame`.
        """
        table = rows if isinstance(rows, Table) else as_table(rows, "the frame")
        frames = {split: self.frame(split) for split in SPLITS}
        itself = (self.about, self.name, self.fingerprint)
        parts, about, notes, invalid = append_table(frames, *itself, table, names, drop_invalid)
        odd = lint({split: self.split(split) for split in SPLITS}, self.user_ids, self.item_ids, self.candidates)
        allowed = None if self.candidates is None else self.item_ids.gather(self.candidates)
        said = {*odd, *told_before(self.about)}
        kept = [note for note in self.notes if note not in said]
        told, sample = [*kept, *notes], self._sample()
        made = Dataset.of(parts, name=self.name, candidates=allowed, about=about, notes=told, randomised=sample)
        made = replace(made, invalid=invalid)
        older = None if self.attributes is None else self.attributes.aligned(self.item_ids, made.item_ids)
        if items is None:
            return replace(made, attributes=older)
        made = made.with_items(items, None if names is None else names.item)
        return (
            made if older is None or made.attributes is None else replace(made, attributes=made.attributes.over(older))
        )

    @property
    def n_users(self) -> int:
        """Number of users in all splits."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """Number of items in all splits and among the candidates."""
        return len(self.item_ids)

    @property
    def n_interactions(self) -> int:
        """Number of pairs in all splits."""
        return len(self.train) + len(self.valid) + len(self.test)

    def split(self, name: SplitName) -> Pairs:
        """The pairs of one split."""
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        if name not in parts:
            raise InputError(f"there is no split {name!r}; use one of {', '.join(SPLITS)}")
        return parts[name]

    def frame(self, name: SplitName) -> pl.DataFrame:
        """One split with the user's own ids, and rating, timestamp and count where they are known."""
        if self.path is not None:
            return _read_columns(self.path / f"{name}.parquet", list)
        pairs = self.split(name)
        frame = pl.DataFrame([self.user_ids.gather(pairs.user), self.item_ids.gather(pairs.item)])
        if name in self.columns:
            frame = frame.hstack(self.columns[name])
        return frame if pairs.count is None else frame.with_columns(pl.Series(Column.COUNT, pairs.count))

    @cached_property
    def recent_popularity(self) -> npt.NDArray[np.float32] | None:
        """Training interactions of each item, recent ones weighted more; None where no pair has a time. (n_items,)."""
        wanted = (Column.ITEM, Column.TIMESTAMP, Column.COUNT)
        if self.path is None:
            frame = self.frame("train") if Column.TIMESTAMP in self.columns.get("train", pl.DataFrame()) else None
        else:
            file = self.path / "train.parquet"
            frame = _read_columns(file, lambda there: [name for name in wanted if name in there])
        if frame is None or Column.TIMESTAMP not in frame.columns:
            return None
        times = frame[Column.TIMESTAMP]
        if times.is_null().all() or not (times.dtype.is_temporal() or times.dtype.is_numeric()):
            return None
        item = encode(frame[Column.ITEM], self.item_ids)
        time = times.to_physical().cast(pl.Float64).fill_null(float("nan")).to_numpy()
        count = frame[Column.COUNT].to_numpy() if Column.COUNT in frame.columns else np.ones(len(item))
        known = item >= 0  # the folder may hold newer pairs by now
        return recent_popularity(item[known], time[known], self.n_items, count[known])

    def user_index(self, ids: Iterable[object] | pl.Series) -> Indices:
        """The index of each user id. Returns (n,)."""
        return look_up(ids, self.user_ids, "user")

    def item_index(self, ids: Iterable[object] | pl.Series) -> Indices:
        """The index of each item id. Returns (n,)."""
        return look_up(ids, self.item_ids, "item")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over ids, splits and candidates; the order of rows and the file format do not change it."""
        arrays = [array for name in SPLITS for array in (self.split(name).user, self.split(name).item)]
        sample = () if self.randomised is None else (self.randomised.user, self.randomised.item)
        kept = (*arrays, self.train.count, self.candidates, *sample)
        return fingerprint(self.user_ids, self.item_ids, (None if one is None else (len(one), [one]) for one in kept))

    def overlap(self, one: SplitName, other: SplitName) -> npt.NDArray[np.int64]:
        """Keys (`user · n_items + item`) of the pairs that are in both splits, ascending."""
        return shared_keys(self.split(one), self.split(other), self.n_items)

    @property
    def counts(self) -> dict[str, object]:
        """Users, items, candidates, interactions, and pairs, users and items of each split."""
        parts = {name: self.split(name) for name in SPLITS}
        return {
            "users": self.n_users,
            "items": self.n_items,
            "candidates": self.n_items if self.candidates is None else len(self.candidates),
            "interactions": self.n_interactions,
            "splits": {
                name: {"pairs": len(part), "users": len(np.unique(part.user)), "items": len(np.unique(part.item))}
                for name, part in parts.items()
            },
        }

    def describe(self) -> dict[str, object]:
        """What `dpaa data describe` shows: counts, density = interactions / (users · items), overlap, popular items."""
        popular = popular_items(np.bincount(self.train.item, self.train.count, minlength=self.n_items))
        items = {name: self.split(name).item for name in SPLITS}
        shares = {name: float(popular[items[name]].mean()) if len(items[name]) else None for name in SPLITS}
        return {
            "name": self.name,
            **{key: value for key, value in self.about.items() if key != "counts"},
            **self.counts,
            "density": self.n_interactions / (self.n_users * self.n_items),
            "overlap": {f"{one} & {other}": len(self.overlap(one, other)) for one, other in combinations(SPLITS, 2)},
            "popular": {"items": int(popular.sum()), "share_of_pairs": shares},
            **({"attributes": self.attributes.columns} if self.attributes else {}),
            "notes": list(self.notes),
            "fingerprint": self.fingerprint,
        }

    def __repr__(self) -> str:
        size = f"{self.n_users:,} users × {self.n_items:,} items, {self.n_interactions:,} interactions"
        return f"Dataset({self.name}: {size})"

    def _repr_html_(self) -> str:
        size = f"{self.n_users:,} users × {self.n_items:,} items, {self.n_interactions:,} interactions"
        facts = {
            "size": size,
            "density": f"{self.n_interactions / (self.n_users * self.n_items):.3%}",
            **{f"{name} pairs": f"{len(self.split(name)):,}" for name in SPLITS},
            "candidates": "all items" if self.candidates is None else f"{len(self.candidates):,} items",
            "folder": self.path,
        }
        return html_facts(f"Dataset: {self.name}", facts, self.notes)

    def _sample(self) -> pl.DataFrame | None:
        """The randomised pairs with the user's own ids."""
        if self.randomised is None:
            return None
        return pl.DataFrame([self.user_ids.gather(self.randomised.user), self.item_ids.gather(self.randomised.item)])

    def write(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the dataset to a folder; it appears there whole or not at all."""
        check_target(Path(folder), overwrite)
        about = {"name": self.name, **self.about, "fingerprint": self.fingerprint, "notes": list(self.notes)}
        with whole_folder(settled(folder), "make room or choose another folder with --out") as fresh:
            for name in SPLITS:
                write_into(fresh, f"{name}.parquet", partial(self.frame(name).write_parquet, compression="zstd"))
            sample = self._sample()
            if sample is not None:
                write_into(fresh, RANDOMISED_FILE, sample.write_parquet)
            if self.candidates is not None:
                write_into(fresh, CANDIDATES_FILE, self.item_ids.gather(self.candidates).to_frame().write_parquet)
            if self.attributes is not None:
                self.attributes.write_into(fresh, self.item_ids)
                kept = {"columns": self.attributes.columns, "digest": digest(fresh / ATTRIBUTES_FILE)}
                about["attributes"] = kept
            write_into(fresh, ABOUT_FILE, as_json(about))


def check_target(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that exists, unless it may be overwritten and is a dataset (or empty)."""
    check_folder_name(folder)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; choose another folder with --out")
    if not overwrite:
        raise InputError(f"{folder} already exists; choose another folder with --out or pass --overwrite")
    if any(folder.iterdir()) and not (folder / ABOUT_FILE).exists():
        raise InputError(f"{folder} is not a dataset and will not be overwritten; choose another folder with --out")


def holds(folder: Path, dataset: Dataset) -> bool:
    """Whether a folder holds just this dataset, whole."""
    try:
        if not folder.is_dir():
            return False
        there = read_dataset(folder)
        known, wanted = ((one.attributes or ItemAttributes(pl.DataFrame())).frame for one in (there, dataset))
        return there.fingerprint == dataset.fingerprint and known.equals(wanted)
    except InputError:
        return False


def read_dataset(folder: str | Path) -> Dataset:
    """The dataset in a folder written by `dpaa data` or `Dataset.write`."""
    path = Path(folder)
    settled(path)
    about = _read_about(path)
    frames: dict[SplitName, pl.DataFrame] = {
        name: _read_ids(path / f"{name}.parquet", [Column.USER, Column.ITEM]) for name in SPLITS
    }
    listed = path / CANDIDATES_FILE
    candidates = _read_ids(listed, [Column.ITEM])[Column.ITEM] if listed.exists() else None
    sampled = path / RANDOMISED_FILE
    randomised = _read_ids(sampled, [Column.USER, Column.ITEM]) if sampled.exists() else None
    try:
        dataset = _assembled(frames, about.name, candidates, about.model_extra or {}, randomised)
    except InputError as error:
        reason = str(error).partition(";")[0]
        raise InputError(f"{path} is damaged: {reason}; {_REMEDY}") from error
    if dataset.fingerprint != about.fingerprint:
        raise InputError(f"{path} was changed after it was written (its fingerprint does not match); {_REMEDY}")
    kept = read_attributes(path, dataset.item_ids, about.attributes.digest if about.attributes else None, _REMEDY)
    return replace(dataset, notes=about.notes, path=path, columns={}, attributes=kept)


_REMEDY = "make it again with `dpaa data`"


class AttributesKept(BaseModel):
    """What is known of the items lies beside, in a file of this digest."""

    model_config = ConfigDict(frozen=True)
    columns: tuple[StrictStr, ...]
    digest: StrictStr


class About(BaseModel):
    """`dataset.json`; whatever else is known (source, rules, counts) is kept as it is."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: StrictStr
    fingerprint: StrictStr
    notes: tuple[StrictStr, ...]
    attributes: AttributesKept | None = None


def _read_about(path: Path) -> About:
    file = path / ABOUT_FILE
    if not path.exists():
        raise InputError(f"there is no folder {path}; make a dataset with `dpaa data`")
    if path.is_file():
        raise InputError(f"{path} is a file and no prepared dataset; make one with `dpaa data log {path} --out DIR`")
    if not file.exists():
        raise InputError(f"{path} is not a prepared dataset (it has no {ABOUT_FILE}); make one with `dpaa data`")
    try:
        return About.model_validate(read_json(file, LARGE_JSON, _REMEDY))
    except ValidationError:
        raise InputError(
            f"{file} lacks name, fingerprint or notes, or they or its attributes are not text; {_REMEDY}"
        ) from None


def _read_columns(file: Path, wanted: Callable[[Mapping[str, object]], list[str]]) -> pl.DataFrame:
    """Those columns of a file of the dataset that are wanted of the ones there are."""
    try:
        there = parquet_schema(file)
        return read_parquet(file, wanted(there))
    except FileNotFoundError as error:
        raise InputError(f"{file} is missing; {_REMEDY}") from error
    except pl.exceptions.ColumnNotFoundError as error:
        raise InputError(f"{file} lacks one of the columns {', '.join(wanted(there))}; {_REMEDY}") from error
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{file} is not a readable Parquet file; {_REMEDY}") from error


def _read_ids(file: Path, id_columns: list[str]) -> pl.DataFrame:
    """The id columns of a file of the dataset, and the counts if there are any."""
    frame = _read_columns(file, lambda there: [*id_columns, *({Column.COUNT} & there.keys())])
    for column in id_columns:
        if frame[column].has_nulls():
            raise InputError(f"column {column!r} of {file} has empty values; {_REMEDY}")
    if Column.COUNT in frame.columns:
        frame = frame.with_columns(checked_counts(frame[Column.COUNT], file, _REMEDY))
    return frame.with_columns(
        checked_type(frame[column], f"the ids in column {column!r} of {file}") for column in id_columns
    )


def checked_counts(counts: pl.Series, file: Path, remedy: str) -> pl.Series:
    """Counts of pairs in 32 bits; others than whole numbers from 1 are refused."""
    found = counts.cast(pl.Int32, strict=False) if counts.dtype.is_integer() else None
    if found is None or not (found >= 1).fill_null(value=False).all():
        raise InputError(f"column {counts.name!r} of {file} must hold whole numbers from 1; {remedy}")
    return found


def _assembled(
    frames: Mapping[SplitName, pl.DataFrame],
    name: str,
    candidates: pl.Series | None,
    about: Mapping[str, object],
    randomised: pl.DataFrame | None = None,
) -> Dataset:
    """Frames ──► indices; checks that there is something to learn from, one type of ids and no repeated pair."""
    if not frames["train"].height:
        raise InputError(f"the training split of {name} is empty; there is nothing to learn from")
    full: dict[SplitName, pl.DataFrame] = {split: frames.get(split, frames["train"].clear()) for split in SPLITS}
    listed = [] if candidates is None else [candidates]
    sampled = [] if randomised is None else [randomised]
    tables = [*(full[split] for split in SPLITS), *sampled]
    users = one_type([table[Column.USER] for table in tables], Column.USER)
    items = one_type([*(table[Column.ITEM] for table in tables), *listed], Column.ITEM)
    user_ids, item_ids = distinct_ids(users), distinct_ids(items)
    pairs: dict[SplitName, Pairs] = {}
    columns: dict[SplitName, pl.DataFrame] = {}
    for split, user, item in zip(SPLITS, users, items, strict=False):
        rest = full[split].drop(Column.USER, Column.ITEM)
        pairs[split], columns[split] = _sorted(encode(user, user_ids), encode(item, item_ids), rest, split)
    allowed = None if candidates is None else np.unique(encode(items[-1], item_ids))
    parts = (pairs["train"], pairs["valid"], pairs["test"])
    made = Dataset(name, user_ids, item_ids, *parts, allowed, dict(about), columns=columns)
    if randomised is None:
        return made
    place = len(SPLITS)  # it comes after the splits
    sample = (encode(users[place], user_ids), encode(items[place], item_ids))
    return replace(made, randomised=_sorted(*sample, randomised.select(Column.USER), "randomised")[0])


def _candidates_table(candidates: Any, item: str | None) -> Table:
    """A dataframe, or the ids alone, as a table with an item column."""
    framed = isinstance(candidates, dict) or hasattr(type(candidates), "columns")
    if framed or isinstance(candidates, str) or not isinstance(candidates, Iterable):
        return as_table(candidates, "the candidates frame")
    ids = candidates if isinstance(candidates, pl.Series) else list(candidates)
    return as_table({item or Column.ITEM: ids}, "the candidates")


def _sorted(user: Indices, item: Indices, rest: pl.DataFrame, split: str) -> tuple[Pairs, pl.DataFrame]:
    """The pairs in order, and the other columns in the same order."""
    keys = user.astype(np.int64) * (int(item.max(initial=0)) + 1) + item
    order = np.argsort(keys)
    keys = keys[order]
    if (keys[1:] == keys[:-1]).any():
        raise InputError(f"the {split} split has repeated pairs; each pair may be there once")
    count = rest[Column.COUNT].cast(pl.Int32).to_numpy()[order] if Column.COUNT in rest.columns else None
    return Pairs(user[order], item[order], count), rest.drop(Column.COUNT, strict=False)[order]

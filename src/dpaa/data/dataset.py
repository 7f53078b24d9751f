"""The prepared dataset: contiguous indices, the splits, and the folder they are kept in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from dpaa._io import LARGE_JSON, as_json, check_folder_name, read_json, settled, whole_folder, write_into
from dpaa.data.attributes import ItemAttributes, attributes_of, read_attributes
from dpaa.data.columns import ABOUT_FILE as ABOUT_FILE
from dpaa.data.columns import SPLITS, Column, SplitName
from dpaa.data.ids import checked_type, distinct_ids, encode, look_up, one_type
from dpaa.data.log import ColumnNames
from dpaa.data.pairs import Indices, Pairs, fingerprint, lint
from dpaa.data.parquet import parquet_schema, read_parquet
from dpaa.data.popularity import popular_items, recent_popularity
from dpaa.data.prepare import ROOM, Prepared, append_table, one_table, table_per_split
from dpaa.data.splits import SplitRule
from dpaa.data.tables import Table, as_table
from dpaa.errors import InputError, need_type

CANDIDATES_FILE, RANDOMISED_FILE = "candidates.parquet", "randomised.parquet"
REMEDY = "make it again with `dpaa data`"


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
    """What was dropped and why, and what is unusual."""
    path: Path | None = None
    """The folder it was read from."""
    columns: Mapping[SplitName, pl.DataFrame] = field(default_factory=dict)
    """Rating and timestamp of each pair, in the order of the pairs; not kept of a folder, where they can be read."""
    attributes: ItemAttributes | None = None
    """What is known of the items: titles, and any other columns."""
    randomised: Pairs | None = None
    """Pairs of randomised exposure that are for training (no validation, no test), for methods that need them."""
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
        invalid: pl.DataFrame | None = None,
    ) -> Dataset:
        """Make a dataset from one frame of distinct pairs per split.

        Parameters
        ----------
        frames : split → `user_id`, `item_id` and what else is known; ids have one type per column, splits that are
            left out are empty
        name : of the dataset
        candidates : ids of the items that may be recommended; None = all
        about : source and rules
        notes : sentences to which those about unusual pairs are added
        randomised : pairs of randomised exposure for training
        invalid : rows of the source that were left out
        """
        made = _assembled(frames, name, candidates, about, randomised)
        odd = [
            f"{n:,} pairs are in both {one} and {other}: see `--overlap` and `--mask-valid` of `dpaa evaluate`"
            for one, other in combinations(SPLITS, 2)
            if (n := len(made.overlap(one, other)))
        ]
        parts = [made.train, made.valid, made.test]
        odd += lint(
            [one.user for one in parts], [one.item for one in parts], made.user_ids, made.item_ids, made.candidates
        )
        return replace(made, about={**about, "counts": made.counts}, notes=(*notes, *odd), invalid=invalid)

    @classmethod
    def of_prepared(cls, parts: Prepared, name: str) -> Dataset:
        """Make a dataset from what was prepared of one table or several."""
        return cls.of(**parts._asdict(), name=name)

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
        """Make a dataset from any dataframe: one per split, or one that is split by a rule.

        Parameters
        ----------
        train, valid, test : dataframes of users and items
        candidates : items that may be recommended: a dataframe with an item column, a list or a series of ids
        items : what is known of the items: a dataframe with an item column, `title` and any others
        user, item, rating, timestamp : names of the columns; None = one of the usual names
        positive : rule such as "rating>=3"; None = every row counts
        keep_duplicates : count how often a training pair occurs
        drop_invalid : leave out rows with faults (no id, a rating that is no number), which are otherwise refused
        split : rule by which `train` is split ("random", "leave-last" …)
        seed : of random splits
        name : of the dataset
        """
        need_type(name, str, "name", "give the dataset's name as text")
        given = {"train": train, "valid": valid, "test": test}
        tables = {part: as_table(given[part], f"the {part} frame") for part in SPLITS if given[part] is not None}
        if "train" not in tables:
            raise InputError("there is no training frame; give a dataframe of users and items")
        how: Any = {"columns": ColumnNames(user, item, rating, timestamp), "positive": positive}
        how |= {"keep_duplicates": keep_duplicates, "drop_invalid": drop_invalid}
        if split is None:
            plain = isinstance(candidates, Iterable) and not isinstance(candidates, str | dict)
            if plain and not hasattr(type(candidates), "columns"):  # ids alone
                ids = candidates if isinstance(candidates, pl.Series) else list(candidates)
                candidates = {item or Column.ITEM: ids}
            allowed = None if candidates is None else as_table(candidates, "the candidates")
            prepared = table_per_split(tables, allowed, **how)
        elif len(tables) > 1 or candidates is not None:
            raise InputError("a split rule goes with the training frame alone; leave out split, or the other frames")
        else:
            rule = split if isinstance(split, SplitRule) else SplitRule(split)
            prepared = one_table(tables["train"], rule, seed=seed, **how)
        made = cls.of_prepared(prepared, name)
        return made if items is None else made.with_items(items, item)

    def with_items(self, items: Any, item: str | None = None, older: ItemAttributes | None = None) -> Dataset:
        """Add what is known of the items.

        Parameters
        ----------
        items : dataframe or table of an item column, `title` and any others; items that the dataset does not have are
            left out, with a note
        item : the item column, where it has none of the usual names
        older : what was known before, to fill what is missing

        Returns
        -------
        the dataset with `attributes`
        """
        table = items if isinstance(items, Table) else as_table(items, "the items frame")
        found, notes = attributes_of(table, self.item_ids, item)
        return replace(self, attributes=found if older is None else found.over(older), notes=(*self.notes, *notes))

    @property
    def items(self) -> pl.DataFrame:
        """`item_id` of every item, row i = index i, and what is known of it: `title`, and whatever else was given."""
        return (self.attributes or ItemAttributes(pl.DataFrame())).with_ids(self.item_ids)

    @property
    def titles(self) -> pl.Series | None:
        """Titles of the items, row i = index i; None where there are none."""
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
        """Append rows by the rules that the dataset was made with (`dpaa.data.append`).

        Parameters
        ----------
        rows : dataframe or table
        names : its columns, where they are not those of the first log
        items : as in `with_items`; what is known of items so far is kept
        drop_invalid : as in `from_frame`
        """
        table = rows if isinstance(rows, Table) else as_table(rows, "the frame")
        frames = {split: self.frame(split) for split in SPLITS}
        parts = append_table(frames, self.about, self.name, table, names, drop_invalid)
        allowed = None if self.candidates is None else self.item_ids.gather(self.candidates)
        made = Dataset.of(**parts._replace(candidates=allowed)._asdict(), name=self.name, randomised=self._sample())
        older = None if self.attributes is None else self.attributes.aligned(self.item_ids, made.item_ids)
        if items is None:
            return replace(made, attributes=older)
        return made.with_items(items, None if names is None else names.item, older)

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
        if name not in SPLITS:
            raise InputError(f"there is no split {name!r}; use one of {', '.join(SPLITS)}")
        return {"train": self.train, "valid": self.valid, "test": self.test}[name]

    def frame(self, name: SplitName) -> pl.DataFrame:
        """One split with the user's own ids, and rating, timestamp and count where they are known."""
        if self.path is not None:
            return _read_columns(self.path / f"{name}.parquet")
        pairs = self.split(name)
        frame = pl.DataFrame([self.user_ids.gather(pairs.user), self.item_ids.gather(pairs.item)])
        if name in self.columns:
            frame = frame.hstack(self.columns[name])
        return frame if pairs.count is None else frame.with_columns(pl.Series(Column.COUNT, pairs.count))

    @cached_property
    def recent_popularity(self) -> npt.NDArray[np.float32] | None:
        """Training interactions of each item, recent ones weighted more; None where no pair has a time. (n_items,)."""
        frame = self.frame("train")
        times = frame[Column.TIMESTAMP] if Column.TIMESTAMP in frame.columns else pl.Series([None])
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
        first, second = (self.split(name).keys(self.n_items) for name in (one, other))
        return np.intersect1d(first, second, assume_unique=True)

    @property
    def counts(self) -> dict[str, Any]:
        """Users, items, candidates, interactions, and pairs, users and items of each split."""
        return {
            "users": self.n_users,
            "items": self.n_items,
            "candidates": self.n_items if self.candidates is None else len(self.candidates),
            "interactions": self.n_interactions,
            "splits": {
                name: {"pairs": len(part), "users": len(np.unique(part.user)), "items": len(np.unique(part.item))}
                for name, part in zip(SPLITS, (self.train, self.valid, self.test), strict=True)
            },
        }

    def describe(self) -> dict[str, Any]:
        """What `dpaa data describe` shows: counts, density = interactions / (users · items), overlap, popular items."""
        popular = popular_items(np.bincount(self.train.item, self.train.count, minlength=self.n_items))
        shares = {
            name: float(popular[self.split(name).item].mean()) if len(self.split(name)) else None for name in SPLITS
        }
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
        return f"Dataset({self.name}: {size_in_words(self.counts)})"

    def _sample(self) -> pl.DataFrame | None:
        """The randomised pairs with the user's own ids."""
        if self.randomised is None:
            return None
        return pl.DataFrame([self.user_ids.gather(self.randomised.user), self.item_ids.gather(self.randomised.item)])

    def write(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the dataset to a folder; it appears there whole or not at all.

        Parameters
        ----------
        folder : to write to
        overwrite : replace a dataset that is there
        """
        check_target(Path(folder), overwrite)
        about = {"name": self.name, **self.about, "fingerprint": self.fingerprint, "notes": list(self.notes)}
        frames = {f"{name}.parquet": self.frame(name) for name in SPLITS}
        if (sample := self._sample()) is not None:
            frames[RANDOMISED_FILE] = sample
        if self.candidates is not None:
            frames[CANDIDATES_FILE] = self.item_ids.gather(self.candidates).to_frame()
        with whole_folder(settled(folder), ROOM) as fresh:
            for file, frame in frames.items():
                write_into(fresh, file, partial(frame.write_parquet, compression="zstd"))
            if self.attributes is not None:
                about["attributes"] = self.attributes.write_into(fresh, self.item_ids)
            write_into(fresh, ABOUT_FILE, as_json(about))


def size_in_words(counts: Mapping[str, Any]) -> str:
    """`290 users × 300 items, 5,484 interactions`."""
    return f"{counts['users']:,} users × {counts['items']:,} items, {counts['interactions']:,} interactions"


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


def read_dataset(folder: str | Path) -> Dataset:
    """Read the dataset in a folder written by `dpaa data` or `Dataset.write`.

    Parameters
    ----------
    folder : the folder

    Returns
    -------
    the dataset; a damaged or changed one is refused
    """
    path = Path(folder)
    settled(path)
    about = _read_about(path)
    name, expected, notes, attributes = (about.pop(key) for key in ("name", "fingerprint", "notes", "attributes"))
    pairs = [Column.USER, Column.ITEM]
    frames: dict[SplitName, pl.DataFrame] = {name: _read_columns(path / f"{name}.parquet", pairs) for name in SPLITS}
    listed, sampled = path / CANDIDATES_FILE, path / RANDOMISED_FILE
    candidates = _read_columns(listed, [Column.ITEM])[Column.ITEM] if listed.exists() else None
    randomised = _read_columns(sampled, pairs) if sampled.exists() else None
    try:
        dataset = _assembled(frames, name, candidates, about, randomised)
    except InputError as error:
        raise InputError(f"{path} is damaged: {str(error).partition(';')[0]}; {REMEDY}") from error
    if dataset.fingerprint != expected:
        raise InputError(f"{path} was changed after it was written (its fingerprint does not match); {REMEDY}")
    kept = read_attributes(path, dataset.item_ids, attributes.get("digest"), REMEDY)
    return replace(dataset, notes=tuple(notes), path=path, columns={}, attributes=kept)


def _read_about(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise InputError(f"there is no folder {path}; make a dataset with `dpaa data`")
    if not (path / ABOUT_FILE).exists():
        raise InputError(f"{path} is not a prepared dataset; make one with `dpaa data log {path} --out DIR`")
    about = read_json(path / ABOUT_FILE, LARGE_JSON, REMEDY)
    notes = about.get("notes")
    texts = [about.get("name"), about.get("fingerprint"), *(notes if isinstance(notes, list) else [None])]
    if not all(isinstance(one, str) for one in texts) or not isinstance(about.setdefault("attributes", {}), dict):
        raise InputError(f"{path / ABOUT_FILE} lacks name, fingerprint or notes, or they are no text; {REMEDY}")
    return about


def _read_columns(file: Path, ids: Sequence[str] = ()) -> pl.DataFrame:
    """The columns of a file of the dataset; with `ids`, only these, checked, and the counts if there are any."""
    try:
        there = parquet_schema(file)
        frame = read_parquet(file, [*ids, *({Column.COUNT} & there.keys())] if ids else list(there))
    except FileNotFoundError as error:
        raise InputError(f"{file} is missing; {REMEDY}") from error
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{file} is not a readable Parquet file, or lacks {', '.join(ids)}; {REMEDY}") from error
    for column in ids:
        if frame[column].has_nulls():
            raise InputError(f"column {column!r} of {file} has empty values; {REMEDY}")
        frame = frame.with_columns(checked_type(frame[column], f"the ids in column {column!r} of {file}"))
    if ids and Column.COUNT in frame.columns:
        frame = frame.with_columns(checked_counts(frame[Column.COUNT], file, REMEDY))
    return frame


def checked_counts(counts: pl.Series, file: Path, remedy: str) -> pl.Series:
    """Convert counts of pairs to 32 bits; others than whole numbers from 1 are refused.

    Parameters
    ----------
    counts : the column
    file : where it is, for the message
    remedy : of the message
    """
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
    tables: dict[str, pl.DataFrame] = {split: frames.get(split, frames["train"].clear()) for split in SPLITS}
    if randomised is not None:
        tables["randomised"] = randomised
    users = one_type([table[Column.USER] for table in tables.values()], Column.USER)
    listed = [] if candidates is None else [candidates]
    items = one_type([*(table[Column.ITEM] for table in tables.values()), *listed], Column.ITEM)
    user_ids, item_ids = distinct_ids(users), distinct_ids(items)
    pairs: dict[str, Pairs] = {}
    columns: dict[Any, pl.DataFrame] = {}
    for (split, table), user, item in zip(tables.items(), users, items, strict=False):
        rest = table.drop(Column.USER, Column.ITEM)
        pairs[split], columns[split] = _sorted(encode(user, user_ids), encode(item, item_ids), rest, split)
    allowed = None if candidates is None else np.unique(encode(items[-1], item_ids))
    parts = (pairs["train"], pairs["valid"], pairs["test"])
    columns.pop("randomised", None)
    made = Dataset(name, user_ids, item_ids, *parts, allowed, dict(about), columns=columns)
    return replace(made, randomised=pairs.get("randomised"))


def _sorted(user: Indices, item: Indices, rest: pl.DataFrame, split: str) -> tuple[Pairs, pl.DataFrame]:
    """The pairs in order, and the other columns in the same order."""
    keys = user.astype(np.int64) * (int(item.max(initial=0)) + 1) + item
    order = np.argsort(keys)
    keys = keys[order]
    if (keys[1:] == keys[:-1]).any():
        raise InputError(f"the {split} split has repeated pairs; each pair may be there once")
    count = rest[Column.COUNT].cast(pl.Int32).to_numpy()[order] if Column.COUNT in rest.columns else None
    return Pairs(user[order], item[order], count), rest.drop(Column.COUNT, strict=False)[order]

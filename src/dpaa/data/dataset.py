"""The prepared dataset: contiguous indices, the splits, and the folder they are kept in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from dpaa._io import LARGE_JSON, as_json, check_folder_name, read_json, resolve_path, whole_folder, write_into
from dpaa.data._engine import Engine, in_words
from dpaa.data._spark import SparkEngine
from dpaa.data.attributes import ItemAttributes, attributes_of, read_attributes
from dpaa.data.ids import ABOUT_FILE as ABOUT_FILE
from dpaa.data.ids import IDS, SPLITS, Column, SplitName, checked_type, distinct_ids, encode, one_type
from dpaa.data.inputs import TextForm, open_log, open_table
from dpaa.data.log import ColumnNames
from dpaa.data.pairs import Indices, Pairs, fingerprint, popular_items, recent_popularity
from dpaa.data.parquet import read_parquet
from dpaa.data.prepare import Frames, Recipe, append_table, one_table, table_per_split
from dpaa.data.splits import SplitRule
from dpaa.data.tables import Table, as_table
from dpaa.errors import InputError

CANDIDATES_FILE, RANDOMISED_FILE = "candidates.parquet", "randomised.parquet"
REMEDY = "make it again with `dpaa data`"
DISK_FULL = "free some space or choose another folder with --out"
ROWS_AT_ONCE = 4_000_000


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
        frames: Frames,
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

        Returns
        -------
        the dataset
        """
        dataset = _assembled(frames, name, candidates, about, randomised)
        odd = [
            f"{n:,} pairs are in both {one} and {other}: see `--overlap` and `--mask-valid` of `dpaa evaluate`"
            for one, other in combinations(SPLITS, 2)
            if (n := len(dataset.overlap(one, other)))
        ]
        about = {**about, "counts": dataset.counts}
        return replace(dataset, about=about, notes=(*notes, *odd, *dataset._cold_notes()), invalid=invalid)

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

        Returns
        -------
        the dataset
        """
        given = {"train": train, "valid": valid, "test": test}
        present = [part for part in SPLITS if part == "train" or given[part] is not None]
        tables = {part: as_table(given[part], f"the {part} frame") for part in present}
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
        dataset = cls.of(**prepared._asdict(), name=name)
        return dataset if items is None else dataset.with_items(items, item)

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
        read, notes = attributes_of(table, self.item_ids, item)
        return replace(self, attributes=read if older is None else read.over(older), notes=(*self.notes, *notes))

    @property
    def items(self) -> pl.DataFrame:
        """`item_id` of every item, row i = index i, and what is known of it: `title`, and whatever else was given."""
        return (self.attributes or ItemAttributes(pl.DataFrame())).with_ids(self.item_ids)

    @property
    def titles(self) -> pl.Series | None:
        """Titles of the items, row i = index i; None where there are none."""
        return None if self.attributes is None else self.attributes.titles

    def with_all_pairs(self) -> Dataset:
        """Move validation and test pairs to the training pairs; nothing is held out.

        Returns
        -------
        a new dataset
        """
        # Diagonal, since counts are known of training pairs alone.
        merged = pl.concat([self.frame(split) for split in SPLITS], how="diagonal_relaxed")
        # Training pairs come first: of a pair in two splits its count is the one that stays.
        merged = merged.unique(IDS, keep="first", maintain_order=True)
        if Column.COUNT in merged.columns:
            merged = merged.with_columns(pl.col(Column.COUNT).fill_null(1))
        allowed = self.item_ids if self.candidate_ids is None else self.candidate_ids
        how: dict[str, Any] = {"candidates": allowed, "about": self.about, "randomised": self._sample()}
        return replace(Dataset.of({"train": merged}, name=self.name, **how), notes=(), attributes=self.attributes)

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

        Returns
        -------
        a new dataset
        """
        table = rows if isinstance(rows, Table) else as_table(rows, "the frame")
        frames = {split: self.frame(split) for split in SPLITS}
        parts = append_table(frames, self.about, self.name, table, names, drop_invalid)
        parts = parts._replace(candidates=self.candidate_ids)
        extended = Dataset.of(**parts._asdict(), name=self.name, randomised=self._sample())
        older = None if self.attributes is None else self.attributes.aligned(self.item_ids, extended.item_ids)
        if items is None:
            return replace(extended, attributes=older)
        return extended.with_items(items, None if names is None else names.item, older)

    @property
    def candidate_ids(self) -> pl.Series | None:
        """Ids of the items that may be recommended; None = all."""
        return None if self.candidates is None else self.item_ids.gather(self.candidates)

    @property
    def identity(self) -> dict[str, str]:
        """Name and fingerprint, by which results say what they were made on."""
        return {"name": self.name, "fingerprint": self.fingerprint}

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
        """Return the pairs of one split.

        Parameters
        ----------
        name : `train`, `valid` or `test`

        Returns
        -------
        its pairs
        """
        if name not in SPLITS:
            raise InputError(f"there is no split {name!r}; use one of {', '.join(SPLITS)}")
        pairs: Pairs = getattr(self, name)
        return pairs

    def frame(self, name: SplitName) -> pl.DataFrame:
        """Return one split with the user's own ids.

        Parameters
        ----------
        name : `train`, `valid` or `test`

        Returns
        -------
        `user_id`, `item_id`, and rating, timestamp and count where they are known
        """
        if self.path is not None:
            return _read_columns(self.path / f"{name}.parquet")
        pairs = self.split(name)
        frame = pl.DataFrame([self.user_ids.gather(pairs.user), self.item_ids.gather(pairs.item)])
        if name in self.columns:
            frame = frame.hstack(self.columns[name])
        return frame if pairs.count is None else frame.with_columns(pl.Series(Column.COUNT, pairs.count))

    @property
    def timed(self) -> pl.DataFrame | None:
        """`item`, `time` and `count` of the training pairs; None without times that have an order."""
        frame = self.frame("train")
        time = frame[Column.TIMESTAMP] if Column.TIMESTAMP in frame.columns else pl.Series([None])
        time = time.cast(pl.Float64) if time.dtype.is_decimal() else time  # a type that numpy has
        if not (time.dtype.is_numeric() or time.dtype.is_temporal()):
            return None
        count = frame[Column.COUNT] if Column.COUNT in frame.columns else np.ones(len(frame), dtype=np.int64)
        return pl.DataFrame({"item": encode(frame[Column.ITEM], self.item_ids), "time": time, "count": count})

    @cached_property
    def recent_popularity(self) -> npt.NDArray[np.float32] | None:
        """Training interactions of each item, recent ones weighted more; None where no pair has a time. (n_items,)."""
        timed = self.timed
        if timed is None or timed["time"].is_null().all():
            return None
        known = timed.filter(pl.col("item") >= 0)  # the folder may hold newer pairs by now
        time = known["time"].to_physical().cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return recent_popularity(known["item"].to_numpy(), time, self.n_items, known["count"].to_numpy())

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over ids, splits and candidates; the order of rows and the file format do not change it."""
        arrays = [array for name in SPLITS for array in (self.split(name).user, self.split(name).item)]
        sample = () if self.randomised is None else (self.randomised.user, self.randomised.item)
        return fingerprint(self.user_ids, self.item_ids, (*arrays, self.train.count, self.candidates, *sample))

    def overlap(self, one: SplitName, other: SplitName) -> npt.NDArray[np.int64]:
        """Find the pairs that are in both of two splits.

        Parameters
        ----------
        one, other : names of the splits

        Returns
        -------
        keys `user · n_items + item`, ascending
        """
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
            "splits": {name: self.split(name).sizes() for name in SPLITS},
        }

    def _cold_notes(self) -> list[str]:
        """Notes about empty splits, and about users and items without a training pair."""
        notes = [] if len(self.valid) else ["the validation split is empty: early stopping and tuning are impossible"]
        notes += [] if len(self.test) else ["the test split is empty: nothing can be evaluated"]
        listed, by_chance = () if self.candidates is None else self.candidates, "they are ranked by chance"
        for what, ids, trained, used, effect in (
            ("test users", self.user_ids, self.train.user, self.test.user, "nothing was learned about them"),
            ("candidate items", self.item_ids, self.train.item, listed, by_chance),
            ("test items", self.item_ids, self.train.item, self.test.item, by_chance),
        ):
            wanted = _present(used, len(ids))
            cold = np.flatnonzero(wanted & ~_present(trained, len(ids)))
            if len(cold):
                share = f"{len(cold):,} of {wanted.sum():,} {what}"
                notes.append(f"{share} have no training pair (such as {ids[int(cold[0])]!r}): {effect}")
        return notes

    def describe(self) -> dict[str, Any]:
        """Describe the dataset as `dpaa data describe` shows it.

        Returns
        -------
        counts, density = interactions / (users · items), overlaps, popular items, rules, notes and fingerprint
        """
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
        frames = {f"{name}.parquet": self.frame(name) for name in SPLITS}
        if (sample := self._sample()) is not None:
            frames[RANDOMISED_FILE] = sample
        if self.candidate_ids is not None:
            frames[CANDIDATES_FILE] = self.candidate_ids.to_frame()
        with whole_folder(resolve_path(folder), DISK_FULL) as fresh:
            for file, frame in frames.items():
                write_into(fresh, file, partial(frame.write_parquet, compression="zstd"))
            self._write_about(fresh)

    def _write_about(self, fresh: Path) -> None:
        """Write `dataset.json`, and what is known of the items."""
        about = {"name": self.name, **self.about, "fingerprint": self.fingerprint, "notes": list(self.notes)}
        if self.attributes is not None:
            about["attributes"] = self.attributes.write_into(fresh, self.item_ids)
        write_into(fresh, ABOUT_FILE, as_json(about))


def from_files(
    train: str | Path,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    candidates: str | Path | None = None,
    *,
    name: str = "splits",
    fmt: str | None = None,
    form: TextForm | None = None,
    **how: Any,
) -> Dataset:
    """Make a dataset from one file per split.

    Parameters
    ----------
    train, valid, test : files, folders or patterns
    candidates : file of the items that may be recommended; None = all
    name : of the dataset
    fmt, form : as in `inputs.open_log`
    how : as in `prepare.table_per_split`

    Returns
    -------
    the dataset
    """
    paths = zip(SPLITS, (train, valid, test), strict=True)
    tables = {split: open_log(path, fmt, form) for split, path in paths if path is not None}
    allowed = None if candidates is None else open_table(candidates)
    return Dataset.of(**table_per_split(tables, allowed, **how)._asdict(), name=name)


class Written(NamedTuple):
    """A dataset that was written and is not held in memory."""

    name: str
    counts: dict[str, Any]
    notes: tuple[str, ...]
    invalid: pl.DataFrame | None
    fingerprint: str


def write_log(
    table: Table,
    folders: Mapping[Path, SplitRule | None],
    name: str,
    *,
    memory: int | None = None,
    engine: str = "duckdb",
    items: Table | None = None,
    drop_invalid: bool = False,
    **recipe: Any,
) -> dict[Path, Written]:
    """Prepare a log of any size and write a dataset for each split rule: all of them, or none.

    Parameters
    ----------
    table : the log
    folders : where each dataset goes → how the log is split for it
    name : of the datasets
    memory : bytes that DuckDB may take; what needs more goes to disk, beside the first folder
    engine : `duckdb`, or `spark`
    items : what is known of the items
    drop_invalid : leave out rows with faults
    recipe : as in `Recipe`

    Returns
    -------
    what was written, by folder
    """
    how = {folder: Recipe(split=split, **recipe) for folder, split in folders.items()}
    first, written = next(iter(how.values())), {}
    times_needed = any(rule is not None and rule.needs_times for rule in folders.values())
    with ExitStack() as stack:
        fresh = {folder: stack.enter_context(whole_folder(resolve_path(folder), DISK_FULL)) for folder in folders}
        stack.enter_context(in_words(table.name))
        beside = next(iter(fresh.values())).parent
        work: Any = SparkEngine(beside) if engine == "spark" else Engine(beside, memory)
        with work:
            values, columns = first.pairs(work, table, drop_invalid, times_needed)
            if engine != "spark":
                work.run("SET preserve_insertion_order = false")  # all that follows is sorted where it is written
            for folder, own in how.items():
                for part, query in own.queries(work, columns, table.name).items():
                    write_into(fresh[folder], f"{part}.parquet", partial(work.write, query))
        for folder, own in how.items():
            data = _read_blocks(fresh[folder], name, own.about(table.name), counted=own.keep_duplicates)
            data = replace(data, notes=(*values.notes, *data._cold_notes()))
            data = data if items is None else data.with_items(items, own.columns.item)
            data._write_about(fresh[folder])
            written[folder] = Written(name, data.counts, data.notes, values.invalid, data.fingerprint)
    return written


def _read_blocks(folder: Path, name: str, about: dict[str, Any], counted: bool) -> Dataset:
    """Read splits that DuckDB has sorted; in blocks, so that ids of a large log never are in memory all at once."""
    scans = {split: pl.scan_parquet(folder / f"{split}.parquet", glob=False) for split in SPLITS}
    user_ids, item_ids = (
        distinct_ids(
            [scan.select(pl.col(column).unique()).collect(engine="streaming")[column] for scan in scans.values()]
        )
        for column in IDS
    )

    def indices(scan: pl.LazyFrame, column: str, ids: pl.Series) -> Indices:
        index = np.empty(scan.select(pl.len()).collect().item(), dtype=np.int32)
        for start in range(0, len(index), ROWS_AT_ONCE):
            block = scan.select(column).slice(start, ROWS_AT_ONCE).collect()[column]
            if column == Column.USER:  # a user's pairs are neighbours: one look-up for all of them
                runs = block.rle().struct.unnest()
                index[start : start + len(block)] = np.repeat(encode(runs["value"], ids), runs["len"])
            else:
                index[start : start + len(block)] = encode(block, ids)
        return index

    pairs = [Pairs(indices(s, Column.USER, user_ids), indices(s, Column.ITEM, item_ids)) for s in scans.values()]
    if not len(pairs[0]):
        raise InputError(f"the training split of {name} is empty; there is nothing to learn from")
    if counted:
        count = scans["train"].select(Column.COUNT).collect()[Column.COUNT].to_numpy()
        pairs[0] = replace(pairs[0], count=count)
    data = Dataset(name, user_ids, item_ids, pairs[0], pairs[1], pairs[2], None, about)
    return replace(data, about={**about, "counts": data.counts})


def _present(indices: Iterable[Any], n: int) -> npt.NDArray[np.bool_]:
    """Mark which of n indices occur."""
    mask = np.zeros(n, dtype=np.bool_)
    mask[np.asarray(indices, dtype=np.int32)] = True
    return mask


def size_in_words(counts: Mapping[str, Any]) -> str:
    """`290 users × 300 items, 5,484 interactions`."""
    return f"{counts['users']:,} users × {counts['items']:,} items, {counts['interactions']:,} interactions"


def check_target(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that exists, unless it may be overwritten and is a dataset (or empty)."""
    check_folder_name(folder)
    if folder.is_dir() and not overwrite:
        raise InputError(f"{folder} already exists; choose another folder with --out or pass --overwrite")
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not (folder / ABOUT_FILE).exists()):
        raise InputError(f"{folder} is a file or no dataset, and is not overwritten; choose another folder with --out")


def dataset_of(data: Any) -> Any:
    """Make a dataset of a dataframe or a sparse matrix: a tenth of each user's pairs is held out for validation.

    Parameters
    ----------
    data : dataframe of users and items (polars, pandas, a dict of columns), or SciPy matrix of users × items, whose ids
        are the numbers of rows and columns

    Returns
    -------
    the dataset; anything else, datasets among them, as it is
    """
    if hasattr(data, "tocoo"):
        entries = data.tocoo()
        liked = entries.data != 0
        data = {Column.USER: entries.row[liked], Column.ITEM: entries.col[liked]}
    if isinstance(data, dict | pl.DataFrame | pl.LazyFrame) or type(data).__module__.startswith("pandas"):
        return Dataset.from_frame(data, split=SplitRule("random", valid=0.1, test=0.0))
    return data


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
    if not resolve_path(path).exists():
        raise InputError(f"there is no folder {path}; make a dataset with `dpaa data`")
    if not (path / ABOUT_FILE).exists():
        if any((path / name / "manifest.json").exists() for name in ("", "run")):
            raise InputError(f"{path} is a run, not a dataset; name the folder that `dpaa data` wrote")
        raise InputError(f"{path} is not a prepared dataset; make one with `dpaa data log {path} --out DIR`")
    about = read_json(path / ABOUT_FILE, LARGE_JSON, REMEDY)
    name, expected, notes, attributes = (about.pop(key, None) for key in ("name", "fingerprint", "notes", "attributes"))
    if not all(isinstance(text, str) for text in (name, expected, *(notes or ()))):
        raise InputError(f"{path / ABOUT_FILE} lacks name or fingerprint, or its notes are not text; {REMEDY}")
    frames: dict[SplitName, pl.DataFrame] = {split: _read_columns(path / f"{split}.parquet", IDS) for split in SPLITS}
    listed, sampled = path / CANDIDATES_FILE, path / RANDOMISED_FILE
    candidates = _read_columns(listed, [Column.ITEM])[Column.ITEM] if listed.exists() else None
    randomised = _read_columns(sampled, IDS) if sampled.exists() else None
    try:
        dataset = _assembled(frames, name, candidates, about, randomised)
    except InputError as error:
        raise InputError(f"{path} is damaged: {str(error).partition(';')[0]}; {REMEDY}") from error
    # Of the content and not of the bytes: a file written again by another library is the same dataset.
    if dataset.fingerprint != expected:
        raise InputError(f"{path} was changed after it was written (its fingerprint does not match); {REMEDY}")
    known = attributes.get("digest") if isinstance(attributes, dict) else None
    kept = read_attributes(path, dataset.item_ids, known, REMEDY)
    return replace(dataset, notes=tuple(notes or ()), path=path, columns={}, attributes=kept)


def _read_columns(file: Path, ids: Sequence[str] = ()) -> pl.DataFrame:
    """The columns of a file of the dataset; with `ids`, only these, checked, and the counts if there are any."""
    try:
        frame = read_parquet(file, ids or None, optional=[Column.COUNT])
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{file} is missing, not readable as Parquet, or lacks {', '.join(ids)}; {REMEDY}") from error
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
    whole = counts.cast(pl.Int32, strict=False) if counts.dtype.is_integer() else None
    if whole is None or not (whole >= 1).fill_null(value=False).all():
        raise InputError(f"column {counts.name!r} of {file} must hold whole numbers from 1; {remedy}")
    return whole


def _assembled(
    frames: Frames, name: str, candidates: pl.Series | None, about: Mapping[str, Any], randomised: pl.DataFrame | None
) -> Dataset:
    """Frames ──► indices; checks that there is something to learn from, one type of ids and no repeated pair."""
    if not frames["train"].height:
        raise InputError(f"the training split of {name} is empty; there is nothing to learn from")
    tables: dict[Any, pl.DataFrame] = {split: frames.get(split, frames["train"].clear()) for split in SPLITS}
    if randomised is not None:
        tables["randomised"] = randomised
    users = one_type([table[Column.USER] for table in tables.values()], Column.USER)
    listed = [] if candidates is None else [candidates]
    items = one_type([*(table[Column.ITEM] for table in tables.values()), *listed], Column.ITEM)
    user_ids, item_ids = distinct_ids(users), distinct_ids(items)
    parts = {
        split: _sorted(encode(user, user_ids), encode(item, item_ids), table.drop(IDS), split)
        for (split, table), user, item in zip(tables.items(), users, items, strict=False)
    }
    allowed = None if candidates is None else np.unique(encode(items[-1], item_ids))
    columns = {split: parts[split][1] for split in SPLITS}
    train, valid, test = (parts[split][0] for split in SPLITS)
    dataset = Dataset(name, user_ids, item_ids, train, valid, test, allowed, dict(about), columns=columns)
    return replace(dataset, randomised=parts["randomised"][0]) if randomised is not None else dataset


def _sorted(user: Indices, item: Indices, rest: pl.DataFrame, split: str) -> tuple[Pairs, pl.DataFrame]:
    """The pairs in order, and the other columns in the same order."""
    # One number per pair: sorted several times as fast as two columns, and repeats are neighbours afterwards.
    keys = user.astype(np.int64) * (int(item.max(initial=0)) + 1) + item
    order = np.argsort(keys)
    keys = keys[order]
    if (keys[1:] == keys[:-1]).any():
        raise InputError(f"the {split} split has repeated pairs; each pair may occur once")
    count = rest[Column.COUNT].cast(pl.Int32).to_numpy()[order] if Column.COUNT in rest.columns else None
    return Pairs(user[order], item[order], count), rest.drop(Column.COUNT, strict=False)[order]

"""Measures of an audit: skew of a log, amplification by lists, and drift since an older log."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.data.dataset import Dataset, read_dataset
from dpaa.data.ids import Floats, Mask, is_text
from dpaa.data.inputs import BY_ENDING, OURS, TextForm, ending_of, open_log, open_table
from dpaa.data.log import ColumnNames, PositiveRule, Reading, read_log
from dpaa.data.pairs import popularity_deciles
from dpaa.data.tables import as_table
from dpaa.errors import InputError
from dpaa.evaluation import bias
from dpaa.evaluation.bias import TASTES, gini, head, lorenz, most_moved, share_of
from dpaa.evaluation.context import GroundTruth
from dpaa.evaluation.metrics import METRICS, exposures
from dpaa.evaluation.recommendations import Recommendations


@dataclass(frozen=True, eq=False)
class Interactions:
    """The training pairs of a dataset, or the positive rows of a log: validation and test are not looked at."""

    data: Dataset
    source: str
    """Where they come from, in words."""
    notes: tuple[str, ...]
    times: pl.DataFrame | None
    """`item, time, count` of the pairs with a known time (the first, if a pair is repeated); time: number or UTC."""

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Interactions of each item.  Returns (n_items,)."""
        train = self.data.train
        return np.bincount(train.item, train.count, minlength=self.data.n_items).astype(np.int64)

    @cached_property
    def history_lengths(self) -> NDArray[np.int64]:
        """Distinct items of each user.  Returns (n_users,)."""
        return np.bincount(self.data.train.user, minlength=self.data.n_users)

    @cached_property
    def truth(self) -> GroundTruth:
        """Popular items, histories and tastes; nothing is relevant to anybody."""
        train, nobody = self.data.train, np.zeros(0, dtype=np.int64)
        known: Any = {"history": (train.user, train.item), "candidates": self.data.candidates}
        return GroundTruth(nobody, self.data.n_users, self.counts, nobody, **known)


def interactions(
    data: Any,
    *,
    fmt: str | None = None,
    names: ColumnNames | None = None,
    positive: str | None = None,
    keep_duplicates: bool = False,
    form: TextForm | None = None,
    drop_invalid: bool = False,
    items: Any = None,
) -> Interactions:
    """Read a prepared dataset (or its folder), a log (files, folders, patterns, `-`, URLs) or a dataframe.

    Of a log each pair once, as `dpaa data log` reads it.  Parameters as in `dpaa.audit`.
    """
    paths = [data] if isinstance(data, str | Path) else data if isinstance(data, list | tuple) else []
    names = names or ColumnNames()
    if isinstance(data, Dataset) or (len(paths) == 1 and Path(paths[0]).is_dir() and not _holds_logs(Path(paths[0]))):
        plain = (names, form or TextForm()) == (ColumnNames(), TextForm())
        if fmt or positive or keep_duplicates or drop_invalid or items is not None or not plain:
            raise InputError(
                f"{paths[0] if paths else data} is prepared already; leave out options on how a log is read"
            )
        dataset = data if isinstance(data, Dataset) else read_dataset(paths[0])
        return Interactions(dataset, f"the training split of dataset {dataset.name}", (), _times(dataset))
    table = open_log(paths, fmt, form) if paths else as_table(data, "the frame")
    rule = None if positive is None else PositiveRule.parse(positive)
    log = read_log(table, names, rule, Reading(drop_invalid), once=True, keep_duplicates=keep_duplicates)
    whole = Dataset.of({"train": log.frame}, name=table.name, about={}, invalid=log.invalid)
    dataset = replace(whole, notes=log.notes)  # that nothing is held out is no fault of a log
    if items is not None:
        dataset = dataset.with_items(open_table(items) if isinstance(items, str | Path) else items, names.item)
    return Interactions(dataset, f"log {table.name}", dataset.notes, _times(dataset))


def _times(data: Dataset) -> pl.DataFrame | None:
    """`item, time, count` of the pairs that have a time; None where none has."""
    known = None if (timed := data.timed) is None else timed.drop_nulls("time")
    return known if known is not None and known.height else None


def _holds_logs(folder: Path) -> bool:
    """Whether a folder is one of logs: it has a file that we read, and is no dataset and no run."""
    ours = any((folder / name).exists() for name in OURS)
    return not ours and any(ending_of(file.name) in BY_ENDING for file in folder.rglob("*"))


Row = dict[str, Any]
MOVED = 10
"""Winners and losers that are listed."""
MOMENT = re.compile(r"-?[0-9.]+|[0-9]{4}-[0-9]{2}-[0-9]{2}.*")
"""A number or an ISO date."""
_EARLIEST, _LATEST = 631_152_000, 4_102_444_800
"""1990 and 2100: numbers that all fall between are seconds since 1970; 20240131 or 202401311259 do not."""


# ---------------------------------------------------------------------- the log alone


@dataclass(frozen=True)
class Skew:
    """The log alone.  Items are those with at least one interaction."""

    numbers: dict[str, float]
    """By the names of `checks.LOG_NUMBERS`; NaN where one has no value."""
    deciles: list[float]
    """Share of the interactions on each decile of the items, rarest first."""
    lorenz: list[list[float]]
    """Points (p, L): the least popular share p of the items has the share L of the interactions."""
    tastes: list[Row]
    """By `taste`: `users`, the `mean` share of popular items in a history, the median history (`history_median`)."""
    periods: list[Row]
    """Slices of about equally many interactions in the order of time; `log_gini` and `log_head_share` are over items
    with an interaction in the slice, `new_…` over those whose first interaction falls into it.  Empty without times."""

    def sentences(self) -> list[str]:
        """Describe how skewed the log is, compared with an even distribution.

        Returns
        -------
        plain sentences
        """
        n = self.numbers
        lines = [
            f"{n['log_users']:,} users, {n['log_items']:,} items, {n['log_interactions']:,} interactions.",
            f"The most popular fifth of the items has {n['log_head_share']:.1%} of the interactions, 20% if evenly "
            f"distributed; Gini coefficient {n['log_gini']:.3f} (0 = even, near 1 = concentrated on a few items).",
            f"80% of the interactions are on {n['log_items_for_80']:,} items ({n['log_items_for_80_share']:.1%}), "
            f"called popular below, all others niche; {n['log_items_once']:,} items have a single interaction.",
            f"The median user has {n['log_history_median']:,.0f} items in the history; on average "
            f"{n['log_popular_in_history']:.1%} of a history are popular items.",
        ]
        if self.periods:
            first, last = self.periods[0], self.periods[-1]
            shares = [f"{row[name]:.1%}" for name in ("log_head_share", "log_niche_share") for row in (first, last)]
            head, niche = f"from {shares[0]} to {shares[1]}", f"from {shares[2]} to {shares[3]}"
            lines.append(f"First to last period: share of the most popular fifth {head}, share of niche items {niche}.")
        return lines


def skew(log: Interactions, periods: int) -> Skew:
    """Measure how skewed the log is; times are cut into so many periods."""
    counts, popular = log.counts, log.truth.popular
    taken = counts[counts > 0]
    lengths = log.history_lengths[log.history_lengths > 0]
    slices = [] if log.times is None else list(_periods(log.times, popular, periods))
    trends = {
        f"log_{name}_trend": slices[-1][f"log_{name}"] - slices[0][f"log_{name}"] if slices else math.nan
        for name in ("head_share", "niche_share")
    }
    tastes: list[Row] = []
    for name, group in ((name, log.truth.taste_of_users == index) for index, name in enumerate(TASTES)):
        of_group = pl.Series(log.truth.popular_share[group]).mean(), pl.Series(log.history_lengths[group]).median()
        mean, median = (math.nan if value is None else value for value in of_group)
        tastes.append({"taste": name, "users": int(group.sum()), "mean": mean, "history_median": median})
    numbers = {
        "log_users": len(lengths),
        "log_items": len(taken),
        "log_interactions": int(taken.sum()),
        "log_gini": gini(taken),
        "log_head_share": share_of(head(counts), counts),
        "log_top_item_share": float(taken.max() / taken.sum()),
        "log_items_for_80": int(popular.sum()),
        "log_items_for_80_share": float(popular.sum() / len(taken)),
        "log_items_once": int((taken == 1).sum()),
        "log_items_once_share": float((taken == 1).mean()),
        "log_history_median": float(np.median(lengths)),
        "log_popular_in_history": float(np.nanmean(log.truth.popular_share)),
    }
    deciles = np.bincount(popularity_deciles(counts)[counts > 0], taken, minlength=10) / taken.sum()
    return Skew(numbers | trends, deciles.tolist(), lorenz(taken).round(6).tolist(), tastes, slices)


def _periods(times: pl.DataFrame, popular: Mask, wanted: int) -> Iterator[Row]:
    """Slices with about as many interactions each, so that their Gini can be compared; equal times stay together."""
    time, item, count = times["time"], times["item"].to_numpy(), times["count"].to_numpy()
    stamps = time.to_physical().to_numpy()
    # By order statistics: a few are needed, and the log may be large.
    cuts = np.unique(len(stamps) * np.arange(1, wanted) // wanted)
    edges = np.unique(np.partition(stamps, cuts)[cuts]) if len(cuts) else stamps[:0]
    edges = edges[edges > stamps.min()]
    if not len(edges):
        return
    slices = np.searchsorted(edges, stamps, side="right")
    seen = np.zeros(len(popular), dtype=bool)
    for index in range(len(edges) + 1):
        rows = np.flatnonzero(slices == index)
        counts = np.bincount(item[rows], count[rows], minlength=len(popular)).astype(np.int64)
        new = (counts > 0) & ~seen
        seen |= new
        ends = (time[int(rows[at])] for at in (stamps[rows].argmin(), stamps[rows].argmax()))
        first, last = (time if isinstance(time, int | float) else time.isoformat() for time in ends)
        yield {
            "start": first,
            "end": last,
            "interactions": int(counts.sum()),
            "items": int((counts > 0).sum()),
            "new_items": int(new.sum()),
            "log_gini": gini(counts[counts > 0]),
            "log_head_share": share_of(head(counts), counts),
            "log_niche_share": share_of(~popular, counts),
        }


def readable_times(times: Sequence[str | float]) -> list[str]:
    """Times of one log for people.

    Parameters
    ----------
    times : ISO text in UTC, or the log's own numbers

    Returns
    -------
    dates (UTC) where they are ISO or count seconds or milliseconds from 1970, else the numbers as they are
    """
    numbers = [time for time in times if not isinstance(time, str)]
    ticks = next((unit for unit in (1, 1000) if all(_EARLIEST <= time / unit < _LATEST for time in numbers)), None)
    if ticks is None:
        return list(map(str, times))
    iso = [t if isinstance(t, str) else datetime.fromtimestamp(int(t / ticks), UTC).isoformat() for t in times]
    return [time.removesuffix("+00:00").removesuffix("T00:00:00").replace("T", " ") for time in iso]


# ---------------------------------------------------------------------- lists against the log


@dataclass(frozen=True)
class Amplification:
    """Recommendations against the log."""

    name: str
    k: int
    """Length of the lists: where they were cut, else of the longest one, unknown items included."""
    numbers: dict[str, float]
    """By the names of `checks.LIST_NUMBERS`.  Averages are over users with a list; what is held against histories, and
    theirs, over those with a history too."""
    users: int
    """Users with a list of at least one known item."""
    recommendations: int
    """Entries of lists that are a known item."""
    deciles: list[float]
    """Share of the recommendations on each decile of the log's items, rarest first."""
    lorenz: list[list[float]]
    """Points (p, L): the least recommended share p of the candidates has the share L of the recommendations."""
    winners: list[Row]
    """Items whose share of the recommendations exceeds that of the interactions most; `losers` the reverse."""
    losers: list[Row]
    tastes: list[Row]
    """By `taste`, means over its users; NaN where there are none."""
    notes: list[str]

    def sentences(self, log: Skew) -> list[str]:
        """Describe whether the lists amplify the skew of the log.

        Parameters
        ----------
        log : the log's own skew

        Returns
        -------
        plain sentences
        """
        n = self.numbers
        return [
            f"{self.name}: {self.recommendations:,} recommendations to {self.users:,} users, at most {self.k:,} each.",
            f"For the average user the list is {abs(n['popularity_lift']):.0%} "
            f"{'more' if n['popularity_lift'] > 0 else 'less'} popular than the history (over all lists "
            f"{n['arp']:,.1f} interactions per item, against {n['arp_history']:,.1f}); {n['amplified_users']:.1%} of "
            f"the users get a list that is more popular than their history. Niche items are "
            f"{n['aplt_history']:.1%} of a history and {n['aplt']:.1%} of a list.",
            f"The most popular fifth of the items has {log.numbers['log_head_share']:.1%} of the interactions and "
            f"{n['head_share']:.1%} of the recommendations; {n['coverage']:.1%} of the candidates are recommended to "
            f"at least one user, Gini coefficient {n['gini']:.3f}.",
        ]


def amplification(log: Interactions, recs: Recommendations, group_by: str | None = None) -> Amplification:
    """Measure the lists of `recs` against the log.

    With a column of the items, exposure of its groups too; merit is then what the users with a list took in the log.
    """
    data, groups = log.data, dict[str, Mask]()
    if group_by is not None:
        if data.attributes is None:
            raise InputError(f"the items of {log.source} have no column {group_by!r}; name their file with --items")
        groups = {f"{group_by}={value}": mask for value, mask in data.attributes.groups(group_by).items()}
    listed = (recs.items >= 0).any(axis=1)
    if not listed.any():
        raise InputError(f"no list of {recs.name} has an item of the log; audit it against the log it came from")
    users, lists, k = recs.users[listed], recs.items[listed], recs.items.shape[1]
    taken = data.train.keys(data.n_items)[np.isin(data.train.user, users)]
    truth = replace(log.truth, users=users, relevant=taken, groups=groups)
    at = truth.context(lists)
    columns = {name: METRICS[name].formula(at) for name in ("arp", "popularity_lift", "aplt", "upd")}
    columns |= {"arp_history": truth.history_count, "aplt_history": 1.0 - truth.popular_share[users]}
    series = (pl.Series(name, values, nan_to_null=True) for name, values in columns.items())
    table = pl.DataFrame([pl.Series("taste", truth.taste), *series])
    both = table.drop_nulls("popularity_lift")
    of_history = ("arp_history", "popularity_lift", "aplt_history", "upd")
    numbers = {name: _mean(table[name]) for name in ("arp", "aplt")} | {name: _mean(both[name]) for name in of_history}
    numbers |= {"amplified_users": _mean(both["popularity_lift"] > 0)}
    numbers |= {name: METRICS[name].formula(at) for name in ("coverage", "gini", "head_share")}
    numbers |= {name.replace(f"@{k}", ""): value for name, value in exposures(at, k).items()}
    shown, counts = at.exposure, log.counts

    def shift(item: int) -> Row:
        return {
            "item_id": data.item_ids[item],
            "title": None if data.titles is None else data.titles[item],
            "group": "popular" if truth.popular[item] else "niche",
            "interactions": int(counts[item]),
            "recommendations": int(shown[item]),
            "interaction_share": float(counts[item] / counts.sum()),
            "recommendation_share": float(shown[item] / shown.sum()),
        }

    moved = most_moved(shown / shown.sum() - counts / counts.sum(), MOVED)
    winners, losers = ([shift(int(item)) for item in items] for items in moved)
    without = int((log.history_lengths > 0).sum()) - len(both)
    notes = [f"{recs.name}: {without:,} users of the log have no list"] if without else []
    tastes = {name: both.filter(pl.col("taste") == index) for index, name in enumerate(TASTES)}
    return Amplification(
        name=recs.name,
        k=k,
        numbers=numbers,
        users=len(users),
        recommendations=int((lists >= 0).sum()),
        deciles=bias.decile_shares(lists, truth.decile).tolist()[:10],
        lorenz=lorenz(at.candidate_exposure).round(6).tolist() if at.candidate_exposure.any() else [],
        winners=winners,
        losers=losers,
        tastes=[
            {"taste": name, "users": len(group)} | {metric: _mean(group[metric]) for metric in columns}
            for name, group in tastes.items()
        ],
        notes=[*recs.notes, *notes],
    )


def _mean(values: pl.Series) -> float:
    return float(values.mean()) if len(values) else math.nan  # type: ignore[arg-type]


# ---------------------------------------------------------------------- change since an older log


@dataclass(frozen=True)
class Drift:
    """Newer minus older."""

    older: str
    """What is older, in words."""
    newer: str
    numbers: dict[str, float]
    """By the names of `checks.DRIFT_NUMBERS`."""

    def sentences(self) -> list[str]:
        """Describe what has changed.

        Returns
        -------
        plain sentences
        """
        n = self.numbers
        return [
            f"Against {self.older}: the distance between the items' shares is {n['drift_distance']:.3f} (0 = equal, "
            f"1 = no common item); {n['drift_head_turnover']:.1%} of the most popular fifth were not in it before; "
            f"{n['drift_new_items_share']:.1%} of the interactions are on items that had none before."
        ]


def drift_since(against: Any, log: Interactions, reading: Mapping[str, Any]) -> Drift:
    """Measure the change since an older log, or since a moment; `reading` is how logs are read."""
    path = Path(against) if isinstance(against, str | Path) else None
    if path is not None and MOMENT.fullmatch(str(against)) and not path.exists():
        return _drift_at(log, str(against))
    prepared = isinstance(against, Dataset) or (path is not None and path.is_dir())
    return _drift_between(interactions(against, **({} if prepared else reading)), log)


def _drift_between(older: Interactions, newer: Interactions) -> Drift:
    """Measure the change from one log to another, item by item."""
    if is_text(older.data.item_ids) != is_text(newer.data.item_ids):
        raise InputError(f"the items of {older.source} and of {newer.source} have ids of different types; cast them")
    tables = [pl.DataFrame({"id": log.data.item_ids, "count": log.counts}) for log in (older, newer)]
    both = tables[0].join(tables[1], on="id", how="full", coalesce=True).sort("id").fill_null(0)
    before, after = (both[name].to_numpy().astype(np.float64) for name in ("count", "count_right"))
    return _drift(older.source, newer.source, before, after)


def _drift_at(log: Interactions, moment: str) -> Drift:
    """Measure the change within a log: interactions from that moment on against those before it."""
    if log.times is None:
        raise InputError(f"{log.source} has no times, so it cannot be cut at {moment!r}; name an older log instead")
    item, count, stamps = log.times["item"].to_numpy(), log.times["count"].to_numpy(), log.times["time"]
    try:
        zone = getattr(stamps.dtype, "time_zone", None)
        times = pl.Series([float(moment) if stamps.dtype.is_numeric() else datetime.fromisoformat(moment)])
        cut = times if stamps.dtype.is_numeric() else times.cast(pl.Datetime("us")).dt.replace_time_zone(zone)
    except ValueError:
        raise InputError(f"{moment!r} is not a time of {log.source}; give one such as {stamps[0]}") from None
    early = (stamps < cut[0]).to_numpy()
    if early.all() or not early.any():
        raise InputError(f"{log.source} has no interactions before {moment} or none from then on; choose another time")
    parts = [
        np.bincount(item[rows], count[rows], minlength=log.data.n_items).astype(np.float64) for rows in (early, ~early)
    ]
    return _drift(f"{log.source} before {moment}", f"{log.source} from {moment} on", *parts)


def _drift(older: str, newer: str, before: Floats, after: Floats) -> Drift:
    heads = head(before), head(after)
    numbers = {
        "drift_distance": float(bias.jensen_shannon((before / before.sum())[None], (after / after.sum())[None])[0]),
        "drift_new_items_share": share_of(before == 0, after),
        "drift_gone_items_share": share_of(after == 0, before),
        "drift_head_turnover": float((heads[1] & ~heads[0]).sum() / max(heads[1].sum(), 1)),
        "drift_head_share": share_of(heads[1], after) - share_of(heads[0], before),
        "drift_gini": gini(after[after > 0]) - gini(before[before > 0]),
    }
    return Drift(older, newer, numbers)

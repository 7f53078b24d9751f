"""Per user, per item group, averaged once; the protocol stands beside the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.bias import among
from dpaa.evaluation.context import GroundTruth
from dpaa.evaluation.metrics import METRICS, measure_all, recall
from dpaa.evaluation.offpolicy import FLOOR, POWER, OffPolicy, off_policy
from dpaa.evaluation.recommendations import Recommendations
from dpaa.graph.kernels import top_k
from dpaa.html import html_table
from dpaa.methods.base import Method, ScorerFamily
from dpaa.ranking.quotas import Pick
from dpaa.ranking.rank import ColdUsers, Ranker, Variants, rank
from dpaa.ranking.reranker import Candidates, Reranker, reranked
from dpaa.words import counted

Ints = NDArray[Any]


Overlap = Literal["drop", "mask", "keep"]
OVERLAPS: tuple[Overlap, ...] = ("drop", "mask", "keep")
LONGEST_LIST = 1_000
"""Up to here lists may be longer than there are items."""


CPU = torch.device("cpu")


@dataclass(frozen=True)
class Protocol:
    """How the numbers came about."""

    split: str
    k: tuple[int, ...]
    overlap: Overlap
    """What happens to a test pair that is also a training pair: `drop` neither ranked nor relevant, `mask` cannot be
    recommended but still counts, `keep` stays in the ranking and counts."""
    mask_valid: bool
    """Whether validation pairs are treated like training pairs."""
    candidates: int
    users: int
    """Users with at least one relevant item."""
    relevant: int
    """Relevant pairs counted."""
    cold_users: int
    """Of them, users without training pairs, who get the most popular items."""
    overlapping: int
    """Pairs of the split that are also known (training, or masked validation) pairs."""
    outside_candidates: int
    """Pairs of the split whose item is no candidate: never relevant."""
    lists: Literal["ranked", "given"] = "ranked"
    """Whether we ranked the candidates, or the lists came from a file as they are."""
    popularity_dial: float | None = None
    """κ of the popularity dial in force (`dpaa.ranking.dial`); None where the lists are not a method's."""

    rerank: str | None = None
    """The re-ranker that made the lists from the scores, with its settings; None where there is none."""

    group_by: str | None = None
    """The column of the items by whose values accuracy is counted too; None where nobody asked."""

    def as_json(self) -> dict[str, Any]:
        """What there is to say of a re-ranker, of groups or of cold users, only where there are any."""
        optional = ("rerank", "group_by")
        found = {name: value for name, value in asdict(self).items() if name not in optional or value is not None}
        return found if self.cold_users else {name: value for name, value in found.items() if name != "cold_users"}

    def in_words(self) -> str:
        """One sentence that names the convention and what was counted."""
        known = "training and validation" if self.mask_valid else "training"
        treated = {"drop": "neither ranked nor counted", "mask": "not ranked but counted", "keep": "ranked and counted"}
        overlapping = f"{self.overlapping:,} also in {known} ({treated[self.overlap]})"
        if not self.overlapping:
            overlapping = f"none also in {known}"
        cold = f" ({self.cold_users:,} without training pairs)" if self.cold_users else ""
        ranked = f"{known} pairs removed from the ranking" if self.lists == "ranked" else "lists as they were given"
        return (
            f"protocol: {self.split} split, {self.users:,} users{cold}, {self.relevant:,} relevant pairs, "
            f"{overlapping}; {self.candidates:,} candidates; overlap convention {self.overlap!r}, {ranked}"
            + (f"; popularity dial at κ = {self.popularity_dial:g}" if self.popularity_dial else "")
            + (f"; re-ranked by {self.rerank}" if self.rerank else "")
            + (f"; items grouped by {self.group_by!r}" if self.group_by else "")
        )


@dataclass(frozen=True)
class Evaluation:
    """Averages, their protocol, and the table behind them."""

    metrics: dict[str, float]
    protocol: Protocol
    per_user: pl.DataFrame
    """`user_id`, and each metric that a user has alone at the largest k; null where there is nothing to measure, as in
    an item group without a relevant item of the user; and the user's `taste`."""
    lists: Ints
    """(users, k) recommended item indices in the order of `per_user`."""
    exposure: dict[str, list[float]] = field(default_factory=dict)
    """k → share of the recommendations on each popularity decile, rarest first, then on items not in training; under
    `history` the training interactions of the same users."""
    truth: GroundTruth | None = field(default=None, repr=False)
    """What the lists were measured against."""
    notes: tuple[str, ...] = ()
    """What to know before believing the numbers, where the lists came from a file."""
    groups: dict[str, dict[str, float]] = field(default_factory=dict)
    """Where somebody asked for groups of items: `genre=Drama` → its number of `items`, and its share of the training
    interactions of the same users (`history`) and of the lists of each k; items in two groups count in both."""

    def off_policy(self, power: float = POWER, floor: float = FLOOR) -> OffPolicy:
        """Estimates for a test split that is as biased as the log; see `dpaa.evaluation.offpolicy`."""
        if self.truth is None:
            raise ValueError("this evaluation was made without its ground truth")
        return off_policy(self.truth, self.lists, self.protocol.k, power=power, floor=floor)

    def to_frame(self) -> pl.DataFrame:
        """`metric, value`."""
        return pl.DataFrame({"metric": list(self.metrics), "value": list(self.metrics.values())})

    def _repr_html_(self) -> str:
        groups = ("", "popular", "niche")
        names = list(dict.fromkeys(name.partition("/")[0] for name in self.metrics))
        rows = [
            [name, *(_cell(self.metrics.get(f"{name}/{group}" if group else name)) for group in groups)]
            for name in names
        ]
        header = ["", "all items", *groups[1:]]
        title = f"Evaluation: {self.protocol.split} split, {self.protocol.users:,} users"
        return html_table(title, header, rows, [self.protocol.in_words(), *self.notes])

    def as_json(self) -> dict[str, Any]:
        """As `evaluate --json` prints it and `metrics.json` keeps it."""
        found = {"metrics": self.metrics, "protocol": self.protocol.as_json(), "exposure": self.exposure}
        return found | {"groups": self.groups} if self.groups else found


def _cell(value: float | None) -> str:
    return "" if value is None else "-" if value != value else f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4f}"


class Evaluator:
    """One split of a dataset, made ready once and asked for many methods or epochs."""

    def __init__(
        self,
        dataset: Dataset,
        k: int | Sequence[int] = 20,
        split: Literal["valid", "test"] = "test",
        overlap: Overlap = "drop",
        mask_valid: bool = False,
        group_by: str | None = None,
    ) -> None:
        several = isinstance(k, Iterable) and not isinstance(k, str | bytes)
        cuts = tuple(sorted({need_whole(one, "k") for one in (k if several else [k])}))  # type: ignore[union-attr]
        if not cuts:
            raise InputError(f"k must be at least 1, got {k!r}")
        if cuts[-1] > max(dataset.n_items, LONGEST_LIST):
            raise InputError(f"lists of {cuts[-1]:,} items: the dataset has {dataset.n_items:,}; choose a smaller k")
        if not isinstance(overlap, str) or overlap not in OVERLAPS:
            raise InputError(f"overlap must be one of {', '.join(OVERLAPS)}, got {overlap!r}")
        self.dataset = dataset
        n_items = dataset.n_items
        candidates = dataset.candidates
        self.counts = np.bincount(dataset.train.item, dataset.train.count, minlength=n_items)
        target, known = dataset.split(split).keys(n_items), dataset.train.keys(n_items)
        if mask_valid and split == "test":
            known = np.union1d(known, dataset.valid.keys(n_items))
        outside = np.zeros(len(target), bool) if candidates is None else ~np.isin(target % n_items, candidates)
        target = target[~outside]
        both = np.intersect1d(target, known, assume_unique=True)
        relevant = np.setdiff1d(target, both, assume_unique=True) if overlap == "drop" else target
        masked = np.setdiff1d(known, both, assume_unique=True) if overlap == "keep" else known
        self.masked = Pairs((masked // n_items).astype(np.int32), (masked % n_items).astype(np.int32))
        """Pairs that are never recommended."""
        self.users = np.unique(relevant // n_items)
        self.truth = GroundTruth(
            users=self.users,
            n_users=dataset.n_users,
            counts=self.counts,
            relevant=relevant,
            history=(dataset.train.user, dataset.train.item),
            masked=(self.masked.user, self.masked.item),
            candidates=candidates,
            groups={} if group_by is None else _groups(dataset, group_by),
        )
        self.protocol = Protocol(
            split=split,
            k=cuts,
            overlap=overlap,
            mask_valid=mask_valid,
            candidates=n_items if candidates is None else len(candidates),
            users=len(self.users),
            cold_users=int((~np.isin(self.users, dataset.train.user)).sum()),
            relevant=len(relevant),
            overlapping=len(both),
            outside_candidates=int(outside.sum()),
            group_by=group_by,
        )
        if not len(self.users):
            raise InputError(
                f"dataset {dataset.name}: no {split} pair is left to evaluate "
                f"({len(dataset.split(split)):,} in the split, {len(both):,} also in training); "
                "prepare a dataset with a larger split"
            )

    def sample(self, most: int) -> Evaluator:
        """The same for at most so many users, evenly spread over all of them."""
        if len(self.users) <= most:
            return self
        few = copy(self)
        few.users = self.users[np.linspace(0, len(self.users) - 1, most).astype(np.int64)]
        owner = self.truth.relevant // self.dataset.n_items
        few.truth = replace(self.truth, users=few.users, relevant=self.truth.relevant[np.isin(owner, few.users)])
        cold = int((~np.isin(few.users, self.dataset.train.user)).sum())
        few.protocol = replace(self.protocol, users=most, cold_users=cold, relevant=len(few.truth.relevant))
        return few

    @cached_property
    def _cold(self) -> ColdUsers | None:
        """Users without training pairs, where some of them are evaluated."""
        if not self.protocol.cold_users:
            return None
        recent = self.dataset.recent_popularity
        popularity = torch.from_numpy((self.counts if recent is None else recent).astype(np.float32))
        return ColdUsers(np.bincount(self.dataset.train.user, minlength=self.dataset.n_users) == 0, popularity)

    @property
    def popular(self) -> NDArray[np.bool_]:
        """(n_items,): the popular items of the training pairs."""
        return self.truth.popular

    def lists(self, method: Method, dial: float | None = None, reranker: Reranker | None = None) -> Ints:
        """The recommended items of the split's users, (users, largest k); `dial` as in `rank`."""
        blocks = rank(
            method,
            self.users,
            self.protocol.k[-1],
            masked=self.masked,
            candidates=self.dataset.candidates,
            dial=dial or 0.0,
            reranker=reranker,
            cold=self._cold,
        )
        # One array from the start: small ones kept between blocks of scores would leave holes in the heap that no next
        # block fits (16 GB for 200,000 users).
        found = np.empty((len(self.users), self.protocol.k[-1]), dtype=np.int64)
        place = 0
        for block in blocks:
            found[place : place + len(block.items)] = block.items
            place += len(block.items)
        return found

    def evaluate(self, method: Method, dial: float | None = None, reranker: Reranker | None = None) -> Evaluation:
        """All metrics: overall, for popular and niche items, and for users by taste."""
        kappa = dial or 0.0
        found = self.evaluate_lists(self.lists(method, kappa, reranker))
        words = None if reranker is None else reranker.in_words()
        return replace(found, protocol=replace(self.protocol, popularity_dial=kappa, rerank=words))

    def evaluate_lists(self, lists: Ints) -> Evaluation:
        """The same for lists from anywhere, (users, k) in the order of `self.users`, −1 where a list ends early."""
        found = measure_all(self.truth, lists, self.protocol.k)
        columns = [self.dataset.user_ids.gather(self.users).alias(Column.USER)]
        for name, values in found.per_row.items():
            kind = pl.String if name == "taste" else None
            columns.append(pl.Series(name, values.tolist() if kind else values, kind, nan_to_null=True))
        exposure = found.exposure | {"history": self._exposure_of_history()}
        table, groups = pl.DataFrame(columns), self._of_groups(lists)
        return Evaluation(found.metrics, self.protocol, table, lists, exposure, self.truth, groups=groups)

    def evaluate_recommendations(self, recs: Recommendations) -> Evaluation:
        """The same for lists from a file; a user of the split without a list has only misses."""
        lists = recs.for_users(self.users, self.protocol.k[-1])
        return replace(
            self.evaluate_lists(lists),
            protocol=replace(self.protocol, lists="given"),
            notes=(*recs.notes, *self._notes_on(recs, lists)),
        )

    def _notes_on(self, recs: Recommendations, lists: Ints) -> Iterator[str]:
        """What is odd about given lists, of those that are evaluated."""
        taken = lists >= 0
        idle = int((~np.isin(recs.users, self.users)).sum())
        if idle:
            whose = "is of a user" if idle == 1 else "are of users"
            yield (
                f"{recs.name}: {idle:,} of {counted(len(recs.users), 'list', 'lists')} {whose} without a relevant "
                f"{self.protocol.split} pair and left out of every number"
            )
        without = int((~np.isin(self.users, recs.users)).sum())
        if without:
            yield f"{counted(without, 'test user has', 'test users have')} no list in {recs.name}: all misses"
        longest = int(np.flatnonzero(taken.any(axis=0)).max(initial=-1)) + 1
        if longest < self.protocol.k[-1]:
            yield f"no list of {recs.name} is longer than {longest}; to metrics @{self.protocol.k[-1]} it ends early"
        known = int(self.truth.among(lists, self.masked.keys(self.dataset.n_items)).sum())
        if known:
            yield (
                f"{recs.name}: {counted(known, 'recommendation is a pair', 'recommendations are pairs')} the user has "
                "in training, which a recommender would leave out; they take their places as misses"
            )
        outside = int((~among(self.dataset.n_items, self.dataset.candidates)[lists[taken]]).sum())
        if outside:
            yield (
                f"{recs.name}: {counted(outside, 'recommendation is', 'recommendations are')} not among the "
                "candidates; they take their places as misses"
            )

    def _exposure_of_history(self) -> list[float]:
        """Share of these users' training pairs on each popularity decile; the eleventh, items not in training, is 0."""
        train = self.dataset.train
        pairs = np.bincount(self.truth.decile[train.item[np.isin(train.user, self.users)]], minlength=11)
        return list((pairs / max(pairs.sum(), 1)).tolist())

    def _of_groups(self, lists: Ints) -> dict[str, dict[str, float]]:
        """How many items each group has, and its share of these users' history and lists."""
        train = self.dataset.train
        history = train.item[np.isin(train.user, self.users)]
        shown = {"history": history} | {str(k): (cut := lists[:, :k])[cut >= 0] for k in self.protocol.k}
        return {
            name: {"items": float(mask.sum())}
            | {where: float(mask[items].mean()) if len(items) else float("nan") for where, items in shown.items()}
            for name, mask in self.truth.groups.items()
        }

    def recall(self, method: Method) -> dict[str, float]:
        """Recall and NDCG at the largest k alone: what early stopping looks at, every epoch."""
        k = self.protocol.k[-1]
        at = self.truth.context(self.lists(method))
        return {f"{name}@{k}": float(METRICS[name].formula(at).mean()) for name in ("recall", "ndcg")}

    def recall_of(self, method: Method) -> float:
        """Recall at the largest k of a method as it scores now (see `dpaa.methods.base.Validation`)."""
        return self.recall(method)[f"recall@{self.protocol.k[-1]}"]

    def recalls_of(
        self, family: Callable[[Tensor | None], ScorerFamily], n: int, device: torch.device = CPU
    ) -> list[float]:
        """The same for n strengths of a correction, in one pass over the users."""
        return [float(recall(self.truth.context(lists)).mean()) for lists in self.lists_of(family, n, device)]

    def lists_of(self, family: Callable[[Tensor | None], ScorerFamily], n: int, device: torch.device = CPU) -> Ints:
        """The lists of n strengths of a correction, which scores there, from one pass.  (n, users, largest k)."""
        ranker = self._ranker(device)
        scores_of = family(ranker.columns)
        return self._variants(ranker, n, lambda index: ((scores, top_k) for scores in scores_of(index)))

    def lists_reranked(self, method: Method, rerankers: Sequence[Reranker]) -> Ints:
        """The lists of several re-rankers over the method's own scores, from one pass over the users.

        Returns (re-rankers, users, largest k).
        """
        ranker = self._ranker(method.graph.device)
        scorer, about = method.scorer(ranker.columns), Candidates(method.graph, ranker.columns)

        def variants(index: Tensor) -> Iterator[tuple[Tensor, Pick]]:
            scores = scorer(index)
            for one in rerankers:
                yield scores.clone(), partial(reranked, one, users=index, candidates=about)

        return self._variants(ranker, len(rerankers), variants)

    def _ranker(self, device: torch.device) -> Ranker:
        dataset = self.dataset
        return Ranker(dataset.n_items, device, self.masked, dataset.candidates, cold=self._cold)

    def _variants(self, ranker: Ranker, n: int, variants: Variants) -> Ints:
        """Lists of n variants of the scores, (n, users, largest k)."""
        k = self.protocol.k[-1]
        lists, first = np.empty((n, len(self.users), k), dtype=np.int32), 0
        for blocks in ranker.ranked(self.users, k, variants):
            for index, block in enumerate(blocks):
                lists[index, first : first + len(block.users)] = block.items
            first += len(blocks[0].users)
        return lists


def _groups(dataset: Dataset, column: str) -> dict[str, NDArray[np.bool_]]:
    """The items by the values of a column, `genre=Drama` → (n_items,)."""
    if dataset.attributes is None:
        raise InputError(
            f"dataset {dataset.name} knows nothing of its items, so it has no column {column!r}; make it again with "
            "`dpaa data … --items FILE`"
        )
    return {f"{column}={value}": mask for value, mask in dataset.attributes.groups(column).items()}

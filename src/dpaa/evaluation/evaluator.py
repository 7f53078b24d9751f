"""Metrics of a method's lists, or of any lists, on one split of a dataset, with their protocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from torch import Tensor

from dpaa.data.dataset import Dataset
from dpaa.data.ids import Column, Ints, Mask
from dpaa.data.pairs import Pairs
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.bias import among
from dpaa.evaluation.context import GroundTruth
from dpaa.evaluation.metrics import METRICS, measure_all, recall
from dpaa.evaluation.offpolicy import FLOOR, POWER, OffPolicy, off_policy
from dpaa.evaluation.recommendations import Recommendations, read_recommendations
from dpaa.graph.kernels import top_k
from dpaa.methods.base import Method, ScorerFamilies
from dpaa.ranking.quotas import Pick
from dpaa.ranking.rank import ColdUsers, RankedBlock, Ranker, rank
from dpaa.ranking.reranker import Candidates, Reranker, reranked

Overlap = Literal["drop", "mask", "keep"]
OVERLAPS: tuple[Overlap, ...] = ("drop", "mask", "keep")
LONGEST_LIST = 1_000
"""Up to here lists may be longer than there are items."""
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Protocol:
    """Evaluation protocol: split, candidates, masking, overlap convention and counts."""

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
    cold_users: int = 0
    """Of them, users without training pairs, who get the most popular items."""
    overlapping: int = 0
    """Pairs of the split that are also known (training, or masked validation) pairs."""
    lists: Literal["ranked", "given"] = "ranked"
    """Whether we ranked the candidates, or the lists came from a file as they are."""
    popularity_dial: float | None = None
    """Active κ of the popularity dial (`dpaa.ranking.dial`); None where the lists are not a method's."""
    rerank: str | None = None
    """The re-ranker that made the lists from the scores, with its parameters."""
    group_by: str | None = None
    """The column of the items by whose values accuracy is counted too."""

    def as_json(self) -> dict[str, Any]:
        """As a dictionary; re-ranker, groups and cold users only where there are any."""
        optional = ("rerank", "group_by", "cold_users")
        return {name: value for name, value in asdict(self).items() if value or name not in optional}

    def in_words(self) -> str:
        """One sentence that names the convention and what was counted."""
        known = "training and validation" if self.mask_valid else "training"
        ranked = f"{known} pairs removed from the ranking" if self.lists == "ranked" else "lists as they were given"
        cold = f" ({self.cold_users:,} without training pairs)" if self.cold_users else ""
        dial = f"; popularity dial at κ = {self.popularity_dial:g}" if self.popularity_dial else ""
        rerank = f"; re-ranked by {self.rerank}" if self.rerank else ""
        return (
            f"protocol: {self.split} split, {self.users:,} users{cold}, {self.relevant:,} relevant pairs; "
            f"{self.overlapping:,} pairs also in {known}, overlap convention {self.overlap!r}; {self.candidates:,} "
            f"candidates, {ranked}{dial}{rerank}"
        )


@dataclass(frozen=True)
class Evaluation:
    """Result of an evaluation: metrics, protocol, and per-user values."""

    metrics: dict[str, float]
    protocol: Protocol
    per_user: pl.DataFrame
    """`user_id`, and each metric that a user has alone at the largest k; null where there is nothing to measure, as in
    a group without a relevant item; and `taste`."""
    lists: Ints
    """(users, largest k) item indices, −1 where nothing was left to recommend."""
    exposure: dict[str, list[float]]
    """k → share of the recommendations on each popularity decile, rarest first, then on items not in training;
    `history` → the same of these users' training pairs."""
    truth: GroundTruth = field(repr=False)
    """What the lists were measured against."""
    notes: tuple[str, ...] = ()
    """What to know before believing the numbers, where the lists came from a file."""
    groups: dict[str, dict[str, float]] = field(default_factory=dict)
    """With `group_by`: `genre=Drama` → its number of `items`, and its share of the training interactions of the same
    users (`history`) and of the lists of each k; items in two groups count in both."""

    def off_policy(self, power: float = POWER, floor: float = FLOOR) -> OffPolicy:
        """Estimate accuracy for a test split that is as biased as the log (`dpaa.evaluation.offpolicy`).

        Parameters
        ----------
        power : propensities are `(count / largest count)^power`; default 0.5
        floor : smallest propensity; default 0.01

        Returns
        -------
        the estimates
        """
        return off_policy(self.truth, self.lists, self.protocol.k, power=power, floor=floor)

    def to_frame(self) -> pl.DataFrame:
        """Make a table of the averages.

        Returns
        -------
        `metric, value`
        """
        return pl.DataFrame({"metric": list(self.metrics), "value": list(self.metrics.values())})

    def as_json(self) -> dict[str, Any]:
        """Describe the evaluation as `evaluate --json` prints it and `metrics.json` keeps it.

        Returns
        -------
        metrics, protocol, exposure, and groups where there are any
        """
        content = {"metrics": self.metrics, "protocol": self.protocol.as_json(), "exposure": self.exposure}
        return content | {"groups": self.groups} if self.groups else content


class Evaluator:
    """One split of a dataset, prepared once for many methods or epochs.

    Parameters
    ----------
    dataset : the dataset
    k : length of the lists, or several
    split : "valid" or "test"
    overlap : what becomes of pairs of the split that are training pairs too, see `Protocol`
    mask_valid : whether validation pairs are treated like training pairs
    group_by : column of the items by whose values accuracy is counted too
    """

    def __init__(
        self,
        dataset: Dataset,
        k: int | Sequence[int] = 20,
        split: Literal["valid", "test"] = "test",
        overlap: Overlap = "drop",
        mask_valid: bool = False,
        group_by: str | None = None,
    ) -> None:
        several = k if isinstance(k, Iterable) and not isinstance(k, str | bytes) else [k]
        cuts = tuple(sorted({need_whole(length, "k") for length in several}))
        longest = max(cuts, default=0)
        if not 0 < longest <= max(dataset.n_items, LONGEST_LIST):
            raise InputError(f"lists of {longest:,} items: the dataset has {dataset.n_items:,}; choose a smaller k")
        if overlap not in OVERLAPS:
            raise InputError(f"overlap must be one of {', '.join(OVERLAPS)}, got {overlap!r}")
        n_items, candidates = dataset.n_items, dataset.candidates
        target, known = dataset.split(split).keys(n_items), dataset.train.keys(n_items)
        if mask_valid and split == "test":
            known = np.union1d(known, dataset.valid.keys(n_items))
        target = target[among(n_items, candidates)[target % n_items]]
        both = np.intersect1d(target, known, assume_unique=True)
        # `drop` takes such pairs from both sides, `mask` from the lists alone, `keep` from neither.
        relevant = np.setdiff1d(target, both, assume_unique=True) if overlap == "drop" else target
        masked = np.setdiff1d(known, both, assume_unique=True) if overlap == "keep" else known
        if not len(relevant):
            raise InputError(
                f"dataset {dataset.name}: no {split} pair is left to evaluate; prepare a dataset with a larger split"
            )
        self.dataset = dataset
        self.lookups = 0
        """How often `recall_of` and `recalls_of` measured a method or a strength, for who chooses by them."""
        self.counts = np.bincount(dataset.train.item, dataset.train.count, minlength=n_items)
        # Keys ascend, so these pairs are by user, as `Ranker` searches them.
        self.masked = Pairs.from_keys(masked, n_items)
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
            group_by=group_by,
        )

    def sample(self, most: int) -> Evaluator:
        """Restrict the evaluation to some users, evenly spread over all of them.

        Parameters
        ----------
        most : number of users at most

        Returns
        -------
        an evaluator; this one where it has no more users
        """
        if len(self.users) <= most:
            return self
        return self.of_rows(np.linspace(0, len(self.users) - 1, most).astype(np.int64))

    def of_rows(self, rows: Ints) -> Evaluator:
        """Restrict the evaluation to some of its users.

        Parameters
        ----------
        rows : ascending indices into `users`

        Returns
        -------
        an evaluator
        """
        few = copy(self)  # shallow: dataset, masked pairs and counts stay those of all users
        few.users = self.users[rows]
        owner = self.truth.relevant // self.dataset.n_items
        few.truth = replace(self.truth, users=few.users, relevant=self.truth.relevant[np.isin(owner, few.users)])
        cold = int((~np.isin(few.users, self.dataset.train.user)).sum())
        relevant = len(few.truth.relevant)
        few.protocol = replace(self.protocol, users=len(few.users), cold_users=cold, relevant=relevant)
        return few

    @cached_property
    def _cold(self) -> ColdUsers | None:
        """Users without training pairs, where some of them are evaluated."""
        if not self.protocol.cold_users:
            return None
        recent = self.dataset.recent_popularity
        popularity = torch.from_numpy((self.counts if recent is None else recent).astype(np.float32))
        return ColdUsers(np.bincount(self.dataset.train.user, minlength=self.dataset.n_users) == 0, popularity)

    # ------------------------------------------------------------------ lists

    def lists(self, method: Method, dial: float | None = None, reranker: Reranker | None = None) -> Ints:
        """Recommend items to the users of the split.

        Parameters
        ----------
        method : a fitted method
        dial : κ of the popularity dial; None = 0
        reranker : makes the lists from the scores

        Returns
        -------
        (users, largest k) item indices, −1 where nothing was left to recommend
        """
        how: dict[str, Any] = {"dial": dial or 0.0, "reranker": reranker, "cold": self._cold}
        candidates = self.dataset.candidates
        blocks = rank(method, self.users, self.protocol.k[-1], masked=self.masked, candidates=candidates, **how)
        return np.asarray(self._collected(([block] for block in blocks), 1)[0])

    def lists_of(self, family: ScorerFamilies, n: int, device: torch.device = CPU) -> Ints:
        """Recommend with several strengths of a correction, in one pass over the users.

        Parameters
        ----------
        family : candidates (None = all items) → function from user indices to one block of scores per strength
        n : number of strengths
        device : where the scores are

        Returns
        -------
        (n, users, largest k) item indices
        """
        ranker = self._ranker(device)
        scores_of = family(ranker.columns)

        def variants(index: Tensor) -> Iterator[tuple[Tensor, Pick]]:
            return ((scores, top_k) for scores in scores_of(index))

        return self._collected(ranker.ranked(self.users, self.protocol.k[-1], variants), n)

    def lists_reranked(self, method: Method, rerankers: Sequence[Reranker]) -> Ints:
        """Recommend with several re-rankers over the method's own scores, in one pass over the users.

        Parameters
        ----------
        method : a fitted method
        rerankers : make the lists from the scores

        Returns
        -------
        (re-rankers, users, largest k) item indices
        """
        ranker = self._ranker(method.graph.device, any(r.together for r in rerankers))
        scorer, about = method.scorer(ranker.columns), Candidates(method.graph, ranker.columns)

        def variants(index: Tensor) -> Iterator[tuple[Tensor, Pick]]:
            scores = scorer(index)
            for reranker in rerankers:
                yield scores.clone(), partial(reranked, reranker, users=index, candidates=about)

        return self._collected(ranker.ranked(self.users, self.protocol.k[-1], variants), len(rerankers))

    def _ranker(self, device: torch.device, together: bool = False) -> Ranker:
        n_items, candidates = self.dataset.n_items, self.dataset.candidates
        return Ranker(n_items, device, self.masked, candidates, cold=self._cold, together=together)

    def _collected(self, blocks: Iterable[Sequence[RankedBlock]], n: int) -> Ints:
        """Lists of n variants, (n, users, largest k)."""
        # One array from the start: small ones kept between blocks of scores would leave holes in the heap that no next
        # block fits (16 GB for 200,000 users).
        lists, first = np.empty((n, len(self.users), self.protocol.k[-1]), dtype=np.int32), 0
        for variants in blocks:
            for index, block in enumerate(variants):
                lists[index, first : first + len(block.users)] = block.items
            first += len(variants[0].users)
        return lists

    # ------------------------------------------------------------------ metrics

    def evaluate(self, method: Method, dial: float | None = None, reranker: Reranker | None = None) -> Evaluation:
        """All metrics of a method: overall, for popular and niche items, and for users by taste.

        Parameters
        ----------
        method : a fitted method
        dial : κ of the popularity dial
        reranker : makes the lists from the scores

        Returns
        -------
        Evaluation
        """
        words = None if reranker is None else reranker.in_words()
        protocol = replace(self.protocol, popularity_dial=dial or 0.0, rerank=words)
        return replace(self.evaluate_lists(self.lists(method, dial, reranker)), protocol=protocol)

    def evaluate_lists(self, lists: Ints) -> Evaluation:
        """Compute all metrics of lists from anywhere.

        Parameters
        ----------
        lists : (users, k) item indices in the order of `self.users`, −1 where a list ends early

        Returns
        -------
        Evaluation
        """
        measured = measure_all(self.truth, lists, self.protocol.k)
        columns = [self.dataset.user_ids.gather(self.users).alias(Column.USER)]
        for name, values in measured.per_row.items():
            kind = pl.String if name == "taste" else None
            columns.append(pl.Series(name, values.tolist() if kind else values, kind, nan_to_null=True))
        train = self.dataset.train
        history = train.item[np.isin(train.user, self.users)]
        deciles = np.bincount(self.truth.decile[history], minlength=11)
        exposure = measured.exposure | {"history": (deciles / max(len(history), 1)).tolist()}
        shown = {"history": history} | {str(k): lists[:, :k][lists[:, :k] >= 0] for k in self.protocol.k}
        groups = {
            name: {"items": float(mask.sum())}
            | {where: float(mask[items].mean()) if len(items) else float("nan") for where, items in shown.items()}
            for name, mask in self.truth.groups.items()
        }
        table = pl.DataFrame(columns)
        return Evaluation(measured.metrics, self.protocol, table, lists, exposure, self.truth, groups=groups)

    def evaluate_recommendations(self, recs: Any) -> Evaluation:
        """Compute all metrics of recommendations of any system; a user of the split without a list has only misses.

        Parameters
        ----------
        recs : `Recommendations`, or what `read_recommendations` reads: a file, a folder or a dataframe

        Returns
        -------
        Evaluation
        """
        if not isinstance(recs, Recommendations):
            recs = read_recommendations(recs, self.dataset.user_ids, self.dataset.item_ids, self.protocol.k[-1])
        lists = recs.for_users(self.users, self.protocol.k[-1])
        idle, without = (int((~np.isin(*pair)).sum()) for pair in ((recs.users, self.users), (self.users, recs.users)))
        known = int(self.truth.among(lists, self.masked.keys(self.dataset.n_items)).sum())
        note = (
            f"{recs.name}: {idle:,} lists of users without a relevant {self.protocol.split} pair are left out, "
            f"{without:,} {self.protocol.split} users have no list, {known:,} recommendations are training pairs"
        )
        notes = (*recs.notes, *([note] if idle or without or known else []))
        return replace(self.evaluate_lists(lists), protocol=replace(self.protocol, lists="given"), notes=notes)

    def recall(self, method: Method) -> dict[str, float]:
        """Compute recall and NDCG at the largest k alone, which early stopping compares.

        Parameters
        ----------
        method : a fitted method, or one in training

        Returns
        -------
        metric → value
        """
        k = self.protocol.k[-1]
        at = self.truth.context(self.lists(method))
        return {f"{name}@{k}": float(METRICS[name].formula(at).mean()) for name in ("recall", "ndcg")}

    def recall_of(self, method: Method) -> float:
        """Compute recall at the largest k of a method as it scores now (see `dpaa.methods.base.Validation`).

        Parameters
        ----------
        method : a fitted method, or one in training

        Returns
        -------
        recall
        """
        self.lookups += 1
        return self.recall(method)[f"recall@{self.protocol.k[-1]}"]

    def recalls_of(self, family: ScorerFamilies, n: int, device: torch.device = CPU) -> list[float]:
        """Compute recall at several strengths of a correction, in one pass over the users.

        Parameters
        ----------
        family, n, device : as in `lists_of`

        Returns
        -------
        n recalls
        """
        self.lookups += n
        return [float(recall(self.truth.context(lists)).mean()) for lists in self.lists_of(family, n, device)]


def _groups(dataset: Dataset, column: str) -> dict[str, Mask]:
    """The items by the values of a column, `genre=Drama` → (n_items,)."""
    if dataset.attributes is None:
        raise InputError(
            f"dataset {dataset.name} has no column {column!r} of its items; make it again with --items FILE"
        )
    return {f"{column}={value}": mask for value, mask in dataset.attributes.groups(column).items()}

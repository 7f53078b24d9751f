"""Per user, per item group, averaged once; the protocol stands beside the numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import torch

from dpaa.data.columns import Column
from dpaa.data.pairs import Pairs
from dpaa.data.popularity import popular_items
from dpaa.errors import InputError
from dpaa.evaluation import bias
from dpaa.evaluation.metrics import ACCURACY
from dpaa.evaluation.ranking import Ranker, ranked_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from dpaa.data.dataset import Dataset
    from dpaa.methods.base import Method, ScorerFamily

    Ints = NDArray[Any]

Overlap = Literal["drop", "mask", "keep"]
OVERLAPS: tuple[Overlap, ...] = ("drop", "mask", "keep")


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
    overlapping: int
    """Pairs of the split that are also known (training, or masked validation) pairs."""
    outside_candidates: int
    """Pairs of the split whose item is no candidate: never relevant."""

    def in_words(self) -> str:
        """One sentence that names the convention and what was counted."""
        known = "training and validation" if self.mask_valid else "training"
        treated = {
            "drop": "neither ranked nor counted",
            "mask": "not ranked but counted",
            "keep": "ranked and counted",
        }[self.overlap]
        overlapping = (
            f"{self.overlapping:,} also in {known} ({treated})" if self.overlapping else f"none also in {known}"
        )
        return (
            f"protocol: {self.split} split, {self.users:,} users, {self.relevant:,} relevant pairs, {overlapping}; "
            f"{self.candidates:,} candidates; overlap convention {self.overlap!r}, "
            f"{known} pairs removed from the ranking"
        )


@dataclass(frozen=True)
class Evaluation:
    """Averages, their protocol, and the table behind them."""

    metrics: dict[str, float]
    protocol: Protocol
    per_user: pl.DataFrame
    """`user_id`, and each accuracy metric at the largest k; null where a group has no relevant item of the user."""
    lists: Ints
    """(users, k) recommended item indices in the order of `per_user`."""

    def as_json(self) -> dict[str, Any]:
        """As `evaluate --json` prints it and `metrics.json` keeps it."""
        return {"metrics": self.metrics, "protocol": asdict(self.protocol)}


class Evaluator:
    """One split of a dataset, made ready once and asked for many methods or epochs."""

    def __init__(
        self,
        dataset: Dataset,
        k: int | Sequence[int] = 20,
        split: Literal["valid", "test"] = "test",
        overlap: Overlap = "drop",
        mask_valid: bool = False,
    ) -> None:
        cuts = tuple(sorted({k} if isinstance(k, int) else set(k)))
        if not cuts or cuts[0] < 1:
            raise InputError(f"k must be at least 1, got {k!r}")
        if overlap not in OVERLAPS:
            raise InputError(f"overlap must be one of {', '.join(OVERLAPS)}, got {overlap!r}")
        self.dataset = dataset
        n_items = dataset.n_items
        candidates = dataset.candidates
        self.counts = np.bincount(dataset.train.item, dataset.train.count, minlength=n_items)
        self.popular = popular_items(self.counts)
        target, known = dataset.split(split).keys(n_items), dataset.train.keys(n_items)
        if mask_valid and split == "test":
            known = np.union1d(known, dataset.valid.keys(n_items))
        outside = np.zeros(len(target), bool) if candidates is None else ~np.isin(target % n_items, candidates)
        target = target[~outside]
        both = np.intersect1d(target, known, assume_unique=True)
        relevant = np.setdiff1d(target, both, assume_unique=True) if overlap == "drop" else target
        masked = np.setdiff1d(known, both, assume_unique=True) if overlap == "keep" else known
        self._relevant = relevant
        self._masked = Pairs((masked // n_items).astype(np.int32), (masked % n_items).astype(np.int32))
        self.users, self._place = np.unique(relevant // n_items, return_inverse=True)
        self.protocol = Protocol(
            split=split,
            k=cuts,
            overlap=overlap,
            mask_valid=mask_valid,
            candidates=n_items if candidates is None else len(candidates),
            users=len(self.users),
            relevant=len(relevant),
            overlapping=len(both),
            outside_candidates=int(outside.sum()),
        )
        if not len(self.users):
            raise InputError(
                f"dataset {dataset.name}: no {split} pair is left to evaluate "
                f"({len(dataset.split(split)):,} in the split, {len(both):,} also in training); "
                "prepare a dataset with a larger split"
            )

    def lists(self, method: Method) -> Ints:
        """The recommended items of the split's users, (users, largest k)."""
        blocks = ranked_blocks(
            method, self.users, self.protocol.k[-1], masked=self._masked, candidates=self.dataset.candidates
        )
        # One array from the start: small ones kept between blocks of scores would leave holes in the heap that no next
        # block fits (16 GB for 200,000 users).
        found = np.empty((len(self.users), self.protocol.k[-1]), dtype=np.int64)
        place = 0
        for block in blocks:
            found[place : place + len(block.items)] = block.items
            place += len(block.items)
        return found

    def evaluate(self, method: Method) -> Evaluation:
        """All metrics, overall and for popular and niche items."""
        return self.evaluate_lists(self.lists(method))

    def evaluate_lists(self, lists: Ints) -> Evaluation:
        """The same for lists from anywhere, (users, k) in the order of `self.users`, −1 where a list ends early."""
        hits = self._hits(lists)
        niche = ~self.popular
        metrics: dict[str, float] = {}
        columns: list[pl.Series] = [self.dataset.user_ids.gather(self.users).alias(Column.USER)]
        for suffix, group in (("", None), ("/popular", self.popular), ("/niche", niche)):
            relevant = self._relevant_per_user(group)
            counted = relevant > 0
            group_hits = hits if group is None else hits & group[lists]
            for k in self.protocol.k:
                for name, formula in ACCURACY.items():
                    values = formula(group_hits[counted, :k], relevant[counted])
                    metrics[f"{name}@{k}{suffix}"] = float(values.mean()) if len(values) else float("nan")
                    if k == self.protocol.k[-1]:
                        whole = np.full(len(self.users), np.nan)
                        whole[counted] = values
                        columns.append(pl.Series(f"{name}@{k}{suffix}", whole).fill_nan(None))
        for k in self.protocol.k:
            metrics[f"arp@{k}"] = bias.arp(lists[:, :k], self.counts)
            metrics[f"aplt@{k}"] = bias.aplt(lists[:, :k], self.popular)
            metrics[f"coverage@{k}"] = bias.coverage(lists[:, :k], self.protocol.candidates)
        return Evaluation(metrics, self.protocol, pl.DataFrame(columns), lists)

    def recall(self, method: Method) -> dict[str, float]:
        """Recall and NDCG at the largest k alone: what early stopping looks at, every epoch."""
        k = self.protocol.k[-1]
        hits, relevant = self._hits(self.lists(method)), self._relevant_per_user(None)
        return {f"{name}@{k}": float(ACCURACY[name](hits, relevant).mean()) for name in ("recall", "ndcg")}

    def recall_of(self, method: Method) -> float:
        """Recall at the largest k of a method as it scores now (see `dpaa.methods.base.Validation`)."""
        return self.recall(method)[f"recall@{self.protocol.k[-1]}"]

    def recalls_of(self, family: Callable[[Tensor | None], ScorerFamily], n: int) -> list[float]:
        """The same for n strengths of a correction, in one pass over the users."""
        dataset = self.dataset
        ranker = Ranker(dataset.n_users, dataset.n_items, torch.device("cpu"), self._masked, dataset.candidates)
        scores_of = family(ranker.columns)
        lists = np.empty((n, len(self.users), self.protocol.k[-1]), dtype=np.int32)
        place = 0
        for block, index in ranker.blocks(self.users):
            for found, scores in zip(lists, scores_of(index), strict=True):
                found[place : place + len(block)] = ranker.rank(scores, block, self.protocol.k[-1]).items
            place += len(block)
        relevant = self._relevant_per_user(None)
        return [float(ACCURACY["recall"](self._hits(found), relevant).mean()) for found in lists]

    def _hits(self, lists: Ints) -> NDArray[np.bool_]:
        keys = self.users[:, None].astype(np.int64) * self.dataset.n_items + lists
        place = np.minimum(np.searchsorted(self._relevant, keys), len(self._relevant) - 1)
        return np.asarray((self._relevant[place] == keys) & (lists >= 0))

    def _relevant_per_user(self, group: NDArray[np.bool_] | None) -> Ints:
        counted = self._place if group is None else self._place[group[self._relevant % self.dataset.n_items]]
        return np.bincount(counted, minlength=len(self.users))

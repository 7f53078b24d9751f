"""What re-rankers of the best candidates share: how many those are, and the way there and back."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from dpaa.graph.kernels import top_k
from dpaa.reranking.base import Candidates, Reranker, scores_at
from dpaa.reranking.greedy import Gain, greedy, normalised


class TopCandidates(Reranker):
    """Makes lists of each user's best candidates."""

    depth: int = Field(default=100, ge=1, le=1_000_000)
    """How many of a user's best candidates may come into the list; never fewer than its length."""

    @abstractmethod
    def arrange(self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates) -> Tensor:
        """Which places of the candidates make the list?  (users, k), −1 where nothing is left.

        Scores (users, n) fall along each row, −inf where there is no candidate; items are indices, of the same shape.
        """

    def rerank(self, scores: Tensor, users: Tensor, k: int, candidates: Candidates) -> tuple[Tensor, Tensor]:
        """The list's own scores and columns."""
        return _of_the_best(self, self.depth, scores, users, k, candidates)

    def rerank_lists(
        self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates
    ) -> tuple[Tensor, Tensor]:
        """The first `depth` of each list are its candidates."""
        n = max(self.depth, k)
        scores, items = scores[:, :n], items[:, :n].clamp(min=0)
        places = self.arrange(scores, items, users, k, candidates)
        return scores_at(scores, places), places

    def balanced(self, scores: Tensor, groups: Tensor, n_groups: int, k: int, gain: Gain) -> Tensor:
        """`greedy` on scores from 0 to 1."""
        return greedy(normalised(scores), groups, n_groups, k, gain)


class Rescored(Reranker):
    """Gives every candidate another score, from its own and its popularity; the highest make the list."""

    depth: Literal["all"] | Annotated[int, Field(ge=1, le=1_000_000)] = "all"
    """How many of a user's best candidates may come into the list; `all`, or a number."""

    @abstractmethod
    def rescored(self, scores: Tensor, popularity: Tensor) -> Tensor:
        """What is the new score?  Scores (users, n), −inf where there is no candidate, which stays; float64.

        Popularity is the items' training count, (n,) or (users, n).
        """

    def rerank(self, scores: Tensor, users: Tensor, k: int, candidates: Candidates) -> tuple[Tensor, Tensor]:
        """The highest new scores."""
        if self.depth == "all":
            return top_k(self.rescored(scores.double(), candidates.popularity), k)
        return _of_the_best(self, self.depth, scores, users, k, candidates)

    def rerank_lists(
        self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates
    ) -> tuple[Tensor, Tensor]:
        """The same of lists; ties go to the better place."""
        del users
        n = scores.shape[1] if self.depth == "all" else max(self.depth, k)
        popularity = candidates.graph.item_degree[items[:, :n].clamp(min=0)]
        return top_k(self.rescored(scores[:, :n].double(), popularity), k)


def _of_the_best(
    reranker: Reranker, depth: int, scores: Tensor, users: Tensor, k: int, candidates: Candidates
) -> tuple[Tensor, Tensor]:
    """Each user's best columns as a list, and what the re-ranker makes of it."""
    values, columns = top_k(scores, min(max(depth, k), scores.shape[1]))
    items = columns if candidates.items is None else candidates.items[columns.clamp(min=0)]
    found, places = reranker.rerank_lists(values, items, users, k, candidates)
    return found, torch.where(places < 0, -1, columns.gather(1, places.clamp(min=0)))

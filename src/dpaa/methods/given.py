"""Another system's lists or vectors as methods, so that everything that takes a model takes that system.

They are made by `dpaa.given`, never trained.  What the system does not score is −inf here: it is never listed.
"""

import torch
from pydantic import Field
from torch import Tensor

from dpaa.errors import InputError
from dpaa.graph.cooccurrence import Lists
from dpaa.methods.base import ClosedForm, Histories, Scorer, Vectors, fitted, method

MOST_ITEMS = 2**24
"""Indices below this are kept exactly by float32, which is what a run's tensors are."""


class _Given(ClosedForm):
    """Base of methods whose state comes from another system and is never learned."""

    def learn(self) -> None:
        """Check that it was given."""
        if next(iter(self.state_shapes())) not in vars(self):
            raise InputError(f"{self.name} is another system's and cannot be trained; bring it in with dpaa.given")

    def _refuse(self, histories: Histories | None) -> None:
        if histories is not None:
            raise InputError(
                f"{self.name} has no scores for histories; leave them out, and new users get popular items"
            )


@method("given-lists", title="another system's lists with their scores, brought in with dpaa.given", seeded=False)
class GivenLists(_Given):
    """Score = the one in the user's list; items that are not in it are never recommended."""

    entries: int = Field(default=0, ge=0, description="number of items in all lists together")

    lengths: Tensor = fitted("users")
    listed: Tensor = fitted("entries")
    scores: Tensor = fitted("entries")

    def load_state(self, state: dict[str, Tensor], copy: bool = True) -> None:
        """Restore the lists; item indices that cannot be are refused."""
        tensors = (state[name].to(self.graph.device, copy=copy) for name in self.state_shapes())
        self.lengths, self.listed, self.scores = tensors
        lengths, self.listed = self.lengths.long(), self.listed.int()
        wrong = (self.listed < 0).any() or (self.listed >= self.graph.n_items).any() or (lengths < 0).any()
        if wrong or int(lengths.sum()) != self.entries:
            raise InputError("the tensors of given-lists contradict each other; bring the lists in again")
        self._lists = Lists(torch.nn.functional.pad(lengths.cumsum(0), (1, 0)), self.listed, self.graph.n_items)

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """Scores of the users' lists, −inf for all other items."""
        self._refuse(histories)

        def scores_of(index: Tensor) -> Tensor:
            scores = torch.full((len(index), self.graph.n_items), -torch.inf, device=index.device)
            owner, entry = self._lists.positions(index)
            scores[owner, self.listed[entry].long()] = self.scores[entry]
            return scores if items is None else scores[:, items]

        return scores_of


@method("given-vectors", title="another system's vectors of users and items, brought in with dpaa.given", seeded=False)
class GivenVectors(_Given):
    """Score = inner product; users and items with a missing or zero vector are not scored."""

    embedding_size: int = Field(default=1, ge=1, le=65_536, description="columns of the vectors")

    user_vectors: Tensor = fitted("users", "embedding_size")
    item_table: Tensor = fitted("items", "embedding_size")

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """Inner products, −inf where a vector is missing."""
        self._refuse(histories)
        table = self.item_table if items is None else self.item_table[items]
        no_user, no_item = (~side.any(dim=1, keepdim=True) for side in (self.user_vectors, table))
        return lambda index: (self.user_vectors[index] @ table.T).masked_fill_(no_user[index] | no_item.T, -torch.inf)

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors | None:
        """The vectors; None where some are missing, since −inf is no inner product."""
        self._refuse(histories)
        warm = self.user_vectors[self.graph.user_degree > 0]  # others get the most popular items
        if not (warm.any(dim=1).all() and self.item_table.any(dim=1).all()):
            return None
        table = self.item_table if items is None else self.item_table[items]
        return Vectors(lambda index: self.user_vectors[index], table)

    def item_vectors(self) -> Tensor:
        """The items' vectors."""
        return self.item_table

"""What every export holds: items and users as vectors, prepared so that the dial is turned when a question is asked.

    score(u, i) at κ = ⟨(v_u, κ · turn_u), item vector⟩ + shift_u + κ · turn_u · popularity_mean

The items' mean is subtracted and the popularity coordinate scaled to the others (`dpaa.serving.index.prepared`), which
an index needs to lie evenly; `turn` is the user's deviation by the inverse scale.  What follows the inner product is
the same for all items of a question, so rankings need it not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from dpaa.data.columns import Column
from dpaa.data.ids import look_up
from dpaa.errors import InputError
from dpaa.methods.base import Vectors
from dpaa.ranking.dial import DialVectors
from dpaa.runs.lists import Ids
from dpaa.runs.model import BLOCK_VECTORS, Model
from dpaa.serving.index import TRIED_K, prepared

Floats = NDArray[np.float32]
TURN, SHIFT = "turn", "shift"
KAPPAS = (0.0, -1.0, -0.5, 0.5, 1.0)
"""Where an approximate index is tried when it is made."""
TRIED_USERS = 200


@dataclass(frozen=True)
class UserBlock:
    """Some users, in the order asked for."""

    ids: pl.Series
    vectors: Floats
    """(b, d)"""
    turn: Floats
    """(b,): times κ, the query's last coordinate."""
    shift: Floats
    """(b,): what the mean of the items adds to all scores of the user."""

    def frame(self) -> pl.DataFrame:
        """`user_id, v0 …, turn, shift`."""
        columns = [pl.Series(f"v{place}", column) for place, column in enumerate(self.vectors.T.copy())]
        return pl.DataFrame([self.ids, *columns, pl.Series(TURN, self.turn), pl.Series(SHIFT, self.shift)])


@dataclass(frozen=True, eq=False)
class ExportedVectors:
    """A model's users and its items that may be recommended."""

    model: Model
    users: NDArray[Any]
    """Indices of the users that are exported."""
    candidates: NDArray[Any]
    """Indices of the items, ascending."""
    items: Floats
    """(n, d + 1), row by row the candidates, prepared."""
    scale: float
    """Of the popularity coordinate."""
    mean: Floats
    """(d + 1,): what was subtracted, the last coordinate scaled."""
    _vectors: Vectors
    _dial: DialVectors

    @classmethod
    def of(cls, model: Model, users: Ids | None = None) -> ExportedVectors:
        """Refuse a method that does not rank by an inner product."""
        dial, vectors = model.prepared_dial, model.method.vectors()
        if dial is None or vectors is None:
            raise InputError(
                f"method {model.method.name} does not rank by an inner product, so it has no vectors to export; use "
                "dpaa recommend"
            )
        people = np.arange(len(model.user_ids)) if users is None else np.unique(look_up(users, model.user_ids, "user"))
        some = np.arange(len(model.item_ids)) if model.candidates is None else np.asarray(model.candidates)
        table = dial.items[torch.from_numpy(some.astype(np.int64))]
        items, scale = prepared(table)
        mean = table.mean(dim=0).numpy().copy()
        mean[-1] *= scale
        return cls(model, people, some, items, scale, mean, vectors, dial)

    @property
    def item_ids(self) -> pl.Series:
        """Of the rows of `items`."""
        return self.model.item_ids.gather(self.candidates).alias(Column.ITEM)

    def user_blocks(self) -> Iterator[UserBlock]:
        """All users, a block at a time; there is always a first block, if need be without users."""
        for first in range(0, max(len(self.users), 1), BLOCK_VECTORS):
            yield self._block(self.users[first : first + BLOCK_VECTORS])

    def seen_blocks(self) -> Iterator[pl.DataFrame]:
        """`user_id, item_id` of what the exported users have taken among the exported items."""
        chosen = np.zeros(len(self.model.user_ids), dtype=bool)
        chosen[self.users] = True
        allowed = np.zeros(len(self.model.item_ids), dtype=bool)
        allowed[self.candidates] = True
        train = self.model.train
        for first in range(0, max(len(train.user), 1), BLOCK_VECTORS * 16):
            part = slice(first, first + BLOCK_VECTORS * 16)
            user, item = train.user[part], train.item[part]
            kept = chosen[user] & allowed[item]
            yield pl.DataFrame(
                [
                    self.model.user_ids.gather(user[kept]).alias(Column.USER),
                    self.model.item_ids.gather(item[kept]).alias(Column.ITEM),
                ]
            )

    @cached_property
    def tried(self) -> Floats:
        """Queries of some users at some κ, for an approximate index to be tried with.  (q, d + 1)."""
        some = self.users[np.unique(np.linspace(0, len(self.users) - 1, TRIED_USERS).astype(np.int64))]
        block = self._block(some)
        parts = [
            np.column_stack([block.vectors[place :: len(KAPPAS)], kappa * block.turn[place :: len(KAPPAS)]])
            for place, kappa in enumerate(KAPPAS)
        ]
        return np.ascontiguousarray(np.concatenate(parts), dtype=np.float32)

    @cached_property
    def tried_best(self) -> NDArray[np.int64]:
        """Rows of the best items of these queries, exactly.  (q, 20 or all)."""
        scores = torch.from_numpy(self.tried) @ torch.from_numpy(self.items).T
        return torch.topk(scores, min(TRIED_K, len(self.items)), dim=1).indices.numpy()

    def _block(self, index: NDArray[Any]) -> UserBlock:
        queries = self._vectors.queries(torch.from_numpy(index.astype(np.int64)))
        vectors = queries.numpy()
        return UserBlock(
            ids=self.model.user_ids.gather(index).alias(Column.USER),
            vectors=vectors,
            turn=(self._dial.deviation(queries) / self.scale).numpy(),
            shift=(vectors.astype(np.float64) @ self.mean[:-1].astype(np.float64)).astype(np.float32),
        )

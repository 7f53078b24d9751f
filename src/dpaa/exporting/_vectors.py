"""What every export holds: items and users as vectors, so that the popularity dial is a choice of each query.

    score(u, i) at κ = ⟨(v_u, κ · turn_u), item vector⟩ + shift_u + κ · turn_u · popularity_mean

The items' mean is subtracted and the popularity coordinate scaled to the deviation of the others, since an approximate
index needs vectors that lie evenly; `turn` is the user's deviation by the inverse scale.  What follows the inner
product is the same for all items of a query, so rankings do not need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from dpaa.data.columns import Column
from dpaa.data.ids import look_up
from dpaa.errors import InputError
from dpaa.runs.lists import Ids
from dpaa.runs.model import BLOCK_VECTORS, Model


class ExportedVectors:
    """A model's users and its items that may be recommended.

    Parameters
    ----------
    model : its method must rank by an inner product
    users : whose vectors are exported; None = all
    """

    def __init__(self, model: Model, users: Ids | None = None) -> None:
        dial, vectors = model.prepared_dial, model.method.vectors()
        if dial is None or vectors is None:
            raise InputError(
                f"method {model.method.name} does not rank by an inner product, so it has no vectors to export; use "
                "dpaa recommend"
            )
        self.model, self._dial, self._vectors = model, dial, vectors
        every = np.arange(len(model.user_ids))
        self.users = every if users is None else np.unique(look_up(users, model.user_ids, "user"))
        self.candidates = np.arange(len(model.item_ids)) if model.candidates is None else np.asarray(model.candidates)
        table = dial.items[torch.from_numpy(self.candidates.astype(np.int64))]
        rows = table.numpy() - table.mean(dim=0).numpy()
        spread, own = float(rows[:, :-1].std()), float(rows[:, -1].std())
        self.scale = spread / own if own > 0 and spread > 0 else 1.0
        self.mean = table.mean(dim=0).numpy().copy()
        for coordinates in (rows[:, -1:], self.mean[-1:]):
            coordinates *= self.scale
        self.items = np.ascontiguousarray(rows)  # (n, d + 1); the last coordinate is popularity, times `scale`

    def user_blocks(self) -> Iterator[pl.DataFrame]:
        """`user_id, vector, turn, shift` of all users, a block at a time; at least one block."""
        for first in range(0, max(len(self.users), 1), BLOCK_VECTORS):
            yield self._block(self.users[first : first + BLOCK_VECTORS])

    def seen(self) -> pl.DataFrame:
        """`user_id, item_id` of the exported users' training pairs with exported items."""
        train = self.model.train
        kept = np.isin(train.user, self.users) & np.isin(train.item, self.candidates)
        users = self.model.user_ids.gather(train.user[kept]).alias(Column.USER)
        return pl.DataFrame([users, self.model.item_ids.gather(train.item[kept]).alias(Column.ITEM)])

    def _block(self, index: NDArray[Any]) -> pl.DataFrame:
        queries = self._vectors.queries(torch.from_numpy(index.astype(np.int64)))
        vectors = queries.numpy()
        columns = {
            "vector": vectors,
            "turn": (self._dial.deviation(queries) / self.scale).numpy(),  # times κ, the query's last coordinate
            # what the mean of the items adds to all scores of the user
            "shift": (vectors.astype(np.float64) @ self.mean[:-1].astype(np.float64)).astype(np.float32),
        }
        ids = self.model.user_ids.gather(index).alias(Column.USER)
        return pl.DataFrame([ids, *(pl.Series(name, values) for name, values in columns.items())])

"""What every export holds: items and users as vectors, so that the dial is turned when a question is asked.

    score(u, i) at κ = ⟨(v_u, κ · turn_u), item vector⟩ + shift_u + κ · turn_u · popularity_mean

The items' mean is subtracted and the popularity coordinate scaled to the others (`dpaa.serving.index.prepared`), which
an index needs to lie evenly; `turn` is the user's deviation by the inverse scale.  What follows the inner product is
the same for all items of a question, so rankings do not need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
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
from dpaa.serving.index import TRIED_K, prepared

KAPPAS = (0.0, -1.0, -0.5, 0.5, 1.0)
"""Where an approximate index is tried when it is made."""
TRIED_USERS = 200


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
        # (n, d + 1), a row per candidate; the last coordinate is popularity, times `scale`
        self.items, self.scale = prepared(table)
        self.mean = table.mean(dim=0).numpy().copy()
        self.mean[-1] *= self.scale

    def user_blocks(self) -> Iterator[pl.DataFrame]:
        """`user_id, vector, turn, shift` of all users, a block at a time; at least one block."""
        for first in range(0, max(len(self.users), 1), BLOCK_VECTORS):
            yield self._block(self.users[first : first + BLOCK_VECTORS])

    def user_arrays(self) -> dict[str, NDArray[np.float32]]:
        """The same of all users at once: `users` (m, d), `turn` (m,), `shift` (m,)."""
        table = pl.concat(self.user_blocks())
        return {"users": table["vector"].to_numpy()} | {name: table[name].to_numpy() for name in ("turn", "shift")}

    def seen_blocks(self) -> Iterator[pl.DataFrame]:
        """`user_id, item_id` of the exported users' training pairs with exported items; at least one block."""
        train, step = self.model.train, BLOCK_VECTORS * 16
        chosen = np.zeros(len(self.model.user_ids), dtype=bool)
        allowed = np.zeros(len(self.model.item_ids), dtype=bool)
        chosen[self.users], allowed[self.candidates] = True, True
        for first in range(0, max(len(train.user), 1), step):
            user, item = train.user[first : first + step], train.item[first : first + step]
            kept = chosen[user] & allowed[item]
            users = self.model.user_ids.gather(user[kept]).alias(Column.USER)
            yield pl.DataFrame([users, self.model.item_ids.gather(item[kept]).alias(Column.ITEM)])

    @cached_property
    def tried(self) -> NDArray[np.float32]:
        """Queries of some users at some κ, for an approximate index to be tried with: (q, d + 1)."""
        some = self._block(self.users[np.unique(np.linspace(0, len(self.users) - 1, TRIED_USERS).astype(np.int64))])
        vectors, turn, n = some["vector"].to_numpy(), some["turn"].to_numpy(), len(KAPPAS)
        parts = [np.column_stack([vectors[i::n], kappa * turn[i::n]]) for i, kappa in enumerate(KAPPAS)]
        return np.ascontiguousarray(np.concatenate(parts), dtype=np.float32)

    @cached_property
    def tried_best(self) -> NDArray[np.int64]:
        """Rows of the best items of these queries, exactly: (q, 20 or all)."""
        scores = torch.from_numpy(self.tried) @ torch.from_numpy(self.items).T
        return torch.topk(scores, min(TRIED_K, len(self.items)), dim=1).indices.numpy()

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

"""PPD: the direction of popularity taken out of finished vectors, node by node (Islam, Zheleva and Wang, 2025).

    p_i  = ê_i · mean_u ê_u                                    how much everybody likes it, from 0 to 1
    r_ui = mean_{j taken by u} [σ(ê_i·ê_j) − β p_i p_j]        how well it fits what else the user took, from 0 to 1
    b_ui = p_i − r_ui                                          how much of the pair is popularity, from 0 to 1
    d_u  = unit(Σ b ê_i / Σ b − φ Σ (1 − b) ê_i / Σ (1 − b))   over the user's items; of an item over its users
    e'   = ê − s (ê·d) d

ê are vectors at length 1.  Nothing is trained: a model is, or was, and its layer 0 is corrected and propagated again;
of vectors whose layers are not known, the final ones are corrected.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.errors import InputError
from dpaa.methods.base import ClosedForm, fitted, method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.pretrained import Pretrained, UsesPretrained
from dpaa.methods.tables import Tables

BLOCK_CELLS = 1 << 22
"""Products of a user's items with one another that are worked on at once."""
EDGE_BLOCK = 65_536
LEAST = 1e-5
"""Length up to which the difference of two means is rounding: vectors have length 1."""
SAME_READOUT = 1e-4
"""Relative difference up to which a model's read-out is the mean of its layers."""


@method(
    "ppd",
    title="after training, each node's direction of popularity taken out of its vector",
    paper="Islam et al., Post-hoc Popularity Bias Correction in GNN-based CF, 2025 (arXiv 2510.12959)",
    grid={
        "popularity_penalty": (0.0, 0.5, 1.0),
        "preference_share": (0.5, 1.0, 1.5),
    },
    wide={"strength": (0.25, 0.5, 1.0), "length": ("one", "kept")},
)
class PPD(UsesPretrained, ClosedForm, GraphMethod):
    """LightGCN, or any vectors, corrected after training."""

    strength: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="s: how much of what points to popularity is taken out; 0, with `length=kept`, is LightGCN",
    )
    popularity_penalty: float = Field(
        default=0.5, ge=0, description="β: how much two popular items count less as evidence of taste"
    )
    preference_share: float = Field(
        default=1.0, ge=0, description="φ: how much of what the user likes is kept out of the direction"
    )
    length: Literal["one", "kept"] = Field(
        default="one",
        description="whether corrected vectors start from length 1 (the authors) or keep the length they had",
    )
    corrected: Literal["auto", "layer-0", "readout"] = Field(
        default="auto",
        description=(
            "which vectors are corrected; `auto`: layer 0 where the model's layers are known, else the final ones"
        ),
    )

    _table: Tensor = fitted()
    _by_layer: bool = fitted()

    def pretrained_layers(self) -> int:
        """All of them: whether they are known decides what is corrected."""
        return self.layers

    def take_pretrained(self, pretrained: Pretrained) -> None:
        """The vectors that are corrected: layer 0, or the final ones."""
        self._by_layer = self._corrects_layer_0(pretrained)
        self._table = (pretrained.layers[0] if self._by_layer else pretrained.readout).to(self.graph.device).float()
        width = self._table.shape[1]
        if width != self.embedding_size:
            raise InputError(
                f"the pre-trained vectors have {width} columns, embedding_size is {self.embedding_size}; "
                f"set embedding_size={width}"
            )

    @torch.no_grad()
    def learn(self) -> None:
        """Correct, and propagate again where it was layer 0."""
        table, n_users = self._table, self.graph.n_users
        found = without_popularity(
            table[:n_users],
            table[n_users:],
            self.graph.edge_user.long(),
            self.graph.edge_item.long(),
            self.strength,
            self.popularity_penalty,
            self.preference_share,
        )
        corrected = torch.cat(found)
        if self.length == "kept":
            corrected *= table.norm(dim=1, keepdim=True)
        if self.length == "kept" and not self.strength:
            corrected = table  # to the bit
        Tables.start(self, corrected)
        if self._by_layer:
            self.finish()
        else:  # final vectors are not propagated once more; a newcomer is the sum of the items taken
            self.user_embedding, self.item_embedding = self.tables.split(corrected)
            self.item_message = self.item_embedding.clone()

    def _corrects_layer_0(self, pretrained: Pretrained) -> bool:
        layers = pretrained.layers
        if self.corrected == "readout" or (self.corrected == "auto" and not layers):
            return False
        if not layers:
            raise InputError(
                "the layers of the pre-trained vectors are not known; give a run of lightgcn on this dataset, or set "
                "corrected=readout"
            )
        mean, readout = torch.stack(layers).mean(dim=0), pretrained.readout
        if not (mean - readout).norm() <= SAME_READOUT * readout.norm():
            raise InputError(
                f"the pre-trained model has other layers than layers={self.layers}; set layers to its number"
            )
        return True


def remove_popularity(
    user_vectors: ArrayLike,
    item_vectors: ArrayLike,
    users: ArrayLike,
    items: ArrayLike,
    *,
    strength: float = 1.0,
    popularity_penalty: float = 0.5,
    preference_share: float = 1.0,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """PPD on anybody's vectors: those of users, (n, d), and of items, (m, d), at length 1 without what is popularity.

    `users` and `items` are the training pairs by row, each (pairs,).
    """
    tables = [np.asarray(vectors, dtype=np.float32) for vectors in (user_vectors, item_vectors)]
    if any(table.ndim != 2 for table in tables) or tables[0].shape[1] != tables[1].shape[1]:
        shapes = " and ".join(str(table.shape) for table in tables)
        raise InputError(f"vectors of users and items must be two tables of one width, got {shapes}; give (rows, d)")
    if not all(np.isfinite(table).all() for table in tables):
        raise InputError("the vectors hold values that are not numbers; correct them")
    pairs = [np.asarray(side) for side in (users, items)]
    if any(side.ndim != 1 or side.dtype.kind not in "iu" for side in pairs) or len(pairs[0]) != len(pairs[1]):
        raise InputError("pairs must be two arrays of whole numbers of one length: rows of users, rows of items")
    for side, table, what in zip(pairs, tables, ("user", "item"), strict=True):
        if len(side) and (side.min() < 0 or side.max() >= len(table)):
            raise InputError(f"a pair names {what} row {side.max()}, there are {len(table)} rows; count them from 0")
    order = np.lexsort((pairs[1], pairs[0]))
    edge_user, edge_item = (torch.from_numpy(side[order].astype(np.int64)) for side in pairs)
    found = without_popularity(
        torch.from_numpy(tables[0]),
        torch.from_numpy(tables[1]),
        edge_user,
        edge_item,
        strength,
        popularity_penalty,
        preference_share,
    )
    return found[0].numpy(), found[1].numpy()


@torch.no_grad()
def without_popularity(
    users: Tensor, items: Tensor, edge_user: Tensor, edge_item: Tensor, strength: float, penalty: float, kept: float
) -> tuple[Tensor, Tensor]:
    """E' of users and items; edges are sorted by user.  (n, d) and (m, d)."""
    users, items = normalize(users), normalize(items)
    if not strength or not len(edge_user):
        return users, items
    bias = popularity_of_pairs(users, items, edge_user, edge_item, penalty)
    away = [
        users - strength * _along(users, directions(items, edge_user, edge_item, bias, len(users), kept)),
        items - strength * _along(items, directions(users, edge_item, edge_user, bias, len(items), kept)),
    ]
    return away[0], away[1]


def _along(vectors: Tensor, direction: Tensor) -> Tensor:
    return torch.sum(vectors * direction, dim=1, keepdim=True) * direction


def popularity_of_pairs(users: Tensor, items: Tensor, edge_user: Tensor, edge_item: Tensor, penalty: float) -> Tensor:
    """B of every edge, from vectors at length 1.  (edges,)."""
    popularity = _from_0_to_1(items @ users.mean(dim=0))
    of_edge = popularity[edge_item]
    taken = torch.bincount(edge_user, minlength=len(users))
    fitting = torch.empty_like(of_edge)
    first = 0
    for n in taken.tolist():
        if n:
            part = slice(first, first + n)
            vectors = items[edge_item[part]]
            step = max(1, BLOCK_CELLS // n)
            for start in range(0, n, step):
                alike = torch.sigmoid(vectors[start : start + step] @ vectors.T)
                fitting[first + start : first + min(start + step, n)] = alike.mean(dim=1)
            first += n
    mean = torch.zeros(len(users), device=of_edge.device).index_add_(0, edge_user, of_edge) / taken.clamp(min=1)
    fitting -= penalty * of_edge * mean[edge_user]
    return _from_0_to_1(of_edge - _from_0_to_1(fitting))


def _from_0_to_1(values: Tensor) -> Tensor:
    least, most = values.min(), values.max()
    return (values - least) / (most - least) if most > least else torch.zeros_like(values)


def directions(others: Tensor, mine: Tensor, theirs: Tensor, bias: Tensor, n: int, kept: float) -> Tensor:
    """The direction d of each node, from the vectors of those it is paired with; 0 where it has none.  (n, d).

    It has none where nothing or all is popularity, and where both means are the same, as those of a single pair are.
    """
    sums = [torch.zeros(n, others.shape[1], device=others.device) for _ in (0, 1)]
    for start in range(0, len(mine), EDGE_BLOCK):
        part = slice(start, start + EDGE_BLOCK)
        vectors = others[theirs[part]]
        popular = vectors * bias[part, None]
        sums[0].index_add_(0, mine[part], popular)
        sums[1].index_add_(0, mine[part], vectors.sub_(popular))
    totals = [torch.zeros(n, device=bias.device).index_add_(0, mine, share) for share in (bias, 1.0 - bias)]
    known = (totals[0] > 0) & (totals[1] > 0)
    popular, liked = (total / weight.clamp(min=1e-30)[:, None] for total, weight in zip(sums, totals, strict=True))
    found: Tensor = popular - kept * liked
    length = found.norm(dim=1)
    found /= length.clamp(min=LEAST)[:, None]
    return found.masked_fill_(~(known & (length > LEAST))[:, None], 0.0)

"""PPAC: global popularity and popularity among similar users, learned and corrected (Ning et al., WWW 2024)."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import mse_loss, normalize, softplus

from dpaa.graph.cooccurrence import BLOCK_ROWS, KnownPairs, Lists, in_common, row_blocks
from dpaa.graph.kernels import top_k
from dpaa.methods._shared import items_of, items_of_users, known_pairs, users_of_items
from dpaa.methods._strengths import ChosenStrengths, ScoresAt
from dpaa.methods.base import Shapes
from dpaa.methods.graph_method import Batch, Histories, Rows, method, scores

PROXIES = 1
"""Number of the random stream that the proxies are drawn from."""
PERSONAL_STRENGTHS = (0.0, *(2.0**power for power in range(10)))
GLOBAL_STRENGTHS = (0.0, *(sign * 2.0**power for power in range(11) for sign in (1, -1)))
"""Tried on validation, all pairs of them."""


@method(
    "ppac",
    title="global and personal popularity learned, corrected at inference",
    paper="Ning et al., Debiasing Recommendation with Personal Popularity, WWW 2024",
    grid={"neighbours": (10, 30, 50)},
    wide={"proxy_weight": (1e-4, 1e-3, 1e-2)},
)
class PPAC(ChosenStrengths):
    """LightGCN times two popularity proxies.

    PP_ui = how many of the K users most similar to u (Jaccard) took i, rows of unit length;   GP = degrees, unit length
    l_ui = σ(f(E_u)·f(E_i)),   g_i = σ(g(E_i)),   y_ui = s_ui l_ui g_i
    loss = BPR(y) + w (MSE(l, PP) + MSE(g, GP)) + L2
    score = s l g + γ PP + β GP

    γ and β are 0 while training and chosen on validation afterwards.
    """

    sampler: Literal["user-uniform", "interaction"] = "interaction"
    neighbours: int = Field(default=30, ge=1, description="K: similar users who make an item's popularity personal")
    proxy_weight: float = Field(default=1e-3, ge=0, description="w: weight of the proxies' squared errors in the loss")
    personal_strength: Literal["tune"] | float = Field(
        default="tune",
        description="γ: weight of personal popularity at inference; `tune` chooses on validation (0 without one)",
    )
    global_strength: Literal["tune"] | float = Field(default="tune", description="β: weight of global popularity")

    _ranks_by_ego: ClassVar[bool] = True
    _whole_from: ClassVar[float] = 2.0  # never: its networks run once for each selected node

    saved: ClassVar[Shapes] = {"similar_users": ("users", "neighbours")}
    strengths: ClassVar[dict[str, tuple[float, ...]]] = {
        "personal_strength": PERSONAL_STRENGTHS,
        "global_strength": GLOBAL_STRENGTHS,
    }

    # ------------------------------------------------------------------ popularity

    @cached_property
    def global_popularity(self) -> Tensor:
        """Global popularity GP, (n_items,)."""
        return normalize(self.graph.item_degree, dim=0)

    @cached_property
    def _items_of_users(self) -> Lists:
        return items_of_users(self.graph)

    @cached_property
    def _users_of_items(self) -> Lists:
        return users_of_items(self.graph)

    @cached_property
    def similar_users(self) -> Tensor:
        """The most similar users of every training user, (n_users, K), −1 where there are fewer."""
        everybody = torch.arange(self.graph.n_users, device=self.graph.device)
        return self.most_similar(self._items_of_users, everybody, known=True)

    def most_similar(self, items: Lists, index: Tensor, known: bool) -> Tensor:
        """Training users by Jaccard similarity of their items, ties to the larger user; none with nothing in common.

        Parameters
        ----------
        items : items of the users to compare
        index : (b,) which of them
        known : whether these are the training users themselves, of whom none is similar to itself

        Returns
        -------
        (b, K) int64, −1 where there are fewer
        """
        others, n_users, similar = self._items_of_users, self.graph.n_users, []
        for block in row_blocks(index, items, others):
            shared = in_common(items, block, others)
            union = items.lengths[block][:, None] + others.lengths - shared
            similarity = torch.where(shared > 0, shared / union, -torch.inf)
            if known:
                similarity[torch.arange(len(block), device=block.device), block] = -torch.inf
            # Flipped: `top_k` gives ties to the lower column, and the authors' code to the larger user.
            best = top_k(similarity.flip(1), self.neighbours)[1]
            similar.append(torch.where(best >= 0, n_users - 1 - best, -1))
        return torch.cat(similar)

    def popularity_counts(self, similar: Tensor) -> Tensor:
        """Count how many of the similar users took each item: rows of PP before normalisation.

        Parameters
        ----------
        similar : (b, K) indices of training users, −1 where there are fewer

        Returns
        -------
        (b, n_items) counts
        """
        row, column = (similar >= 0).nonzero(as_tuple=True)
        circle = Lists.of(row, similar[row, column].long(), len(similar), self.graph.n_users)
        return in_common(circle, torch.arange(len(similar), device=similar.device), self._users_of_items)

    @cached_property
    def _known(self) -> KnownPairs:
        return known_pairs(self.graph)

    @cached_property
    def _norms(self) -> Tensor:
        parts = torch.split(self.similar_users, BLOCK_ROWS)
        norms = torch.cat([self.popularity_counts(part).norm(dim=1) for part in parts])
        return torch.where(norms > 0, norms, 1.0)

    def personal_popularity(self, users: Tensor, items: Tensor) -> Tensor:
        """Compute PP of some pairs: each similar user is looked up in the training pairs.

        Parameters
        ----------
        users, items : (pairs,) indices

        Returns
        -------
        (pairs,)
        """
        # Negative where there is nobody, as no key is.
        wanted = self.similar_users[users].long() * self.graph.n_items + items[:, None]
        return self._known.contain(wanted).sum(dim=1) / self._norms[users]

    # ------------------------------------------------------------------ training

    def parameters(self) -> dict[str, Tensor]:
        """Both networks, drawn as torch draws a linear layer."""
        generator, drawn = self.generator(PROXIES), {}
        for name, shape in self._network_shapes().items():
            bound = (self.embedding_size * (1 if "_in" in name else 2)) ** -0.5
            drawn[name] = torch.empty(shape).uniform_(-bound, bound, generator=generator)
        return drawn

    def network(self, name: str, rows: Tensor) -> Tensor:
        """Apply two linear layers with ReLU between.

        Parameters
        ----------
        name : `personal` (f), which ends in d columns, or `global` (g), which ends in one
        rows : (n, d) layer-0 rows

        Returns
        -------
        (n, d) or (n, 1)
        """
        into, into_bias, out, out_bias = (
            getattr(self, f"{name}_{part}") for part in ("in", "in_bias", "out", "out_bias")
        )
        return torch.addmm(out_bias, torch.addmm(into_bias, rows, into).relu_(), out)

    def global_proxy(self, item: Tensor) -> Tensor:
        """Compute the proxy `g_i` of items.

        Parameters
        ----------
        item : (items, d) layer-0 rows

        Returns
        -------
        (items,) in 0 … 1
        """
        return torch.sigmoid(self.network("global", item).squeeze(1))

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """BPR on scores times proxies, the proxies' errors, and LightGCN's L2."""
        user, *items = batch.split(rows.readout)
        user_taste, *tastes = batch.split(self.network("personal", rows.distinct_ego).index_select(0, rows.index))
        first, n = rows.selection.n_users, len(batch)  # distinct users come first
        known = self.global_proxy(rows.distinct_ego[first:]).index_select(0, rows.index[n:] - first)
        matched, errors = [], []
        for item, taste, known_item, index in zip(
            items, tastes, torch.split(known, n), (batch.positive, batch.negative), strict=True
        ):
            personal = torch.sigmoid(scores(user_taste, taste))
            matched.append(scores(user, item) * personal * known_item)
            errors.append(mse_loss(personal, self.personal_popularity(batch.users, index)))
            errors.append(mse_loss(known_item, self.global_popularity[index]))
        proxies = self.proxy_weight * 0.5 * torch.stack(errors).sum()
        return softplus(matched[1] - matched[0]).mean() + proxies + self.l2_term(batch, rows)

    @torch.no_grad()
    def scores_at(self, items: Tensor | None = None, histories: Histories | None = None) -> ScoresAt:
        """`s l g + γ PP + β GP`."""
        plain, taken = self.readout_vectors(items, histories), items_of(self.graph, histories)
        columns = slice(None) if items is None else items
        user_ego, item_ego = self.tables.user_ego, self.tables.item_ego[columns]
        global_proxy, item_taste = self.global_proxy(item_ego), self.network("personal", item_ego)
        known = self.global_popularity[columns]

        @torch.no_grad()
        def scores(index: Tensor, strengths: Sequence[tuple[float, ...]]) -> Iterator[Tensor]:
            personal: Tensor | float = 0.0
            wanted = any(by_person for by_person, _ in strengths)
            if histories is None:
                ego, similar = user_ego[index], self.similar_users[index] if wanted else index[:, None]
            else:
                similar = self.most_similar(taken, index, known=False)
                there = (similar >= 0)[:, :, None]  # a new user has no layer 0: the mean of the similar users' rows
                ego = torch.sum(user_ego[similar] * there, dim=1) / there.sum(dim=1).clamp(min=1)
            if wanted:
                personal = normalize(self.popularity_counts(similar))[:, columns]
            personal_proxy = torch.sigmoid(self.network("personal", ego) @ item_taste.T)
            score = plain.scores(index) * personal_proxy * global_proxy
            return (score + by_person * personal + by_all * known for by_person, by_all in strengths)

        return scores

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """With those declared, the networks."""
        return super().state_shapes() | self._network_shapes()

    def _network_shapes(self) -> dict[str, tuple[int, ...]]:
        size = self.embedding_size
        shapes: dict[str, tuple[int, ...]] = {}
        for name, outputs in (("personal", size), ("global", 1)):
            shapes |= {f"{name}_in": (size, 2 * size), f"{name}_in_bias": (2 * size,)}
            shapes |= {f"{name}_out": (2 * size, outputs), f"{name}_out_bias": (outputs,)}
        return shapes

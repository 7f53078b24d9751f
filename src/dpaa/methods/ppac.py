"""PPAC: popularity with everybody and with similar users, learned and corrected (Ning et al., WWW 2024).

    PP_ui = how many of the K users most similar to u (Jaccard) took i, rows of unit length;   GP = degrees, unit length
    l_ui = σ(f(E_u)·f(E_i)),   g_i = σ(g(E_i)),   y_ui = s_ui l_ui g_i
    loss = BPR(y) + w (MSE(l, PP) + MSE(g, GP)) + L2
    score = s l g + γ PP + β GP

γ and β are 0 while training and chosen on validation afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import mse_loss, normalize, softplus

from dpaa.methods._personal_popularity import PersonalPopularity
from dpaa.methods._popularity import items_of
from dpaa.methods.base import ChosenAfterwards, Histories, Scorer, ScorerFamily, Validation, fitted, method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows, scores

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
class PPAC(ChosenAfterwards, GraphMethod):
    """LightGCN times two popularity proxies."""

    sampler: Literal["user-uniform", "interaction"] = Field(
        default="interaction",
        description=(
            "`interaction`: every interaction once an epoch, as in the paper; `user-uniform`: a random user, "
            "then an item"
        ),
    )
    neighbours: int = Field(
        default=30, ge=1, description="K: how many similar users make an item's popularity personal"
    )
    proxy_weight: float = Field(default=1e-3, ge=0, description="weight of the proxies' squared errors in the loss")
    personal_strength: Literal["tune"] | float = Field(
        default="tune",
        description=(
            "γ: weight of personal popularity at inference; `tune` chooses on validation (0 where there is none)"
        ),
    )
    global_strength: Literal["tune"] | float = Field(
        default="tune", description="β: weight of global popularity at inference"
    )

    _ranks_by_ego: ClassVar[bool] = True
    _whole_from: ClassVar[float] = 2.0  # never: its networks run once for each selected node

    saved: ClassVar[dict[str, tuple[str | int, ...]]] = {
        "similar_users": ("users", "neighbours"),
        "personal_strength": (),
        "global_strength": (),
    }

    chosen_personal_strength: float = fitted()
    """γ in use."""
    chosen_global_strength: float = fitted()
    """β in use."""

    @cached_property
    def global_popularity(self) -> Tensor:
        """GP, (n_items,)."""
        return normalize(self.graph.item_degree, dim=0)

    @cached_property
    def personal(self) -> PersonalPopularity:
        """PP."""
        return PersonalPopularity(self.graph, self.neighbours)

    # ------------------------------------------------------------------ training

    def begin(self) -> None:
        """Early stopping looks at γ = β = 0."""
        self.chosen_personal_strength = self.chosen_global_strength = 0.0

    def parameters(self) -> dict[str, Tensor]:
        """Both networks, drawn as torch draws a linear layer."""
        generator, drawn = self.generator(PROXIES), {}
        for name, shape in self._network_shapes().items():
            bound = (self.embedding_size * (1 if "_in" in name else 2)) ** -0.5
            drawn[name] = torch.empty(shape).uniform_(-bound, bound, generator=generator)
        return drawn

    def network(self, name: str, rows: Tensor) -> Tensor:
        """Two linear layers with ReLU between: `personal` (f) ends in d columns, `global` (g) in one."""
        into, into_bias, out, out_bias = (
            getattr(self, f"{name}_{part}") for part in ("in", "in_bias", "out", "out_bias")
        )
        return torch.addmm(out_bias, torch.addmm(into_bias, rows, into).relu_(), out)

    def personal_proxy(self, user: Tensor, item: Tensor) -> Tensor:
        """The proxy l of all pairs, from ego rows.  (users, items)."""
        return torch.sigmoid(self.network("personal", user) @ self.network("personal", item).T)

    def global_proxy(self, item: Tensor) -> Tensor:
        """`g_i`, from ego rows.  (items,)."""
        return torch.sigmoid(self.network("global", item).squeeze(1))

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """BPR on scores times proxies, the proxies' errors, and LightGCN's L2."""
        user, positive, negative = batch.split(rows.readout)
        taste = batch.split(rows.of_ego(partial(self.network, "personal")))
        positive_near, negative_near = (torch.sigmoid(scores(taste[0], item)) for item in taste[1:])
        positive_known, negative_known = batch.split(rows.of_item_ego(self.global_proxy, len(batch)))
        margin = (
            scores(user, positive) * positive_near * positive_known
            - scores(user, negative) * negative_near * negative_known
        )
        errors = [
            mse_loss(positive_near, self.personal.of_pairs(batch.users, batch.positive)),
            mse_loss(negative_near, self.personal.of_pairs(batch.users, batch.negative)),
            mse_loss(positive_known, self.global_popularity[batch.positive]),
            mse_loss(negative_known, self.global_popularity[batch.negative]),
        ]
        proxies = self.proxy_weight * 0.5 * torch.stack(errors).sum()
        return softplus(-margin).mean() + proxies + self.l2_term(batch, rows)

    # ------------------------------------------------------------------ scoring

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> None:
        """Its scores are no inner product."""
        del items, histories

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """`s l g + γ PP + β GP`."""
        parts = self._parts(items, histories)
        known = self.global_popularity if items is None else self.global_popularity[items]

        def score(index: Tensor) -> Tensor:
            plain, personal = parts(index, self.chosen_personal_strength != 0)
            return plain + self.chosen_personal_strength * personal + self.chosen_global_strength * known

        return score

    @torch.no_grad()
    def _parts(
        self, items: Tensor | None, histories: Histories | None
    ) -> Callable[[Tensor, bool], tuple[Tensor, Tensor | float]]:
        """A function to `s l g` and PP (0 where it is not wanted), each (users, items)."""
        plain = super().scorer(items, histories)
        columns = slice(None) if items is None else items
        user_ego, item_ego = self.tables.user_ego, self.tables.item_ego[columns]
        global_proxy = self.global_proxy(item_ego)
        taken = items_of(self.graph, histories)

        def parts(index: Tensor, with_personal: bool) -> tuple[Tensor, Tensor | float]:
            if histories is None:
                similar, ego = self.personal.similar_users[index] if with_personal else None, user_ego[index]
            else:
                similar = self.personal.most_similar(taken, index, known=False)
                there = (similar >= 0)[:, :, None]  # a newcomer has no layer 0: the mean of the similar users' rows
                ego = torch.sum(user_ego[similar] * there, dim=1) / there.sum(dim=1).clamp(min=1)
            score = plain(index) * self.personal_proxy(ego, item_ego) * global_proxy
            if similar is None or not with_personal:
                return score, 0.0
            return score, self.personal.rows(similar)[:, columns]

        return torch.no_grad()(parts)

    def finish(self) -> None:
        """Final vectors, and the strengths that are set."""
        super().finish()
        self.chosen_personal_strength, self.chosen_global_strength = (
            0.0 if strength == "tune" else strength for strength in (self.personal_strength, self.global_strength)
        )

    def choose(self, validation: Validation) -> dict[str, float]:
        """The pair (γ, β) with the best validation recall, the first of equals; one pass over the scores."""
        personal = PERSONAL_STRENGTHS if self.personal_strength == "tune" else (self.personal_strength,)
        everyone = GLOBAL_STRENGTHS if self.global_strength == "tune" else (self.global_strength,)
        pairs = [(mine, all_) for mine in personal for all_ in everyone]
        if len(pairs) == 1:
            return {}

        def family(items: Tensor | None) -> ScorerFamily:
            parts = self._parts(items, None)
            known = self.global_popularity if items is None else self.global_popularity[items]

            def several(index: Tensor) -> Iterator[Tensor]:
                plain, popularity = parts(index, True)
                return (plain + mine * popularity + all_ * known for mine, all_ in pairs)

            return several

        recalls = validation.recalls_of(family, len(pairs), self.graph.device)
        self.chosen_personal_strength, self.chosen_global_strength = pairs[recalls.index(max(recalls))]
        return {
            "personal_strength": self.chosen_personal_strength,
            "global_strength": self.chosen_global_strength,
        }

    # ------------------------------------------------------------------ what a run keeps

    @property
    def similar_users(self) -> Tensor:
        """Those behind PP, saved so that they need not be found again."""
        return self.personal.similar_users

    @similar_users.setter
    def similar_users(self, found: Tensor) -> None:
        self.personal.similar_users = found.long()

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

"""Turbo-CF: a polynomial low-pass filter on the graph of items, without decomposition (Park et al., SIGIR 2024)."""

import torch
from pydantic import Field

from dpaa.methods._shared import items_of_users, users_of_items
from dpaa.methods.base import method
from dpaa.methods.ease import ItemMap


@method(
    "turbo-cf",
    title="a polynomial low-pass filter on the graph of items, in closed form; for up to some 20,000 items",
    paper="Park et al., Turbo-CF: Matrix Decomposition-Free Graph Filtering for Fast Recommendation, SIGIR 2024",
    seeded=False,
    default_candidate=True,
    grid={"user_power": (0.5, 0.6), "similarity_power": (0.7, 1.0, 1.4), "filter_order": (1, 2, 3)},
)
class TurboCF(ItemMap):
    """A polynomial of the items' similarities; needs items × items in memory.

    R̃ = D_U^−α R D_I^(α−1),   P = (R̃ᵀ R̃)^s entry by entry,   scores = R H(P)
    H(P) = P,   2P − P²   or   P − 0.01 (29 P − 10 P² + P³)
    """

    user_power: float = Field(default=0.5, ge=0, le=1, description="α: power of users' counts; items' have 1 − α")
    similarity_power: float = Field(default=1.0, gt=0, description="s: the larger, the less weak similarities count")
    filter_order: int = Field(default=1, ge=1, le=3, description="degree of the polynomial H")

    def learn(self) -> None:
        """In float32; orders 2 and 3 take items³ operations."""
        user, item = (lists(self.graph).lengths.clamp(min=1).float() for lists in (items_of_users, users_of_items))
        scale = item ** (self.user_power - 1.0)
        similarity = self.common_users(torch.float32, user ** (-2.0 * self.user_power), self.filter_order)
        similarity.mul_(scale).mul_(scale[:, None]).pow_(self.similarity_power)
        if self.filter_order > 1:
            square = similarity @ similarity
            cube = square @ similarity if self.filter_order == 3 else None
            linear, quadratic = (2.0, -1.0) if cube is None else (0.71, 0.1)
            similarity.mul_(linear).add_(square, alpha=quadratic)
            if cube is not None:
                similarity.sub_(cube, alpha=0.01)
        self.item_map = similarity

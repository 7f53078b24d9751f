"""DDC: users of a trained model moved along the direction of popularity and their own (Liu et al., KDD 2026)."""

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize, softplus

from dpaa.errors import InputError
from dpaa.graph.cooccurrence import BLOCK_ROWS, Lists
from dpaa.methods._shared import items_of, items_of_users
from dpaa.methods.graph_method import Batch, GraphMethod, Histories, Rows, Vectors, fitted, method, scores
from dpaa.methods.pretrained import Pretrained, UsesPretrained


@method(
    "ddc",
    title="two numbers per user correct the popularity direction of a trained LightGCN",
    paper="Liu et al., Rethinking Popularity Bias in CF via Analytical Vector Decomposition, KDD 2026",
    grid={"preferred_share": (0.2, 0.3), "learning_rate": (1e-3, 1e-2)},
)
class DDC(UsesPretrained, GraphMethod):
    """A frozen LightGCN, with every user vector shifted along two directions.

    e_pop = direction from the mean vector of the rarest items to that of the most popular ones
    e_u   = direction of the mean of those of the user's items, at length 1, that score highest
    loss  = BPR[(u + β_u ‖u‖ e_u)·i,  (u + α_u ‖u‖ e_pop)·j] + λ mean(α_u² + β_u²)
    score = (u + ‖u‖ (α_u e_pop + β_u e_u))·i
    """

    preferred_share: float = Field(default=0.3, gt=0, le=1, description="share of a user's items that make e_u")
    group_share: float = Field(default=0.2, gt=0, le=0.5, description="share of the items that are popular, and rare")
    l2: float = Field(default=1e-4, ge=0, description="λ: weight of `α² + β²` of the batch's users")

    popularity_shift: Tensor = fitted("users")
    """α"""
    preference_shift: Tensor = fitted("users")
    """β"""
    popularity_direction: Tensor = fitted("embedding_size")
    """e_pop"""
    _layers: tuple[Tensor, ...] = fitted()
    _preference: Tensor = fitted()

    def pretrained_layers(self) -> int:
        """All: their mean is the read-out that is corrected."""
        return self.layers

    def take_pretrained(self, pretrained: Pretrained) -> list[str]:
        """Compute both directions from the trained vectors."""
        size = self.embedding_size
        if not pretrained.layers or pretrained.readout.shape[1] != size:
            raise InputError(
                f"method ddc corrects a LightGCN of this dataset with embedding_size {size}; give such a run"
            )
        self._layers = pretrained.layers
        readout = torch.stack(self._layers).mean(dim=0)
        users, items = readout[: self.graph.n_users], readout[self.graph.n_users :]
        count = self.graph.item_degree
        order = count.sort(stable=True).indices[(count == 0).sum() :]  # items never taken are neither
        n = max(1, int(self.group_share * len(order)))
        self.popularity_direction = normalize(items[order[-n:]].mean(dim=0) - items[order[:n]].mean(dim=0), dim=0)
        self._preference = self.preference(users, items, items_of_users(self.graph))
        return []

    def preference(self, users: Tensor, items: Tensor, taken: Lists) -> Tensor:
        """Compute the directions e_u.

        Parameters
        ----------
        users, items : read-out vectors
        taken : the users' items

        Returns
        -------
        (users, d) of length 1, or 0 of a user without items
        """
        unit, blocks = normalize(items), []
        for index in torch.split(torch.arange(len(users), device=users.device), BLOCK_ROWS):
            owner, item = taken.entries(index)
            by_score = scores(users[index][owner], items[item]).sort(descending=True, stable=True).indices
            owner, by_owner = owner[by_score].sort(stable=True)
            length = taken.lengths[index]
            rank = torch.arange(len(owner), device=owner.device) - (length.cumsum(0) - length)[owner]
            kept = rank < (length.double() * self.preferred_share).floor().clamp(min=1)[owner]
            sums = torch.zeros_like(users[index]).index_add_(0, owner[kept], unit[item[by_score][by_owner][kept]])
            blocks.append(normalize(sums))
        return torch.cat(blocks)

    def begin(self) -> None:
        """Start from the trained table, which no gradient ever reaches."""
        self.tables.ego.copy_(self.tables.columns.cut(self._layers[0]))

    def parameters(self) -> dict[str, Tensor]:
        """α and β of 0: training starts from LightGCN's own ranking."""
        return {name: torch.zeros(self.graph.n_users) for name in ("popularity_shift", "preference_shift")}

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """BPR with users moved along e_u towards positive items, and along e_pop for negative ones."""
        user, positive, negative = batch.split(rows.readout.detach())
        length = user.norm(dim=1)
        away, towards = self.popularity_shift[batch.users], self.preference_shift[batch.users]
        positive_score = scores(user + (towards * length)[:, None] * self._preference[batch.users], positive)
        negative_score = scores(user + (away * length)[:, None] * self.popularity_direction, negative)
        return softplus(negative_score - positive_score).mean() + self.l2 * (away.square() + towards.square()).mean()

    @torch.no_grad()
    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """Users moved along both directions; new ones by the mean shifts of all users."""
        plain = self.readout_vectors(items, histories)
        shifts = (self.popularity_shift, self.preference_shift)
        taken = items_of(self.graph, histories)
        users = plain.queries(torch.arange(len(taken), device=self.graph.device))
        along, towards = shifts if histories is None else (shift.mean().expand(len(users)) for shift in shifts)
        shift = along[:, None] * self.popularity_direction
        shift = shift + towards[:, None] * self.preference(users, self.item_embedding, taken)
        moved = users + users.norm(dim=1, keepdim=True) * shift
        return Vectors(lambda index: moved[index], plain.items)

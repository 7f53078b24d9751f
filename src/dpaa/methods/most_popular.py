"""Most popular: everybody gets the items with the highest training counts.  The row every table needs."""

from torch import Tensor

from dpaa.methods.base import ClosedForm, Histories, Scorer, fitted, method


@method(
    "most-popular", title="ranks by training counts; no training, the baseline of every table", paper="-", seeded=False
)
class MostPopular(ClosedForm):
    """Score = number of training interactions of the item; no training, the same list for all but their own items."""

    item_count: Tensor = fitted("items")

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """The counts, for every user."""
        counts = self.item_count if items is None else self.item_count[items]
        return lambda index: counts.repeat(len(index), 1)

    def learn(self) -> None:
        """Take the training counts."""
        self.item_count = self.graph.item_degree

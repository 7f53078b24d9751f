"""Most popular: all users get the items with the highest training counts."""

from torch import Tensor

from dpaa.methods.base import ClosedForm, Histories, Scorer, fitted, method


@method("most-popular", title="ranks by training counts; no training", paper="-", seeded=False)
class MostPopular(ClosedForm):
    """Score = number of training interactions of the item; the same list for all users, except for their own items."""

    item_count: Tensor = fitted("items")

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """Scores are the counts, for any user."""
        counts = self.item_count if items is None else self.item_count[items]
        return lambda index: counts.repeat(len(index), 1)

    def learn(self) -> None:
        """Take the training counts."""
        self.item_count = self.graph.item_degree

"""What a run holds: a fitted method with the ids and pairs it was made from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from dpaa.data.attributes import ItemAttributes
from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs
from dpaa.errors import InputError
from dpaa.evaluation.dial_curve import kappa_in_force
from dpaa.evaluation.evaluator import Protocol
from dpaa.methods.base import Method
from dpaa.ranking.reranker import stored_reranker
from dpaa.runs.manifest import TrainedOn


@dataclass(frozen=True, eq=False)
class RunRecord:
    """All that is written to a run folder and read from it; `Model` adds what can be done with it."""

    method: Method
    user_ids: pl.Series
    """Row i = index i, ascending."""
    item_ids: pl.Series
    train: Pairs
    """Training pairs: what a user has already seen."""
    candidates: NDArray[Any] | None = None
    """Items that may be recommended; None = all."""
    manifest: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None
    edges: Path | None = None
    """The message weights of a loaded run, which only their file knows."""
    attributes: ItemAttributes | None = None
    """What is known of the items: titles, and any other columns."""
    digest: str | None = None
    """SHA-256 of the file that its tensors were read from or written to; None for a model in memory alone."""

    popularity: NDArray[Any] | None = None
    """Recent popularity of the items (`Dataset.recent_popularity`); None where the log has no times."""

    @property
    def titles(self) -> pl.Series | None:
        """What people call the items, row i = index i; None where nobody said."""
        return None if self.attributes is None else self.attributes.titles

    @property
    def items(self) -> pl.DataFrame:
        """`item_id` of every item, row i = index i, and what is known of it: `title`, and whatever else was given."""
        return (self.attributes or ItemAttributes(pl.DataFrame())).with_ids(self.item_ids)

    @property
    def trained_on(self) -> TrainedOn:
        """The dataset, as the manifest has it."""
        return TrainedOn.model_validate(self.manifest.get("dataset", {}))

    @property
    def vectors_digest(self) -> str:
        """Of the trained vectors, with whose they are: two models with the same one start the same training."""
        found = hashlib.sha256()
        for ids in (self.user_ids, self.item_ids):
            found.update("\n".join(map(str, ids.to_list())).encode())
        for tensor in self.method.state().values():
            found.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return found.hexdigest()

    def makes_lists_of(self, protocol: Protocol) -> bool:
        """Whether an evaluation is of the model's own lists.

        Parameters
        ----------
        protocol
            How the lists were made and measured.

        Returns
        -------
        bool
            False where the popularity dial or the re-ranker is another than the one the model keeps.
        """
        reranker = stored_reranker(self.manifest.get("rerank"), self.path or self)
        kappa = kappa_in_force(self.manifest.get("dial"))
        return (protocol.popularity_dial, protocol.rerank) == (kappa, reranker.in_words() if reranker else None)

    def check_trained_on(self, data: Dataset, remedy: str) -> None:
        """Refuse another dataset than that."""
        if self.trained_on.fingerprint != data.fingerprint:
            raise InputError(
                f"the model was trained on another dataset than {data.name} (fingerprints differ); {remedy}"
            )

"""Arrays made once by code that others wrote: each file says by which, and by how much we may differ."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import attach
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.tables import Batch, Tables
from dpaa.ranking.reranker import Candidates
from tests.methods.tools import gradient_of

HERE = Path(__file__).parent
N_USERS, N_ITEMS = 12, 9


@cache
def golden(name: str) -> dict[str, Any]:
    """What is in a file."""
    found: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    return found


def graph() -> BipartiteGraph:
    """The log of `inputs.json`, its edges in the order of its pairs."""
    user, item = np.array(golden("inputs")["pairs"]).T
    made = BipartiteGraph.from_pairs(Pairs.of(user, item), N_USERS, N_ITEMS)
    assert np.array_equal(made.edge_user, user)
    assert np.array_equal(made.edge_item, item)
    return made


def triples(which: str = "triples") -> tuple[Tensor, Tensor, Tensor]:
    """Users, positive and negative items of a batch."""
    users, positive, negative = torch.tensor(golden("inputs")[which]).T
    return users, positive, negative


def method(kind: type[GraphMethod], **hyperparameters: Any) -> Any:
    """With the table of `inputs.json`."""
    table = torch.tensor(golden("inputs")["table"])
    made = attach(kind(embedding_size=table.shape[1], **hyperparameters), graph())
    Tables.start(made, table)
    return made


def loss_and_gradient(made: GraphMethod, batch: Batch) -> tuple[float, Tensor]:
    """The loss, and its gradient in the table."""
    rows = made.tables.forward(batch)
    loss = made.loss(batch, rows)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.item(), gradient_of(made, rows)


def assert_same(found: object, expected: object, rtol: float = 2e-5, atol: float = 2e-6) -> None:
    """Within the file's tolerance."""
    plain = found.detach().numpy() if isinstance(found, Tensor) else np.asarray(found)
    np.testing.assert_allclose(plain, np.asarray(expected), rtol=rtol, atol=atol)


def all_scores(made: Any) -> Tensor:
    """Of all users and items, as the method ranks by them."""
    made.tables.update_embeddings()
    found: Tensor = made.scorer()(torch.arange(N_USERS))
    return found


def reranking() -> tuple[Tensor, Tensor, Candidates]:
    """Scores (users, items) of `reranking.json`, the users, and what a re-ranker may know of items and histories."""
    inputs = golden("reranking")
    scores = torch.tensor(inputs["scores"])
    users = [user for user, items in enumerate(inputs["history"]) for _ in items]
    items = [item for items in inputs["history"] for item in items]
    log = BipartiteGraph.from_pairs(Pairs.of(users, items), *scores.shape)
    return scores, torch.arange(len(scores)), Candidates(log, None)

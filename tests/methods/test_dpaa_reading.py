"""Readings of the paper beyond DPAA's settings: each against the slow twin, and neutral where nothing is changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dpaa.data.dataset import Dataset
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods.backbone import INITIAL_DEVIATION
from dpaa.methods.dpaa_reading import DpaaReading
from dpaa.runs.fit import fit, make_method

SIZE: dict[str, Any] = {"embedding_size": 8, "layers": 3, "epochs": 3, "threads": 1}


def test_without_a_change_it_is_dpaa(small_world: Dataset) -> None:
    dpaa, same = fit(small_world, "dpaa", **SIZE), fit(small_world, "dpaa-reading", **SIZE)
    for name, tensor in dpaa.method.tensors().items():
        assert torch.equal(same.method.tensors()[name], tensor), name


@pytest.mark.parametrize("estimate", ["blend", "current"])
def test_a_residual_before_the_weight_is_weighted_too(small_world: Dataset, estimate: str) -> None:
    made = {"initial_residual": 0.4, "layer_emphasis": 2.0, "estimate": estimate, "weighted_layers": "all"}
    method = fit(small_world, "dpaa-reading", residual_place="before", **SIZE, **made).method
    assert isinstance(method, DpaaReading)
    graph = method.graph
    ego = method.ego.rows().double().numpy()
    layers = [ego]
    for number, emphasis in enumerate(method.layer_weights()):
        matrix = np.zeros((graph.n_nodes, graph.n_nodes))
        weights = method.edge_weights(number).to_user.double().numpy()
        users, items = graph.edge_user.numpy(), graph.edge_item.numpy() + graph.n_users
        matrix[users, items] = matrix[items, users] = weights
        layers.append(matrix @ layers[-1] + emphasis * 0.4 * ego)  # λ is in the weights, and so before δ's
    readout = np.mean(layers, axis=0)
    found = torch.cat([method.user_embedding, method.item_embedding]).double().numpy()
    np.testing.assert_allclose(found, readout, rtol=1e-4, atol=1e-6)
    for mine, twin in zip(method.sent_layers(), layers, strict=True):
        np.testing.assert_allclose(mine.rows().detach().numpy(), twin, rtol=1e-4, atol=1e-5)


def test_where_layers_weigh_one_both_places_are_the_same(small_world: Dataset) -> None:
    """Another way to the same numbers: by hand, and by automatic differentiation."""
    made = {"layer_emphasis": 0, "initial_residual": 0.3}
    one, other = (
        fit(small_world, "dpaa-reading", residual_place=place, **SIZE, **made).method for place in ("after", "before")
    )
    for name, tensor in one.tensors().items():
        torch.testing.assert_close(other.tensors()[name], tensor, atol=1e-5, rtol=1e-4)


def test_the_first_table_has_the_deviation_that_is_set(small_world: Dataset) -> None:
    settings = {**SIZE, "iiw": False}
    plain, narrow = (
        make_method(small_world, "dpaa-reading", settings | {"initial_deviation": deviation})
        for deviation in (INITIAL_DEVIATION, 0.01)
    )
    for method in (plain, narrow):
        assert isinstance(method, DpaaReading)
        method.start()
    assert isinstance(plain, DpaaReading)
    assert isinstance(narrow, DpaaReading)
    torch.testing.assert_close(narrow.ego.rows(), plain.ego.rows() * 0.1)


def test_early_stopping_counts_overlap_where_it_is_asked_to(small_world: Dataset) -> None:
    frames = {split: small_world.frame(split) for split in ("train", "valid", "test")}
    frames["valid"] = frames["valid"].vstack(frames["train"].select(frames["valid"].columns).head(40))
    data = Dataset.of(frames, name="overlapping", about={})  # type: ignore[arg-type]
    kept = fit(data, "dpaa-reading", stop_by="keep", **SIZE)
    assert kept.manifest["validation"]["overlap"] == "keep"
    measured = kept.manifest["training"]["best_valid_recall@20"]
    recalls = {overlap: Evaluator(data, 20, "valid", overlap).recall_of(kept.method) for overlap in ("keep", "drop")}  # type: ignore[arg-type]
    assert measured == pytest.approx(recalls["keep"])
    assert recalls["keep"] != recalls["drop"]

"""DPAA's weights on other backbones, by a setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from dpaa.data.dataset import Dataset
from dpaa.methods import METHODS
from dpaa.methods.weighted_messages import WeightedMessages
from dpaa.runs.fit import fit
from dpaa.runs.model import load
from dpaa.trace import trace_run

OFFERING = [
    name
    for name in METHODS
    if issubclass(METHODS[name], WeightedMessages) and "message_weights" in METHODS[name].hyperparameters.model_fields
]
SIZE: dict[str, Any] = {"embedding_size": 8, "layers": 2, "epochs": 3, "threads": 1}


def test_simgcl_without_contrast_and_with_the_weights_is_dpaa(small_world: Dataset) -> None:
    """The whole way: pre-trained model, refreshed weights, residual, newcomers."""
    dpaa = fit(small_world, "dpaa", **SIZE)
    other = fit(small_world, "simgcl", message_weights="dpaa", contrast_weight=0, include_ego=True, **SIZE)
    for name, tensor in dpaa.method.state().items():
        torch.testing.assert_close(other.method.state()[name], tensor, atol=1e-5, rtol=1e-4)
    for (name, weight), (_, mine) in zip(
        dpaa.method.tables.edge_columns(), other.method.tables.edge_columns(), strict=True
    ):
        torch.testing.assert_close(mine, weight, atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("name", OFFERING)
def test_neutral_weights_change_nothing(name: str, small_world: Dataset) -> None:
    plain = fit(small_world, name, **SIZE)
    neutral = {"iiw": False, "layer_emphasis": 0, "initial_residual": 0}
    same = fit(small_world, name, message_weights="dpaa", **SIZE, **neutral)
    for tensor, expected in plain.method.state().items():
        assert torch.equal(same.method.state()[tensor], expected), tensor
    assert "pretrained" not in plain.manifest


@pytest.mark.parametrize("name", OFFERING)
@pytest.mark.parametrize("source", ["layer", "readout"])
def test_weights_survive_the_folder_and_the_trace(name: str, source: str, small_world: Dataset, tmp_path: Path) -> None:
    how = {"message_weights": "dpaa", "weighted_layers": "all", "interaction_strength_from": source}
    model = fit(small_world, name, **SIZE, **how)
    model.save(tmp_path / "run")
    assert load(tmp_path / "run").recommend(k=5).equals(model.recommend(k=5))
    weights = [weight for _, weight in model.method.tables.edge_columns()]
    plain = model.method.graph.symmetric_weights().to_user
    assert not torch.allclose(weights[0], plain)
    trace = trace_run(tmp_path / "run")
    assert trace.verdict.startswith(f"{name} weights messages")

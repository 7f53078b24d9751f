"""With neutral hyperparameters a method is the simpler one that it extends, bit for bit; with its own it is not."""

from typing import Any

import pytest
import torch

from dpaa import METHODS, SSM, LightGCN
from dpaa.data.pairs import Pairs
from dpaa.methods._drawn import DrawnSoftmax
from dpaa.methods.base import Randomised, attach
from dpaa.methods.graph_method import GraphMethod
from dpaa.training.trainer import Trainer
from tests.methods.tools import SHORT, CrossEntropyLightGCN, WholeLightGCN, even_graph, some_graph, trained

NO_CONTRAST = {"contrast_weight": 0, "include_ego": True, "layers": 1}
IN_BATCH = {"negatives": "batch", "sampler": "user-uniform"}
NEUTRAL: list[tuple[str, dict[str, Any], type[GraphMethod], dict[str, Any]]] = [
    ("dpaa", {"iiw": False, "layer_emphasis": 0, "initial_residual": 0}, LightGCN, {}),
    ("dap", {"high_strength": 0, "low_strength": 0, "clusters": 10}, LightGCN, {}),
    ("navip", {"propensity_power": 0}, LightGCN, {}),
    ("ips", {"cap_quantile": 0}, LightGCN, {}),
    ("sam-reg", {"correlation_weight": 0, "negatives": "uniform"}, LightGCN, {}),
    ("reg", {"correlation_weight": 0}, LightGCN, {}),
    ("ipl", {"evenness_weight": 0}, LightGCN, {}),
    ("cvib", {"agreement_weight": 0, "confidence_weight": 0}, CrossEntropyLightGCN, {"share": 0.5}),
    ("cause", {"agreement_weight": 0}, CrossEntropyLightGCN, {}),
    ("sgl", {"contrast_weight": 0}, WholeLightGCN, {}),
    ("ncl", {"structure_weight": 0, "kind_weight": 0}, WholeLightGCN, {}),
    ("simgcl", NO_CONTRAST, WholeLightGCN, {"layers": 1}),
    ("xsimgcl", NO_CONTRAST | {"noise": 0}, WholeLightGCN, {"layers": 1}),
    ("paac", NO_CONTRAST | {"alignment_weight": 0}, WholeLightGCN, {"layers": 1}),
    ("bc-loss", {"margin": 0, "branch_weight": 0, "temperature": 0.2}, SSM, {"temperature": 0.2, **IN_BATCH}),
    ("bsl", {"temperature": 0.2, "temperature_ratio": 1}, DrawnSoftmax, {}),
    (
        "invcf",
        {"popularity_weight": 0, "mixed_weight": 0, "discrepancy_weight": 0},
        SSM,
        {"temperature": 0.15, **IN_BATCH},
    ),
]


def state_of(name: str, hyperparameters: dict[str, Any]) -> dict[str, torch.Tensor]:
    method = attach(METHODS[name](**(SHORT | hyperparameters)), some_graph())
    if isinstance(method, Randomised):
        method.take(Pairs.of([0, 1, 1, 5, 9, 9], [3, 4, 7, 3, 0, 11]))
    Trainer(method).run()
    return {part: tensor.detach() for part, tensor in method.state().items()}


@pytest.mark.parametrize(
    ("name", "neutral", "base", "simpler"), NEUTRAL, ids=[f"{number}-{row[0]}" for number, row in enumerate(NEUTRAL)]
)
def test_neutral_hyperparameters_give_the_simpler_method_bit_for_bit(
    name: str, neutral: dict[str, Any], base: type[GraphMethod], simpler: dict[str, Any]
) -> None:
    expected = trained(base, some_graph(), **simpler).state()
    found = state_of(name, neutral)
    for part in ("user_ego", "item_ego", "user_embedding", "item_message"):
        assert torch.equal(found[part], expected[part]), part


def test_with_even_popularity_inverse_propensities_change_nothing() -> None:
    weighted = trained(METHODS["ips"], even_graph())  # type: ignore[arg-type]
    assert torch.equal(weighted.state()["user_ego"], trained(LightGCN, even_graph()).state()["user_ego"])

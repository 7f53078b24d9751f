"""A method by name, by class or configured, on the graph of a dataset."""

from __future__ import annotations

import pytest
import torch

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.methods import METHODS
from dpaa.runs.build import make_method


def test_a_method_may_be_given_by_its_class(small_world: Dataset) -> None:
    assert dpaa.fit(small_world, method=METHODS["ease"]).method.name == "ease"


@pytest.mark.parametrize("method", [3, int, object(), "no-such", ["ease"]])
def test_what_is_no_method_is_said_so(small_world: Dataset, method: object) -> None:
    with pytest.raises(InputError, match="method"):
        dpaa.fit(small_world, method=method)  # type: ignore[arg-type]


def test_settings_given_beside_come_on_top_of_the_configured_ones(small_world: Dataset) -> None:
    configured = dpaa.LightGCN(layers=1, epochs=7)
    method = make_method(small_world, configured, {"epochs": 9})
    assert (method.layers, method.epochs) == (1, 9)  # type: ignore[attr-defined]
    assert configured.epochs == 7
    assert make_method(small_world, dpaa.LightGCN, {}).settings == dpaa.LightGCN()


def test_the_graph_has_every_user_and_item_and_the_training_pairs(small_world: Dataset) -> None:
    graph = make_method(small_world, "most-popular", {}).graph
    assert (graph.n_users, graph.n_items) == (small_world.n_users, small_world.n_items)
    assert int(graph.item_degree.sum()) == len(small_world.train)


def test_a_device_that_is_not_there_is_refused(small_world: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="torch finds no CUDA device here; use device=cpu or device=auto"):
        make_method(small_world, "lightgcn", {"device": "cuda"})
    assert make_method(small_world, "lightgcn", {"device": "auto"}).graph.item_degree.device.type == "cpu"

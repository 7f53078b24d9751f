import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dpaa.data.dataset import Dataset, from_files
from dpaa.errors import InputError
from dpaa.methods.graph_method import PAPER_TRAINING
from dpaa.runs import RunFolder, fit_into, make_method
from dpaa.trace import trace_run
from tests.command import dpaa_ok

COMMON = {"embedding_size": 12, "layers": 2, "epochs": 5, "batch_size": 1024, "threads": 1, "learning_rate": 0.01}
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "lightgcn": ("lightgcn", {}),
    "first": ("dpaa", {}),
    "all": ("dpaa", {"first_layer_only": 0.3, "layer_emphasis": 2, "half_trust_shift": 0.05}),
    "as-printed": ("dpaa-as-printed", {}),
    "neutral": ("dpaa", {"iiw": False, "layer_emphasis": 0, "initial_residual": 0}),
    "none": ("lightgcn", {"layers": 0}),
    "most-popular": ("most-popular", {}),
}


@pytest.fixture(scope="module")
def runs(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traced")
    for name, (method, settings) in RUNS.items():
        common = {} if method == "most-popular" else COMMON
        fit_into(folder / name, small_world, make_method(small_world, method, common | settings))
    return folder


@pytest.mark.parametrize("name", ["lightgcn", "first", "all", "as-printed"])
def test_shares_of_trained_runs_add_up(runs: Path, name: str) -> None:
    found = trace_run(runs / name)
    assert [pair.groups for pair in found.contributions] == ["popular / niche", "decile 10 / decile 1"]
    assert found.notes == []
    for shares in (layer.mass_share for layer in found.weights):
        assert sum(share or 0 for share in shares) == pytest.approx(1)
    assert sum(found.edges) == len(pl.read_parquet(runs / name / "edges.parquet"))


def test_a_neutral_run_equals_the_plain_one(runs: Path) -> None:
    plain, neutral = trace_run(runs / "lightgcn"), trace_run(runs / "neutral")
    assert neutral.premises == plain.premises
    assert neutral.weights == plain.weights
    assert neutral.contributions == plain.contributions
    assert neutral.epochs == plain.epochs == []
    for layer in plain.weights:
        assert layer.relative == pytest.approx([1] * 10)


def test_layers_are_those_of_training(runs: Path) -> None:
    """What the trace calls weights and strengths is what the method used."""
    found = trace_run(runs / "first")
    assert [(premise.vectors, premise.layer) for premise in found.premises] == [
        *(("own", 0), ("own", 1), ("own", 2), ("own", None)),
        *(("pretrained", 0), ("pretrained", 1), ("pretrained", 2), ("pretrained", None)),
    ]
    history = found.epochs
    assert [line["epoch"] for line in history] == [1, 2, 3, 4, 5]
    # Epoch 1 has β = 1: the weights that were applied were the pre-trained model's.
    assert history[0]["iiw_by_decile"] == pytest.approx(found.premises[4].iiw, abs=1e-5)
    emphasis = 2 / 3  # λ_0 with mean 1 over two layers
    assert found.weights[1].relative == pytest.approx([4 / 3] * 10)
    best = RunFolder(runs / "first").read_json("manifest.json")["training"]["best_epoch"]
    applied = np.array(found.weights[0].relative, dtype=float) / emphasis
    assert applied == pytest.approx(history[best - 1]["iiw_by_decile"], abs=1e-5)


def test_verdicts_come_first_and_name_their_rule(runs: Path) -> None:
    lines = dpaa_ok("trace", runs / "first").out.splitlines()
    assert lines[0].startswith("dpaa weights messages by layer 0: there the premise ")
    assert lines[1].startswith("  layer 0: the premise ")
    assert lines[4].startswith("  read-out: the premise ")
    assert lines[5].startswith("  layer 0 of the pre-trained model: the premise ")
    assert lines[9].startswith("rule: ")
    for title in ("Lemma 1", "some epochs", "messages of layer 1"):
        assert title in "\n".join(lines[9:])


def test_json_is_one_object_beside_figures(runs: Path, tmp_path: Path) -> None:
    said = dpaa_ok("trace", runs / "first", "--json", "--figures", tmp_path / "drawn")
    found = json.loads(said.out)  # what is said about figures goes to the other stream
    assert found["method"] == "dpaa"
    assert {verdict["verdict"] for verdict in found["premises"]} <= {"holds", "flat", "reversed"}
    assert len(found["weights"]) == 2
    assert [pair["groups"] for pair in found["contributions"]] == ["popular / niche", "decile 10 / decile 1"]
    assert [line["epoch"] for line in found["epochs"]] == [1, 2, 3, 4, 5]
    assert dpaa_ok("trace", runs / "first", "--json").out == said.out
    assert len(list((tmp_path / "drawn").glob("*.svg"))) == len(list((tmp_path / "drawn").glob("*.png"))) == 3
    assert "figures written to" in said.err


@pytest.mark.parametrize("name", ["none", "most-popular"])
def test_runs_without_messages_are_refused(runs: Path, name: str) -> None:
    with pytest.raises(InputError, match="weights no messages"):
        trace_run(runs / name)


@pytest.mark.parametrize(
    ("epochs", "verdicts"),
    [
        (35, {0: "holds", 1: "holds", 2: "holds"}),  # where early stopping ends with seed 0
        (250, {0: "reversed", 2: "holds"}),
    ],
)
def test_the_premise_on_coat_turns(real_data: Path, tmp_path: Path, epochs: int, verdicts: dict[int, str]) -> None:
    folder = real_data / "coat-paper-split"
    coat = from_files(folder / "train.txt", test=folder / "test.txt")  # no validation: all epochs are trained
    settings = PAPER_TRAINING | {"embedding_size": 256, "layers": 2, "epochs": epochs}
    method = make_method(coat, "lightgcn", settings)
    fit_into(tmp_path / "run", coat, method)
    found = {premise.layer: premise for premise in trace_run(tmp_path / "run").premises}
    assert {layer: found[layer].verdict for layer in verdicts} == verdicts

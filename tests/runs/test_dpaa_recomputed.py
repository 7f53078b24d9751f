"""A DPAA run is recomputed from its files alone, by the example script, which knows nothing of the package."""

import ast
import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaa.data.dataset import Dataset
from dpaa.methods.graph_method import PAPER_TRAINING
from dpaa.runs.fit import fit_into, make_method

SCRIPT = Path(__file__).parents[2] / "examples" / "recompute_run.py"
SMALL = {"embedding_size": 12, "layers": 3, "epochs": 6, "batch_size": 1024, "threads": 1, "learning_rate": 0.02}
COMMON = PAPER_TRAINING | SMALL
Recompute = Callable[[Path], dict[str, float]]


@pytest.fixture(scope="module")
def recompute() -> Recompute:
    found: Recompute = runpy.run_path(str(SCRIPT))["recompute"]
    return found


@pytest.fixture(scope="module")
def folder(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pre-trained run `plain`."""
    place = tmp_path_factory.mktemp("recomputed")
    fit_into(place / "plain", small_world, make_method(small_world, "lightgcn", COMMON))
    return place


def train(folder: Path, data: Dataset, method: str = "dpaa", **settings: Any) -> Path:
    run = folder / "-".join([method, *map(str, settings.values())])
    needs = settings.get("iiw", True) and settings.get("estimate") != "current"
    chosen = make_method(data, method, COMMON | settings)
    fit_into(run, data, chosen, overwrite=True, pretrained=folder / "plain" if needs else None)
    return run


def test_the_script_knows_nothing_of_the_package() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    allowed = {"numpy", "polars", "safetensors", *sys.stdlib_module_names}
    assert {name.partition(".")[0] for name in names} <= allowed


BLENDED: dict[str, Any] = {"half_trust_shift": 0.05}


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("dpaa", BLENDED),
        (
            "dpaa",
            BLENDED | {"first_layer_only": 0.0, "interaction_strength_from": "readout", "neighbour_scaling": "none"},
        ),
        ("dpaa", BLENDED | {"first_layer_only": 0.4}),
        ("dpaa", {"iiw": False}),
        ("dpaa", {"estimate": "current", "layer_weight_norm": "none"}),
        ("dpaa", {"estimate": "pretrained", "layer_emphasis": 2.5}),
        ("dpaa", {"initial_residual": 0.0, "half_trust_shift": 0.0}),
        ("dpaa-normalised", {}),
        ("dpaa-as-printed", {"learning_rate": 0.001}),
    ],
    ids=str,
)
def test_weights_layers_and_readout(
    folder: Path, small_world: Dataset, recompute: Recompute, method: str, settings: dict[str, Any]
) -> None:
    run = train(folder, small_world, method, **settings)
    best = json.loads((run / "manifest.json").read_text())["training"]["best_epoch"]
    assert best > 2 or settings != BLENDED, "the first two epochs have no blend to check"
    differences = recompute(run)
    assert {"user_embedding", "item_embedding"} <= set(differences)
    assert sum(name.startswith("weight_") for name in differences) == 3
    assert max(differences.values()) < 1e-5, differences


@pytest.mark.parametrize("name", ["plain", "dpaa"])
def test_from_the_command_line(
    folder: Path, small_world: Dataset, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = folder / "plain" if name == "plain" else train(folder, small_world, layer_emphasis=0.5)
    monkeypatch.setattr(sys, "argv", ["recompute_run.py", str(run)])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    if name == "plain":
        assert "is a run of lightgcn" in str(end.value)
    else:
        assert not end.value.code
        assert "item_embedding   largest relative difference" in capsys.readouterr().out

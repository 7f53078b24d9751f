"""A DPAA run is recomputed from its files alone, by the example script, which knows nothing of the package."""

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dpaa.data.dataset import Dataset
from dpaa.methods.graph_method import PAPER_TRAINING
from dpaa.runs.fit import fit_into, make_method

SCRIPT = Path(__file__).parents[2] / "examples" / "recompute_run.py"
SMALL = {"embedding_size": 12, "layers": 3, "epochs": 6, "batch_size": 1024, "threads": 1, "learning_rate": 0.02}
COMMON = PAPER_TRAINING | SMALL


@pytest.fixture(scope="module")
def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("recompute_run", SCRIPT)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # dataclasses look their module up
    found.loader.exec_module(module)
    return module


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


@pytest.mark.parametrize(
    ("gamma", "source", "scaling"),
    [(1.0, "layer", "symmetric"), (0.0, "readout", "none"), (0.4, "layer", "symmetric")],
)
def test_weights_layers_and_readout(
    folder: Path, small_world: Dataset, script: ModuleType, gamma: float, source: str, scaling: str
) -> None:
    run = train(
        folder,
        small_world,
        first_layer_only=gamma,
        interaction_strength_from=source,
        neighbour_scaling=scaling,
        half_trust_shift=0.05,
    )
    best = json.loads((run / "manifest.json").read_text())["training"]["best_epoch"]
    assert best > 2, "the first two epochs have no blend to check"
    differences = script.recompute(run)
    assert set(differences) == {"weight_0", "weight_1", "weight_2", "user_embedding", "item_embedding"}
    assert max(differences.values()) < 1e-5, differences


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("dpaa-as-printed", {"learning_rate": 0.001}),
        ("dpaa-normalised", {}),
        ("dpaa", {"iiw": False}),
        ("dpaa", {"estimate": "current", "layer_weight_norm": "none"}),
        ("dpaa", {"estimate": "pretrained", "layer_emphasis": 2.5}),
        ("dpaa", {"initial_residual": 0.0, "half_trust_shift": 0.0}),
    ],
    ids=str,
)
def test_presets_and_ablations(
    folder: Path, small_world: Dataset, script: ModuleType, method: str, settings: dict[str, Any]
) -> None:
    assert max(script.recompute(train(folder, small_world, method, **settings)).values()) < 1e-5


def test_from_the_command_line(folder: Path, small_world: Dataset) -> None:
    run = train(folder, small_world, layer_emphasis=0.5)
    said = subprocess.run([sys.executable, SCRIPT, run], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert "item_embedding   largest relative difference" in said.stdout
    said = subprocess.run([sys.executable, SCRIPT, folder / "plain"], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert "is a run of lightgcn" in said.stderr

import os
from collections.abc import Generator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import settings

from dpaa import METHODS, Dataset
from dpaa.data.pairs import Pairs
from dpaa.data.sources import world
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.ranking import RERANKERS
from dpaa.training import _state
from tests.command import Said, dpaa_ok

settings.register_profile("dpaa", deadline=None, max_examples=60)
settings.load_profile("dpaa")


SLOW = (
    *("cli", "contract", "errors", "report", "reproduction", "runs", "training", "tuning", "trace/test_run.py"),
    *("debiasing/test_debias.py", "debiasing/test_models.py"),
    *("data/test_parquet.py", "exporting/test_exports.py", "serving"),
    *("comparison/test_training_budget.py", "comparison/test_level_and_power.py"),
    *("test_plugins.py", "test_wheel.py"),
    *("test_benchmarks.py", "test_docs.py", "test_documented_names.py", "test_examples.py"),
)
"""Tests that train, start processes or open a browser; `make test-fast` leaves them out."""


UNCOUNTED = (
    *("contract", "golden", "test_docs.py", "test_benchmarks.py", "test_examples.py"),
    *("cli/test_width.py", "cli/test_tomorrow.py", "comparison/test_level_and_power.py"),
    *("reproduction/test_committed.py", "runs/test_dpaa_recomputed.py"),
    *("test_import_rule.py", "test_ratchet.py", "test_vocabulary.py"),
)
"""Tests during which coverage is not counted, as in those of Hypothesis: they repeat at length what others show by an
example, or read the sources; counting would double their time."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, object, object]:
    here = Path(__file__).parent
    places = {item: item.path.relative_to(here).as_posix() for item in items}
    for item, place in places.items():
        if place.startswith(SLOW):
            item.add_marker(pytest.mark.slow)  # before `-m "not slow"` chooses
    found = yield  # Hypothesis marks its own
    for item in items:
        if places[item].startswith(UNCOUNTED) or item.get_closest_marker("hypothesis"):
            item.add_marker(pytest.mark.no_cover)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)  # first: whoever ends last ends soon then
    return found


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Two test processes share two cores; OpenMP teams would only get in each other's way."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def known_draws() -> None:
    """What a test draws from torch's global stream depends on that test alone, not on those before it."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def known_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test makes known by name is forgotten after it."""
    for registry in (METHODS, RERANKERS):
        monkeypatch.setattr(registry, "_named", {})


@pytest.fixture(scope="session")
def small_world() -> Dataset:
    """A world in which tastes can be learned, small enough to train on in seconds; every user has training pairs."""
    return warm_users(world.simulate(users=300, items=200, seed=1))


def warm_users(data: Dataset) -> Dataset:
    """The dataset without pairs of users that have no training pair."""
    frames = {split: data.frame(split) for split in ("train", "valid", "test")}
    warm = frames["train"]["user_id"].unique().implode()
    kept = {split: frame.filter(pl.col("user_id").is_in(warm)) for split, frame in frames.items()}
    return Dataset.of(kept, name=data.name, about={key: data.about[key] for key in data.about if key != "counts"})


TINY: dict[str, object] = {"embedding_size": 8, "layers": 2, "epochs": 3, "threads": 1}
"""Settings of a training that takes a moment."""


SHORT = 0.03
"""Of `short_trainings`: early stopping may end a training with defaults after 30 steps instead of 1,500."""


@pytest.fixture
def short_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings with default hyperparameters end early, for tests of what comes before and after them."""
    monkeypatch.setattr(_state, "AUTO_DISTANCE", SHORT)


@pytest.fixture(scope="session")
def demo_said(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Said]:
    """`dpaa demo` in a small world with a short training: its folder, and what it said."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        small = warm_users(world.simulate(users=150, items=100))
        patch.setattr(world, "simulate", lambda *_, **__: small)
        patch.setattr(_state, "AUTO_DISTANCE", SHORT)
        said = dpaa_ok("demo", "--out", folder)
    return folder, said


@pytest.fixture(scope="session")
def demo_folder(demo_said: tuple[Path, Said]) -> Path:
    return demo_said[0]


@pytest.fixture
def toy_graph() -> BipartiteGraph:
    """The shared toy case: u0–{i0, i1}, u1–{i0}, i2 cold."""
    return BipartiteGraph.from_pairs(Pairs.of([0, 0, 1], [0, 1, 0]), 2, 3)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real datasets; tests that need it are skipped without it."""
    place = os.environ.get("DPAA_REAL_DATA")
    if not place:
        pytest.skip("DPAA_REAL_DATA is not set: no real data here")
    return Path(place)


def random_pairs(rng: np.random.Generator, n_users: int, n_items: int, density: float = 0.3) -> Pairs:
    """Some pairs; users and items without any may occur."""
    user, item = np.nonzero(rng.random((n_users, n_items)) < density)
    return Pairs.of(user, item)

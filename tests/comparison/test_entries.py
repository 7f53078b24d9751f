"""Run folders and files become entries: which runs belong together, what they are called, what is refused."""

from pathlib import Path
from typing import Any

import pytest

from dpaa import load, read_dataset
from dpaa.comparison import compare_entries, read_entries
from dpaa.data.sources.world import simulate
from dpaa.ranking import Dial
from dpaa.runs.fit import fit_into, make_method


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, runs of methods that take a moment, and a file of lists."""
    place = tmp_path_factory.mktemp("entries")
    simulate(users=60, items=40, seed=1).write(place / "data")
    simulate(users=60, items=40, seed=2).write(place / "other-data")
    tiny = {"embedding_size": 4, "layers": 1, "epochs": 1}
    chosen: dict[str, tuple[str, str, dict[str, Any]]] = {
        "popular": ("data", "most-popular", {}),
        "first": ("data", "lightgcn", tiny | {"seed": 3, "threads": 1}),
        "second": ("data", "lightgcn", tiny | {"seed": 4, "threads": 2}),
        "wider": ("data", "lightgcn", tiny | {"seed": 5, "embedding_size": 5}),
        "elsewhere": ("other-data", "most-popular", {}),
    }
    for name, (data, method, settings) in chosen.items():
        from_folder = read_dataset(place / data)
        model = fit_into(place / name, from_folder, make_method(from_folder, method, settings))
        if name == "popular":
            model.recommend(k=20).write_csv(place / "popular.csv")
    return place


def test_runs_that_differ_in_seed_and_threads_alone_are_one_entry(runs: Path) -> None:
    places = [runs / name for name in ("first", "popular", "second", "wider", "popular.csv")]
    _, entries = read_entries(places)
    assert [(entry.name, entry.kind, entry.seeds) for entry in entries] == [
        ("lightgcn", "run", (3, 4)),
        ("popular", "run", (0,)),
        ("wider", "run", (5,)),
        ("popular.csv", "file", ()),
    ]
    assert entries[0].sources == (str(runs / "first"), str(runs / "second"))
    assert [len(entry.evaluations) for entry in entries] == [2, 1, 1, 1]


def test_a_run_is_compared_with_the_reranker_that_it_keeps(runs: Path, tmp_path: Path) -> None:
    data = read_dataset(runs / "data")
    turned = Dial(kappa=-2.0)
    for seed in (7, 8):
        method = make_method(data, "lightgcn", {"embedding_size": 4, "layers": 1, "epochs": 1, "seed": seed})
        fit_into(tmp_path / str(seed), data, method, rerank=turned if seed == 8 else None)
    evaluator, entries = read_entries([tmp_path / "7", tmp_path / "8"])
    assert [entry.name for entry in entries] == ["7", "8"]  # not one entry: their lists are made in two ways
    (found,) = entries[1].evaluations
    assert found.metrics == evaluator.evaluate(load(tmp_path / "8").method, reranker=turned).metrics
    assert found.protocol.rerank == "dial,kappa=-2.0"
    notes = compare_entries(evaluator, entries).notes
    assert f"{tmp_path / '8'}: re-ranked by dial,kappa=-2.0, as the run keeps it" in notes

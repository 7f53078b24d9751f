"""Run folders and files become entries: which runs belong together, what they are called, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dpaa.comparison.entries import read_entries, write_comparison
from dpaa.comparison.result import Comparison
from dpaa.data.dataset import read_dataset
from dpaa.data.sources.world import simulate
from dpaa.errors import InputError
from dpaa.ranking import Dial
from dpaa.runs.fit import fit_into, make_method
from dpaa.runs.model import load
from dpaa.text import finite


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
    assert found.notes == (f"{tmp_path / '8'}: re-ranked by dial,kappa=-2.0, as the run keeps it",)


def test_a_dial_chosen_afterwards_parts_runs(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "second", tmp_path / "second")
    file = tmp_path / "second" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["dial"] |= {"chosen_for": "niche"}
    file.write_text(json.dumps(manifest))
    _, entries = read_entries([runs / "first", tmp_path / "second"])
    assert [entry.name for entry in entries] == ["first", "second"]


def test_a_name_that_would_occur_twice_is_the_whole_path(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "wider", tmp_path / "popular")
    _, entries = read_entries([runs / "popular", tmp_path / "popular", runs / "first"])
    assert [entry.name for entry in entries] == [str(runs / "popular"), str(tmp_path / "popular"), "first"]


def test_lists_of_a_file_are_measured_as_those_of_its_run(runs: Path) -> None:
    evaluator, (run, file) = read_entries([runs / "popular", runs / "popular.csv"], k=5)
    assert evaluator.protocol.k == (5,)
    assert run.evaluations[0].metrics == pytest.approx(file.evaluations[0].metrics, nan_ok=True)
    assert (run.evaluations[0].lists == file.evaluations[0].lists).all()


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["popular"], "nothing to compare .*popular with; name at least two"),
        (["popular", "first", "first/../popular"], "is named twice; name each run or file once"),
        (["popular", "nowhere"], "no run folder or recommendation file .*nowhere; check the name"),
        (["popular", "data"], "data is a dataset and not a run; name it with --dataset"),
        (["popular", "elsewhere"], "popular was trained on another dataset than demo: .* of its training pairs"),
        (["popular.csv", "again.csv"], "popular.csv does not say what it should have recommended"),
    ],
)
def test_refused(runs: Path, names: list[str], says: str) -> None:
    pl.read_csv(runs / "popular.csv").write_csv(runs / "again.csv")
    with pytest.raises(InputError, match=says):
        read_entries([runs / name for name in names])


def test_runs_are_compared_on_the_dataset_they_were_trained_on(runs: Path, tmp_path: Path) -> None:
    places = [runs / "popular", runs / "first"]
    with pytest.raises(
        InputError, match=r"popular was trained on another dataset than demo: \d% of its training pairs"
    ):
        read_entries(places, runs / "other-data")
    shutil.copytree(runs / "popular", tmp_path / "popular")
    file = tmp_path / "popular" / "manifest.json"
    manifest = json.loads(file.read_text())
    for path, says in ((None, "does not say where its dataset is"), (str(tmp_path / "gone"), "is no longer at")):
        manifest["dataset"]["path"] = path
        file.write_text(json.dumps(manifest))
        with pytest.raises(InputError, match=says):
            read_entries([tmp_path / "popular", runs / "popular.csv"])
        assert len(read_entries([tmp_path / "popular", runs / "popular.csv"], runs / "data")[1]) == 2


def test_a_written_comparison_is_the_comparison(found: Comparison, tmp_path: Path) -> None:
    write_comparison(found, tmp_path / "found.json")
    assert json.loads((tmp_path / "found.json").read_text()) == json.loads(json.dumps(finite(found.as_json())))
    assert [file.name for file in tmp_path.iterdir()] == ["found.json"]

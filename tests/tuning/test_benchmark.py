"""The table of many methods: equal trials, the numbers of the runs it trained, resumed."""

import json
from pathlib import Path

import pytest

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.data.sources.world import simulate
from dpaa.methods.macr import REFERENCES
from dpaa.tuning.benchmark import benchmark

QUICK = {"epochs": 2, "embedding_size": 4}


@pytest.fixture(scope="module")
def data() -> Dataset:
    return simulate(users=80, items=60, seed=2)


@pytest.fixture(scope="module")
def made(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench") / "table"
    benchmark(folder, data, ["most-popular", "lightgcn", "ease", "macr"], trials=2, seeds=2, settings=QUICK)
    return folder


def test_every_method_has_the_same_budget(made: Path, data: Dataset) -> None:
    found = json.loads((made / "benchmark.json").read_text())["found"]
    trials = {one["method"]: one["trials"] for one in found["methods"]}
    assert trials == {"most-popular": 1, "lightgcn": 2, "ease": 2, "macr": 2}
    lookups = {one["method"]: one["lookups"] for one in found["methods"]}
    assert lookups == {"most-popular": 1, "lightgcn": 2, "ease": 2, "macr": 2 * len(REFERENCES)}
    runs = {one["method"]: len(one["runs"]) for one in found["methods"]}
    assert runs == {"most-popular": 1, "lightgcn": 2, "ease": 1, "macr": 2}
    entries = {one["name"]: one["metrics"] for one in found["comparison"]["entries"]}
    for one in found["methods"]:
        recalls = [dpaa.evaluate(dpaa.load(run), data).metrics["recall@20"] for run in one["runs"]]
        assert entries[one["method"]]["recall@20"] == pytest.approx(sum(recalls) / len(recalls))
    assert found["comparison"]["baseline"] == "most-popular"
    for name in ("table.md", "table.tex", "table.csv", "comparison.json"):
        assert "lightgcn" in (made / name).read_text()


def test_it_is_resumed_and_adds_methods(made: Path, data: Dataset) -> None:
    before = {file: file.stat().st_mtime_ns for file in made.rglob("model.safetensors")}
    names = ["most-popular", "lightgcn", "ease", "macr", "als"]
    found = benchmark(made, data, names, trials=2, seeds=2, settings=QUICK)
    assert {file: file.stat().st_mtime_ns for file in before} == before
    names = [one["method"] for one in found.methods]
    assert names[:4] == ["most-popular", "lightgcn", "ease", "macr"]
    assert ("als" in names) != any(note.startswith("als was left out") for note in found.notes)

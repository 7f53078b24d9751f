"""What must survive: finished runs and datasets, other people's files; and what may not be left behind."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from dpaa import Dataset, InputError, load, read_dataset
from dpaa._io import lock_of, locked
from dpaa.runs.fit import Callbacks, fit, fit_into, make_method
from tests.command import dpaa_ok, run_dpaa
from tests.trainings import interrupted

SETTINGS: dict[str, Any] = {"embedding_size": 8, "layers": 1, "epochs": 4, "batch_size": 512, "threads": 1}


@pytest.fixture(scope="module")
def made(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset and two runs that differ in their seed and layers."""
    folder = tmp_path_factory.mktemp("made")
    small_world.write(folder / "data")
    data = read_dataset(folder / "data")
    for seed in (1, 2):
        fit_into(
            folder / f"seed-{seed}", data, make_method(data, "lightgcn", SETTINGS | {"seed": seed, "layers": seed})
        )
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "place"))


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def stopped(folder: Path, data: Dataset) -> None:
    interrupted(6, folder, data, make_method(data, "lightgcn", SETTINGS | {"seed": 7}), overwrite=True)


def test_overwrite_stopped_twice_and_then_diverging_leaves_the_good_run(place: Path) -> None:
    data, before = read_dataset(place / "data"), content(place / "seed-1")
    stopped(place / "seed-1", data)
    stopped(place / "seed-1", data)
    wild = make_method(data, "lightgcn", SETTINGS | {"learning_rate": 1e30})
    with pytest.raises(InputError, match="learning_rate"):
        fit_into(place / "seed-1", data, wild, overwrite=True)
    assert content(place / "seed-1") == before
    assert names(place) == ["data", "seed-1", "seed-2"]


def test_a_stopped_overwrite_leaves_the_finished_run_usable_and_goes_on_as_if_never_stopped(place: Path) -> None:
    data, before = read_dataset(place / "data"), content(place / "seed-1")
    method = make_method(data, "lightgcn", SETTINGS | {"seed": 7})
    fit_into(place / "whole", data, method)
    stopped(place / "seed-1", data)
    assert content(place / "seed-1") == before
    load(place / "seed-1")
    with pytest.raises(InputError, match="holds a finished run; pass --overwrite"):
        fit_into(place / "seed-1", data, method, resume=True)
    fit_into(place / "seed-1", data, make_method(data, "lightgcn", SETTINGS | {"seed": 7}), overwrite=True, resume=True)
    same = ("config.json", "model.safetensors", "edges.parquet")
    assert all(content(place / "seed-1")[name] == content(place / "whole")[name] for name in same)
    assert names(place) == ["data", "seed-1", "seed-2", "whole"]


def test_overwrite_of_a_run_that_is_being_trained_is_refused_before_anything_moves(place: Path) -> None:
    data, before = read_dataset(place / "data"), content(place)
    with locked(lock_of(place / "seed-1")), pytest.raises(InputError, match="seed-1 is in use by another process"):
        fit_into(place / "seed-1", data, make_method(data, "lightgcn", SETTINGS), overwrite=True)
    assert content(place) == before


def test_a_saved_model_takes_its_place_whole(place: Path, small_world: Dataset) -> None:
    model = fit(small_world, "ease")
    with pytest.raises(InputError, match="holds a finished run; pass --overwrite"):
        model.save(place / "seed-1")
    model.save(place / "seed-1", overwrite=True)
    assert load(place / "seed-1").method.name == "ease"
    with pytest.raises(InputError, match="something other than a run"):
        model.save(place / "data", overwrite=True)


def test_planted_links_in_a_run_are_not_written_through(place: Path) -> None:
    outside = place / "outside"
    outside.write_text("mine")
    planted = ("metrics.json.new", "per_user.parquet.new", "config.json.new", "manifest.json.new", "metrics.json")
    for file in (place / ".p.html.new", *(place / "seed-1" / name for name in planted)):
        file.symlink_to(outside)
    dpaa_ok("evaluate", place / "seed-1", "--popularity-dial", "ndcg")
    dpaa_ok("report", place / "seed-1", "--out", place / "p.html")
    assert outside.read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["model.safetensors", "edges.parquet", "manifest.json", "config.json", "history.jsonl"]
)
def test_a_file_of_another_run_is_refused(place: Path, name: str) -> None:
    shutil.copy(place / "seed-2" / name, place / "seed-1" / name)
    for words in (
        ("recommend", place / "seed-1"),
        ("evaluate", place / "seed-1"),
        ("compare", place / "seed-1", place / "seed-2"),
    ):
        said = run_dpaa(*words)
        assert said.code == 2, (words, said.out)
        assert "is not the file this run was written with" in said.err


def test_pipes_in_a_run_do_not_hang(place: Path) -> None:
    for name in ("manifest.json", "config.json", "model.safetensors", "edges.parquet", "users.parquet"):
        run = Path(shutil.copytree(place / "seed-1", place / f"spoilt-{name}"))
        (run / name).unlink()
        os.mkfifo(run / name)
        said = run_dpaa("recommend", run)
        assert said.code == 2
        assert "is a pipe or device" in said.err


def test_resuming_a_run_that_was_killed_in_its_last_moment_gives_that_run(place: Path) -> None:
    data, before = read_dataset(place / "data"), content(place / "seed-1")
    (place / "seed-1" / "checkpoint").mkdir()
    said: list[str] = []
    method = make_method(data, "lightgcn", SETTINGS | {"seed": 1, "layers": 1})
    model = fit_into(place / "seed-1", data, method, resume=True, callbacks=Callbacks(say=said.append))
    assert "is finished already" in said[0]
    assert model.manifest["seed"] == 1
    assert content(place / "seed-1") == before
    assert not (place / "seed-1" / "checkpoint").exists()
    other = make_method(data, "lightgcn", SETTINGS | {"seed": 3})
    with pytest.raises(InputError, match="holds a finished run"):
        fit_into(place / "seed-1", data, other, resume=True)

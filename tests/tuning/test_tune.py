"""A study from its first trial to the runs of the best, stopped and resumed; the table of many methods."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

import dpaa
from dpaa import Dataset, InputError, Model, load
from dpaa.methods.macr import REFERENCES
from dpaa.tuning import _study as study
from dpaa.tuning.benchmark import benchmark
from dpaa.tuning.tune import tune
from tests.tuning.conftest import FEW, TINY, settings_of


def test_a_study_keeps_every_trial_and_trains_the_best_over_seeds(world: Dataset, tmp_path: Path) -> None:
    result = tune(tmp_path / "study", world, "lightgcn", trials=4, seeds=2, settings=TINY, seed=3)
    kept = [json.loads(line) for line in (tmp_path / "study/trials.jsonl").read_text().splitlines()]
    assert [trial["settings"] for trial in kept] == settings_of(result)
    assert result.trials[0].settings == {"learning_rate": 1e-3, "l2": 1e-4, "layers": 3}, "the defaults come first"
    for trial in result.trials:
        assert trial.state == "complete"
        assert len(trial.curve) == 3
        assert trial.seconds
        assert trial.value == pytest.approx(max(trial.curve), abs=1e-6), "what early stopping saw"
        assert trial.best_epoch == 1 + trial.curve.index(max(trial.curve))
    assert result.best.value == max(trial.value or 0 for trial in result.trials)
    chosen = tomllib.loads((tmp_path / "study/best.toml").read_text())
    assert chosen == {"method": "lightgcn"} | result.settings == {"method": "lightgcn"} | TINY | result.best.settings
    assert [run["seed"] for run in result.runs] == [3, 4]
    assert result.runs[0]["valid_recall@20"] == result.best.value, "the same training, now with its files"
    for run in result.runs:
        settings = load(run["folder"]).method.get_params()
        assert settings.items() >= (result.settings | {"seed": run["seed"], "threads": 1}).items()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["study"], "no lock is left"
    left = {file.name for file in (tmp_path / "study").iterdir()}
    assert left == {"study.json", "study.sqlite", "trials.jsonl", "best.toml", "runs"}


def test_a_study_that_is_done_trains_only_more_trials(world: Dataset, tmp_path: Path, trained: list[str]) -> None:
    first = tune(tmp_path, world, "lightgcn", trials=2, seeds=1, settings=TINY)
    assert len(trained) == 2
    again = tune(tmp_path, world, "lightgcn", trials=2, seeds=1, settings=TINY)
    assert len(trained) == 2
    assert again == first
    more = tune(tmp_path, world, "lightgcn", trials=3, seeds=0, settings=TINY)
    assert len(trained) == 3
    assert more.trials[:2] == first.trials


def test_the_search_ends_with_the_paper_s_grid(world: Dataset, tmp_path: Path, trained: list[str]) -> None:
    some = tune(tmp_path, world, "item-knn", space="paper", trials=2, seeds=0)
    result = tune(tmp_path, world, "item-knn", space="paper", seeds=3)
    assert result.trials[:2] == some.trials
    assert len(trained) == 5
    assert sorted(trial.settings["neighbours"] for trial in result.trials) == [20, 50, 100, 200, 500]
    assert len(result.runs) == 1, "nothing in it depends on a seed"


def test_a_stopped_study_continues(world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tune(tmp_path / "whole", world, "lightgcn", settings=TINY, trials=7, seeds=0)
    fit_method, calls = study.fit_method, []

    def fit(*args: Any, **more: Any) -> Model:
        calls.append(args)
        if len(calls) == 4:
            raise KeyboardInterrupt
        if len(calls) == 7:
            raise SystemExit  # Optuna does not see it: as if killed
        return fit_method(*args, **more)

    monkeypatch.setattr(study, "fit_method", fit)
    for stop in (KeyboardInterrupt, SystemExit):
        with pytest.raises(stop):
            tune(tmp_path / "cut", world, "lightgcn", settings=TINY, trials=7, seeds=0)
    result = tune(tmp_path / "cut", world, "lightgcn", settings=TINY, trials=7, seeds=0)
    assert settings_of(result) == settings_of(whole)
    assert [trial.state for trial in result.trials].count("lost") == 2
    assert len(calls) == 9


class Sealed:
    """A test split that nobody may look at."""

    def refuse(self, *_: object) -> NoReturn:
        raise AssertionError("the test split was opened")

    __getattr__ = __len__ = __iter__ = __getitem__ = refuse


@pytest.mark.parametrize("method", ["dpaa", "ppac", "ease"])
def test_the_test_split_is_never_opened(method: str, world: Dataset, tmp_path: Path) -> None:
    sealed = replace(world, test=Sealed())  # type: ignore[arg-type]
    sealed.__dict__["fingerprint"] = world.fingerprint  # it names the whole dataset; computing it would look
    result = tune(tmp_path, sealed, method, trials=2, seeds=1, settings={} if method == "ease" else TINY)
    assert len(settings_of(result)) == 2
    # Of the finished model: strengths that a method chooses after training can only be better than none.
    assert all((trial.value or 0) >= max(trial.curve, default=0) - 1e-6 for trial in result.trials)
    assert result.runs[0]["valid_recall@20"] == result.best.value
    with pytest.raises(AssertionError, match="was opened"):
        len(sealed.test)


def test_a_trial_below_median_is_pruned(small_world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "STARTUP", 1)
    settings = {"epochs": 25, "embedding_size": 8, "layers": 0, "learning_rate": 3e-2}
    grid: dict[str, Any] = {
        "space": "paper",
        "settings": settings,
        "values": {"l2": (1e-4, 1e4)},
        "seeds": 0,
        "seed": 1,
    }
    good, bad = tune(tmp_path / "a", small_world, "lightgcn", prune_after=10, **grid).trials
    assert (good.settings, good.state, len(good.curve)) == ({"l2": 1e-4}, "complete", 25)
    assert bad.state == "pruned"
    assert len(bad.curve) in (10, 20)
    assert bad.value == max(bad.curve) < max(good.curve[: len(bad.curve)])
    never = tune(tmp_path / "b", small_world, "lightgcn", prune_after=0, **grid)
    assert [len(trial.curve) for trial in never.trials] == [25, 25]


def test_a_loss_that_is_no_number_is_a_result_too(world: Dataset, tmp_path: Path, trained: list[str]) -> None:
    values = FEW | {"learning_rate": (1e-2, 1e30), "layers": (1,)}
    result = tune(tmp_path, world, "lightgcn", settings=TINY, values=values, seeds=0)
    assert [trial.state for trial in result.trials] == ["diverged", "complete"]
    assert result.best.settings["learning_rate"] == 1e-2
    tune(tmp_path, world, "lightgcn", settings=TINY, values=values, seeds=0)
    assert len(trained) == 2
    with pytest.raises(InputError, match="no trial came to a result: the loss became"):
        tune(tmp_path / "b", world, "lightgcn", settings=TINY, values=FEW | {"learning_rate": (1e30,), "layers": (1,)})


def test_a_study_of_another_version_or_call_is_left_alone(world: Dataset, tmp_path: Path) -> None:
    tune(tmp_path / "study", world, "ease", trials=1, seeds=0, prune_after=0)
    about = tmp_path / "study" / "study.json"
    before = about.read_text()
    with pytest.raises(InputError, match="belongs to a call with another goal"):
        tune(tmp_path / "study", world, "ease", metric="arp@20", prune_after=0)
    about.write_text(json.dumps(json.loads(before) | {"format": 1}))
    with pytest.raises(InputError, match=r"a call with another format; choose another folder"):
        tune(tmp_path / "study", world, "ease", trials=2, seeds=0)
    assert len((tmp_path / "study" / "trials.jsonl").read_text().splitlines()) == 1


QUICK = {"epochs": 2, "embedding_size": 4}


@pytest.fixture(scope="module")
def made(world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench") / "table"
    benchmark(folder, world, ["most-popular", "lightgcn", "ease", "macr"], trials=2, seeds=2, settings=QUICK)
    return folder


def test_every_method_has_the_same_budget(made: Path, world: Dataset) -> None:
    found = json.loads((made / "benchmark.json").read_text())["found"]
    trials = {one["method"]: one["trials"] for one in found["methods"]}
    assert trials == {"most-popular": 1, "lightgcn": 2, "ease": 2, "macr": 2}
    lookups = {one["method"]: one["lookups"] for one in found["methods"]}
    assert lookups == {"most-popular": 1, "lightgcn": 2, "ease": 2, "macr": 2 * len(REFERENCES)}
    runs = {one["method"]: len(one["runs"]) for one in found["methods"]}
    assert runs == {"most-popular": 1, "lightgcn": 2, "ease": 1, "macr": 2}
    entries = {one["name"]: one["metrics"] for one in found["comparison"]["entries"]}
    for one in found["methods"]:
        recalls = [dpaa.evaluate(load(run), world).metrics["recall@20"] for run in one["runs"]]
        assert entries[one["method"]]["recall@20"] == pytest.approx(sum(recalls) / len(recalls))
    assert found["comparison"]["baseline"] == "most-popular"
    for name in ("table.md", "table.tex", "table.csv", "comparison.json"):
        assert "lightgcn" in (made / name).read_text()


def test_it_is_resumed_and_adds_methods(made: Path, world: Dataset) -> None:
    before = {file: file.stat().st_mtime_ns for file in made.rglob("model.safetensors")}
    names = ["most-popular", "lightgcn", "ease", "macr", "als"]
    found = benchmark(made, world, names, trials=2, seeds=2, settings=QUICK)
    assert {file: file.stat().st_mtime_ns for file in before} == before
    names = [one["method"] for one in found.methods]
    assert names[:4] == ["most-popular", "lightgcn", "ease", "macr"]
    assert ("als" in names) != any(note.startswith("als was left out") for note in found.notes)

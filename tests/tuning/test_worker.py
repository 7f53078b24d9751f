"""What trials train, share and leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.runs.model import Model, load
from dpaa.tuning import study as study_module
from dpaa.tuning import worker
from dpaa.tuning.tune import tune
from tests.tuning.conftest import FEW, TINY, settings_of


class Sealed:
    """A test split that nobody may look at."""

    def refuse(self, *_: object) -> NoReturn:
        raise AssertionError("the test split was opened")

    __getattr__ = __len__ = __iter__ = __getitem__ = refuse


@pytest.mark.parametrize("method", ["dpaa", "ppac", "ease"])
def test_the_test_split_is_never_opened(method: str, world: Dataset, tmp_path: Path) -> None:
    sealed = replace(world, test=Sealed())  # type: ignore[arg-type]
    sealed.__dict__["fingerprint"] = world.fingerprint  # it names the whole dataset; computing it would look
    settings = {} if method == "ease" else TINY
    found = tune(tmp_path, sealed, method, trials=2, seeds=1, settings=settings)
    assert len(settings_of(found)) == 2
    with pytest.raises(AssertionError, match="was opened"):
        len(sealed.test)


def test_a_trial_worse_than_the_median_is_pruned_and_leaves_no_file(
    small_world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_module, "STARTUP", 1)
    world = small_world
    values = {"l2": (1e-4, 1e4)}
    settings = {"epochs": 25, "embedding_size": 8, "layers": 0, "learning_rate": 3e-2}
    grid = {"space": "paper", "settings": settings, "values": values, "seeds": 0, "seed": 1}
    found = tune(tmp_path / "a", world, "lightgcn", prune_after=10, **grid)  # type: ignore[arg-type]
    good, bad = found.trials
    assert good.settings == {"l2": 1e-4}
    assert (good.state, len(good.curve)) == ("complete", 25)
    assert bad.state == "pruned"
    assert len(bad.curve) in (10, 20)
    assert bad.value == max(bad.curve) < max(good.curve[: len(bad.curve)])
    left = {path.name for path in (tmp_path / "a").iterdir() if not path.name.startswith(".")}
    assert left == {"study.json", "study.sqlite", "trials.jsonl", "best.toml"}
    never = tune(tmp_path / "b", world, "lightgcn", prune_after=0, **grid)  # type: ignore[arg-type]
    assert [len(trial.curve) for trial in never.trials] == [25, 25]


def test_a_loss_that_is_no_number_is_a_result_too(world: Dataset, tmp_path: Path, trained: list[str]) -> None:
    values = FEW | {"learning_rate": (1e-2, 1e30), "layers": (1,)}
    found = tune(tmp_path, world, "lightgcn", settings=TINY, values=values, seeds=0)
    assert [trial.state for trial in found.trials if trial.state != "repeated"] == ["diverged", "complete"]
    assert found.best.settings["learning_rate"] == 1e-2
    tune(tmp_path, world, "lightgcn", settings=TINY, values=values, seeds=0)
    assert len(trained) == 2
    with pytest.raises(InputError, match="no trial came to a result: the loss became"):
        tune(tmp_path / "b", world, "lightgcn", settings=TINY, values=FEW | {"learning_rate": (1e30,), "layers": (1,)})


def test_trials_share_one_pretrained_model_whatever_their_learning_rate(
    world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = []
    fit_into = worker.fit_into

    def fit(folder: Path, data: Dataset, method: Any, **more: Any) -> Model:
        into.append((method.name, method.settings.learning_rate, method.settings.seed))
        return fit_into(folder, data, method, **more)

    monkeypatch.setattr(worker, "fit_into", fit)
    found = tune(tmp_path, world, "dpaa", settings=TINY, trials=3, seeds=2)
    assert len({trial.settings["learning_rate"] for trial in found.trials}) == 3
    rate = found.settings["learning_rate"]
    assert into == [("lightgcn", 1e-3, 0), ("dpaa", rate, 0), ("lightgcn", 1e-3, 1), ("dpaa", rate, 1)]
    assert found.runs[0].valid_recall == found.best.value
    origin = load(found.runs[1].folder).manifest["pretrained"]["run"]
    assert Path(origin).parent == tmp_path.resolve()


def test_a_value_is_that_of_the_finished_model(world: Dataset, tmp_path: Path) -> None:
    """Strengths that a method chooses after training count: they can only be better than none."""
    found = tune(tmp_path, world, "ppac", settings=TINY, trials=2, seeds=1)
    assert all((trial.value or 0) >= max(trial.curve) - 1e-6 for trial in found.trials)
    assert found.runs[0].valid_recall == found.best.value

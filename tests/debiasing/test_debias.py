"""From a dataset to a run, in one call."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs
from dpaa.data.sources import world
from dpaa.debiasing import Debiased, debias
from dpaa.debiasing._choice import DIVISIONS
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluator
from dpaa.ranking.rerankers.xquad import XQuAD
from dpaa.runs.fit import fit
from dpaa.runs.model import load

QUICK: dict[str, Any] = {"methods": ["ease", "item-knn"], "rerank": ["dial", "xquad"], "k": 10}


@pytest.fixture(scope="module")
def data() -> Dataset:
    return world.simulate(users=150, items=80, seed=4)


@pytest.fixture(scope="module")
def made(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Debiased]:
    folder = tmp_path_factory.mktemp("made") / "new" / "trade"
    return folder, debias(folder, data, targets=["aplt>=0.4"], **QUICK)


def lists_of(folder: Path, data: Dataset, found: Debiased) -> bool:
    """Whether the run recommends what was measured: all metrics of its lists for the validation users are the same."""
    model, k = load(folder), found.statement.k
    users = Evaluator(data, k, "valid", "drop")
    again = users.evaluate(model.method, model.kappa(), model.reranker())
    recs = model.recommend(data.user_ids.gather(users.users), k=k)
    lists = [data.item_ids.gather(row[row >= 0]).to_list() for row in again.lists]
    assert recs.group_by("user_id", maintain_order=True).agg("item_id")["item_id"].to_list() == lists
    return found.point.metrics == pytest.approx({name: again.metrics[name] for name in found.point.metrics})


def test_the_run_recommends_what_was_measured(made: tuple[Path, Debiased], data: Dataset) -> None:
    folder, found = made
    assert found.point is not found.base
    assert found.point.metrics["aplt@10"] >= 0.4
    assert lists_of(folder / "run", data, found)
    assert lists_of(folder, data, found)  # the folder stands for its run


def test_what_is_written(made: tuple[Path, Debiased]) -> None:
    folder, found = made
    written = {"models", "run", "frontier.json", "frontier.csv"}
    written |= {"recipe.json"} if found.point.candidate.model == found.base.candidate.model else set()
    assert {file.name for file in folder.iterdir()} == written
    assert [file.name for file in folder.parent.iterdir()] == ["trade"]  # no lock is left
    content = json.loads((folder / "frontier.json").read_text())
    assert content == json.loads(json.dumps(found.as_json()))
    table = pl.read_csv(folder / "frontier.csv")
    assert table["name"].to_list() == [point["name"] for point in content["points"]]
    assert len(set(table["name"])) == len(table)
    assert load(folder).manifest["debias"]["chosen"]["name"] == content["chosen"]["name"]


def test_the_test_split_is_not_opened(data: Dataset, tmp_path: Path, made: tuple[Path, Debiased]) -> None:
    blind = replace(data, test=Pairs.of([], []))
    found = debias(tmp_path / "trade", blind, targets=["aplt>=0.4"], **QUICK)
    assert found.as_json()["points"] == made[1].as_json()["points"]


def test_the_baseline_is_the_run_as_it_stands(data: Dataset, tmp_path: Path) -> None:
    """With the dial and the re-ranker that it keeps, which its points of the sweep go without."""
    model = fit(data, "ease", rerank=XQuAD(strength=0.2))
    model.manifest["dial"] |= {"kappa": -0.25, "chosen_for": "ndcg"}
    model.save(tmp_path / "mine")
    words: dict[str, Any] = {"runs": [tmp_path / "mine"], "base": tmp_path / "mine", "rerank": ["xquad"], "k": 10}
    found = debias(tmp_path / "trade", data, targets=["aplt>=0"], **words)
    base = found.base
    assert base.candidate.name == "mine + dial -0.25 + xquad 0.2"
    as_it_is = Evaluator(data, 10, "valid").evaluate(model.method, -0.25, XQuAD(strength=0.2)).metrics
    assert base.metrics == pytest.approx({name: as_it_is[name] for name in base.metrics})
    assert [point.candidate.model for point in found.points].count("mine") == len(found.points)
    kept = debias(tmp_path / "kept", data, keep_accuracy=1.0, confidence=0.99, **words)
    for folder, one in ((tmp_path / "trade", found), (tmp_path / "kept", kept)):
        assert lists_of(folder, data, one), one.point.candidate.name
    swept = debias(tmp_path / "swept", data, targets=["aplt>=0.3"], **words)
    assert swept.point.candidate.kappa in (0.0, -0.25)
    assert lists_of(tmp_path / "swept", data, swept)
    assert load(tmp_path / "swept").kappa() == swept.point.candidate.kappa


def test_validation_that_says_nothing(tmp_path: Path) -> None:
    train = pl.DataFrame({"user_id": [1, 1, 2, 2, 3, 3], "item_id": ["a", "b", "a", "c", "a", "b"]})
    unseen = pl.DataFrame({"user_id": [1, 2], "item_id": ["c", "b"]})
    popular = pl.DataFrame({"user_id": [4, 5], "item_id": ["a", "a"]})
    with pytest.raises(InputError, match="no validation pair has a niche item"):
        debias(tmp_path / "trade", Dataset.from_frame(train, valid=popular), methods=["ease"])
    found = debias(
        tmp_path / "trade", Dataset.from_frame(train, valid=unseen[:1]), methods=["ease"], goals=["arp"],
        keep_accuracy=0.9, k=2,
    )  # fmt: skip
    assert found.point is found.base  # one user confirms nothing
    assert "confirm no point" in found.choice.why
    assert not found.confirmed


def test_targets(data: Dataset, made: tuple[Path, Debiased], tmp_path: Path) -> None:
    points = made[1].points
    allowed = [one for one in points if one.metrics["coverage@10"] >= 0.6 and one.metrics["aplt@10"] > 0.35]
    found = debias(tmp_path, data, targets=["coverage >= 60%", "aplt@10>0.35"], **QUICK)
    assert found.point.accuracy[0].mean() == max(one.accuracy[0].mean() for one in allowed)
    assert "validation users, the same that it was selected on: " in " ".join(found.sentences())
    assert found.choice.why == "the most accurate of all points with coverage@10>=0.6 and aplt@10>0.35 on validation"


def test_gain_and_cost_are_of_the_choices_made_without_each_user(data: Dataset, tmp_path: Path) -> None:
    found = debias(tmp_path, data, goals=["coverage"], **QUICK)
    picks = [found.points[one].candidate for one in found.choice.picks]
    assert len(set(picks)) > 1  # else nothing is shown
    users, rows = Evaluator(data, 10, "valid"), found.chooser.folds

    def per_user(name: Any) -> pl.DataFrame:
        method = load(tmp_path / "models" / name.model).method
        return users.evaluate(method, name.kappa, name.reranker).per_user

    before = per_user(found.base.candidate)
    after = [per_user(one)[np.sort(fold)] for one, fold in zip(picks, rows, strict=True)]
    both = pl.concat(after).join(before, on="user_id", suffix="_before")
    assert len(both) == DIVISIONS * len(before)
    for metric in ("ndcg@10", "recall@10/niche", "recall@10/popular"):
        assert found.statement.before[metric] == pytest.approx(both[f"{metric}_before"].mean())
        assert found.statement.after[metric] == pytest.approx(both[metric].mean())
    assert found.statement.better == pytest.approx((both["ndcg@10"] > both["ndcg@10_before"]).mean())
    assert found.statement.worse == pytest.approx((both["ndcg@10"] < both["ndcg@10_before"]).mean())
    agreeing = sum(one == found.point.candidate for one in picks)
    words = f"on {len(before)} held-out validation users ({agreeing} of 25 folds select this point)"
    assert words in " ".join(found.sentences())
    values = [one.metrics["coverage@10"] for one in (found.base, found.point)]
    itself = f"itself, on the users it was selected on (optimistic): coverage {values[0]:.1%} → {values[1]:.1%}, NDCG"
    assert itself in " ".join(found.sentences())


def test_a_budget_ends_in_an_answer(data: Dataset, tmp_path: Path) -> None:
    found = debias(tmp_path / "trade", data, budget=1e-9, **QUICK | {"methods": ["ease", "item-knn", "gf-cf"]})
    assert {point.candidate.model for point in found.points} == {"ease"}
    assert found.notes[0] == "item-knn was not tried, as the time is up; call again with more --max-minutes"
    assert any("the time was up before all re-rankers were measured over ease" in note for note in found.notes)
    assert load(tmp_path / "trade").method.name == "ease"


def test_a_model_that_cannot_win_is_not_swept(data: Dataset, tmp_path: Path) -> None:
    found = debias(tmp_path / "trade", data, **QUICK | {"methods": ["ease", "ipl"]}, settings={"epochs": 1})
    (plain,) = [point for point in found.points if point.candidate.model == "ipl"]
    assert plain.candidate.plain
    assert "no dial or re-ranker was tried over ipl: accuracy below 80% of the best model's" in found.notes


@pytest.mark.slow
def test_a_target_on_the_exposure_of_groups(tmp_path: Path) -> None:
    made = world.simulate_world(200, 150)
    data = made.dataset.with_items(made.publishers)
    found = debias(tmp_path / "made", data, methods=["ease"], targets=["exposure/publisher>=0.05 of merit"])
    assert found.point.metrics["exposure@20/publisher"] >= 0.05
    assert any(getattr(point.candidate.reranker, "by", None) == "publisher" for point in found.points)
    with pytest.raises(InputError, match="targets on exposure must be of one column, got brand and publisher"):
        debias(tmp_path / "no", data, methods=["ease"], targets=["exposure/publisher>=1", "exposure/brand>=1"])

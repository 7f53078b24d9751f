"""What lies at the paths of a call, and what a run is on the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpaa._io import as_json
from dpaa.data.dataset import read_dataset
from dpaa.errors import InputError
from dpaa.ranking import Dial
from dpaa.report._inputs import gather
from dpaa.runs.fit import evaluate, fit_into, make_method
from tests.report.folders import copy_of
from tests.report.made import add_run, made_family


def test_lists_are_those_of_recommend(demo_folder: Path) -> None:
    (family,) = gather([demo_folder / "runs" / "lightgcn"]).families
    (run,) = family.runs
    expected = (
        run.model.recommend(run.model.user_ids.gather(family.users), k=20)
        .group_by("user_id", maintain_order=True)
        .agg("item_id")
    )
    found = [run.model.item_ids.gather(row).to_list() for row in run.lists]
    assert found == expected["item_id"].to_list()


def test_runs_of_one_name_are_told_apart(demo_folder: Path, tmp_path: Path) -> None:
    one = copy_of(demo_folder / "runs" / "lightgcn", tmp_path / "one" / "run")
    other = copy_of(demo_folder / "runs" / "dpaa", tmp_path / "other" / "run")
    assert [run.name for run in gather([one, other]).runs] == ["one/run", "other/run"]


def test_what_is_nothing_of_ours_is_refused(demo_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd.json").write_text('{"kind": "poem"}')
    (tmp_path / "old.json").write_text('{"kind": "audit", "numbers": {"gini": 0.5}}')
    for name, sentence in (
        ("empty", "is neither a prepared dataset nor a run"),
        ("nowhere", "there is no .*nowhere; name datasets, runs and JSON files"),
        ("odd.json", "is neither a comparison nor an audit"),
        ("old.json", "has a number 'gini', which does not say whether it is the log's or the lists'"),
    ):
        with pytest.raises(InputError, match=sentence):
            gather([demo_folder / "data", tmp_path / name])


def test_what_is_named_twice_is_there_once(demo_folder: Path) -> None:
    run = demo_folder / "runs" / "lightgcn"
    found = gather([run, demo_folder / "data", str(run), demo_folder / "comparison.json"])
    assert [(family.name, len(family.runs)) for family in found.families] == [("demo", 1)]
    assert [name for name, _ in found.comparisons] == ["comparison"]
    assert found.notes == []


def test_a_run_is_measured_against_its_origin_then_lightgcn_then_the_first() -> None:
    family = made_family()
    first = add_run(family, "first")
    assert family.reference(first) is None
    second = add_run(family, "second", "item-knn")
    assert family.reference(second) is first
    plain = add_run(family, "plain", "lightgcn")
    assert family.reference(second) is plain
    assert family.reference(plain) is first
    born = add_run(family, "born", manifest={"pretrained": {"run": "second"}})
    assert family.reference(born) is second


def test_exposure_and_metrics_by_hand() -> None:
    family = made_family()
    run = add_run(family, "new", lists=["cd", "bd", "cd", "bc"], metrics={"recall@2": 0.5, "upd@2": None, "odd": 1})
    assert run.exposure.tolist() == [0, 2, 3, 3, 0]
    assert run.metrics == {"recall@2": 0.5, "odd": 1.0}
    assert family.counts.tolist() == [4, 2, 1, 1, 0]
    assert family.popular.tolist() == [True, True, True, False, False]
    assert family.head_share == 0.5
    assert family.users_in_words == "all 4 users"
    assert run.trace is None


def test_of_many_users_evenly_spaced_ones_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.report._inputs.LISTED_USERS", 2)
    family = made_family()
    run = add_run(family, "new")
    assert family.users.tolist() == [0, 3]
    assert family.users_in_words == "2 of 4 users"
    assert run.lists.shape == (2, 2)


def test_metrics_of_other_lists_than_the_runs_own_are_left_out(demo_folder: Path, tmp_path: Path) -> None:
    """Earlier versions kept them; the lists on the page are those of the run's own re-ranker."""
    data = read_dataset(demo_folder / "data")
    model = fit_into(tmp_path / "run", data, make_method(data, "ease", {}), rerank=Dial(kappa=-2.0))
    known = model.user_ids.gather(np.unique(model.train.user))
    for rerank, measured in ((model.reranker(), True), (None, False)):
        content = as_json(evaluate(model, data, rerank=rerank).as_json())
        (tmp_path / "run" / "metrics.json").write_text(content)
        inputs = gather([tmp_path / "run"])
        (run,) = inputs.runs
        assert bool(run.metrics) is measured
        assert (
            any("another popularity dial or re-ranker than it keeps" in note for note in inputs.notes) is not measured
        )
        listed = run.model.item_ids.gather(run.lists.ravel()).to_list()
        assert listed == model.recommend(known)["item_id"].to_list()

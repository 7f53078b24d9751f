"""Models of earlier states of a log on its newest test pairs, and models fitted on all pairs."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import dpaa
from dpaa import Dataset, InputError, Model, evaluate, fit, load
from dpaa.data.splits import SplitRule
from dpaa.runs import RunFolder, choose_dial, final_training, fit_into, fit_method, make_method
from tests.command import run_dpaa
from tests.conftest import TINY


def log(days: range) -> pl.DataFrame:
    """Three interactions a day of two users, who come again after nine days; one user more and one item more a day."""
    rows = [(f"u{(day + shift) % (9 + day // 4)}", f"i{(3 * day + 5 * n) % (20 + day // 3)}", 100 * day + n)
            for day in days for shift in (0, 4) for n in range(3)]  # fmt: skip
    return pl.DataFrame(rows, schema=["user_id", "item_id", "timestamp"], orient="row").unique(
        ["user_id", "item_id"], keep="first", maintain_order=True
    )


def fit_final(chosen: Model, data: Dataset) -> Model:
    method, whole, how = final_training(chosen, data)
    return fit_method(method, whole, **how)


RULE = SplitRule("temporal", valid=0.1, test=0.1)


@pytest.fixture(scope="module")
def yesterday() -> Dataset:
    return Dataset.from_frame(log(range(60)), split=RULE)


@pytest.fixture(scope="module")
def today(yesterday: Dataset) -> Dataset:
    return yesterday.append(log(range(60, 66)))


@pytest.mark.parametrize("name", ["ease", "lightgcn"])
def test_an_earlier_model_is_measured_on_the_newest_pairs(yesterday: Dataset, today: Dataset, name: str) -> None:
    model = dpaa.fit(yesterday, name, **(TINY if name == "lightgcn" else {}))
    found = dpaa.evaluate(model, today, k=5)
    lists = {user: [] for user in today.user_ids}
    known = set(today.frame("train").select("user_id", "item_id").iter_rows())
    whole = model.recommend(list(lists), k=len(model.item_ids), seen=True)
    for user, item in whole.select("user_id", "item_id").iter_rows():
        if (user, item) not in known and len(lists[user]) < 5:
            lists[user].append(item)
    wanted = today.frame("test").select("user_id", "item_id")
    hits = []
    for (user,), items in wanted.group_by("user_id"):
        relevant = {item for item in items["item_id"] if (user, item) not in known}
        if relevant:
            hits.append(len(relevant & set(lists[str(user)])) / len(relevant))
    assert found.metrics["recall@5"] == pytest.approx(sum(hits) / len(hits))
    assert "was trained on an earlier state" in found.notes[0]


def test_runs_of_two_days_are_compared_on_one_test(yesterday: Dataset, today: Dataset, tmp_path: Path) -> None:
    today.write(tmp_path / "data")
    again = dpaa.read_dataset(tmp_path / "data")
    dpaa.fit(yesterday, "ease").save(tmp_path / "live")
    dpaa.fit(again, "ease").save(tmp_path / "tonight")
    said = run_dpaa("compare", tmp_path / "live", tmp_path / "tonight", "--k", 5)
    assert said.code == 0
    assert "live was trained on an earlier state" in said.err
    call = ("compare", tmp_path / "live", tmp_path / "tonight", "--k", 5, "--fail-if")
    assert run_dpaa(*call, f"ndcg@5 < 0 * {tmp_path / 'live'}").code == 0
    failed = run_dpaa(*call, "ndcg < 100% * live")
    passed = run_dpaa(*call, "ndcg >= 1 * live")
    assert {failed.code, passed.code} == {0, 1}
    assert "check failed: tonight: ndcg@5 is" in failed.err + passed.err
    said = run_dpaa(*call, "ndcg < 2 * lite")
    assert said.code == 2
    assert "'lite' is not among the entries" in said.err


def test_models_of_other_logs_and_of_test_pairs_are_refused(today: Dataset, small_world: Dataset) -> None:
    frame = pl.concat([today.frame(split) for split in ("train", "valid", "test")])
    model = dpaa.fit(Dataset.from_frame(frame), "most-popular")
    with pytest.raises(InputError, match=r"was trained on \d+ test pairs of frame"):
        dpaa.evaluate(model, today)
    with pytest.raises(InputError, match="trained on another dataset than frame: 0% of its training pairs"):
        dpaa.evaluate(dpaa.fit(small_world, "most-popular"), today)
    numbers = Dataset.from_frame(pl.DataFrame({"user_id": [1, 2], "item_id": [1, 2]}))
    with pytest.raises(InputError, match="0% of its training pairs"):
        dpaa.evaluate(dpaa.fit(numbers, "most-popular"), today)


@pytest.mark.parametrize("name", ["ease", "macr", "dpaa"])
def test_the_final_model_has_all_pairs_and_the_chosen_epoch(yesterday: Dataset, tmp_path: Path, name: str) -> None:
    settings = {**TINY, "epochs": 5} if name != "ease" else {}
    yesterday.write(tmp_path / "data")
    data = dpaa.read_dataset(tmp_path / "data")
    chosen = fit_into(tmp_path / "run", data, make_method(data, name, settings))
    final = fit_final(chosen, data)
    assert len(final.train) == len(data.train) + len(data.valid) + len(data.test)
    about = final.manifest["final"]
    assert about["run"] == str(tmp_path / "run")
    if name == "ease":
        frame = pl.concat([data.frame(split) for split in ("train", "valid", "test")])
        assert final.recommend(k=5).equals(dpaa.fit(Dataset.from_frame(frame), "ease").recommend(k=5))
    else:
        assert final.manifest["training"]["epochs"] == chosen.manifest["training"]["best_epoch"] == about["epochs"]
    if name == "macr":
        assert final.method.get_params().items() >= chosen.manifest["tuned"].items()
    assert final.kappa() == chosen.kappa()
    with pytest.raises(InputError, match="was fitted on all pairs of frame, its test pairs too"):
        dpaa.evaluate(final, data)
    final.save(tmp_path / "final")
    said = run_dpaa("evaluate", tmp_path / "final")
    assert said.code == 2
    assert "final was fitted on all pairs of frame" in said.err


def test_a_final_warm_start_begins_at_the_chosen_run(yesterday: Dataset, today: Dataset) -> None:
    live = dpaa.fit(yesterday, "lightgcn", **TINY)
    tonight = dpaa.fit(today, warm_start=live)
    final = fit_final(tonight, today)
    assert final.manifest["warm_start"]["fingerprint"] == today.fingerprint


def test_one_stored_choice_is_what_every_call_uses(model: Model, small_world: Dataset) -> None:
    """As trained, 0; chosen again, what was chosen; without a word or with `run` the same."""
    assert model.manifest["dial"]["kappa"] == 0.0
    chosen = choose_dial(model, small_world, "niche:50")
    assert chosen.kappa == chosen.suggested != 0
    other = replace(model, manifest=model.manifest | {"dial": chosen.as_json()})
    history = ["i0003", "i0009"]
    for one, kappa in ((model, 0.0), (other, chosen.kappa)):
        assert one.dial_curve.kappa == kappa
        for dial in (None, "run"):
            assert one.kappa(dial) == kappa  # type: ignore[arg-type]
            lists = one.recommend(k=5, popularity_dial=dial)  # type: ignore[arg-type]
            assert lists.equals(one.recommend(k=5, popularity_dial=kappa))
            new = one.recommend_for(history, k=5, popularity_dial=dial)  # type: ignore[arg-type]
            assert new.equals(one.recommend_for(history, k=5, popularity_dial=kappa))
            found = evaluate(one, small_world, popularity_dial=dial)  # type: ignore[arg-type]
            assert found.protocol.popularity_dial == kappa
            assert found.metrics == evaluate(one, small_world, popularity_dial=kappa).metrics


@pytest.mark.parametrize("wrong", ["much", "auto", "", float("nan"), float("inf"), 1000.1, -1001, [1.0], {}])
def test_what_the_dial_may_not_be(model: Model, wrong: object) -> None:
    with pytest.raises(InputError, match="must be `run` or a number from −1000 to 1000"):
        model.recommend(k=5, popularity_dial=wrong)  # type: ignore[arg-type]


def test_a_choice_touches_nothing_else_of_the_run(model: Model, small_world: Dataset, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    before = {file.name: file.read_bytes() for file in folder.path.iterdir()}
    curve = choose_dial(model, small_world, "niche:20")
    folder.write_dial(curve, load(folder.path))
    after = {file.name: file.read_bytes() for file in folder.path.iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {"manifest.json"}
    old, new = (json.loads(files["manifest.json"]) for files in (before, after))
    assert old | {"dial": new["dial"]} == new
    again = load(folder.path)
    assert again.dial_curve == curve
    assert again.kappa() == curve.suggested


def test_a_choice_needs_validation() -> None:
    untested = Dataset.from_frame(pl.DataFrame({"user_id": [1, 2], "item_id": [1, 2]}), name="untested")
    plain = fit(untested, "most-popular")
    assert plain.manifest["dial"] == {"kappa": 0.0, "chosen_for": None, "suggested": None}
    assert plain.dial_curve is None
    with pytest.raises(InputError, match="no valid pair is left to evaluate"):
        choose_dial(plain, untested, "ndcg")

"""The feedback loop: what must hold of any simulation, on a small world and a small observed matrix."""

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dpaa
from dpaa.simulation._loop import _taste
from tests.command import dpaa_ok, run_dpaa

WORLD = "world:80x60"


@cache
def looped(*policies: str, rounds: int = 4, k: int = 5) -> dpaa.Simulation:
    return dpaa.simulate(WORLD, policies, rounds=rounds, k=k, group_by="publisher")


def column(result: dpaa.Simulation, name: str, policy: str) -> list[float]:
    return [mean for mean, _ in result.over_seeds(name, policy)]


@cache
def observed() -> dpaa.Dataset:
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((60, 50)) < 0.3)
    items = pl.DataFrame({"item_id": range(50), "band": ["a" if i % 3 else "b" for i in range(50)]})
    return dpaa.Dataset.from_frame(pl.DataFrame({"user_id": user, "item_id": item}), name="seen", items=items)


@pytest.mark.parametrize("source", [WORLD, "observed"])
def test_round_0_is_what_evaluate_measures(source: str) -> None:
    given = observed() if source == "observed" else source
    by = "band" if source == "observed" else "publisher"
    result = dpaa.simulate(given, ["ease"], rounds=1, k=5, seeds=[3], group_by=by)
    data = _taste(given, 1.0, 3).data
    expected = dpaa.evaluate(dpaa.fit(data, "ease", seed=3), data, 5, group_by=by).metrics
    row = result.frame.row(0, named=True)
    same = {name: value for name, value in row.items() if name in expected}
    assert {"ndcg@5", "recall@5/niche", "coverage@5", "gini@5", "arp@5", f"exposure@5/{by}"} <= set(same)
    for name, value in same.items():
        assert value == expected[name] or (value != value and expected[name] != expected[name]), name


def test_taste_is_kept_whole_and_the_test_is_what_is_left() -> None:
    taste = _taste(observed(), 2.0, 0)
    n = taste.data.n_items
    parts = [taste.data.split(split).keys(n) for split in ("train", "valid", "test")]
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts)) == len(taste.liked) == len(observed().train)
    grown = np.union1d(parts[0], parts[2][:7])
    assert len(taste.at(grown).test) == len(parts[2]) - 7
    ids = taste.data.user_ids.gather(taste.liked // n).to_list(), taste.data.item_ids.gather(taste.liked % n).to_list()
    frame = observed().frame("train")
    assert set(zip(*ids, strict=True)) == set(zip(frame["user_id"], frame["item_id"], strict=True))


def test_bounds_and_the_published_signs() -> None:
    result = dpaa.simulate("world:200x300", ["oracle", "random", "most-popular"], rounds=4, k=5)
    first = {policy: column(result, "click_rate", policy)[0] for policy in result.policies}
    assert first["oracle"] == max(first.values())
    found = {policy: column(result, "satisfaction", policy) for policy in result.policies}
    assert all(found["oracle"][i] >= found[other][i] for other in ("random", "most-popular") for i in range(5))
    gini = {policy: column(result, "log_gini", policy) for policy in result.policies}
    assert gini["random"] == sorted(gini["random"], reverse=True), "towards uniform exposure"
    assert gini["most-popular"] == sorted(gini["most-popular"])
    eighty = column(result, "log_items_for_80", "most-popular")
    assert eighty == sorted(eighty, reverse=True), "the log covers less of the catalogue"
    assert all(each == sorted(each) for each in found.values())


def test_an_oracle_is_clicked_wherever_something_is_left() -> None:
    data = _taste(WORLD, 1.0, 0).data
    left = np.bincount(data.test.user, minlength=data.n_users) + np.bincount(data.valid.user, minlength=data.n_users)
    served = np.unique(data.test.user)
    expected = np.minimum(left[served], 5).sum() / (5 * len(served))
    assert column(looped("oracle", "random", "most-popular"), "click_rate", "oracle")[0] == pytest.approx(expected)


def test_the_same_call_gives_the_same_bits_and_policies_do_not_touch_each_other() -> None:
    alone = dpaa.simulate(WORLD, ["most-popular"], rounds=4, k=5, group_by="publisher").frame.drop("cpu_seconds")
    beside = looped("oracle", "random", "most-popular").frame.filter(pl.col("policy") == "most-popular")
    assert_frame_equal(alone, beside.drop("cpu_seconds"))


def test_a_kept_model_is_not_refitted() -> None:
    result = dpaa.simulate(WORLD, ["ease", "ease,refit=never"], rounds=2, k=5)
    fitted, kept = (column(result, "ndcg@5", policy) for policy in result.policies)
    assert fitted[0] == kept[0]
    assert fitted[1:] != kept[1:]


def test_nothing_is_shown_twice_unless_it_may_be() -> None:
    policy = "most-popular"
    never = [1 - x for x in column(dpaa.simulate(WORLD, [policy], rounds=3, k=5), "never_shown", policy)]
    repeated = dpaa.simulate(WORLD, [policy], rounds=3, k=5, clicks=dpaa.ClickModel(repeat=True))
    again = [1 - x for x in column(repeated, "never_shown", policy)]
    assert never[0] == again[0]
    assert never[-1] > again[-1]


def test_the_click_model_by_hand() -> None:
    liked, chance = np.array([[True, False, True]]), np.array([[[0.2, 0.4, 0.4]], [[0.9, 0.04, 0.9]]])
    seen, clicked = dpaa.ClickModel(position=1.0, noise=0.05).clicked(liked, chance)  # looked at with 1, 1/2, 1/3
    assert seen.tolist() == [[True, True, False]]
    assert clicked.tolist() == [[True, True, False]]
    assert dpaa.ClickModel(slots=1).clicked(liked, chance)[1].tolist() == [[True, False, False]]
    assert dpaa.ClickModel().clicked(liked, chance)[1].tolist() == liked.tolist()


def test_organic_consumption_and_noise_join_the_log() -> None:
    pairs = {}
    models = {"plain": dpaa.ClickModel(), "organic": dpaa.ClickModel(organic=0.5), "noise": dpaa.ClickModel(noise=0.5)}
    for name, clicks in models.items():
        result = dpaa.simulate(WORLD, ["random"], rounds=1, k=5, clicks=clicks)
        pairs[name] = column(result, "log_pairs", "random")[1]
    assert pairs["organic"] > pairs["plain"]
    assert pairs["noise"] > 2 * pairs["plain"]


@pytest.mark.slow
def test_trained_policies_runs_and_debias(tmp_path: Path) -> None:
    small = "embedding_size=8,learning_rate=0.05,epochs=3"
    made = dpaa.fit(_taste(WORLD, 1.0, 0).data, "lightgcn", embedding_size=8, epochs=2)
    made.save(tmp_path / "run")
    policies = [f"lightgcn,{small}", f"lightgcn,{small},refit=cold", str(tmp_path / "run")]
    policies.append("debias,methods=ease most-popular,keep_accuracy=0.9")
    result = dpaa.simulate(WORLD, policies, rounds=2, k=5)
    warm, cold = (column(result, "ndcg@5", policy) for policy in policies[:2])
    assert warm[0] == cold[0]
    assert warm[1:] != cold[1:], "a warm refit starts from the last model"
    assert "epochs=2" in result.about["policies"][policies[2]][0]
    assert column(result, "satisfaction", policies[3])[-1] > 0


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"policies": []}, "at least one policy"),
        ({"policies": ["ease", "ease"]}, "each once"),
        ({"policies": ["debias,keep_accuracy=most"]}, "keep_accuracy"),
        ({"rounds": 0}, "rounds"),
        ({"group_by": "brand"}, "brand"),
    ],
)
def test_what_is_refused(how: dict[str, object], says: str) -> None:
    with pytest.raises(dpaa.InputError, match=says):
        dpaa.simulate(**{"source": WORLD, "policies": ["random"], "rounds": 1} | how)  # type: ignore[arg-type]


def test_intervals_and_sentences() -> None:
    result = dpaa.simulate(WORLD, ["random"], rounds=1, k=5, seeds=3)
    values = result.frame.filter(pl.col("round") == 1)["satisfaction"].to_numpy()
    mean, wide = result.over_seeds("satisfaction", "random")[-1]
    assert mean == pytest.approx(values.mean())
    assert wide == pytest.approx(4.302653 * values.std(ddof=1) / np.sqrt(3), rel=1e-6)  # t with 2 degrees of freedom
    assert result.sentences()[0].startswith("random: after 1 round ")
    assert looped("oracle", "random", "most-popular").over_seeds("satisfaction", "oracle")[0][1] != 0
    ended = dpaa.simulate("world:12x30", ["random"], rounds=12, k=5, seeds=[0, 1, 3])  # nothing is left to find
    last = ended.frame.group_by("seed").agg(pl.col("round", "satisfaction").last())
    assert last["round"].n_unique() > 1
    assert ended.over_seeds("satisfaction", "random")[-1][0] == pytest.approx(last["satisfaction"].mean())


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    page, table = tmp_path / "loop.html", tmp_path / "loop.csv"
    call = ["simulate", WORLD, "--policy", "random", "--policy", "most-popular", "--rounds", "2", "--k", "5"]
    dpaa_ok(*call, "--group-by", "publisher", "--out", page, "--out", table)
    assert pl.read_csv(table).height == 6
    assert "The feedback loop" in page.read_text(encoding="utf-8")
    assert run_dpaa(*call, "--out", table).code == 2

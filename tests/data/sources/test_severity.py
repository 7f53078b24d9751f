from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa import Dataset, InputError, fit, read_dataset
from dpaa.data.ids import Column
from dpaa.data.sources.severity import read_pairs, with_randomised, with_severity
from dpaa.data.sources.world import _World, simulate, simulate_world
from dpaa.evaluation import Evaluator
from tests.command import dpaa_ok, run_dpaa
from tests.evaluation.fixed import Fixed

SEVERITIES = st.one_of(st.sampled_from([0, 1, 9, 60]), st.floats(0, 20))


@st.composite
def some_pairs(draw: st.DrawFn) -> pl.DataFrame:
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    taste = rng.random((draw(st.integers(2, 12)), 1)) * rng.random((1, draw(st.integers(5, 15))))
    user, item = np.nonzero(rng.random(taste.shape) < 0.3 + taste)
    frame = pl.DataFrame({Column.USER: user, Column.ITEM: item * 7})
    return frame if len(frame) >= 10 else pl.DataFrame({Column.USER: [0] * 12, Column.ITEM: list(range(12))})


def keys(data: Dataset, split: str) -> set[tuple[int, int]]:
    return set(data.frame(split).select(Column.USER, Column.ITEM).iter_rows())  # type: ignore[arg-type]


def pool(pairs: pl.DataFrame, data: Dataset) -> pl.DataFrame:
    """What validation and test left over."""
    rest = set(pairs.iter_rows()) - keys(data, "valid") - keys(data, "test")
    return pl.DataFrame(sorted(rest), schema=pairs.schema, orient="row")


@given(pairs=some_pairs(), severity=SEVERITIES, seed=st.integers(0, 99))
def test_laws(pairs: pl.DataFrame, severity: float, seed: int) -> None:
    data = with_severity(pairs, severity, seed)
    train, valid, test = (keys(data, split) for split in ("train", "valid", "test"))
    assert not train & valid
    assert not train & test
    assert not valid & test
    left = pool(pairs, data)
    assert len(valid) == round(0.1 * len(pairs))
    assert len(test) == round(0.2 * len(pairs))
    assert train <= set(left.iter_rows())
    assert {item for _, item in train} == set(left[Column.ITEM])
    owned = left.group_by(Column.USER).len()["len"].to_numpy()
    draws = np.maximum(np.rint(0.2 * owned), 1).sum()
    assert left[Column.ITEM].n_unique() <= len(train) <= draws + left[Column.ITEM].n_unique()
    assert {user for user, _ in train} == set(left[Column.USER])


def full(n_users: int, n_items: int) -> pl.DataFrame:
    """Everybody took everything."""
    grid = np.indices((n_users, n_items)).reshape(2, -1)
    return pl.DataFrame({Column.USER: grid[0], Column.ITEM: grid[1]})


def test_without_severity_all_own_items_are_alike() -> None:
    """Chi-square over items: a user draws 20 % of the own pool items, each as likely as the other."""
    n_users, n_items = 4_000, 20
    pairs = full(n_users, n_items)
    data = with_severity(pairs, 0)
    left = pool(pairs, data)
    owned = left.group_by(Column.USER).len(name="owned").with_columns(draws=(0.2 * pl.col("owned")).round().clip(1))
    # An own item is in the training set unless every draw misses it; minimum exposure adds one pair per item.
    chance = left.join(owned, on=Column.USER).with_columns(p=1 - (1 - 1 / pl.col("owned")) ** pl.col("draws"))
    expected = chance.group_by(Column.ITEM).agg(pl.col("p").sum(), variance=(pl.col("p") * (1 - pl.col("p"))).sum())
    counts = np.bincount(data.train.item, minlength=n_items)
    merged = expected.sort(Column.ITEM)
    z = (counts - merged["p"].to_numpy()) / np.sqrt(merged["variance"].to_numpy())
    assert np.abs(z).max() < 4.5
    assert (z**2).sum() < 50  # 20 degrees of freedom: beyond 46 once in a thousand


def test_a_large_severity_takes_the_most_popular_own_item() -> None:
    rng = np.random.default_rng(3)
    user, item = np.nonzero(rng.random((60, 1)) * 0.6 + np.linspace(0.4, 0, 30) > rng.random((60, 30)))
    pairs = pl.DataFrame({Column.USER: user, Column.ITEM: item})
    data = with_severity(pairs, 2_000)
    left = pool(pairs, data)
    counts = np.bincount(left[Column.ITEM].to_numpy(), minlength=30)
    rank = np.empty(30, int)
    rank[np.argsort(-counts, kind="stable")] = np.arange(30)
    best = {
        (u, min(items, key=lambda i: rank[i])) for u, items in left.group_by(Column.USER).agg(Column.ITEM).iter_rows()
    }
    train = keys(data, "train")
    assert best <= train
    extra = [item for _, item in train - best]
    assert len(extra) == len(set(extra)), "what is left is the minimum exposure: one pair per item"


SIZES = {0: 30_239, 1: 18_804, 2: 9_163, 3: 6_854, 4: 5_950, 5: 5_535, 6: 5_275, 7: 5_103, 8: 5_020, 9: 4_950}
"""Training pairs that a throw-away prototype drew from KuaiRec's small matrix, with another generator."""


def test_sizes_and_most_popular_on_kuairec(real_data: Path) -> None:
    from dpaa.runs.fit import evaluate, fit

    files = [real_data / "kuairec" / "paper-split" / f"{name}.txt" for name in ("valid", "test")]
    pairs, _ = read_pairs(files)
    assert (len(pairs), pairs[Column.USER].n_unique(), pairs[Column.ITEM].n_unique()) == (216_716, 1_410, 3_275)
    made = {severity: with_severity(pairs, severity) for severity in SIZES}
    for severity, size in SIZES.items():
        assert len(made[severity].train) == pytest.approx(size, rel=0.02)
    recall = evaluate(fit(made[0], "most-popular"), made[0]).metrics["recall@20"]
    assert recall == pytest.approx(0.2015, rel=0.03)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a log, a list form file and a dataset, the current directory."""
    monkeypatch.chdir(tmp_path)
    frame = full(30, 12).select(user=pl.format("u{}", Column.USER), item=Column.ITEM)
    frame.with_columns(stars=1 + pl.col("item") % 5).write_csv("log.csv")
    lines = [" ".join(map(str, [user, *range(12)])) for user in range(20)]
    Path("list.txt").write_text("\n".join(lines) + "\n")
    dpaa_ok("data", "log", "log.csv", "--out", "data")
    return tmp_path


def test_a_log_with_a_rule_and_named_columns(place: Path) -> None:
    rule = ("--positive", "stars>=4", "--columns", "user=user,item=item,rating=stars")
    said = dpaa_ok("data", "severity", "log.csv", *rule, "--severity", 0, "--out", "made")
    made = read_dataset("made")
    assert set(made.item_ids) == {3, 4, 8, 9}
    assert "are not positive (stars >= 4)" in said.err


def test_datasets_are_written_beside_one_another(place: Path) -> None:
    dpaa_ok("data", "severity", "list.txt", "--severity", 0, "--severity", 2.5, "--out", "several")
    assert sorted(path.name for path in Path("several").iterdir()) == ["s0", "s2.5"]
    assert keys(read_dataset("several/s0"), "test") == keys(read_dataset("several/s2.5"), "test")
    dpaa_ok("data", "severity", "data", "--severity", 0, "--out", "made")
    pairs, _ = read_pairs(["data"])
    assert len(pairs) == 360
    assert read_dataset("made").fingerprint == with_severity(pairs, 0).fingerprint
    again = run_dpaa("data", "severity", "list.txt", "--severity", 1, "--out", "made")
    assert again.code == 2
    assert "made already exists" in again.err


def unbiased(share: float = 0.5, **how: int) -> tuple[Dataset, Dataset]:
    rng = np.random.default_rng(0)
    pairs = pl.DataFrame({"user_id": rng.integers(0, 40, 600), "item_id": rng.integers(0, 30, 600)}).unique()
    pairs = pairs.sort("user_id", "item_id").with_columns(rating=pl.lit(4.0)).sample(fraction=1.0, shuffle=True, seed=1)
    data = Dataset.from_frame(pairs[:250], valid=pairs[250:320], test=pairs[320:], candidates=list(range(25)))
    return data, with_randomised(data, share, **how)


def test_a_part_of_validation_becomes_the_sample_and_the_rest_stays(tmp_path: Path) -> None:
    data, shared = unbiased(0.4)
    assert len(shared.randomised) == 28
    assert "28 of the 70 validation pairs are set aside for training" in shared.notes
    keys = [data.valid.keys(data.n_items), shared.valid.keys(data.n_items), shared.randomised.keys(data.n_items)]
    assert sorted(np.concatenate(keys[1:])) == list(keys[0])
    assert np.array_equal(shared.train.keys(data.n_items), data.train.keys(data.n_items))
    assert np.array_equal(shared.test.keys(data.n_items), data.test.keys(data.n_items))
    assert np.array_equal(shared.candidates, data.candidates)
    assert shared.frame("valid").columns == ["user_id", "item_id", "rating"]
    shared.write(tmp_path / "shared")
    again = read_dataset(tmp_path / "shared")
    assert np.array_equal(again.randomised.keys(data.n_items), shared.randomised.keys(data.n_items))
    assert again.fingerprint == shared.fingerprint
    assert replace(shared, randomised=None).fingerprint != shared.fingerprint
    assert again.describe()["randomised"] == "40% of validation, seed 0"
    other = unbiased(0.4, seed=1)[1].randomised
    assert not np.array_equal(other.keys(data.n_items), shared.randomised.keys(data.n_items))


def test_what_cannot_be_a_randomised_sample(tmp_path: Path) -> None:
    data, shared = unbiased()
    biased = replace(data, about=data.about | {"validation_exposure": "biased"})
    few = Dataset.from_frame(pl.DataFrame({"user_id": [1], "item_id": [1]}))
    for wrong, share, sentence in (
        (data, 0.0, "share must be between 0 and 1, got 0"),
        (shared, 0.5, "carries randomised pairs already"),
        (biased, 0.5, "comes from the log's own exposure, which is not random"),
        (few, 0.5, "has 0 validation pairs, too few to share"),
    ):
        with pytest.raises(InputError, match=sentence):
            with_randomised(wrong, share)
    shared.write(tmp_path / "shared")
    (tmp_path / "shared" / "randomised.parquet").write_bytes(b"no table")
    with pytest.raises(InputError, match=r"randomised\.parquet is missing, not readable as Parquet"):
        read_dataset(tmp_path / "shared")
    (tmp_path / "shared" / "randomised.parquet").unlink()
    with pytest.raises(InputError, match="was changed after it was written"):
        read_dataset(tmp_path / "shared")


def test_appended_rows_leave_the_sample_as_it_is() -> None:
    log = pl.DataFrame({"user_id": np.repeat(np.arange(6), 10), "item_id": np.tile(np.arange(10), 6)})
    data = Dataset.from_frame(log, split="random")
    shared = replace(data, randomised=data.valid)
    more = shared.append(pl.DataFrame({"user_id": [-1, 7], "item_id": [-1, 18]}))
    assert more.item_ids.gather(more.randomised.item).equals(data.item_ids.gather(data.valid.item))
    assert more.user_ids.gather(more.randomised.user).equals(data.user_ids.gather(data.valid.user))


@pytest.fixture(scope="module")
def world() -> _World:
    return simulate_world()


def test_sizes(world: _World) -> None:
    dataset = world.dataset
    assert dataset.n_users == 2000
    assert 55_000 < len(dataset.train) < 65_000
    assert 20_000 < len(dataset.test) < 27_000
    assert len(dataset.valid) == pytest.approx(len(dataset.test) / 2, rel=0.1)
    assert (dataset.user_ids[0], dataset.item_ids[0]) == ("u0001", "i0001")
    assert world.affinity.shape == (dataset.n_users, dataset.n_items)
    assert not len(dataset.overlap("train", "test")) + len(dataset.overlap("valid", "test"))


def test_there_is_something_to_learn(world: _World) -> None:
    """Chance < popularity < collaborative filtering < the truth, each by a clear margin."""
    data, evaluator = world.dataset, Evaluator(world.dataset, 20)
    drawn = Fixed(data, np.random.default_rng(0).random(world.affinity.shape, dtype=np.float32))
    methods = (drawn, fit(data, "most-popular").method, fit(data, "ease").method, Fixed(data, world.affinity))
    chance, popularity, filtering, truth = (evaluator.recall(method)["recall@20"] for method in methods)
    assert popularity > 2.5 * chance
    assert filtering > 1.5 * popularity
    assert truth > 1.5 * filtering


def test_the_log_repeats_the_promotion_and_the_test_does_not(world: _World) -> None:
    dataset = world.dataset
    promoted = world.exposure > np.quantile(world.exposure, 0.8)
    assert promoted[dataset.train.item].mean() > 0.55
    assert promoted[dataset.test.item].mean() < 0.35
    assert np.corrcoef(world.appeal, np.log(world.exposure))[0, 1] == pytest.approx(0.5, abs=0.15)


def test_same_seed_same_world() -> None:
    first, second, other = (simulate(100, 80, seed=seed) for seed in (5, 5, 6))
    assert first.fingerprint == second.fingerprint != other.fingerprint

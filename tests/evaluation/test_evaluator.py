from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaa
from dpaa import Dataset, InputError
from dpaa.data.pairs import popular_items
from dpaa.evaluation.evaluator import OVERLAPS, Evaluator
from dpaa.ranking.reranker import parse_reranker
from tests.conftest import TINY
from tests.evaluation import slow_suite
from tests.evaluation.fixed import Fixed


def dataset_of(train: Any, valid: Any, test: Any, candidates: list[int] | None = None) -> Dataset:
    def frame(pairs: Any) -> pl.DataFrame:
        columns = {"user_id": [u for u, _ in pairs], "item_id": [i for _, i in pairs]}
        return pl.DataFrame(columns, schema={"user_id": pl.Int64, "item_id": pl.Int64})

    frames: Any = {"train": frame(train), "valid": frame(valid), "test": frame(test)}
    listed = None if candidates is None else pl.Series("item_id", candidates)
    return Dataset.of(frames, name="made", about={}, candidates=listed)


def slow_metrics(
    dataset: Dataset, scores: np.ndarray, k: int, split: str, overlap: str, mask_valid: bool
) -> dict[str, float]:
    """The same protocol with sets and loops."""
    known = set(zip(dataset.train.user.tolist(), dataset.train.item.tolist(), strict=True))
    if mask_valid and split == "test":
        known |= set(zip(dataset.valid.user.tolist(), dataset.valid.item.tolist(), strict=True))
    pairs = dataset.split(split)  # type: ignore[arg-type]
    target = set(zip(pairs.user.tolist(), pairs.item.tolist(), strict=True))
    allowed = set(range(dataset.n_items)) if dataset.candidates is None else set(dataset.candidates.tolist())
    target = {(u, i) for u, i in target if i in allowed}
    relevant = target - known if overlap == "drop" else target
    popular = popular_items(np.bincount(dataset.train.item, minlength=dataset.n_items))
    sums: dict[str, list[float]] = {}
    for user in sorted({u for u, _ in relevant}):
        hidden = {i for u, i in known if u == user and not (overlap == "keep" and (u, i) in target)}
        row = scores[user] if user in dataset.train.user else np.bincount(dataset.train.item, minlength=dataset.n_items)
        order = sorted(allowed - hidden, key=lambda i: (-row[i], i))[:k]  # without training pairs, the most popular
        for suffix, group in (("", None), ("/popular", True), ("/niche", False)):
            wanted = {i for u, i in relevant if u == user and (group is None or popular[i] == group)}
            if not wanted:
                continue
            for name, value in slow_suite.accuracy(order, wanted, k).items():
                if name in ("recall", "ndcg", "hit"):
                    sums.setdefault(f"{name}@{k}{suffix}", []).append(value)
    return {name: float(np.mean(values)) for name, values in sums.items()}


pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), unique=True, max_size=25)


@settings(max_examples=150)
@given(
    train=pairs.filter(len),
    valid=pairs,
    test=pairs.filter(len),
    candidates=st.none() | st.lists(st.integers(0, 7), min_size=1, unique=True),
    seed=st.integers(0, 1000),
    k=st.integers(1, 9),
    overlap=st.sampled_from(OVERLAPS),
    mask_valid=st.booleans(),
    ties=st.booleans(),
)
def test_every_convention_equals_sets_and_loops(
    train: Any, valid: Any, test: Any, candidates: Any, seed: int, k: int, overlap: Any, mask_valid: bool, ties: bool
) -> None:
    dataset = dataset_of(train, valid, test, candidates)
    rng = np.random.default_rng(seed)
    shape = (dataset.n_users, dataset.n_items)
    scores = (rng.integers(0, 3, shape) if ties else rng.random(shape)).astype(np.float32)
    for split in ("valid", "test"):
        expected = slow_metrics(dataset, scores, k, split, overlap, mask_valid)
        if not expected:
            with pytest.raises(InputError, match="is left to evaluate"):
                Evaluator(dataset, k, split, overlap, mask_valid)  # type: ignore[arg-type]
            continue
        evaluator = Evaluator(dataset, k, split, overlap, mask_valid)  # type: ignore[arg-type]
        found = evaluator.evaluate(Fixed(dataset, scores))
        for name, value in expected.items():
            assert found.metrics[name] == pytest.approx(value), name
        assert evaluator.recall(Fixed(dataset, scores))[f"recall@{k}"] == pytest.approx(expected[f"recall@{k}"])
        averages = found.per_user.drop("user_id").mean().row(0, named=True)
        for name, value in expected.items():
            assert averages[name] == pytest.approx(value)


def test_overlap_by_hand() -> None:
    """User 0 trained on item 0, tested on items 0 and 1; the scores prefer 0, then 2, then 1."""
    dataset = dataset_of([(0, 0), (1, 2)], [], [(0, 0), (0, 1)])
    method = Fixed(dataset, np.array([[3, 1, 2], [0, 0, 0]], dtype=np.float32))
    values = {overlap: Evaluator(dataset, 1, overlap=overlap).evaluate(method) for overlap in OVERLAPS}
    assert values["drop"].metrics["recall@1"] == 0.0
    assert values["drop"].protocol.relevant == 1
    assert values["mask"].metrics["recall@1"] == 0.0
    assert values["mask"].protocol.relevant == 2
    assert values["keep"].metrics["recall@1"] == 0.5
    assert all(found.protocol.overlapping == 1 for found in values.values())


GENRES = {"item_id": range(8), "genre": ["a|b", "a", None, "b", "c", "a", "", "b|a"]}


@settings(max_examples=30)
@given(train=pairs.filter(len), test=pairs.filter(len), seed=st.integers(0, 9))
def test_groups_by_a_column_are_counted_like_any_group(train: Any, test: Any, seed: int) -> None:
    data = dataset_of(train, [], test, candidates=list(range(8))).with_items(GENRES)
    if not set(test) - set(train):
        return
    scores = np.random.default_rng(seed).random((data.n_users, data.n_items)).astype(np.float32)
    evaluator = Evaluator(data, (1, 3), group_by="genre")
    found = evaluator.evaluate(Fixed(data, scores))
    members = {"a": {0, 1, 5, 7}, "b": {0, 3, 7}, "c": {4}, "(none)": {2, 6}}
    assert list(found.groups) == [f"genre={name}" for name in members]
    for value, wanted in members.items():
        name = f"genre={value}"
        by_user = []
        for row, user in enumerate(evaluator.users.tolist()):
            relevant = {i for u, i in set(test) - set(train) if data.user_ids[user] == u} & wanted
            if relevant:
                by_user.append(len(relevant & set(found.lists[row].tolist())) / len(relevant))
        expected = np.mean(by_user) if by_user else np.nan
        np.testing.assert_allclose(found.metrics[f"recall@3/{name}"], expected, rtol=1e-12)
        column = found.per_user[f"recall@3/{name}"].drop_nulls().to_list()
        np.testing.assert_allclose(column, by_user, rtol=1e-12)
        shown = found.lists[found.lists >= 0].tolist()
        share = np.mean([item in wanted for item in shown])
        np.testing.assert_allclose(found.groups[name]["3"], share, rtol=1e-12)
        assert found.groups[name]["items"] == len(wanted)
        assert f"precision@3/{name}" not in found.metrics
    plain = Evaluator(data, (1, 3)).evaluate(Fixed(data, scores))
    np.testing.assert_equal({name: found.metrics[name] for name in plain.metrics}, plain.metrics)
    assert "groups" not in plain.as_json()
    assert "group_by" not in plain.as_json()["protocol"]
    assert found.as_json()["protocol"]["group_by"] == "genre"


RECENT = ["i7", "i8", "i9"]
"""Items that were taken late: less often than others over the whole log, more often of late."""


@pytest.fixture(scope="module")
def data() -> dpaa.Dataset:
    """Twelve users with training pairs; `new` and `newer` have test pairs alone."""
    rows = [(f"u{u}", f"i{i}", 10 * u + i) for u in range(12) for i in range(7) if (u + i) % 3]
    rows += [(f"u{u}", item, 10_000 + u) for u in range(6) for item in RECENT]
    train = pl.DataFrame(rows, schema=["user_id", "item_id", "timestamp"], orient="row")
    test = pl.DataFrame(
        {
            "user_id": ["new", "new", "newer", "u0", "u1", "u5"],
            "item_id": ["i7", "i0", "i3", "i6", "i1", "i8"],
            "timestamp": [20_000] * 6,
        }
    )
    return dpaa.Dataset.from_frame(train, valid=test, test=test)


@pytest.fixture(params=["ease", "lightgcn", "macr"])
def model(request: pytest.FixtureRequest, data: dpaa.Dataset) -> dpaa.Model:
    return dpaa.fit(data, request.param, **(TINY if request.param in ("lightgcn", "macr") else {}))


def popular(data: dpaa.Dataset, k: int) -> list[str]:
    """By a plain count, weighted by age."""
    frame = data.frame("train")
    last = frame["timestamp"].max()
    age = (last - frame["timestamp"]).to_numpy()
    weight = 0.5 ** (age / np.median(age))
    total = frame.with_columns(pl.Series("w", weight)).group_by("item_id").agg(pl.col("w").sum().cast(pl.Float32))
    return total.sort(["w", "item_id"], descending=[True, False])["item_id"].to_list()[:k]


def test_recommend_gives_recent_popularity_and_says_so(model: dpaa.Model, data: dpaa.Dataset) -> None:
    found = model.recommend(["new", "u0", "nobody"], k=5)
    for user in ("new", "nobody"):
        mine = found.filter(pl.col("user_id") == user)
        assert mine["item_id"].to_list() == popular(data, 5)
        assert mine["source"].unique().to_list() == ["popularity"]
    assert set(popular(data, 4)) & set(RECENT)
    assert found.filter(pl.col("user_id") == "u0")["source"].unique().to_list() == ["model"]


@pytest.mark.parametrize(("dial", "rerank"), [(0.0, None), (-1.0, None), (0.0, "xquad")])
def test_evaluation_ranks_likewise(model: dpaa.Model, data: dpaa.Dataset, dial: float, rerank: str | None) -> None:
    evaluator = Evaluator(data, 5, "test", "drop")
    reranker = None if rerank is None else parse_reranker(rerank)
    lists = evaluator.lists(model.method, dial, reranker)
    cold = [str(data.user_ids[int(user)]) in ("new", "newer") for user in evaluator.users]
    assert sum(cold) == 2
    for row in lists[cold]:
        assert data.item_ids.gather(row).to_list() == popular(data, 5)


def test_warm_and_cold_users_stand_apart(data: dpaa.Dataset) -> None:
    found = dpaa.evaluate(dpaa.fit(data, "ease"), data, k=4)
    assert found.protocol.cold_users == 2
    assert "(2 without training pairs)" in found.protocol.in_words()
    table = found.per_user
    for group, users in {"cold": ["new", "newer"], "warm": ["u0", "u1", "u5"]}.items():
        mean = table.filter(pl.col("user_id").is_in(users))["ndcg@4"].mean()
        assert found.metrics[f"ndcg@4/{group}-users"] == pytest.approx(mean)

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaa import Dataset, InputError
from dpaa.data.pairs import popular_items
from dpaa.evaluation.evaluator import OVERLAPS, Evaluator
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

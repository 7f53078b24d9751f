"""Users without training pairs get the most popular items, marked, and are counted apart."""

import numpy as np
import polars as pl
import pytest

import dpaa
from dpaa.evaluation.evaluator import Evaluator
from dpaa.ranking.reranker import parse_reranker
from tests.conftest import TINY

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

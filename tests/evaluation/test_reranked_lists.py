"""Anybody's lists through a re-ranker."""

from __future__ import annotations

import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.evaluation.recommendations import rerank_file
from dpaa.ranking import RERANKERS, Reranker
from dpaa.ranking.rerankers.fa_ir import FAIR
from dpaa.runs.fit import fit


@pytest.fixture(scope="module")
def lists(small_world: Dataset) -> pl.DataFrame:
    return fit(small_world, "item-knn").recommend(k=40)


def new_lists(recs: object, data: Dataset, reranker: Reranker, k: int = 10) -> pl.DataFrame:
    return pl.concat(list(rerank_file(recs, data, reranker, k)[0]))


@pytest.mark.parametrize("name", [name for name in RERANKERS.built_in if name != "dial"])
def test_a_file_is_re_ranked_as_its_model_would_be(name: str, small_world: Dataset) -> None:
    reranker = RERANKERS[name](strength=0.6)  # type: ignore[call-arg]
    model = fit(small_world, "item-knn")
    expected = model.recommend(k=10, rerank=reranker)
    everything = model.recommend(k=small_world.n_items)
    found = new_lists(everything.sample(fraction=1, shuffle=True, seed=0), small_world, reranker)
    for column in ("user_id", "item_id", "rank"):
        assert found[column].equals(expected[column]), column
    assert found.schema == expected.schema


@pytest.mark.parametrize("scores", ["none", "rising"])
def test_ranks_are_scores_where_there_are_none_that_fall(
    scores: str, lists: pl.DataFrame, small_world: Dataset
) -> None:
    given = lists.drop("score") if scores == "none" else lists.with_columns(-pl.col("score"))
    blocks, notes = rerank_file(given, small_world, FAIR(strength=0.9), 10)
    assert any("ranks are used as scores" in note for note in notes)
    found = pl.concat(list(blocks))
    assert found["score"].max() == 40
    scored = new_lists(lists, small_world, FAIR(strength=0.9))
    assert found["item_id"].equals(scored["item_id"])  # what FA*IR takes depends on the order alone

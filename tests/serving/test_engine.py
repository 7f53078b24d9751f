"""Answers of a snapshot are those of `Model`, alone and in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.dataset import Dataset
from dpaa.data.ids import distinct_ids
from dpaa.errors import InputError
from dpaa.ranking.reranker import Dial
from dpaa.runs.fit import fit
from dpaa.runs.model import Model
from dpaa.serving._engine import NO_ITEMS, Answer, Ask, answer
from dpaa.serving._snapshot import IdTable, Snapshot, make_snapshot
from tests.serving.made import drawn_model

KAPPAS = (0.0, 0.0, -0.5, 1.0, -2.0, 3.25)


def asks_of(snapshot: Snapshot, n: int, seed: int) -> Iterator[Ask]:
    """All kinds of questions."""
    rng = np.random.default_rng(seed)
    n_items = len(snapshot.items)
    for number in range(n):
        some = np.unique(rng.integers(0, n_items, int(rng.integers(1, 9))))
        kind = ("user", "user", "history", "similar")[number % 4]
        yield Ask(
            snapshot,
            k=int(rng.integers(1, 30)),
            kind=kind,  # type: ignore[arg-type]
            number=int(rng.integers(len(snapshot.users) if kind == "user" else n_items)),
            history=some.astype(np.int32) if kind == "history" else NO_ITEMS,
            kappa=0.0 if kind == "similar" else float(rng.choice(KAPPAS)),
            exclude=NO_ITEMS if kind == "similar" or number % 3 else np.unique(rng.integers(0, n_items, 5)),
            allow=np.unique(rng.integers(0, n_items, 150)) if kind == "user" and number % 5 == 4 else None,
            reranker=Dial(kappa=-0.3) if kind == "user" and number % 7 == 6 else None,
        )


def by_library(model: Model, ask: Ask) -> tuple[list[object], list[float]]:
    items = model.item_ids
    if ask.kind == "similar":
        frame = model.similar_items([items[ask.number]], ask.k)
        return frame["similar_item_id"].to_list(), frame["score"].to_list()
    how: dict[str, Any] = {
        "exclude": items.gather(ask.exclude.tolist()),
        "items": None if ask.allow is None else items.gather(ask.allow),
        "popularity_dial": ask.kappa,
        "rerank": ask.reranker,
    }
    if ask.kind == "history":
        frame = model.recommend_for(items.gather(ask.history), ask.k, **how)
    else:
        frame = model.recommend([model.user_ids[ask.number]], ask.k, **how)
    return frame["item_id"].to_list(), frame["score"].to_list()


def check(snapshot: Snapshot, asks: list[Ask], size: int = 32) -> None:
    """In batches of this size: the library's items in its order, scores to float tolerance."""
    for first in range(0, len(asks), size):
        batch = asks[first : first + size]
        for ask, one in zip(batch, answer(batch), strict=True):
            assert isinstance(one, Answer), one
            items, scores = by_library(snapshot.model, ask)
            assert [snapshot.items.ids[item] for item in one.items.tolist()] == items
            assert one.scores.tolist() == pytest.approx(scores, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    ("n_items", "text", "candidates"),
    [(1003, True, True), (1024, False, False), (5000, True, False), (150, False, True)],
)
def test_answers_equal_the_library(n_items: int, text: bool, candidates: bool) -> None:
    snapshot = make_snapshot(drawn_model(n_items=n_items, text=text, candidates=candidates))
    for size in (1, 7, 32):
        check(snapshot, list(asks_of(snapshot, 100, n_items)), size)


def test_ties_go_to_the_lower_item() -> None:
    model = drawn_model(n_items=5000)
    users, items = model.method.user_embedding, model.method.item_embedding  # type: ignore[attr-defined]
    items[:] = items[:1].clone()
    items[200:300] *= 2
    users[:] = items[:1]
    snapshot = make_snapshot(model)
    for ask, one in zip(asks := [Ask(snapshot, 20, number=user) for user in range(6)], answer(asks), strict=True):
        assert isinstance(one, Answer), one
        assert one.items.tolist() == np.setdiff1d(np.arange(200, 300), ask.taken)[:20].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lightgcn", "macr", "ease", "most-popular"])
def test_every_way_of_scoring(small_world: Dataset, name: str) -> None:
    tiny = {} if name in ("ease", "most-popular") else {"embedding_size": 8, "layers": 2, "epochs": 2}
    snapshot = make_snapshot(fit(small_world, name, **tiny))
    kinds = ("user", "history") if snapshot.unit is None else ("user", "history", "similar")
    check(snapshot, [ask for ask in asks_of(snapshot, 30, 5) if ask.kind in kinds])


def test_one_bad_question_spoils_no_other() -> None:
    snapshot = make_snapshot(drawn_model(n_items=150))
    bad = Ask(snapshot, 3, number=1, exclude=np.arange(150))
    first, second, third = answer([Ask(snapshot, 3, number=0), bad, Ask(snapshot, 3, number=2)])
    assert isinstance(first, Answer)
    assert "no item is left to recommend" in str(second)
    assert isinstance(third, Answer)


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_an_index_finds_nearly_all_and_scores_exactly(kind: str) -> None:
    pytest.importorskip("faiss")
    model = drawn_model(n_items=4000, size=16)
    snapshot = make_snapshot(model, kind)
    asks = [Ask(snapshot, 10, number=user, kappa=kappa) for user in range(40) for kappa in (0.0, -0.5, 2.0)]
    hits = 0
    for ask, one in zip(asks, answer(asks), strict=True):
        assert isinstance(one, Answer), one
        items = [snapshot.items.ids[item] for item in one.items.tolist()]
        expected = dict(zip(*by_library(model, ask), strict=True))
        hits += len(expected.keys() & set(items))
        for item, score in zip(items, one.scores.tolist(), strict=True):
            assert score == pytest.approx(expected.get(item, score), abs=1e-5)
        assert one.scores.tolist() == sorted(one.scores.tolist(), reverse=True)
        assert not set(snapshot.taken(ask.number).tolist()) & set(one.items.tolist())
    assert hits >= 0.9 * 10 * len(asks)


@pytest.mark.parametrize(("index", "words"), [("hnsw", "150 items are too few"), ("tree", "there is no index 'tree'")])
def test_indexes_that_make_no_sense_are_refused(index: str, words: str) -> None:
    pytest.importorskip("faiss")
    with pytest.raises(InputError, match=words):
        make_snapshot(drawn_model(n_items=150), index)


# ------------------------------------------------------------------ ids

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@given(st.sets(texts, min_size=1), texts)
def test_text_ids(known: set[str], other: str) -> None:
    table = IdTable(distinct_ids([pl.Series(sorted(known))]))
    assert [table.ids[table.find(one)] for one in known] == list(known)
    assert (table.find(other) >= 0) == (other in known)
    assert table.find(7) == -1
    near = table.search(other[:1], 100)
    assert {table.ids[row] for row in near} == {one for one in known if one.startswith(other[:1])}


@given(st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(-(2**70), 2**70))
def test_integer_ids_as_numbers_and_as_text(known: set[int], other: int) -> None:
    table = IdTable(distinct_ids([pl.Series(sorted(known))]))
    assert [table.ids[table.find(one)] for one in known] == list(known)
    assert [table.ids[table.find(str(one))] for one in known] == list(known)
    assert (table.find(other) >= 0) == (other in known)
    assert table.find("007") == table.find("x") == table.find("") == table.find("1" * 99) == -1
    near = {table.ids[row] for row in table.search(str(other)[:2], 10_000)}
    assert near == {one for one in known if str(one).startswith(str(other)[:2])}


def test_titles_are_searched_whatever_their_case() -> None:
    table = IdTable(pl.Series(["a", "b", "c"]), pl.Series(["Red Coat", None, "blue coat"]))
    assert table.search("COAT", 5) == [0, 2]
    assert table.search("b", 5) == [1, 2]
    assert table.search("(", 5) == []
    assert table.shown([1, 0]) == [{"id": "b", "title": None}, {"id": "a", "title": "Red Coat"}]

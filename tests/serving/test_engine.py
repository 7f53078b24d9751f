"""Answers of a snapshot are those of `Model`, bit for bit, alone and in batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.ranking.reranker import Dial
from dpaa.runs.fit import fit
from dpaa.runs.model import Model
from dpaa.serving import engine
from dpaa.serving import snapshot as snapshots
from dpaa.serving.engine import Answer, Ask, answer
from dpaa.serving.snapshot import Snapshot, open_snapshot, write_snapshot
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
            history=some.astype(np.int32) if kind == "history" else engine.NOTHING,
            kappa=0.0 if kind == "similar" else float(rng.choice(KAPPAS)),
            exclude=engine.NOTHING if kind == "similar" or number % 3 else np.unique(rng.integers(0, n_items, 5)),
            allow=np.unique(rng.integers(0, n_items, 150)) if kind == "user" and number % 5 == 4 else None,
            reranker=Dial(kappa=-0.3) if kind == "user" and number % 7 == 6 else None,
        )


def by_library(model: Model, ask: Ask) -> tuple[list[object], list[float]]:
    items = model.item_ids
    if ask.kind == "similar":
        found = model.similar_items([items[ask.number]], ask.k)
        return found["similar_item_id"].to_list(), found["score"].to_list()
    how = {
        "exclude": items.gather(ask.exclude.tolist()),
        "items": None if ask.allow is None else items.gather(ask.allow),
        "popularity_dial": ask.kappa,
        "rerank": ask.reranker,
    }
    if ask.kind == "history":
        found = model.recommend_for(items.gather(ask.history), ask.k, **how)  # type: ignore[arg-type]
    else:
        found = model.recommend([model.user_ids[ask.number]], ask.k, **how)  # type: ignore[arg-type]
    return found["item_id"].to_list(), found["score"].to_list()


def shown(snapshot: Snapshot, one: Answer | Exception) -> tuple[list[object], list[float]]:
    assert isinstance(one, Answer), one
    return [snapshot.items.id(item) for item in one.items.tolist()], one.scores.tolist()


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("candidates", [True, False])
@pytest.mark.parametrize("n_items", [1003, 1024, 150])
def test_a_thousand_answers_equal_the_library(
    tmp_path: Path, text: bool, candidates: bool, n_items: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "FASTER_ALONE", 0)
    model = drawn_model(n_items=n_items, text=text, candidates=candidates)
    write_snapshot(model, tmp_path / "one")
    snapshot = open_snapshot(tmp_path / "one")
    assert snapshot.plain is not None
    asks = list(asks_of(snapshot, 100, n_items))
    expected = [by_library(model, ask) for ask in asks]
    for size in (1, 7, 32):
        found = [one for first in range(0, len(asks), size) for one in answer(asks[first : first + size])]
        assert [shown(snapshot, one) for one in found] == expected


@pytest.mark.parametrize("batches", [True, False])
def test_where_scoring_again_has_other_bits_everybody_is_answered_alone(
    tmp_path: Path, batches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "FASTER_ALONE", 0)
    monkeypatch.setattr(snapshots, "bits_hold", lambda _table: batches)
    model = drawn_model()
    write_snapshot(model, tmp_path / "one")
    snapshot = open_snapshot(tmp_path / "one")
    asks = [Ask(snapshot, 5, number=user) for user in range(9)]
    assert [shown(snapshot, one) for one in answer(asks)] == [by_library(model, ask) for ask in asks]


def test_equals_at_the_cut_go_to_the_lower_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "FASTER_ALONE", 0)
    model = drawn_model()
    rows = model.method.item_embedding  # type: ignore[attr-defined]
    rows[:] = rows[:1].clone()  # all scores are equal, but for the kernel's last rows
    rows[200:300] *= 2
    write_snapshot(model, tmp_path / "one")
    snapshot = open_snapshot(tmp_path / "one")
    asks = [Ask(snapshot, 20, number=user, kappa=kappa) for user in range(6) for kappa in (0.0, -1.0)]
    assert [shown(snapshot, one) for one in answer(asks)] == [by_library(model, ask) for ask in asks]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lightgcn", "macr", "ppac", "dap", "ease", "item-knn", "most-popular"])
def test_every_way_of_scoring(small_world: Dataset, tmp_path: Path, name: str) -> None:
    tiny = {} if name in ("ease", "item-knn", "most-popular") else {"embedding_size": 8, "layers": 2, "epochs": 2}
    model = fit(small_world, name, **tiny)
    write_snapshot(model, tmp_path / "one")
    snapshot = open_snapshot(tmp_path / "one")
    kinds = ("user", "history") if snapshot.unit is None else ("user", "history", "similar")
    asks = [ask for ask in asks_of(snapshot, 30, 5) if ask.kind in kinds]
    assert [shown(snapshot, one) for one in answer(asks)] == [by_library(model, ask) for ask in asks]


def test_one_bad_question_spoils_no_other(tmp_path: Path) -> None:
    model = drawn_model(n_items=150)
    write_snapshot(model, tmp_path / "one")
    snapshot = open_snapshot(tmp_path / "one")
    bad = Ask(snapshot, 3, number=1, allow=np.array([5]), exclude=np.array([5]))
    first, second, third = answer([Ask(snapshot, 3, number=0), bad, Ask(snapshot, 3, number=2)])
    assert isinstance(first, Answer)
    assert "no item is left to recommend" in str(second)
    assert isinstance(third, Answer)


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_an_index_finds_nearly_all_and_scores_exactly(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("faiss")
    model = drawn_model(n_items=4000, size=16)
    write_snapshot(model, tmp_path / "one", kind)
    snapshot = open_snapshot(tmp_path / "one")
    asks = [Ask(snapshot, 10, number=user, kappa=kappa) for user in range(40) for kappa in (0.0, -0.5, 2.0)]
    hits = 0
    for ask, one in zip(asks, answer(asks), strict=True):
        items, scores = shown(snapshot, one)
        expected = dict(zip(*by_library(model, ask), strict=True))
        hits += len(expected.keys() & set(items))
        assert all(expected.get(item, score) == score for item, score in zip(items, scores, strict=True))
        assert scores == sorted(scores, reverse=True)
        taken = snapshot.taken(ask.number).tolist()
        assert not {snapshot.items.id(item) for item in taken} & set(items)
    assert hits >= 0.9 * 10 * len(asks)


@pytest.mark.parametrize(
    ("model", "index", "words"),
    [
        (drawn_model(n_items=150), "hnsw", "150 items are too few for an index hnsw; use exact"),
        (drawn_model(n_items=150), "tree", "there is no index 'tree'"),
    ],
)
def test_indexes_that_make_no_sense_are_refused(tmp_path: Path, model: Model, index: str, words: str) -> None:
    pytest.importorskip("faiss")
    with pytest.raises(InputError, match=words):
        write_snapshot(model, tmp_path / "one", index)

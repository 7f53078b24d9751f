"""Another system's lists and vectors as a model, and recipes over its lists."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import dpaa
from dpaa import Dataset, InputError, Model, load
from dpaa.data.pairs import Pairs
from dpaa.evaluation.evaluator import Evaluator
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Histories
from dpaa.ranking import RERANKERS, Reranker
from dpaa.ranking.dial import dialled_lists
from dpaa.runs import _foreign as foreign
from tests.command import dpaa_ok

LONG, K = 60, 10


@pytest.fixture(scope="module")
def data(small_world: Dataset) -> Dataset:
    return small_world


@pytest.fixture(scope="module")
def lists(data: Dataset) -> pl.DataFrame:
    """What another system recommends; some of it the user has already."""
    return dpaa.fit(data, "ease").recommend(k=LONG, seen=True).select("user_id", "item_id", "score")


@pytest.fixture(scope="module")
def model(lists: pl.DataFrame, data: Dataset) -> Model:
    return dpaa.given(lists, data)


def recipe(dial: float = 0.0, rerank: Reranker | None = None, **more: Any) -> dict[str, Any]:
    how = {"popularity_dial": dial, "rerank": None if rerank is None else rerank.as_json()}
    return {"kind": "recipe", "format": 1, "scores": "lists", "k": K} | how | more


SWEEP = [(name, one) for name in RERANKERS.built_in if name != "dial" for one in RERANKERS[name].sweep()[-1:]]
WAYS = [(-2.0, None), (-0.3, None), (0.5, None), (-0.3, SWEEP[0][1]), *((0.0, one) for _, one in SWEEP)]


def test_its_lists_are_the_models(model: Model, lists: pl.DataFrame, data: Dataset, tmp_path: Path) -> None:
    taken = data.frame("train").select("user_id", "item_id")
    expected = lists.join(taken, on=["user_id", "item_id"], how="anti")
    expected = expected.sort("user_id", "score", descending=[False, True], maintain_order=True)
    expected = expected.group_by("user_id", maintain_order=True).head(K)
    assert model.recommend(k=K).select("user_id", "item_id").equals(expected.select("user_id", "item_id"))
    model.save(tmp_path / "run")
    assert load(tmp_path / "run").recommend(k=K).equals(model.recommend(k=K))
    assert dpaa.METHODS["given-lists"].name not in list(dpaa.METHODS)


@pytest.mark.parametrize(("dial", "reranker"), WAYS)
def test_nothing_is_listed_that_was_not_and_a_recipe_does_the_same_in_a_loop(
    dial: float, reranker: Reranker | None, model: Model, lists: pl.DataFrame, data: Dataset
) -> None:
    expected = model.recommend(k=K, popularity_dial=dial, rerank=reranker)
    assert len(expected.join(lists, on=["user_id", "item_id"], how="anti")) == 0
    assert not expected.select("user_id", "item_id").equals(model.recommend(k=K).select("user_id", "item_id"))
    batches = [
        dpaa.rerank(batch, recipe(dial, reranker), data)
        for batch in lists.sample(fraction=1.0, shuffle=True, seed=0)
        .with_columns(of=pl.col("user_id").hash() % 4)
        .partition_by("of")
    ]
    assert pl.concat(batches).sort("user_id", "rank").drop("score").equals(expected.drop("score"))


def test_the_dial_is_in_units_of_what_is_listed() -> None:
    scores = torch.tensor([[1.0, 4.0, -torch.inf, 7.0], [-torch.inf] * 4, [2.0, 2.0, 2.0, 8.0]])
    graph = BipartiteGraph.from_pairs(Pairs.of([0, 0, 1, 1, 2], [0, 1, 1, 2, 1]), 3, 3)
    turned = dialled_lists(scores, torch.tensor([0, 1, -1, 2]).expand(3, 4), graph, 0.5)
    logs = np.log1p([1, 3, 0, 1])  # the third is where lists have ended
    bonus = logs / np.std(np.log1p([1, 3, 1]))
    for row, listed in ((0, [0, 1, 3]), (2, [0, 1, 3])):
        plain = scores[row].numpy()
        deviation = np.std(plain[np.isfinite(plain)])
        np.testing.assert_allclose(turned[row, listed], plain[listed] + 0.5 * deviation * bonus[listed], rtol=1e-6)
    assert turned[1].isneginf().all()
    assert turned[0, 2] == -torch.inf


def vectors(data: Dataset, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(data.n_users, 6)), rng.normal(size=(data.n_items, 6))


def test_vectors_rank_by_inner_product_whatever_holds_them(data: Dataset, tmp_path: Path) -> None:
    users, items = vectors(data)
    order = np.random.default_rng(1).permutation(data.n_items)
    ids = {"user_ids": data.user_ids, "item_ids": data.item_ids.gather(order)}
    made = dpaa.given((users, items[order]), data, **ids)
    lists = made.recommend(k=5, seen=True)
    best = np.argsort(-(users @ items.T), axis=1)[:, :5]
    assert lists["item_id"].to_list() == data.item_ids.gather(best.ravel()).to_list()
    np.savez(tmp_path / "v.npz", users=users, items=items, user_ids=data.user_ids, item_ids=data.item_ids.to_list())
    index = SimpleNamespace(ntotal=data.n_items, reconstruct_n=lambda first, n: items[order][first:n])  # as FAISS's
    factors = SimpleNamespace(user_factors=users, item_factors=torch.from_numpy(items[order]))  # as implicit's
    for source, own in ((tmp_path / "v.npz", {}), (factors, ids), ((users, index), ids)):
        assert dpaa.given(source, data, **own).recommend(k=5, seen=True).equals(lists)
    made.save(tmp_path / "run")
    assert load(tmp_path / "run").recommend(k=5, popularity_dial=-1).equals(made.recommend(k=5, popularity_dial=-1))
    assert made.prepared_dial is not None  # one more coordinate, so that it can be exported


def test_who_has_no_vector_is_not_scored(data: Dataset) -> None:
    users, items = vectors(data)
    made = dpaa.given((users[1:], items[3:]), data, user_ids=data.user_ids[1:], item_ids=data.item_ids[3:])
    notes = made.manifest["given"]["notes"]
    assert [note.partition(" of ")[0] for note in notes] == ["the vectors: 1", "the vectors: 3"]
    for dial in (0, -1.0):
        recs = made.recommend(k=data.n_items, popularity_dial=dial)
        assert not set(recs["item_id"]) & set(data.item_ids[:3])
        assert data.user_ids[0] not in set(recs["user_id"])
    assert torch.isfinite(made.method.scorer()(torch.tensor([5]))[0, 3:]).all()


def test_the_recipe_of_debias_does_what_its_run_does(lists: pl.DataFrame, data: Dataset, tmp_path: Path) -> None:
    file, folder = tmp_path / "recs.parquet", tmp_path / "debiased"
    lists.write_parquet(file)
    words: dict[str, Any] = {"runs": [file], "base": file, "rerank": ["dial", "xquad"], "k": K}
    found = dpaa.debias(folder, data, targets=["aplt>=0.3"], **words)
    assert found.base.candidate.name == "recs"
    content = json.loads((folder / "recipe.json").read_text())
    assert content["popularity_dial"] or content["rerank"]
    assert content["headline"] == found.headline()
    expected = load(folder).recommend(k=K).drop("score")
    assert dpaa.rerank(lists, content, data).drop("score").equals(expected)
    how = ("--recipe", folder / "recipe.json", "--dataset", saved(data, tmp_path))
    said = dpaa_ok("rerank", file, *how, "--out", tmp_path / "new.csv")
    assert f"{len(expected):,} recommendations" in said.out
    assert pl.read_csv(tmp_path / "new.csv").drop("score").rows() == expected.rows()
    assert dpaa.rerank(dpaa.given(lists, data), content, data).drop("score").equals(expected)
    dpaa.debias(folder, data, targets=["aplt>=0.3"], **words | {"runs": [], "methods": ["most-popular"], "base": None})
    again = json.loads((folder / "recipe.json").read_text())
    assert (again["model"], again["scores"]) == ("most-popular", "all items")


def saved(data: Dataset, folder: Path) -> Path:
    data.write(folder / "data")
    return folder / "data"


def test_a_choice_of_another_model_leaves_no_recipe(lists: pl.DataFrame, data: Dataset, tmp_path: Path) -> None:
    poor = lists.with_columns(score=pl.col("item_id").hash(seed=1).cast(pl.Float64))
    poor.write_csv(tmp_path / "recs.csv")
    (tmp_path / "debiased").mkdir()
    (tmp_path / "debiased" / "recipe.json").write_text("{}")
    words: dict[str, Any] = {"methods": ["ease"], "rerank": ["xquad"], "k": K}
    found = dpaa.debias(tmp_path / "debiased", data, base=tmp_path / "recs.csv", targets=["arp>=0"], **words)
    assert (found.base.candidate.model, found.point.candidate.model) == ("recs", "ease")
    assert not (tmp_path / "debiased" / "recipe.json").exists()


def test_lists_are_measured_as_they_are(lists: pl.DataFrame, data: Dataset, tmp_path: Path) -> None:
    valid = dpaa.evaluate(lists, data, k=K, split="valid")
    expected = Evaluator(data, K, "valid").evaluate_recommendations(lists)
    assert (valid.metrics, valid.protocol) == (pytest.approx(expected.metrics, nan_ok=True), expected.protocol)
    lists.write_parquet(tmp_path / "recs.parquet")
    call = ("evaluate", tmp_path / "recs.parquet", "--dataset", saved(data, tmp_path), "--k", K, "--json")
    shown = [json.loads(dpaa_ok(*call, "--split", split).out)["metrics"][f"ndcg@{K}"] for split in ("valid", "test")]
    assert shown == pytest.approx([valid.metrics[f"ndcg@{K}"], dpaa.evaluate(lists, data, k=K).metrics[f"ndcg@{K}"]])


def arrays(data: Dataset, **other: Any) -> dict[str, Any]:
    users, items = vectors(data)
    return {"users": users, "items": items, "user_ids": data.user_ids, "item_ids": data.item_ids.to_list()} | other


WRONG: dict[str, Callable[[pl.DataFrame, Dataset], Any]] = {
    "fewer than 10 items that are new": lambda lists, _: lists.group_by("user_id").head(5),
    "no item in the frame is in the dataset": lambda lists, _: lists.with_columns(item_id=pl.col("item_id") + "x"),
    "frame has .*invalid row.*'nan'": lambda lists, _: lists.with_columns(score=pl.col("score") * float("nan")),
    "a second time; keep one": lambda lists, _: pl.concat([lists, lists[:1]]),
    "scores may be up to 1e.38": lambda lists, _: lists.with_columns(score=pl.col("score").cast(pl.Float64) * 1e60),
    "cannot be read .*allow_pickle=False.*ids as numbers or text": lambda _, d: arrays(
        d, item_ids=np.array(d.item_ids, object)
    ),
    "users is not a file in the archive": lambda _, d: {"U": np.zeros(3)},
    "no item is in the dataset": lambda _, d: arrays(d, item_ids=[f"{one}x" for one in d.item_ids]),
    "178 item vectors need as many ids, got 177": lambda _, d: arrays(d, item_ids=d.item_ids[1:].to_list()),
    r"have \[4, 6\] columns": lambda _, d: arrays(d, items=np.ones((d.n_items, 4))),
    "must be a table of finite numbers": lambda _, d: arrays(d, items=np.full((d.n_items, 6), np.nan)),
    "are no numbers": lambda _, d: arrays(d, items=np.full((d.n_items, 6), "a")),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_wrong_lists_and_vectors(sentence: str, lists: pl.DataFrame, data: Dataset, tmp_path: Path) -> None:
    source = WRONG[sentence](lists, data)
    if isinstance(source, dict):
        np.savez(tmp_path / "v.npz", **source)
        source = tmp_path / "v.npz"
    with pytest.raises(InputError, match=sentence):
        dpaa.given(source, data, k=K)


def test_untrusted_files(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Model) -> None:
    (tmp_path / "v.npz").write_bytes(b"PK no archive")
    with pytest.raises(InputError, match=r"v.npz cannot be read \(File is not a zip file\)"):
        dpaa.given(tmp_path / "v.npz", data)
    np.savez_compressed(tmp_path / "v.npz", **arrays(data, users=np.zeros((10_000, 100))))
    monkeypatch.setattr(foreign, "memory_at_hand", lambda: 10_000_000)
    with pytest.raises(InputError, match="GB, more than half of the memory at hand"):
        dpaa.given(tmp_path / "v.npz", data)
    state = model.method.state()
    for name, value in (("listed", 1e6), ("lengths", 7.0)):
        with pytest.raises(InputError, match="contradict each other"):
            model.method.load_state(state | {name: torch.full_like(state[name], value)})
    model.method.load_state(state)


def test_calls_that_cannot_be(data: Dataset, model: Model, lists: pl.DataFrame) -> None:
    users, items = vectors(data)
    refused: list[tuple[str, Callable[[], object]]] = [
        ("with the user_ids and item_ids of their rows", lambda: dpaa.given((users, items), data)),
        ("cannot be trained; bring it in", lambda: dpaa.fit(data, "given-lists")),
        ("has no scores for histories", lambda: model.method.scorer(None, Histories(data.valid, data.n_users))),
        ("lists are evaluated as they are", lambda: dpaa.evaluate(lists, data, popularity_dial=-1)),
        ("damaged", lambda: dpaa.rerank(lists, recipe("strong"), data)),  # type: ignore[arg-type]
        ("scores of all items of mine", lambda: dpaa.rerank(lists, recipe(-1, scores="all items", model="mine"), data)),
    ]
    for sentence, call in refused:
        with pytest.raises(InputError, match=sentence):
            call()
    notes: list[str] = []
    dpaa.rerank(lists, recipe(dataset={"name": "shop", "fingerprint": "x"}), data, say=notes.append)
    assert notes == ["the recipe was chosen on other data than demo, or on another state of it"]

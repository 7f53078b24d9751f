import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from numpy.typing import NDArray

from dpaa import ALS, EASE, GFCF, IPSLAE, SVDGCN, ItemKNN, MostPopular
from dpaa.data.pairs import Pairs
from dpaa.errors import InputError, MissingExtraError
from dpaa.graph import BipartiteGraph, cooccurrence
from dpaa.methods import ease
from dpaa.methods import gf_cf as spectral
from dpaa.methods.base import Histories
from tests.methods.tools import as_histories, learned, matrix_of, some_graph


def by_definition(taken: NDArray[np.float64], neighbours: int) -> NDArray[np.float64]:
    """Every score for itself: the k nearest of the item to be scored, as far as the user took them."""
    length = np.maximum(np.sqrt(taken.sum(axis=0)), 1)
    cosine = (taken.T @ taken) / np.outer(length, length)
    np.fill_diagonal(cosine, 0)
    mean = taken.sum(axis=0) / np.count_nonzero(taken.sum(axis=1))
    scores = np.zeros_like(taken)
    for user, row in enumerate(taken):
        for item, similarity in enumerate(cosine):
            nearest = np.argsort(-similarity.astype(np.float32), kind="stable")[:neighbours]
            above = sum(similarity[near] * (row[near] - mean[near]) for near in nearest)
            total = sum(similarity[near] for near in nearest)
            scores[user, item] = mean[item] + (above / total if total else 0)
    return scores


@pytest.mark.parametrize("cells", [3, 4_000_000])
@pytest.mark.parametrize("neighbours", [2, 5, 50])
def test_item_knn_equals_the_definition(neighbours: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooccurrence, "BLOCK_CELLS", cells)
    graph = some_graph()
    method = learned(ItemKNN, graph, neighbours=neighbours)
    expected = by_definition(matrix_of(graph), neighbours)
    everybody = torch.arange(graph.n_users)
    np.testing.assert_allclose(method.scorer()(everybody), expected, atol=1e-5)
    some = torch.tensor([3, 0])
    np.testing.assert_allclose(method.scorer(some, as_histories(graph))(everybody), expected[:, some], atol=1e-5)
    np.testing.assert_allclose(method.scorer()(everybody[-1:]), expected[-1:], atol=1e-5)  # who took nothing


def test_the_neighbours_are_those_of_the_item_to_be_scored() -> None:
    """Items b and c are alike, a is a little like both: a's nearest is b, but neither b nor c has a for its nearest."""
    pairs = [(0, 1), (0, 2), (1, 1), (1, 2), (2, 0), (2, 1), (3, 0)]
    graph = BipartiteGraph.from_pairs(Pairs.of(*np.array(pairs).T), 4, 3)
    method = learned(ItemKNN, graph, neighbours=1)
    assert method.neighbour[:, 0].tolist() == [1, 2, 1]
    scores = method.scorer()(torch.tensor([0]))[0]
    assert scores[0].item() == pytest.approx(2 / 4 + 1 - 3 / 4)  # the user took b, the one neighbour of a


def test_ease_equals_the_definition() -> None:
    graph = some_graph()
    method = learned(EASE, graph, ridge=3)
    taken = matrix_of(graph)
    inverse = np.linalg.inv(taken.T @ taken + 3 * np.eye(graph.n_items))
    expected = np.eye(graph.n_items) - inverse / np.diag(inverse)
    np.fill_diagonal(expected, 0)
    everybody = torch.arange(graph.n_users)
    np.testing.assert_allclose(method.scorer()(everybody), taken @ expected, atol=1e-5)
    some = torch.tensor([3, 0])
    found = method.scorer(some, as_histories(graph))(everybody)
    np.testing.assert_allclose(found, (taken @ expected)[:, some], atol=1e-5)


def test_ease_refuses_what_does_not_fit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ease, "memory_at_hand", lambda: 12 * 20 * 20 - 1)  # float64 and, in the end, float32
    with pytest.raises(
        InputError, match=r"method ease needs 0\.0 GB for 20 items and 0\.0 GB are at hand; take item-knn"
    ):
        learned(EASE, some_graph())


def test_ips_lae_without_slope_ranks_as_ease_and_with_it_lifts_rare_items() -> None:
    graph, everybody = some_graph(), torch.arange(30)
    plain, flat, steep = (
        learned(kind, graph, ridge=3, **slope).scorer()(everybody)
        for kind, slope in ((EASE, {}), (IPSLAE, {"propensity_slope": 0}), (IPSLAE, {"propensity_slope": 2}))
    )
    torch.testing.assert_close(flat, 2 * plain)  # every propensity is ½
    count = graph.item_degree
    rare, popular = (int(index) for index in (count.masked_fill(count == 0, 99).argmin(), count.argmax()))
    assert (steep / plain)[:, rare].nanmean() > 2 > (steep / plain)[:, popular].nanmean()


def test_als_lowers_what_it_is_meant_to_lower_and_solves_newcomers_exactly() -> None:
    pytest.importorskip("implicit", reason="the extra `references` is not installed")
    graph = some_graph()
    method = learned(ALS, graph, embedding_size=6, confidence=5, ridge=0.5, iterations=30)
    taken = matrix_of(graph)
    items = method.item_factors.double().numpy()
    found = method.scorer(None, as_histories(graph))(torch.arange(graph.n_users))
    for user in range(graph.n_users):
        weight = 1 + 4 * taken[user]
        left = items.T @ (weight[:, None] * items) + 0.5 * np.eye(6)
        expected = items @ np.linalg.solve(left, items.T @ (weight * taken[user]))
        np.testing.assert_allclose(found[user], expected, atol=1e-4)
    # A training user's factors are those of a newcomer with the same items, once both sides have resolve_path.
    assert (method.scorer()(torch.arange(graph.n_users)) - found).abs().max() < 0.05


def test_als_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "implicit.cpu.als", None)
    with pytest.raises(MissingExtraError, match=r"method als needs packages .* pip install 'dpaa\[references\]'"):
        learned(ALS, some_graph())


def counted(*pairs: tuple[int, int, int]) -> MostPopular:
    user, item, count = zip(*pairs, strict=True)
    made: MostPopular = learned(MostPopular, BipartiteGraph.from_pairs(Pairs.of(user, item, count), 3, 4))
    return made


def test_scores_are_the_counts_for_whomever() -> None:
    method = counted((0, 1, 1), (1, 1, 1), (2, 3, 5))  # a repeated pair counts as often as it occurs
    assert method.scorer()(torch.tensor([2, 0])).tolist() == [[0, 2, 0, 5]] * 2
    newcomers = Histories(Pairs.of([0], [3]), 1)
    assert method.scorer(torch.tensor([3, 1]), newcomers)(torch.tensor([0])).tolist() == [[5, 2]]


def svd_gcn(graph: BipartiteGraph, **hyperparameters: float) -> SVDGCN:
    method: SVDGCN = learned(SVDGCN, graph, **hyperparameters)
    return method


def gf_cf(graph: BipartiteGraph, **hyperparameters: float) -> GFCF:
    method: GFCF = learned(GFCF, graph, **hyperparameters)
    return method


@pytest.mark.parametrize("dense_side", [0, 1024])
def test_svd_gcn_equals_the_definition(dense_side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectral, "DENSE_SIDE", dense_side)
    graph = some_graph()
    method = svd_gcn(graph, degree_shift=2, rank=5, emphasis=1.5)
    taken = matrix_of(graph)
    scaled = taken / np.sqrt(np.outer(taken.sum(axis=1) + 2, taken.sum(axis=0) + 2))
    left, values, right = np.linalg.svd(scaled, full_matrices=False)
    expected = (left[:, :5] * np.exp(3 * values[:5])) @ right[:5]
    np.testing.assert_allclose(method.scorer()(torch.arange(graph.n_users)), expected, atol=2e-4)


def test_who_was_in_training_is_folded_in_as_trained() -> None:
    graph = some_graph()
    everybody = torch.arange(graph.n_users)
    for method in (svd_gcn(graph, rank=6), gf_cf(graph, rank=6)):
        own = method.scorer()(everybody)
        torch.testing.assert_close(method.scorer(None, as_histories(graph))(everybody), own, rtol=1e-3, atol=1e-4)
        some = torch.tensor([7, 2])
        torch.testing.assert_close(method.scorer(some)(everybody), own[:, some])


def test_gf_cf_equals_the_definition() -> None:
    graph = some_graph()
    method = gf_cf(graph, rank=4, ideal_weight=0.5)
    taken = matrix_of(graph)
    users, items = (np.maximum(taken.sum(axis=axis), 1) for axis in (1, 0))
    scaled = taken / np.sqrt(np.outer(users, items))
    right = np.linalg.svd(scaled, full_matrices=False)[2][:4].T
    ideal = (taken / np.sqrt(items)) @ right @ right.T * np.sqrt(taken.sum(axis=0))
    found = method.scorer()(torch.arange(graph.n_users))
    np.testing.assert_allclose(found, taken @ scaled.T @ scaled + 0.5 * ideal, atol=1e-5)


def test_the_defaults_are_those_that_validation_chose() -> None:
    """The largest mean, over data sets, of recall@20 divided by the data set's best."""
    found = pl.read_csv(Path(__file__).parents[3] / "docs/results/item-knn-svd-gcn-defaults.csv")
    share = found.with_columns(share=pl.col("recall@20") / pl.col("recall@20").max().over("data", "method"))
    mean = share.group_by("method", "hyperparameters").agg(pl.col("share").mean()).sort("share")
    best = {method: candidate for method, candidate, _ in mean.rows()}
    assert best["item-knn"] == f"neighbours={ItemKNN().neighbours}"
    svd = SVDGCN()
    assert best["svd-gcn"] == f"rank={svd.rank} emphasis={svd.emphasis:g} degree_shift={svd.degree_shift:g}"

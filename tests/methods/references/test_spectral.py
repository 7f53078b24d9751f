"""Closed forms on the graph: SVD-GCN-S and GF-CF against their definitions and numbers by hand."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods import gf_cf as spectral
from dpaa.methods.gf_cf import GFCF
from dpaa.methods.item_knn import ItemKNN
from dpaa.methods.svd_gcn import SVDGCN
from tests.methods.tools import as_histories, learned, matrix_of, some_graph


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

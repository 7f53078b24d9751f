from __future__ import annotations

import torch

from dpaa.methods._clusters import k_means


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(9)


def test_clouds_far_apart_are_told_apart() -> None:
    centres = torch.tensor([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]])
    truth = torch.arange(200) % 4
    rows = centres[truth] + torch.randn(200, 2, generator=generator())
    found = k_means(rows, 4, generator())
    assert len(set(zip(truth.tolist(), found.tolist(), strict=True))) == 4


def test_the_same_seed_gives_the_same_clusters() -> None:
    rows = torch.randn(300, 5, generator=generator())
    assert torch.equal(k_means(rows, 7, generator()), k_means(rows, 7, generator()))


def test_no_more_clusters_than_distinct_rows() -> None:
    rows = torch.tensor([[1.0], [1.0], [2.0]])
    assert len(k_means(rows, 50, generator()).unique()) == 2
    assert k_means(torch.ones(4, 2), 3, generator()).tolist() == [0, 0, 0, 0]
    assert k_means(rows, 1, generator()).tolist() == [0, 0, 0]

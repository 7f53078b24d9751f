"""The greedy engine, and the numbers of the papers' schemes worked out by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dpaa.ranking.rerankers._greedy import Gain, greedy
from dpaa.ranking.rerankers.xquad import coverage

HEAD, TAIL = 0, 1


def letters(places: Tensor, names: str) -> str:
    return "".join("-" if place < 0 else names[place] for place in places[0].tolist())


def xquad(kind: str, strength: float, wanted: Tensor) -> Gain:
    return lambda first, counts: torch.lerp(first, wanted * coverage(kind, counts), strength)


@pytest.mark.parametrize(
    ("kind", "strength", "expected"),
    [
        ("binary", 0.0, "abcf"),
        ("smooth", 0.0, "abcf"),
        ("binary", 0.5, "abdc"),
        ("smooth", 0.5, "abdc"),
        ("binary", 0.7, "adbc"),
        ("binary", 0.8, "adbc"),
        ("smooth", 0.8, "adbe"),
    ],
)
def test_xquad_by_hand(kind: str, strength: float, expected: str) -> None:
    scores = torch.tensor([[1.0, 0.9, 0.8, 0.7, 0.4, 0.3]], dtype=torch.float64)
    groups = torch.tensor([[HEAD, HEAD, HEAD, HEAD, TAIL, TAIL]])
    found = greedy(scores, groups, 2, 4, xquad(kind, strength, torch.tensor([[0.5, 0.5]], dtype=torch.float64)))
    assert letters(found, "abcfde") == expected

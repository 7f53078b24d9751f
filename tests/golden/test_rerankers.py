"""Lists equal those of public re-rankers, run once over the same scores and histories."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from dpaa.ranking.reranker import make_reranker
from dpaa.ranking.rerankers.fa_ir import _fewest_protected
from dpaa.ranking.rerankers.pc import PC
from tests.golden.files import assert_same, golden, reranking

DEPTH, K = 25, 10


def lists(name: str, unseen: bool = False, **settings: object) -> list[list[int]]:
    """Of all items, or with those of the history left out, all others candidates."""
    scores, users, candidates = reranking()
    if unseen:
        owner, item = candidates.taken(users)
        scores[owner, item] = -torch.inf
    reranker = make_reranker(name, settings if unseen else {"depth": DEPTH} | settings)
    found: list[list[int]] = reranker.rerank(scores, users, K, candidates)[1].tolist()
    return found


def of_nats(strength: str) -> float:
    """The divergence there is ln 2 times ours."""
    odds = math.log(2) * float(strength) / (1 - float(strength))
    return odds / (1 + odds)


def golden_lists(name: str) -> dict[str, Any]:
    found: dict[str, Any] = golden(name)["lists"]
    return found


LISTS: list[tuple[str, str, str, dict[str, Any]]] = [
    *(("fa_ir", one, "fa-ir", {"strength": one, "significance": 0.1}) for one in golden_lists("fa_ir")),
    *(("xquad", f"binary {one}", "xquad", {"strength": one, "coverage": "binary"}) for one in (0.1, 0.3, 0.6, 0.9)),
    *(("steck", one, "steck", {"strength": one, "smoothing": 0.01}) for one in golden_lists("steck")),
    *(("xquad_smooth", one, "xquad", {"strength": one, "coverage": "smooth"}) for one in golden_lists("xquad_smooth")),
    *(("calibrated_popularity", one, "calibrated-popularity", {"strength": of_nats(one)})
      for one in golden_lists("calibrated_popularity")),
    *(("scale", one, "scale", {"strength": one}) for one in golden_lists("scale")),
]  # fmt: skip
"""Files and their keys; fairsearchcore, librec-auto, WarpRec and the authors' code made them."""
UNSEEN = ("xquad_smooth", "calibrated_popularity", "scale")


@pytest.mark.parametrize(("file", "key", "name", "settings"), LISTS)
def test_lists_are_those_of_public_code(file: str, key: str, name: str, settings: dict[str, Any]) -> None:
    found = lists(name, file in UNSEEN, **settings)
    assert found == golden_lists(file)[key]
    assert file not in ("fa_ir", "xquad", "scale") or found != lists(name, file in UNSEEN, strength=0)


@pytest.mark.parametrize("given", golden("fa_ir")["tables"])
def test_fewest_niche_items_are_those_of_fairsearchcore(given: str) -> None:
    share, significance = map(float, given.split())
    ours, theirs = _fewest_protected(20, share, significance), golden("fa_ir")["tables"][given]
    if given == "0.9 0.1":  # P(X ≤ 0) is α exactly at the first place; the paper asks for more than α
        assert (ours[0], theirs[0]) == (1, 0)
        ours, theirs = ours[1:], theirs[1:]
    assert ours == theirs


def test_pc_gives_the_scores_of_public_code() -> None:
    scores, users, candidates = reranking()
    owner, item = candidates.taken(users)
    scores[owner, item] = -torch.inf
    found = PC(strength=0.6, score_share=0.3).rescored(scores, candidates.popularity)
    free = scores > -torch.inf
    assert_same(found[free], np.array(golden("pc")["ratings"])[free.numpy()])


@pytest.mark.parametrize("given", golden("fairrec")["lists"])
def test_fairrec_makes_the_lists_of_its_authors(given: str) -> None:
    k, share = given.split()
    scores, users, candidates = reranking()
    found = make_reranker("fairrec", {"strength": share}).rerank(scores, users, int(k), candidates)[1]
    assert found.sort(dim=1).values.tolist() == golden("fairrec")["lists"][given]

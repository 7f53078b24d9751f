"""Lists equal those of public re-rankers, run once over the same scores and histories."""

from __future__ import annotations

import pytest

from dpaa.reranking.choose import make_reranker
from dpaa.reranking.fa_ir import fewest_protected
from tests.golden.files import golden, reranking

DEPTH, K = 25, 10


def lists(name: str, **settings: object) -> list[list[int]]:
    scores, users, candidates = reranking()
    reranker = make_reranker(name, {"depth": DEPTH} | settings)
    found: list[list[int]] = reranker.rerank(scores, users, K, candidates)[1].tolist()
    return found


@pytest.mark.parametrize("given", golden("fa_ir")["tables"])
def test_fewest_niche_items_are_those_of_fairsearchcore(given: str) -> None:
    share, significance = map(float, given.split())
    ours, theirs = fewest_protected(20, share, significance), golden("fa_ir")["tables"][given]
    if given == "0.9 0.1":  # P(X ≤ 0) is α exactly at the first place; the paper asks for more than α
        assert (ours[0], theirs[0]) == (1, 0)
        ours, theirs = ours[1:], theirs[1:]
    assert ours == theirs


@pytest.mark.parametrize("share", golden("fa_ir")["lists"])
def test_fa_ir_makes_the_lists_of_fairsearchcore(share: str) -> None:
    found = lists("fa-ir", strength=float(share), significance=0.1)
    assert found == golden("fa_ir")["lists"][share]
    assert found != lists("fa-ir", strength=0)


@pytest.mark.parametrize("strength", ["0.1", "0.3", "0.6", "0.9"])
def test_xquad_makes_the_lists_of_librec_auto(strength: str) -> None:
    found = lists("xquad", strength=float(strength), coverage="binary")
    assert found == golden("xquad")["lists"][f"binary {strength}"]
    assert found != lists("xquad", strength=0)


@pytest.mark.parametrize("strength", golden("steck")["lists"])
def test_steck_makes_the_lists_of_warprec(strength: str) -> None:
    assert lists("steck", strength=float(strength), smoothing=0.01) == golden("steck")["lists"][strength]

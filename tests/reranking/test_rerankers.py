"""Every built-in re-ranker: without strength, and over lists of its own; golden arrays have the rest."""

from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.attributes import ItemAttributes
from dpaa.data.pairs import popular_items
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.kernels import top_k
from dpaa.ranking import RERANKERS
from dpaa.ranking.reranker import Candidates, Reranker, parse_reranker, reranked
from tests.methods.tools import some_graph

NAMES = [name for name in RERANKERS.built_in if name != "dial"]
every_reranker = pytest.mark.parametrize("name", NAMES)


@cache
def graph() -> BipartiteGraph:
    return some_graph(40, 30)


def block(seed: int, whole: bool = False, graph_: BipartiteGraph | None = None) -> torch.Tensor:
    """Scores of all users over all items; what they took is hidden, and some more."""
    about = graph_ or graph()
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(about.n_users, about.n_items)).astype(np.float32)
    scores = torch.from_numpy(drawn.round() if whole else drawn)
    scores[about.edge_user.long(), about.edge_item.long()] = -torch.inf
    scores[torch.from_numpy(rng.random(scores.shape) < 0.2)] = -torch.inf
    scores[0] = -torch.inf  # nothing may be recommended
    return scores


def made(name: str, **settings: object) -> Reranker:
    return made_of(",".join([name, *(f"{key}={value}" for key, value in settings.items())]))


@every_reranker
@pytest.mark.parametrize("depth", [3, 100])
@given(seed=st.integers(0, 30), k=st.integers(1, 33), whole=st.booleans())
def test_without_strength_the_list_is_as_it_was(name: str, depth: int, seed: int, k: int, whole: bool) -> None:
    scores = block(seed, whole)
    found = reranked(made(name, strength=0, depth=depth), scores, k, torch.arange(40), Candidates(graph(), None))
    expected = top_k(scores, k)
    assert torch.equal(found[1], expected[1])
    if name != "scale":
        assert torch.equal(found[0].float(), expected[0])


@every_reranker
def test_lists_of_their_own_are_those_of_a_block(name: str) -> None:
    reranker = made(name, strength=0.7)
    scores, users, about = block(4), torch.arange(40), Candidates(graph(), None)
    values, items = top_k(scores, 30)
    found, places = reranker.rerank_lists(values, items, users, 5, about)
    expected = reranked(reranker, scores, 5, users, about)
    assert torch.equal(torch.where(places < 0, -1, items.gather(1, places.clamp(min=0))), expected[1])
    torch.testing.assert_close(found, expected[0])


# ---------------------------------------------------------------------- groups of items by a column

BANDS = ["a"] * 20 + ["b"] * 7 + ["c|a"] * 2 + [None]
"""Of 30 items: 20 of a, 7 of b, 2 of a and c, of which the first counts, 1 of none."""


@cache
def with_bands() -> BipartiteGraph:
    return replace(graph(), attributes=ItemAttributes(pl.DataFrame({"band": BANDS})))


def listed(text: str, k: int = 5, scores: torch.Tensor | None = None) -> np.ndarray:
    found = reranked(parse_reranker(text), block(3) if scores is None else scores, k, torch.arange(40), about_bands())  # type: ignore[arg-type]
    return np.asarray(found[1])


def about_bands() -> Candidates:
    return Candidates(with_bands(), None)


def places(lists: np.ndarray) -> np.ndarray:
    """Places of a, b, c (whose items are of a first) and none."""
    group = np.array([0] * 20 + [1] * 7 + [0] * 2 + [3])
    return np.bincount(group[lists[lists >= 0]], minlength=4)


def test_popular_and_niche_are_one_partition_among_others() -> None:
    """A column that says popular or niche gives the lists that the re-ranker gives without one."""
    plain = Candidates(graph(), None)
    popular = popular_items(graph().item_degree.numpy())
    column = pl.DataFrame({"kind": np.where(popular, "0 popular", "1 niche")})
    same = Candidates(replace(graph(), attributes=ItemAttributes(column)), None)
    for text, by in {"xquad,strength=0.7": "kind", "fa-ir,strength=0.9": "kind=1 niche"}.items():
        one = reranked(made_of(text), block(5), 5, torch.arange(40), plain)[1]
        other = reranked(made_of(f"{text},by={by}"), block(5), 5, torch.arange(40), same)[1]
        assert torch.equal(one, other)
        assert not torch.equal(one, top_k(block(5), 5)[1])


def made_of(text: str) -> Reranker:
    found = parse_reranker(text)
    assert parse_reranker(found.in_words()) == found
    return found


@pytest.mark.parametrize("name", ["xquad", "steck", "calibrated-popularity"])
def test_lists_follow_the_histories_groups(name: str) -> None:
    """The further, the nearer are the shares of the lists to those of the histories."""
    item = about_bands().taken(torch.arange(40))[1].numpy()
    wanted = places(item) / len(item)
    far = [
        np.abs(places(lists) / places(lists).sum() - wanted).sum()
        for strength in (0, 0.95)
        for lists in [listed(f"{name},strength={strength},by=band")]
    ]
    assert far[1] < far[0] or name == "xquad"
    assert not np.array_equal(listed(f"{name},strength=0.95,by=band"), listed(f"{name},strength=0,by=band"))


def test_a_protected_value_gets_its_share() -> None:
    protected = listed("fa-ir,strength=0.6,significance=0.1,by=band=b")
    assert places(protected)[1] > places(listed("fa-ir,strength=0,by=band=b"))[1]


@given(seed=st.integers(0, 30), k=st.integers(2, 8), share=st.floats(0.3, 1))
def test_no_group_is_below_fairrecs_floor(seed: int, k: int, share: float) -> None:
    """Three groups have items of their own; a floor is refused exactly where the smallest cannot reach it."""
    scores = block(seed)
    refused, lists = False, np.zeros((40, k), dtype=int)
    with suppress(InputError):  # `refused` says which
        refused = True
        lists = listed(f"fairrec,strength={share},by=band", k, scores)
        refused = False
    floor = int(share * 39 * k / 3)  # user 0 has no candidates; the group of c has no item whose first value it is
    of_none = int((scores[:, 29] > -torch.inf).sum())  # one item, once in a list
    assert refused or (places(lists)[[0, 1, 3]] >= floor).all()
    assert refused == (floor > of_none or floor == 0)


def test_fairrec_keeps_the_floor_and_the_best_items_otherwise() -> None:
    graph_ = replace(graph(), attributes=ItemAttributes(pl.DataFrame({"band": ["a"] * 20 + ["b"] * 10})))
    about, scores = Candidates(graph_, None), block(6)
    found = reranked(made_of("fairrec,strength=1,by=band"), scores, 4, torch.arange(40), about)[1].numpy()
    per_band = np.bincount((found[1:] >= 20).astype(int).ravel(), minlength=2)
    assert per_band.tolist() == [78, 78], "half of 39 · 4 places each"
    values = np.take_along_axis(scores.numpy(), found, axis=1)
    assert (np.diff(values[1:], axis=1) <= 0).all(), "in the order of the scores"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fairrec,strength=1,by=band", "1 of them cannot reach their floor of 65"),
        ("xquad,by=band=z", "no item has 'z' in column 'band'; some have 'a', 'b', 'c'"),
    ],
)
def test_groups_that_cannot_be_are_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        listed(text)

"""Re-rankers: without strength, over lists of their own, by a column; what is checked, typed and stored of them.

Golden arrays have the rest.
"""

from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dpaa.data.attributes import ItemAttributes
from dpaa.data.pairs import popular_items
from dpaa.errors import InputError
from dpaa.graph import BipartiteGraph, top_k
from dpaa.ranking import RERANKERS
from dpaa.ranking.reranker import Candidates, Dial, Reranker, parse_reranker, reranked, stored_reranker
from dpaa.ranking.rerankers._greedy import Gain, greedy
from dpaa.ranking.rerankers.xquad import coverage
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


BANDS = ["a"] * 20 + ["b"] * 7 + ["c|a"] * 2 + [None]
"""Of 30 items: 20 of a, 7 of b, 2 of a and c, of which the first counts, 1 of none."""


def listed(text: str, k: int = 5, scores: torch.Tensor | None = None) -> np.ndarray:
    found = reranked(parse_reranker(text), block(3) if scores is None else scores, k, torch.arange(40), about_bands())  # type: ignore[arg-type]
    return np.asarray(found[1])


@cache
def about_bands() -> Candidates:
    return Candidates(replace(graph(), attributes=ItemAttributes(pl.DataFrame({"band": BANDS}))), None)


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
    values = np.take_along_axis(scores.numpy(), lists.clip(min=0), axis=1)[1:]
    assert refused or (np.diff(values, axis=1) <= 0).all(), "in the order of the scores"


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


class Given(Reranker):
    """Answers what it was given."""

    name = "given"
    title = "a fixed answer"
    lists: list[list[int]]
    wide: int = 0

    def rerank(self, scores: Tensor, users: Tensor, k: int, candidates: Candidates) -> tuple[Tensor, Tensor]:
        columns = torch.tensor(self.lists)
        return torch.zeros(len(columns), columns.shape[1] + self.wide), columns


def test_what_must_not_be_recommended_stays_out_whatever_a_reranker_says(toy_graph: BipartiteGraph) -> None:
    scores = torch.tensor([[1.0, -torch.inf, 2.0], [-torch.inf, -torch.inf, 0.0]])
    about = Candidates(toy_graph, None)
    _, columns = reranked(Given(lists=[[1, 0], [2, 0]]), scores, 2, torch.arange(2), about)
    assert columns.tolist() == [[-1, 0], [2, -1]]
    _, columns = reranked(Given(lists=[[2, -1], [-1, -1]]), scores, 2, torch.arange(2), about)
    assert columns.tolist() == [[2, -1], [-1, -1]]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_words_and_manifest_come_back(kappa: float) -> None:
    dial = Dial(kappa=kappa)
    assert parse_reranker(dial.in_words()) == dial
    assert stored_reranker(dial.as_json(), "the run") == dial


def test_what_is_typed() -> None:
    assert parse_reranker("dial, kappa = -0.5 ") == Dial(kappa=-0.5)
    assert parse_reranker("Dial") == Dial()
    assert parse_reranker(" None ") is None
    assert stored_reranker(None, "the run") is None
    earlier = {"name": "xquad", "settings": {"strength": 0.3, "head_share": 0.5}}
    assert stored_reranker(earlier, "the run") == parse_reranker("xquad,strength=0.3,popular_mass=0.5")
    for text in ("none,kappa=3", "dial,kappa=1,kappa=2", "dial,kappa"):
        with pytest.raises(InputError):
            parse_reranker(text)


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        ("dial", "the run does not say which re-ranker it uses"),
        ({"settings": {}}, "the run does not say which re-ranker it uses"),
        ({"name": "slots", "origin": {"package": "other"}}, "the run was made with the re-ranker 'slots' of package"),
        ({"name": "slots", "origin": {"package": "dpaa"}}, "there is no re-ranker 'slots'"),
        ({"name": "dial", "settings": {"kappa": []}}, "hyperparameter kappa"),
    ],
)
def test_manifests_that_are_refused(stored: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        stored_reranker(stored, "the run")


HEAD, TAIL = 0, 1


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
    assert "".join("abcfde"[place] for place in found[0]) == expected

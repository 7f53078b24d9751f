"""Lists from blocks of scores, against sorting one user at a time."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs
from dpaa.graph.kernels import top_k
from dpaa.ranking.quotas import NO_VALUE, Quota, within
from dpaa.ranking.rank import Ranker, rank
from dpaa.ranking.reranker import Candidates, Reranker
from tests.evaluation.fixed import Fixed


@given(
    masked=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 7)), unique=True, max_size=30),
    candidates=st.none() | st.sets(st.integers(0, 7), min_size=1).map(sorted),
    users=st.lists(st.integers(0, 4), unique=True, min_size=1),
    k=st.integers(1, 10),
    seed=st.integers(0, 999),
    block=st.sampled_from([1, 17, 10**6]),
)
def test_lists_equal_sorting_one_user_at_a_time(
    masked: list[tuple[int, int]], candidates: list[int] | None, users: list[int], k: int, seed: int, block: int
) -> None:
    """Best first, ties to the lower item, nothing masked, −1 where nothing is left; any users in any order."""
    scores = np.random.default_rng(seed).integers(0, 4, (5, 8)).astype(np.float32)
    allowed = range(8) if candidates is None else candidates
    hidden = Pairs.of([user for user, _ in masked], [item for _, item in masked])
    listed = None if candidates is None else np.array(candidates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaa.ranking.rank.BLOCK_SCORES", block)
        ranker = Ranker(8, torch.device("cpu"), hidden, listed)
    seen = []
    for part, index in ranker.blocks(np.array(users)):
        assert part.tolist() == index.tolist()
        seen += part.tolist()
        found = ranker.rank(torch.from_numpy(scores[np.ix_(part, list(allowed))]), part, k)
        for place, user in enumerate(part.tolist()):
            left = [item for item in allowed if (user, item) not in masked]
            best = sorted(left, key=lambda item: (-scores[user, item], item))[:k]
            assert found.items[place].tolist() == best + [-1] * (k - len(best))
            assert found.scores[place, : len(best)].tolist() == scores[user, best].tolist()
    assert seen == users


class Niche(Reranker):
    """The least popular of what may be recommended."""

    name = "niche"
    title = "the least popular"

    def rerank(self, scores: Tensor, users: Tensor, k: int, candidates: Candidates) -> tuple[Tensor, Tensor]:
        return super().rerank(torch.where(scores == -torch.inf, scores, -candidates.popularity), users, k, candidates)


def test_a_reranker_makes_the_lists_from_what_may_be_recommended(small_world: Dataset) -> None:
    method = Fixed(small_world, np.ones((small_world.n_users, small_world.n_items), dtype=np.float32))
    candidates = np.arange(3, small_world.n_items, 2)
    counts = np.bincount(small_world.train.item, minlength=small_world.n_items)
    (block,) = rank(method, np.array([7, 2]), 5, masked=small_world.train, candidates=candidates, reranker=Niche())
    for user, items in zip((7, 2), block.items.tolist(), strict=True):
        taken = set(small_world.train.item[small_world.train.user == user].tolist())
        left = [item for item in candidates.tolist() if item not in taken]
        assert items == sorted(left, key=lambda item: (counts[item], item))[:5]


def slow(scores: list[float], quotas: list[Quota], k: int) -> list[int]:
    """One list, one item after the other."""
    order = [place for place in sorted(range(len(scores)), key=lambda one: (-scores[one], one)) if scores[place] > -9e9]
    listed: list[int] = []

    def values(quota: Quota, items: list[int]) -> list[int]:
        return [int(code) for one in items for code in quota.codes[one] if code != NO_VALUE]

    def allowed(item: int, soft: bool) -> bool:
        for quota in quotas:
            own, mine = values(quota, [item]), values(quota, listed)
            if quota.at_most is not None and any(mine.count(code) >= quota.at_most for code in own):
                return False
            if quota.at_least is not None and not soft:
                wanted = min(quota.at_least, k, len(set(values(quota, order))))
                new = bool(set(own) - set(mine))
                if not new and k - len(listed) <= wanted - len(set(mine)):
                    return False
        return True

    for soft in (False, True):
        for item in order:
            if item not in listed and len(listed) < k and allowed(item, soft):
                listed.append(item)
    return sorted(listed, key=order.index)


def fast(scores: list[list[float]], quotas: list[Quota], k: int) -> list[list[int]]:
    values, columns = within(lambda _rows: top_k, quotas, torch.tensor(scores), k)
    assert ((columns < 0) == (values == -torch.inf)).all()
    return [[one for one in row if one >= 0] for row in columns.tolist()]


limits = st.one_of(st.none(), st.integers(1, 4))


@given(st.data(), st.integers(1, 6), st.integers(1, 40), st.integers(0, 2))
def test_as_the_slow_twin(data: st.DataObject, k: int, n: int, columns: int) -> None:
    score = st.one_of(st.integers(0, 5).map(float), st.just(-float("inf")))
    scores = [data.draw(st.lists(score, min_size=n, max_size=n)) for _ in range(3)]
    own = st.lists(st.integers(0, 4), max_size=2, unique=True).map(lambda one: (one + [NO_VALUE] * 2)[:2])
    quotas = [
        Quota(np.array(data.draw(st.lists(own, min_size=n, max_size=n))), data.draw(limits), data.draw(limits))
        for _ in range(columns)
    ]
    assert fast(scores, quotas, k) == [slow(row, quotas, k) for row in scores]


def test_a_list_is_filled_from_far_down() -> None:
    n = 1000
    codes = np.array([0] * 900 + list(range(1, 101)))
    scores = [[float(n - place) for place in range(n)]]
    assert fast(scores, [Quota(codes[:, None], at_most=1)], 5) == [[0, 900, 901, 902, 903]]
    assert fast(scores, [Quota(codes[:, None], at_least=3)], 5) == [[0, 1, 2, 900, 901]]
    alone = np.full((n, 1), NO_VALUE)
    assert fast(scores, [Quota(alone, at_most=1, at_least=4)], 3) == [[0, 1, 2]]  # held to nothing

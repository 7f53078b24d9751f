"""Quotas against a slow twin, and against every list there is."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.graph.kernels import top_k
from dpaa.ranking.quotas import NO_VALUE, Quota, within


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

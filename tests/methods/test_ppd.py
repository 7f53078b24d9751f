from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.methods.ppd import popularity_of_pairs, remove_popularity
from dpaa.runs.fit import fit, fit_into, make_method

SIZE = {"embedding_size": 8, "layers": 2, "epochs": 3, "threads": 1}


def scaled(values: np.ndarray) -> np.ndarray:
    return (values - values.min()) / (values.max() - values.min())


def slow_twin(
    users: np.ndarray, items: np.ndarray, pairs: list[tuple[int, int]], penalty: float, kept: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The definition, node by node in float64: b of every pair, and both corrected tables."""
    users, items = (table / np.linalg.norm(table, axis=1, keepdims=True) for table in (users, items))
    popularity = scaled(np.array([np.mean([user @ item for user in users]) for item in items]))
    fitting = []
    for user, item in pairs:
        mine = [other for owner, other in pairs if owner == user]
        terms = [
            1 / (1 + np.exp(-items[item] @ items[other])) - penalty * popularity[item] * popularity[other]
            for other in mine
        ]
        fitting.append(np.mean(terms))
    bias = scaled(np.array([popularity[item] for _, item in pairs]) - scaled(np.array(fitting)))
    tables = [users.copy(), items.copy()]
    for side, (own, others) in enumerate(((users, items), (items, users))):
        for node in range(len(own)):
            found = [(pair[1 - side], b) for pair, b in zip(pairs, bias, strict=True) if pair[side] == node]
            popular, rest = sum(b for _, b in found), sum(1 - b for _, b in found)
            if not found or popular == 0 or rest == 0:
                continue
            direction = sum(b * others[other] for other, b in found) / popular
            direction = direction - kept * sum((1 - b) * others[other] for other, b in found) / rest
            length = np.linalg.norm(direction)
            if length > 1e-5:  # a single pair gives none
                tables[side][node] -= (own[node] @ direction) * direction / length**2
    return bias, tables[0], tables[1]


@pytest.mark.parametrize(("penalty", "kept"), [(0.0, 1.0), (0.7, 0.5)])
def test_correction_equals_the_slow_twin(penalty: float, kept: float) -> None:
    rng = np.random.default_rng(3)
    users, items = rng.normal(size=(7, 5)) + 0.3, rng.normal(size=(9, 5)) + 0.3
    pairs = sorted({(int(u), int(i)) for u, i in zip(rng.integers(0, 6, 40), rng.integers(0, 8, 40), strict=True)})
    bias, expected_users, expected_items = slow_twin(users, items, pairs, penalty, kept)
    user, item = (torch.tensor(side) for side in zip(*pairs, strict=True))
    unit = [torch.nn.functional.normalize(torch.from_numpy(table).float()) for table in (users, items)]
    np.testing.assert_allclose(popularity_of_pairs(*unit, user, item, penalty), bias, atol=1e-5)
    shuffled = rng.permutation(len(pairs))
    found = remove_popularity(
        users, items, user.numpy()[shuffled], item.numpy()[shuffled], popularity_penalty=penalty, preference_share=kept
    )
    np.testing.assert_allclose(found[0], expected_users, atol=1e-5)
    np.testing.assert_allclose(found[1], expected_items, atol=1e-5)


def test_with_no_strength_it_is_lightgcn_bit_for_bit(small_world: Dataset, tmp_path: Path) -> None:
    plain = fit(small_world, "lightgcn", **SIZE)
    same = fit(small_world, "ppd", strength=0, length="kept", **SIZE)
    assert same.recommend(k=10).equals(plain.recommend(k=10))
    for name, tensor in plain.method.state().items():
        assert torch.equal(same.method.state()[name], tensor), name
    history = small_world.item_ids.head(3)
    assert same.recommend_for(history, k=5).equals(plain.recommend_for(history, k=5))


def test_over_a_run_and_over_other_vectors(small_world: Dataset, tmp_path: Path) -> None:
    plain = fit_into(tmp_path / "plain", small_world, make_method(small_world, "lightgcn", SIZE))
    by_run = fit(small_world, "ppd", pretrained=tmp_path / "plain", **SIZE)
    assert by_run.recommend(k=5).equals(fit(small_world, "ppd", **SIZE).recommend(k=5))
    tables = plain.method.state()
    other = replace(plain, manifest={})  # of a dataset that is not known, so only its read-out can be used
    final = fit(small_world, "ppd", pretrained=other, **SIZE)
    same = fit(small_world, "ppd", pretrained=tmp_path / "plain", corrected="readout", **SIZE)
    assert final.recommend(k=5).equals(same.recommend(k=5))
    users, items = dpaa.remove_popularity(
        tables["user_embedding"], tables["item_embedding"], small_world.train.user, small_world.train.item
    )
    np.testing.assert_allclose(final.method.state()["user_embedding"], users, atol=1e-6)
    np.testing.assert_allclose(final.method.state()["item_embedding"], items, atol=1e-6)
    for settings, sentence in (
        ({"layers": 1}, "other layers than layers=1; set layers"),
        ({"embedding_size": 4}, "have 8 columns, embedding_size is 4; set embedding_size=8"),
    ):
        with pytest.raises(InputError, match=sentence):
            fit(small_world, "ppd", pretrained=tmp_path / "plain", **(SIZE | settings))
    with pytest.raises(InputError, match="layers of the pre-trained vectors are not known; give a run of lightgcn"):
        fit(small_world, "ppd", pretrained=other, corrected="layer-0", **SIZE)


@pytest.mark.parametrize(
    ("users", "items", "pairs", "sentence"),
    [
        (np.ones((2, 3)), np.ones((2, 2)), ([0], [0]), "two tables of one width"),
        (np.ones(3), np.ones((2, 3)), ([0], [0]), "two tables of one width"),
        (np.full((2, 2), np.nan), np.ones((2, 2)), ([0], [0]), "values that are not numbers"),
        (np.ones((2, 2)), np.ones((2, 2)), ([0.5], [0]), "whole numbers of one length"),
        (np.ones((2, 2)), np.ones((2, 2)), ([0, 1], [0]), "whole numbers of one length"),
        (np.ones((2, 2)), np.ones((2, 2)), ([0], [2]), "a pair names item row 2, there are 2 rows"),
        (np.ones((2, 2)), np.ones((2, 2)), ([-1], [0]), "a pair names user row -1"),
    ],
)
def test_wrong_arrays_get_one_sentence(
    users: object, items: object, pairs: tuple[object, object], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        remove_popularity(users, items, *pairs)  # type: ignore[arg-type]


def test_no_pairs_leave_vectors_at_length_one() -> None:
    nobody = np.zeros(0, np.int64)
    users, items = remove_popularity(3 * np.eye(2), np.eye(2), nobody, nobody)
    np.testing.assert_array_equal(users, np.eye(2))
    np.testing.assert_array_equal(items, np.eye(2))

from __future__ import annotations

import polars as pl

from dpaa.data.dataset import Dataset


def lint(made: Dataset) -> list[str]:
    return list(made.notes)


def dataset(
    train: list[tuple[int, int]],
    valid: list[tuple[int, int]],
    test: list[tuple[int, int]],
    candidates: list[int] | None = None,
) -> Dataset:
    schema = {"user_id": pl.Int64, "item_id": pl.Int64}
    frames = [pl.DataFrame(pairs, schema=schema, orient="row") for pairs in (train, valid, test)]
    return Dataset.of(
        {"train": frames[0], "valid": frames[1], "test": frames[2]},
        name="x",
        candidates=None if candidates is None else pl.Series(candidates),
        about={},
    )


def test_nothing_to_say() -> None:
    assert lint(dataset([(1, 1), (1, 2), (2, 3)], [(2, 2)], [(2, 1)])) == []


def test_empty_splits() -> None:
    assert lint(dataset([(1, 1)], [], [])) == [
        "the validation split is empty: early stopping and tuning are impossible",
        "the test split is empty: nothing can be evaluated",
    ]


def test_overlap() -> None:
    found = lint(dataset([(1, 1), (1, 2), (2, 2)], [(1, 1), (2, 1)], [(1, 2), (1, 1), (2, 1)]))
    both = [note.partition(":")[0] for note in found]
    assert both == [
        "1 pairs are in both train and valid",
        "2 pairs are in both train and test",
        "2 pairs are in both valid and test",
    ]


def test_cold_users_and_items() -> None:
    found = lint(dataset([(1, 1), (1, 2)], [(1, 3)], [(1, 4), (5, 1)], candidates=[1, 4, 8]))
    assert found == [
        "1 of 2 test users have no training pair (such as 5): nothing was learned about them",
        "2 of 3 candidate items have no training pair (such as 4): they are ranked by chance",
        "1 of 2 test items have no training pair (such as 4): they are ranked by chance",
    ]

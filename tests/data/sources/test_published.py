"""What published datasets share, on a source made up for it."""

from __future__ import annotations

import polars as pl
import pytest

from dpaa.data.sources.published import Published, histogram, rating_counts
from dpaa.errors import InputError

RATINGS = pl.DataFrame({"user_id": [1, 1, 2, 3], "item_id": [1, 2, 1, 3], "rating": [5, 2, 4, 3]})
SOURCE = Published(
    name="tiny",
    title="Tiny",
    files=("a.txt", "b.txt"),
    positive="rating >= 3",
    split="in words",
    valid_from="test",
    valid_share=1 / 3,
    expected=rating_counts("training", (0, 1, 1, 1, 1)),
)


def test_positives_and_a_split_of_the_unbiased_file() -> None:
    chosen, random, dropped = SOURCE.positives("here", RATINGS, RATINGS)
    assert dropped == "1 self-selected and 1 random ratings are below 3 and were dropped"
    found = histogram("training", RATINGS)
    dataset = SOURCE.dataset("here", chosen, random, found, [dropped], seed=0, check=True)
    assert (len(dataset.train), len(dataset.valid), len(dataset.test)) == (3, 1, 2)
    assert dataset.about["source"] == "Tiny, a.txt and b.txt"
    assert dataset.about["validation_exposure"] == "unbiased"
    assert dropped in dataset.notes


def test_other_counts_are_refused_or_noted() -> None:
    found = histogram("training", RATINGS[:3])
    with pytest.raises(InputError, match=r"0 training ratings of 3 where the published files have 1; .*--no-check"):
        SOURCE.dataset("here", RATINGS, RATINGS, found, [], seed=0, check=True)
    dataset = SOURCE.dataset("here", RATINGS, RATINGS, found, [], seed=0, check=False)
    assert "here has 0 training ratings of 3 where the published files have 1" in dataset.notes

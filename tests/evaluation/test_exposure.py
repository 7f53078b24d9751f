"""Whether validation pairs come from the log's own exposure: said by the source, or seen from the pairs."""

from dataclasses import replace
from math import log

import numpy as np
import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.sources.world import simulate
from dpaa.evaluation.offpolicy import ValidationExposure, validation_exposure

TRAIN = [(1, "a"), (2, "a"), (3, "a"), (4, "b")]
"""Counts a 3, b 1, c 0."""


def made(train: list[tuple[int, str]], valid: list[tuple[int, str]], candidates: list[str] | None = None) -> Dataset:
    def frame(pairs: list[tuple[int, str]]) -> pl.DataFrame:
        return pl.DataFrame(pairs, schema={"user_id": pl.Int64, "item_id": pl.String}, orient="row")

    return Dataset.from_frame(
        frame(train),
        valid=frame(valid) if valid else None,
        test=frame([(1, "c")]),
        candidates=None if candidates is None else pl.DataFrame({"item_id": candidates}),
        name="made",
    )


@pytest.fixture
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few pairs there are: for numbers that can be worked out by hand."""
    monkeypatch.setattr("dpaa.evaluation.offpolicy.ENOUGH", 0.0)


@pytest.mark.usefixtures("few_are_enough")
def test_tilt_by_hand() -> None:
    even = (log(4) + log(2) + log(1)) / 3
    span = 3 * log(3) / 4 - even  # training pairs without themselves: counts 2, 2, 2, 0
    assert span > 0
    found = validation_exposure(made(TRAIN, [(5, "a"), (6, "b"), (6, "c")]))
    assert found.tilt == pytest.approx(0.0, abs=1e-12)  # each item once: as if drawn evenly
    found = validation_exposure(made(TRAIN, [(5, "a"), (6, "b")]))
    assert found.tilt == pytest.approx(((log(4) + log(2)) / 2 - even) / span)


def test_a_part_of_the_log_leans_as_the_log_does_and_random_exposure_less() -> None:
    world = simulate(users=600, items=300, seed=2)
    found = validation_exposure(world)
    assert (found.known, found.biased) == (True, False)
    assert found.tilt < 0.8
    unsaid = validation_exposure(replace(world, about={}))
    assert unsaid == ValidationExposure(biased=False, known=False, tilt=found.tilt)
    log_pairs = pl.DataFrame({"user_id": world.train.user, "item_id": world.train.item})
    held = pl.Series(np.random.default_rng(0).random(len(log_pairs)) < 0.1)
    part = Dataset.from_frame(log_pairs.filter(~held), valid=log_pairs.filter(held), name="part")
    seen = validation_exposure(part)
    assert (seen.known, seen.biased) == (False, True)
    assert seen.tilt == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("said", "biased"), [("biased", True), ("unbiased", False)])
def test_what_the_source_says_counts(said: str, biased: bool) -> None:
    data = replace(made(TRAIN, [(5, "a")]), about={VALIDATION_EXPOSURE: said})
    found = validation_exposure(data)
    assert (found.known, found.biased) == (True, biased)
    assert ("favours popularity" in found.in_words()) == biased
    assert found.as_json()["in_words"] == found.in_words()
    for nonsense in ("maybe", 3, None, ["biased"]):
        assert not validation_exposure(replace(data, about={VALIDATION_EXPOSURE: nonsense})).known

from __future__ import annotations

from pathlib import Path

import pytest

from dpaa.data.dataset import Dataset
from dpaa.report.inputs import Family, gather
from dpaa.report.sections import exposure
from tests.report.folders import runs_of
from tests.report.made import add_run, made_family
from tests.report.reader import Reader


def test_exposure_adds_up(demo_folder: Path) -> None:
    (family,) = gather(runs_of(demo_folder)).families
    before = exposure.shares(family, family.counts)
    assert sum(before) == pytest.approx(1)
    assert before == sorted(before)
    popular, lightgcn, _ = (exposure.shares(family, run.exposure) for run in family.runs)
    assert sum(popular[7:]) > sum(before[7:])
    assert sum(lightgcn) <= 1
    assert family.runs[0].exposure.sum() == 20 * len(family.users)


def test_shares_by_hand() -> None:
    data = Dataset.from_frame({"user_id": [*range(10), *range(5)], "item_id": [*range(10), *[9] * 4, 8]})
    family = Family("hand", "", data, 20)
    assert family.counts.tolist() == [1] * 8 + [2, 5]
    assert exposure.shares(family, family.counts) == pytest.approx([1 / 15] * 8 + [2 / 15, 5 / 15])


def test_an_item_that_nobody_used_is_in_no_tenth() -> None:
    family = made_family()
    add_run(family, "new", lists=["ed", "ed", "ed", "eb"])
    # a, b, c and d, rare to popular, are c, d, b, a: tenths 1, 3, 6 and 8; e is in none
    assert exposure.shares(family, family.counts) == pytest.approx([1 / 8, 0, 1 / 8, 0, 0, 2 / 8, 0, 4 / 8, 0, 0])
    assert exposure.shares(family, family.runs[0].exposure) == pytest.approx([0, 0, 3 / 8, 0, 0, 1 / 8, 0, 0, 0, 0])


def test_the_figure_tells_the_most_popular_tenth() -> None:
    found = {exposure.LOG: ([0.0] * 9 + [0.6], None), "new": ([0.1] * 10, 0)}
    figure = exposure.by_tenth("x", "title", "told", "share of exposure", found)
    page = Reader(str(figure.table))
    assert page.named("caption")[0].text == "Share of exposure by popularity tenth (1 = rarest)"
    assert [tag.text for tag in page.named("td")] == ["0.0 %"] * 9 + ["60.0 %"] + ["10.0 %"] * 10

"""How a training is followed: callbacks and the display on standard error."""

from __future__ import annotations

import pytest

import dpaa
from dpaa.data.dataset import Dataset
from tests.conftest import TINY


def test_lines_after_the_first_epochs_and_the_last(small_world: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    dpaa.fit(small_world, "dpaa", progress=True, **TINY | {"epochs": 9})
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("dpaa starts from a pre-trained model") for line in lines)
    for name in ("lightgcn", "dpaa"):
        mine = [line for line in lines if line.startswith(f"{name}: epoch")]
        assert [line.split()[2] for line in mine] == ["1", "2", "5", "9"]
        assert all("loss 0." in line and "recall@20 0." in line and "(best in epoch" in line for line in mine)
        assert mine[-1].endswith("at most 0 s left")


def test_nothing_is_shown_unless_wanted(small_world: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    dpaa.fit(small_world, "lightgcn", **TINY)
    assert capsys.readouterr() == ("", "")

"""Curves over severity: which are drawn thick, and that no two are drawn the same."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("altair")

from dpaa.report.theme import PAPER, PHONE, Theme
from dpaa.reproduction.figures import OURS, PAPERS, Curve, severity_curves

NAMES = [f"m{number}" for number in range(15)]


def layers(theme: Theme, main: list[str]) -> list[dict[str, Any]]:
    curves = [Curve(name, ((0.0, 0.2, 0.01), (9.0, 0.1, 0.0))) for name in NAMES]
    drawn = severity_curves({OURS: curves, PAPERS: curves[:3]}, theme, "recall@20", main).to_dict()
    panels = drawn["hconcat"] if "hconcat" in drawn else drawn["vconcat"]
    assert len(panels) == 2
    found = panels[0]["layer"]
    data = drawn["datasets"]
    return [layer | {"names": {row["name"] for row in data[layer["data"]["name"]]}} for layer in found]


@pytest.mark.parametrize("theme", [PAPER, PHONE])
def test_main_curves_are_thick_and_on_top(theme: Theme) -> None:
    lines = [layer for layer in layers(theme, ["m7", "m2"]) if layer["mark"]["type"] == "line"]
    assert [line["names"] for line in lines] == [set(NAMES) - {"m7", "m2"}, {"m7", "m2"}]
    assert lines[0]["mark"]["strokeWidth"] < lines[1]["mark"]["strokeWidth"]


@pytest.mark.parametrize("main", [[], ["m7", "m2"], NAMES])
def test_no_two_curves_look_the_same(main: list[str]) -> None:
    line = next(layer for layer in layers(PAPER, main) if layer["mark"]["type"] == "line")
    scales = [line["encoding"][channel]["scale"] for channel in ("color", "strokeDash")]
    assert all(sorted(scale["domain"]) == sorted(NAMES) for scale in scales)
    looks = {(colour, str(dash)) for colour, dash in zip(scales[0]["range"], scales[1]["range"], strict=True)}
    assert len(looks) == len(NAMES)
    if main == ["m7", "m2"]:
        dashes = dict(zip(scales[1]["domain"], scales[1]["range"], strict=True))
        assert {name for name, dash in dashes.items() if dash == [1, 0]} == {"m2", "m7"}

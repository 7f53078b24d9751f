"""Curves over severity: which are drawn thick, and that no two are drawn the same."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("altair")

from dpaa.report.theme import PAPER, PHONE, Theme
from dpaa.reproduction.figures import OTHERS, OURS, PAPERS, Curve, severity_curves

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


@pytest.mark.parametrize("main", [[], NAMES])
def test_no_two_curves_look_the_same(main: list[str]) -> None:
    line = next(layer for layer in layers(PAPER, main) if layer["mark"]["type"] == "line")
    scales = [line["encoding"][channel]["scale"] for channel in ("color", "strokeDash")]
    assert all(sorted(scale["domain"]) == sorted(NAMES) for scale in scales)
    looks = {(colour, str(dash)) for colour, dash in zip(scales[0]["range"], scales[1]["range"], strict=True)}
    assert len(looks) == len(NAMES)


def test_beside_main_curves_the_others_are_one_faint_crowd() -> None:
    thin, thick = (layer for layer in layers(PAPER, ["m7", "m2"]) if layer["mark"]["type"] == "line")
    assert thin["mark"]["opacity"] < thick["mark"]["opacity"] == 1
    scale = thick["encoding"]["color"]["scale"]
    colours = dict(zip(scale["domain"], scale["range"], strict=True))
    assert colours["m2"] != colours["m7"]
    assert {colours[name] for name in NAMES if name not in ("m2", "m7")} == {PAPER.soft} == {colours[OTHERS]}
    assert thick["encoding"]["color"]["legend"]["values"] == ["m2", "m7", OTHERS]
    bands = [layer["names"] for layer in layers(PAPER, ["m7", "m2"]) if layer["mark"]["type"] == "area"]
    assert bands == [{"m2"}, {"m7"}]

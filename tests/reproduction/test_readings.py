"""The search for the paper's reading: its design, its distances, and its page."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from dpaa.data.dataset import Dataset
from dpaa.methods import find_method
from dpaa.methods.settings import make_settings
from dpaa.reproduction import paper, readings
from dpaa.reproduction.energy import energy_of, untrained
from dpaa.reproduction.readings import Reading, Score, distance, score
from dpaa.reproduction.results import ResultStore, RunResult
from dpaa.reproduction.tables import Cell
from tests.command import dpaa_ok
from tests.reproduction.conftest import TINY, places


def test_every_reading_is_a_setting_of_the_method_and_no_two_are_the_same() -> None:
    kind = find_method(readings.METHOD)
    every = readings.readings()
    made = [make_settings(kind.settings_type, one.on("coat", True), kind.name) for one in every]
    assert len({one.name for one in every}) == len({one.model_dump_json() for one in made}) == len(every) >= 30
    scalings = {one.neighbour_scaling for one in made}  # type: ignore[attr-defined]
    assert scalings == {"symmetric", "none", "receiver", "sender", "root-receiver"}


def test_readings_keep_the_papers_settings_of_the_dataset() -> None:
    plain = Reading("x", {"stop_by": "keep"})
    assert plain.on("yahoo-r3", True) == {
        "half_trust_shift": 0, "layer_emphasis": 0, "initial_residual": 0.6, "stop_by": "keep",
    }  # fmt: skip
    assert plain.on("s=5", False) == {"half_trust_shift": 1e-3, "layer_emphasis": 3, "initial_residual": 0.2}
    assert Reading("x", {"layer_emphasis": 0.0}).on("coat", False)["layer_emphasis"] == 0


def test_distances_are_relative_and_leave_out_what_is_not_there() -> None:
    assert distance([Cell((0.1,), 0.2), Cell((0.3,), 0.2), Cell(), Cell((1.0,))]) == pytest.approx(0.5)
    assert math.isnan(distance([]))
    assert Score(coat={"drop": 0.4, "keep": 0.2}, severity=0.1).total == pytest.approx(0.15)
    assert math.isnan(Score().total)


def result(data: str, **more: Any) -> RunResult:
    content = {"data": data, "label": "x", "method": "dpaa-reading", "seed": 0, "settings": {}, "details": {}}
    return RunResult(**content | more)


def test_a_reading_with_the_papers_numbers_is_at_distance_0() -> None:
    printed = dict(zip(paper.OVERALL_METRICS, paper.OVERALL["coat"]["dpaa"], strict=True))
    printed |= dict(zip(paper.GROUP_METRICS, paper.GROUPS["coat"]["dpaa"], strict=True))
    double = {name: 2 * value for name, value in printed.items()}
    found = score(
        [
            result("coat", metrics={"keep": printed, "drop": double, "mask": double}),
            *(result(f"s={s}", metrics={"drop": {"recall@20": paper.SEVERITY["dpaa"][s]}}) for s in range(10)),
        ],
        "x", ["coat"], range(10),
    )  # fmt: skip
    assert (found.convention, found.total, found.severity) == ("keep", 0, 0)
    assert found.coat["drop"] == pytest.approx(1)


def test_energy_is_that_of_the_items_read_out() -> None:
    shares = [{"layer": 0, "users": 0.1, "items": 0.2}, {"layer": None, "users": 0.3, "items": 0.4}]
    assert energy_of(result("coat", metrics={}, details={"direction": {"shares": shares}})) == 0.4
    assert energy_of(result("coat", metrics={})) is None


def test_the_page_has_distances_rows_and_energy(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "ABLATED_AT", (9.0,))
    few = {name: readings.FACTORS[name] for name in ("λ with sum 1", "early stopping counts overlap")}
    monkeypatch.setattr(readings, "FACTORS", few)
    monkeypatch.setattr(readings, "CROSSINGS", dict.fromkeys(readings.CENTRES, ()))
    call = ("reproduce", "readings", "--coat", files / "coat", "--kuairec", files / "kuairec", "--severity", 9,
            "--seeds", 1, *TINY[:-1], *places(tmp_path))  # fmt: skip
    said = dpaa_ok(*call)
    assert "Nearest to all that the paper prints for DPAA" in said.out or "Nearest to all" in (
        tmp_path / "out" / "readings-quick.md"
    ).read_text(encoding="utf-8")
    with (tmp_path / "out" / "readings-quick.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["table"] for row in rows} == {
        "distances",
        "severity",
        "ablation",
        "coat",
        "energy",
        "energy coat",
        "energy s=9",
        "energy of propagation",
    }
    named = {row["row"] for row in rows if row["table"] == "distances"}
    assert named == {one.name for one in (*readings.readings(), *readings.CONTROLS)}
    assert {f"readings-quick{end}.png" for end in ("", "-energy")} <= {f.name for f in (tmp_path / "out").iterdir()}
    store = ResultStore(tmp_path / "results", "readings", RunResult)
    kept = [one for key in store.keys if (one := store.read(key))]
    assert all(0 <= (energy_of(one) or 0) <= 1 and "direction" in one.details for one in kept)
    assert not [one for one in kept if one.data == "s=9" and one.settings["stop_by"] == "keep"], "there is no overlap"
    assert "nothing was trained" in dpaa_ok(*call).err


def test_sums_are_drawn_onto_popularity_and_averages_are_not(tiny_world: Dataset, tmp_path: Path) -> None:
    """Of propagation alone: power iteration, unless messages are divided by degrees."""
    tiny_world.write(tmp_path / "world")
    plain, symmetric, sender = (
        [share.items for share in untrained(tmp_path / "world", 4, scaling).shares]
        for scaling in ("none", "symmetric", "sender")
    )
    assert plain[:5] == sorted(plain[:5])
    assert plain[4] > 0.5
    assert plain[4] > symmetric[4]
    assert plain[0] == symmetric[0] == sender[0]

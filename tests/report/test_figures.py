from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, MissingExtraError
from dpaa.report import figures
from dpaa.runs.fit import fit_into, make_method
from dpaa.trace.run import Trace, trace_run

BEGINS = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!DOCTYPE html>", "json": b"{"}


@pytest.fixture(scope="module")
def traced(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    chosen = {"embedding_size": 8, "layers": 3, "epochs": 4, "threads": 1}
    run = tmp_path_factory.mktemp("drawn") / "run"
    fit_into(run, small_world, make_method(small_world, "dpaa", chosen))
    return trace_run(run)


def curves(n: int = 2) -> Any:
    rng = np.random.default_rng(0)
    return figures.popularity_curves({str(place): rng.zipf(1.5, 9_000) - 1 for place in range(n)}, by="severity")


@pytest.mark.parametrize("ending", figures.FORMATS)
def test_every_format(tmp_path: Path, ending: str) -> None:
    file = figures.save(curves(), tmp_path / "new folder" / f"figure.{ending}")
    assert file.read_bytes().lstrip().startswith(BEGINS[ending])
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_page_needs_no_network(tmp_path: Path) -> None:
    page = figures.save(curves(), tmp_path / "figure.html").read_text(encoding="utf-8")
    assert "<script src=" not in page
    assert "cdn.jsdelivr" not in page


@pytest.mark.parametrize("n", [1, 2, 10])
def test_popularity_falls_and_stays_small(n: int) -> None:
    drawn = json.loads(curves(n).to_json())
    rows = next(iter(drawn["datasets"].values()))
    assert len(rows) <= n * figures.POINTS
    for name in {row["curve"] for row in rows}:
        counts = [row["count"] for row in rows if row["curve"] == name]
        assert counts == sorted(counts, reverse=True)
        assert min(counts) >= 1


def test_trace_figures_hold_the_numbers(traced: Trace) -> None:
    found = figures.trace_figures(traced)
    assert list(found) == [
        *("relative-weights", "message-mass", "inverse-interaction-weights"),
        *("share-and-shift", "weights-over-epochs"),
    ]
    drawn = {name: json.loads(chart.to_json())["datasets"] for name, chart in found.items()}
    values = [row["value"] for row in next(iter(drawn["relative-weights"].values()))]
    assert values == pytest.approx([value for layer in traced.weights for value in layer.relative])
    rows = next(iter(drawn["inverse-interaction-weights"].values()))
    assert len(rows) == 10 * len(traced.premises)
    assert len(next(iter(drawn["weights-over-epochs"].values()))) == 10 * len(traced.epochs)


def test_what_the_history_does_not_tell_is_not_drawn(small_world: Dataset, tmp_path: Path) -> None:
    chosen = {"embedding_size": 8, "layers": 1, "epochs": 2, "threads": 1}
    fit_into(tmp_path / "run", small_world, make_method(small_world, "lightgcn", chosen))
    assert list(figures.trace_figures(trace_run(tmp_path / "run"))) == [
        *("relative-weights", "message-mass", "inverse-interaction-weights")
    ]


@pytest.mark.parametrize(
    ("name", "says"),
    [("x.gif", "a figure is written to"), ("x", "a figure is written to"), ("in/x.png", "cannot write .*in/x.png")],
)
def test_places_that_cannot_be_written(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "in").write_text("a file")
    with pytest.raises(InputError, match=says):
        figures.save(curves(), tmp_path / name)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpaa\[report\]'"):
        figures.check_figure(tmp_path / "x.png")

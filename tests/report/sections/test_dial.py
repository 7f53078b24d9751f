"""The popularity dial on the page."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from dpaa.data.dataset import Dataset, read_dataset
from dpaa.report.page import write_page
from dpaa.runs.fit import evaluate, fit
from dpaa.runs.model import Model
from tests.command import dpaa_ok
from tests.report.folders import copy_of, put_metrics
from tests.report.reader import Reader

pytest.importorskip("altair")


@pytest.fixture(scope="module")
def shown(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Model]:
    """A page of a run that was evaluated with the dial turned."""
    folder = tmp_path_factory.mktemp("page")
    small_world.write(folder / "data")
    data = read_dataset(folder / "data")
    model = fit(data, "ease")
    model.save(folder / "run")
    put_metrics(folder / "run", evaluate(model, data, popularity_dial=-1.0))
    write_page([folder / "run"], folder / "page.html")
    return folder / "page.html", model


def test_the_page_draws_the_stored_curve_and_says_what_it_means(shown: tuple[Path, Model]) -> None:
    page, model = shown[0].read_text(encoding="utf-8"), shown[1]
    assert model.dial_curve is not None
    assert "turning the popularity dial" in page
    assert "The dotted line marks the setting in force, κ = 0." in page
    assert "0 (in force)" in page
    assert f"{model.dial_curve.suggested:g} (suggested)" in page
    said = html.unescape(page).replace("<code>", "`").replace("</code>", "`")
    assert model.dial_curve.in_words().removeprefix("popularity dial") in said


def test_the_page_names_the_setting_a_run_was_evaluated_with(shown: tuple[Path, Model]) -> None:
    page = shown[0].read_text(encoding="utf-8")
    assert "run (dial at -1)" in page
    assert "--popularity-dial -1" in page


def test_the_dial_of_a_run(demo_folder: Path, tmp_path: Path) -> None:
    run = copy_of(demo_folder / "runs" / "lightgcn", tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    points = [{"kappa": k, "ndcg@20": 0.2 - k * k / 10, "recall@20/niche": 0.1 - k / 20} for k in (1.0, -1.0, 0.0)]
    manifest["dial"] = {"kappa": 0.0, "curve": points}
    (run / "manifest.json").write_text(json.dumps(manifest))
    dpaa_ok("report", run, "--out", tmp_path / "page.html")
    page = Reader((tmp_path / "page.html").read_text())
    (chapter,) = page.named("section", id="dial")
    assert "0 (in force)" in chapter.text
    assert "0.1500" in chapter.text

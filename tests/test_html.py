"""What a notebook shows: everything escaped, nothing in a colour of its own."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import dpaa
from dpaa._html import html_facts, html_progress, html_table
from dpaa.data.dataset import Dataset
from dpaa.runs.model import Model

EVIL = "<script>alert('x')</script>\x1b[31m & \"q\""


@pytest.fixture(scope="module")
def model(small_world: Dataset) -> Model:
    return dpaa.fit(small_world, "item-knn")


def check(html: str) -> None:
    """Well-formed, and legible on light and dark pages: no colours but those of the page."""
    assert "<script" not in html
    assert "\x1b" not in html
    assert not re.search(r"#[0-9a-fA-F]{3,6}\b|rgb\(|(?<!-)color:(?!inherit)", html)
    opened = re.findall(r"<(\w+)[ >]", html)
    closed = re.findall(r"</(\w+)>", html)
    assert sorted(opened) == sorted(closed)


def test_text_is_escaped() -> None:
    for html in (html_table(EVIL, [EVIL], [[EVIL]], [EVIL]), html_facts(EVIL, {EVIL: EVIL}), html_progress(1, 0, EVIL)):
        check(html)
        assert "&lt;script&gt;" in html
        assert r"\x1b[31m" in html


def test_dataset(small_world: Dataset) -> None:
    html = replace(small_world, name=EVIL, notes=(EVIL,))._repr_html_()
    check(html)
    assert f"{small_world.n_interactions:,} interactions" in html


def test_model(model: Model, small_world: Dataset) -> None:
    html = model._repr_html_()
    check(html)
    assert "Model: item-knn" in html
    trained = dpaa.fit(small_world, "lightgcn", epochs=2, embedding_size=4, threads=1)._repr_html_()
    check(trained)
    assert "epochs = 2" in trained
    assert "validation recall@20" in trained


def test_models_lists_and_seeds_are_compared(model: Model, small_world: Dataset) -> None:
    popular = dpaa.fit(small_world, "most-popular")
    seeds = [dpaa.fit(small_world, "lightgcn", epochs=2, embedding_size=4, threads=1, seed=seed) for seed in (0, 1)]
    found = dpaa.compare(
        small_world, {"popular": popular, "knn lists": model.recommend(), "lightgcn": seeds}, resamples=200
    )
    assert [entry.kind for entry in found.entries] == ["run", "file", "run"]
    recalls = [dpaa.evaluate(one, small_world).metrics["recall@20"] for one in seeds]
    assert found.entries[2].metrics["recall@20"] == pytest.approx(sum(recalls) / 2)
    assert found.entries[2].seeds == (0, 1)
    with pytest.raises(dpaa.InputError, match="at least two models or lists"):
        dpaa.compare(small_world, {"one": popular})
    with pytest.raises(dpaa.InputError, match="not all models"):
        dpaa.compare(small_world, {"one": popular, "two": [popular, "x.csv"]})

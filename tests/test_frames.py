"""Pandas frames: the same values, without pyarrow; a sentence where pandas is missing."""

from __future__ import annotations

import sys

import polars as pl
import pytest

import dpaa
from dpaa.data.dataset import Dataset

pandas = pytest.importorskip("pandas", reason="pandas is not installed")


def test_frames_of_every_kind(small_world: Dataset) -> None:
    model = dpaa.fit(small_world, "most-popular")
    lists = model.recommend(k=3)
    frame = dpaa.to_pandas(lists)
    assert list(frame.columns) == lists.columns
    assert [tuple(row) for row in frame.itertuples(index=False)] == list(lists.iter_rows())
    metrics = dpaa.evaluate(model, small_world)
    assert dict(zip(*(dpaa.to_pandas(metrics)[name] for name in ("metric", "value")), strict=True)) == pytest.approx(
        metrics.metrics, nan_ok=True
    )
    assert "log_gini" in set(dpaa.to_pandas(dpaa.audit(small_world))["number"])
    assert len(dpaa.to_pandas(pl.DataFrame({"a": [None, "x"], "b": [1, None]}))) == 2
    assert dpaa.Dataset.from_frame(frame).n_interactions == len(frame)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(dpaa.InputError, match="a int is no table"):
        dpaa.to_pandas(3)


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dpaa.InputError, match=r"pip install 'dpaa\[pandas\]'"):
        dpaa.to_pandas(pl.DataFrame())

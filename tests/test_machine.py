"""What a process does while it computes is undone afterwards."""

import os
import sys
from pathlib import Path

import polars as pl
import pytest
import torch

import dpaa
from dpaa import _machine as machine
from dpaa._machine import computing, cores, memory_at_hand


def test_one_thread_while_computing_and_as_before_afterwards() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with computing():
            assert torch.get_num_threads() == 1
            with computing():
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_cores_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 5}, raising=False)
    assert cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 8,000,000 bytes whose system files are written here."""
    monkeypatch.setattr(machine, "Path", lambda place: tmp_path / place.lstrip("/"))
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4000, "SC_PHYS_PAGES": 2000}.__getitem__)
    for folder in ("proc", "sys/fs/cgroup"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("limit", "used", "expected"),
    [
        ("5000000", "4100000", 900_000),
        ("5000000\n", "100\n", 3000 * 1024),  # the system has less than the container may take
        ("5000000", None, 3000 * 1024),
    ],
)
def test_a_container_has_the_rest_of_its_limit(root: Path, limit: str, used: str | None, expected: int) -> None:
    (root / "proc/meminfo").write_text("MemAvailable:  3000 kB\n")
    (root / "sys/fs/cgroup/memory.max").write_text(limit)
    if used is not None:
        (root / "sys/fs/cgroup/memory.current").write_text(used)
    assert memory_at_hand() == expected


pandas = pytest.importorskip("pandas", reason="pandas is not installed")


def test_frames_of_every_kind(small_world: dpaa.Dataset) -> None:
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


def test_what_is_no_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(dpaa.InputError, match="a int is no table"):
        dpaa.to_pandas(3)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dpaa.InputError, match=r"pip install 'dpaa\[pandas\]'"):
        dpaa.to_pandas(pl.DataFrame())

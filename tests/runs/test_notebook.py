"""`fit` in a notebook, with a stand-in for the kernel: one bar per part, changed in its place."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.runs import notebook

QUICK: dict[str, Any] = {"epochs": 3, "embedding_size": 4, "layers": 1, "threads": 1}


class Kernel:
    """What IPython is asked for."""

    def __init__(self) -> None:
        self.bars: list[list[str]] = []
        self.display = SimpleNamespace(display=self.show)

    def get_ipython(self) -> object:
        return SimpleNamespace(kernel=object())

    def show(self, shown: Any, display_id: bool) -> object:
        assert display_id
        bar = [shown._repr_html_()]
        self.bars.append(bar)
        return SimpleNamespace(update=lambda later: bar.append(later._repr_html_()))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    found = Kernel()
    monkeypatch.setitem(sys.modules, "IPython", found)
    monkeypatch.setattr(notebook.NotebookDisplay, "every", 0.0)
    return found


def test_a_bar_for_every_part(kernel: Kernel, small_world: Dataset) -> None:
    dpaa.fit(small_world, "dpaa", **QUICK)
    first, second = kernel.bars
    assert len(first) == len(second) == 3
    assert "lightgcn (pre-training for dpaa): epoch 1" in first[0]
    assert "dpaa: epoch 3" in second[-1]
    assert '<progress value="3" max="3"' in second[-1]


def test_not_where_it_is_not_wanted(kernel: Kernel, small_world: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    dpaa.fit(small_world, "lightgcn", progress=False, **QUICK)
    assert kernel.bars == []
    assert capsys.readouterr().err == ""


def test_elsewhere_lines_where_they_are_wanted(small_world: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    assert not notebook.in_notebook()
    dpaa.fit(small_world, "lightgcn", **QUICK)
    assert capsys.readouterr().err == ""
    dpaa.fit(small_world, "lightgcn", progress=True, **QUICK)
    assert capsys.readouterr().err.splitlines()[-1].startswith("lightgcn: epoch 3  loss ")
    with pytest.raises(dpaa.InputError, match="progress must be True, False or None"):
        dpaa.fit(small_world, "lightgcn", progress="yes", **QUICK)  # type: ignore[arg-type]

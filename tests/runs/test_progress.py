"""The line of a training: it fits every width, says what matters, and the time left is what it says."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.runs import progress as notebook
from dpaa.runs.fit import fit_method
from dpaa.runs.model import make_method
from dpaa.runs.progress import Callbacks, TrainingProgress
from dpaa.training.stopping import EarlyStopping
from dpaa.training.trainer import EpochReport


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def progress(
    part: str = "", epochs: int = 1000, stopping: EarlyStopping | None = None
) -> tuple[TrainingProgress, Clock]:
    clock = Clock()
    found = TrainingProgress("lightgcn", part, epochs, stopping or EarlyStopping(15), clock=clock)
    return found, clock


def epoch(number: int, best: int, valid: bool = True) -> EpochReport:
    return EpochReport(number, 0.4321, 0.5, {"recall@20": 0.1234} if valid else {}, {}, best)


def trained(found: TrainingProgress, clock: Clock, epochs: int, seconds: Callable[[int], float], best: int = 0) -> None:
    for number in range(1, epochs + 1):
        clock.now += seconds(number)
        found.update(epoch(number, best or number))


@pytest.mark.parametrize("part", ["", "pre-training for dpaa", "a part with a very long name that nobody would choose"])
@pytest.mark.parametrize("epochs", [0, 1, 999])
def test_the_line_fits_every_width(part: str, epochs: int) -> None:
    found, clock = progress(part)
    trained(found, clock, epochs, lambda _: 37.0)
    for width in range(10, 251):
        line = found.fitted(width)
        assert len(line) <= width, width
        assert "\n" not in line
        if width >= 60:
            assert f"{epochs:,}/1,000" in line
            assert line.startswith("lightgcn")
            assert not epochs or " left" in line


def test_what_matters_least_goes_first() -> None:
    found, clock = progress("pre-training for dpaa")
    trained(found, clock, 40, lambda _: 0.25)
    wide = found.fitted(200)
    pieces = ("lightgcn (pre-training for dpaa)", "━", "40/1,000", "loss 0.4321", "recall@20 0.1234")
    for piece in (*pieces, "best in epoch 40", "4.0 epochs/s", "4 s to 4 min left of this part", "0:00:10"):
        assert piece in wide, piece
    lost = [
        piece for piece in ("0:00:10", "epochs/s", "best in", "loss", "recall@20") if piece not in found.fitted(120)
    ]
    assert lost == ["0:00:10", "epochs/s", "best in", "loss", "recall@20"][: len(lost)]
    narrow = found.fitted(60)
    assert "4 s to 4 min left" in narrow
    assert "epochs/s" not in narrow


def test_the_time_left_is_a_range_by_the_last_pace() -> None:
    found, clock = progress(stopping=EarlyStopping(15))
    assert found.left() is None
    trained(found, clock, 100, lambda number: 10.0 if number <= 50 else 1.0, best=95)
    assert found.left() == (pytest.approx(10.0), pytest.approx(900.0))  # patience ends in epoch 110 at the soonest
    assert found.left_in_words() == "10 s to 15 min left"


def test_steps_hold_patience_back() -> None:
    found, clock = progress(stopping=EarlyStopping(5, patience_steps=100, minimum_steps=300))
    found.steps = 10
    trained(found, clock, 12, lambda _: 1.0, best=4)
    assert found.left() == (pytest.approx(18.0), pytest.approx(988.0))  # 300 steps are 30 epochs


def test_without_validation_all_epochs_are_trained() -> None:
    found, clock = progress(epochs=50)
    for number in range(1, 11):
        clock.now += 2.0
        found.update(epoch(number, number, valid=False))
    assert found.left() == (pytest.approx(80.0), pytest.approx(80.0))
    assert found.left_in_words() == "80 s left"
    assert "recall" not in found.line()


def test_the_earliest_end_is_kept(small_world: Dataset) -> None:
    """A real training never ends before what was told, and it ends at once where nothing is left."""
    settings = {"epochs": 400, "embedding_size": 8, "learning_rate": 0.01, "patience": 4, "patience_steps": 30}
    method = make_method(small_world, "lightgcn", settings | {"minimum_steps": 90, "threads": 1})
    found = TrainingProgress.of(method)
    told: list[int] = []

    def on_epoch(report: EpochReport) -> None:
        found.update(report)
        left = found.left()
        assert left is not None
        told.append(report.epoch + round(left[0] * found.pace))

    model = fit_method(method, small_world, Callbacks(on_epoch=on_epoch), dial=False)
    last = model.manifest["training"]["epochs"]
    assert all(one <= last for one in told)
    assert told[-1] == last < 400


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

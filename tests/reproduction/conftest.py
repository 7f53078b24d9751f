import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import polars as pl
import pytest

from dpaa.data.ids import Column
from dpaa.data.sources.world import simulate
from dpaa.reproduction import BUDGETS
from tests.command import dpaa_ok

SMOKE = ("--budget", "smoke")
"""Trainings that take a moment."""


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`coat/`: a split in list form of which some test pairs are training pairs; `kuairec/`: its two exposed parts."""
    folder, world = tmp_path_factory.mktemp("files"), simulate(users=80, items=60, seed=3)
    train, valid, test = (world.frame(split).select(Column.USER, Column.ITEM) for split in ("train", "valid", "test"))
    for name in ("coat", "kuairec"):
        (folder / name).mkdir()
    coat = {"train": train, "val": valid, "test": test.vstack(train.head(25))}
    for name, frame in coat.items():
        write_lists(folder / "coat" / f"{name}.txt", frame)
    write_lists(folder / "kuairec" / "valid.txt", train)
    write_lists(folder / "kuairec" / "test.txt", test)
    return folder


def write_lists(file: Path, frame: pl.DataFrame) -> None:
    """One line per user: `user item item …`."""
    rows = frame.group_by(Column.USER, maintain_order=True).agg(Column.ITEM)
    lines = (" ".join([str(user), *map(str, items)]) for user, items in rows.iter_rows())
    file.write_text("\n".join(lines) + "\n")


ROWS = tuple(
    word for name in ("lightgcn", "dpaa", "dpaa-as-printed", "dpaa-normalised", "ips") for word in ("--method", name)
)


@pytest.fixture(scope="session")
def made(files: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Everything at once; the folder, stdout and stderr."""
    folder = tmp_path_factory.mktemp("made")
    data = ("--data", f"coat={files / 'coat'}", "--data", f"kuairec={files / 'kuairec'}")
    done = dpaa_ok("reproduce", "all", *data, *ROWS, *SMOKE, "--severity", 9, *folders(folder))
    return folder, done.out, done.err


@pytest.fixture(scope="session")
def twice(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The overall table with two seeds."""
    folder = tmp_path_factory.mktemp("twice")
    how = ("--data", f"coat={files / 'coat'}", "--method", "ips", "--seeds", 2)
    dpaa_ok("reproduce", "overall", *how, *SMOKE, *folders(folder))
    return folder


def folders(folder: Path) -> tuple[object, ...]:
    return ("--results", folder / "results", "--out", folder / "out")


def cells(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "out" / f"{name}-smoke.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True)
class Trial:
    settings: dict[str, Any]
    value: float | None
    state: str = "complete"


@pytest.fixture
def studies(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A stand-in for `dpaa tune` that records its calls, its choice depends on data and method; small trainings."""
    calls: list[dict[str, Any]] = []
    small = BUDGETS["smoke"].hyperparameters
    for name in ("standard", "paper"):
        monkeypatch.setitem(BUDGETS, name, BUDGETS[name].model_copy(update={"hyperparameters": small, "coat_seeds": 1}))

    def tune(folder: Path, data: Any, method: str, **options: Any) -> SimpleNamespace:
        calls.append(options | {"data": data.name, "method": method})
        own = {"layer_emphasis": 2.0} if method.startswith("dpaa") else {}
        best = Trial({"learning_rate": 1e-4 if "s9" in data.name else 1e-2} | own, 0.5)
        trials = [best, Trial({"learning_rate": 1e-3}, None, "pruned")]
        return SimpleNamespace(trials=trials, best=best)

    stand_in = ModuleType("dpaa.tuning.tune")
    stand_in.tune = tune  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dpaa.tuning.tune", stand_in)
    return calls

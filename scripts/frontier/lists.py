"""Data of the study, and the lists that every model with every re-ranker makes on them, kept in files."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.sources.coat import coat
from dpaa.data.sources.severity import read_pairs, with_severity
from dpaa.data.sources.world import simulate
from dpaa.evaluation.evaluator import Evaluator
from dpaa.frontier.models import default_methods
from dpaa.frontier.points import Candidate, Measurer
from dpaa.methods import find_method
from dpaa.methods.settings import TrainedSettings
from dpaa.ranking import RERANKERS
from dpaa.ranking.reranker import Dial, Reranker
from dpaa.runs.fit import fit_into, fit_method, make_method

K = 20
HELD = 0.15
"""Share of the training pairs that become validation where validation shall be as biased as the log."""
ONE_THREAD: dict[str, Any] = {"threads": 1}
"""All else is the default training, for every method that is trained in epochs: equal chances."""
SWEPT = tuple(default_methods())
"""Models of the frontier: those of `dpaa debias`."""
TRAINED = ("dpaa", "dpaa-as-printed", "apda", "navip", "dap", "ppac", "macr", "cvib", "ips", "sam-reg")
"""The paper's trained debiasing methods."""


@dataclass(frozen=True)
class Cell:
    """One dataset: `world:1000x800:1`, `coat`, `kuairec:5`; a seed; validation unbiased, or biased as the log."""

    data: str
    seed: int
    biased: bool = False

    @property
    def name(self) -> str:
        """For files and lines."""
        return f"{self.data}/{self.seed}/{'biased' if self.biased else 'unbiased'}"

    def dataset(self, sources: Sources) -> Dataset:
        """The same from the same seed."""
        kind, *rest = self.data.split(":")
        if kind == "world":
            users, items = map(int, rest[0].split("x"))
            made = simulate(users, items, float(rest[1]), self.seed)
        elif kind == "coat":
            made = coat(sources.coat, seed=self.seed)
        else:
            made = with_severity(sources.exposed, float(rest[0]), self.seed)
        return biased(made, self.seed) if self.biased else made


@dataclass(frozen=True)
class Sources:
    """Where the real data are."""

    folder: Path

    @property
    def coat(self) -> Path:
        """Coat's official files."""
        return self.folder / "coat"

    @cached_property
    def exposed(self) -> pl.DataFrame:
        """All positives of KuaiRec's small matrix."""
        return read_pairs([str(self.folder / "kuairec" / "paper-split" / f"{name}.txt") for name in ("valid", "test")])[
            0
        ]


def biased(data: Dataset, seed: int) -> Dataset:
    """A random part of the log as validation; the unbiased test as it is."""
    train, n = data.train, len(data.train)
    held = np.zeros(n, bool)
    held[np.random.default_rng([seed, 15]).permutation(n)[: int(HELD * n)]] = True
    return replace(
        data,
        train=Pairs.of(train.user[~held], train.item[~held]),
        valid=Pairs.of(train.user[held], train.item[held]),
        path=None,
        about={**data.about, VALIDATION_EXPOSURE: "biased"},
    )


def sweep() -> list[Reranker]:
    """What `dpaa debias` sweeps."""
    return [one for name in RERANKERS.built_in for one in RERANKERS[name].sweep()]


@dataclass(frozen=True)
class Store:
    """Lists on validation and test, a file for each model of each cell."""

    folder: Path
    sources: Sources

    def file(self, cell: Cell, method: str) -> Path:
        """Where they are."""
        return self.folder / cell.name / f"{method}.npz"

    def make(self, cell: Cell, methods: Sequence[str]) -> None:
        """Train what is not there yet."""
        missing = [name for name in methods if not self.file(cell, name).exists()]
        if not missing:
            return
        data = cell.dataset(self.sources)
        evaluators = {split: Evaluator(data, K, cast("Any", split), "drop") for split in ("valid", "test")}
        for name in sorted(missing, key=lambda one: one != "lightgcn"):
            self._make(cell, name, data, evaluators)

    def _make(self, cell: Cell, name: str, data: Dataset, evaluators: dict[str, Evaluator]) -> None:
        clock, cpu = time.perf_counter(), time.process_time()
        in_epochs = issubclass(find_method(name).settings_type, TrainedSettings)
        method = make_method(data, name, (ONE_THREAD if in_epochs else {}) | {"seed": cell.seed})
        first = self.file(cell, name).parent / "lightgcn.run"
        if name == "lightgcn":
            shutil.rmtree(first, ignore_errors=True)
            first.parent.mkdir(parents=True, exist_ok=True)
            model = fit_into(first, data, method, dial=False)
        else:
            ready = first if method.pretrained_layers() is not None and (first / "manifest.json").exists() else None
            model = fit_method(method, data, dial=False, pretrained=ready)
        trained, trained_cpu = time.perf_counter() - clock, time.process_time() - cpu
        found = {split: lists(model.method, one, swept=name in SWEPT) for split, one in evaluators.items()}
        used = {
            "seconds": trained,
            "cpu": trained_cpu,
            "lists_cpu": time.process_time() - cpu - trained_cpu,
        }
        target = self.file(cell, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_suffix(".part.npz")
        np.savez(beside, **found, **{key: np.array(value) for key, value in used.items()})
        beside.rename(target)
        print(f"{cell.name} {name}: " + ", ".join(f"{key} {value:.1f}" for key, value in used.items()), flush=True)

    def read(self, cell: Cell, method: str) -> dict[str, np.ndarray]:
        """`valid` and `test`, (points, users, k) in the order of `candidates`."""
        with np.load(self.file(cell, method)) as found:
            return {name: found[name] for name in found.files}


def candidates(model: str) -> list[Candidate]:
    """The model itself, then, for a model of the frontier, the dial and the other re-rankers."""
    rerankers = sweep() if model in SWEPT else []
    dials = [Candidate(model, None, one.kappa) for one in rerankers if isinstance(one, Dial)]
    return [Candidate(model), *dials, *(Candidate(model, one) for one in rerankers if not isinstance(one, Dial))]


def lists(method: Any, evaluator: Evaluator, *, swept: bool) -> np.ndarray:
    """Of all candidates of a model, (points, users, k)."""
    measured = Measurer(evaluator, (), {})
    return np.stack([one for _, one in measured.lists("", method, sweep() if swept else [])]).astype(np.int16)

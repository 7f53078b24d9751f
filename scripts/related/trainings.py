"""What is trained, in which order, and the line that each training leaves."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs
from dpaa.data.randomised import with_randomised
from dpaa.data.sources.coat import coat
from dpaa.data.sources.severity import read_pairs, with_severity
from dpaa.data.sources.world import simulate
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods import METHODS, find_method
from dpaa.methods.base import Method
from dpaa.methods.settings import TrainedSettings
from dpaa.ranking import RERANKERS
from dpaa.ranking.reranker import Dial, Reranker
from dpaa.ranking.reranker import make_reranker, parse_reranker
from dpaa.runs.fit import fit_into, fit_method, make_method
from dpaa.tuning.space import Range, Space, search_space

K = 20
DATA = ("coat", "world", "s=0", "s=5", "s=9")
SEEDS = {"coat": 10, "world": 3, "s=0": 3, "s=5": 3, "s=9": 3}
WORLD = (700, 600)
"""Users and items of the demo world: a third of `dpaa demo`'s, since every method is trained on it several times."""
TRIALS = 4
"""Settings tried of each method: its defaults, and three points drawn from its space."""
RATES = (5e-3, 1e-2, 2e-2)
"""Learning rates among them; the default is the middle one."""
MEASURED = ("recall@20", "ndcg@20", "recall@20/niche", "arp@20", "coverage@20")
BASE = "lightgcn"
RERANKED = "re-ranked"
"""Lines of LightGCN with each re-ranker at its default strength."""
STEPS = tuple(round(0.1 * step, 1) for step in range(11))
CURVES = {
    "dial": "dial,kappa={minus}",
    "xquad (binary)": "xquad,strength={x}",
    "xquad (smooth)": "xquad,coverage=smooth,strength={x}",
    "calibrated-popularity": "calibrated-popularity,strength={x}",
    "steck": "steck,strength={x}",
    "pc": "pc,strength={x}",
    "scale": "scale,strength={x}",
    "fa-ir": "fa-ir,strength={x}",
}
"""Each re-ranker over its strength x from 0 to 1; the dial's κ is −2 x."""
CURVES_ON = ("coat", "s=5", "world")


@dataclass(frozen=True)
class Job:
    """One training: `default`, `trial N` (seed 0) or `tuned`; or the re-rankers over LightGCN."""

    data: str
    method: str
    kind: str
    seed: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells it from others."""
        return self.data, self.method, self.kind, self.seed


def methods() -> list[str]:
    """All that are built in, but those kept for old runs only."""
    return [name for name in METHODS.built_in if not find_method(name).retired]


class Lines:
    """A file with a line for each training, read at the start and added to."""

    def __init__(self, file: Path) -> None:
        self.file = file
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # a kill may have cut the last line
        if whole != text:
            file.write_text(whole, encoding="utf-8")
        self.all: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]
        self._by_key = {self.key(line): line for line in self.all}

    @staticmethod
    def key(line: Mapping[str, Any]) -> tuple[Any, ...]:
        """What tells a training from others."""
        return tuple(line[name] for name in ("data", "method", "kind", "seed"))

    def add(self, line: dict[str, Any]) -> None:
        """Written at once."""
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.all.append(line)
        self._by_key[self.key(line)] = line

    def of(self, job: Job) -> dict[str, Any] | None:
        """That of a job, if it is done."""
        return self._by_key.get(job.key)

    def seconds(self, job: Job) -> float:
        """What the method's dearest training on the same data took, or else on other data; unknown is 0."""
        known = [line for line in self.all if line["method"] == job.method]
        same = [line["cpu"] for line in known if line["data"] == job.data]
        return max(same or [line["cpu"] for line in known], default=0.0)

    def trials(self, data: str, method: str) -> list[dict[str, Any] | None]:
        """Lines of a method's trials on this data, the defaults first."""
        kinds = ["default", *(f"trial {number}" for number in range(1, TRIALS))]
        return [self.of(Job(data, method, kind, 0)) for kind in kinds]

    def best(self, data: str, method: str) -> dict[str, Any] | None:
        """The trial with the highest recall on validation; None while some are missing."""
        there = [line for line in self.trials(data, method) if line is not None]
        known = [line for line in there if "error" not in line]
        return max(known, key=lambda line: line["valid"]) if len(there) == TRIALS and known else None


def space_of(method: str) -> Space:
    """What its trials may try: its own settings, L2, layers, and three learning rates."""
    kind = find_method(method)
    if kind.chooses_settings or method == "most-popular":
        return {}
    rates = {"learning_rate": RATES} if issubclass(kind.settings_type, TrainedSettings) else {}
    return search_space(kind, "wide", {}, rates)


def trial_settings(method: str, number: int) -> dict[str, Any]:
    """A point of the space, drawn by the method's name and the trial's number alone."""
    rng = np.random.default_rng([number, *method.encode()])
    return {name: _drawn(dimension, rng) for name, dimension in space_of(method).items()}


def _drawn(dimension: Any, rng: np.random.Generator) -> Any:
    if not isinstance(dimension, Range):
        return dimension[int(rng.integers(len(dimension)))]
    if dimension.whole:
        return int(rng.integers(int(dimension.low), int(dimension.high) + 1))
    if dimension.log:
        return dimension.neat(math.exp(rng.uniform(math.log(dimension.low), math.log(dimension.high))))
    return dimension.neat(rng.uniform(dimension.low, dimension.high))


# ---------------------------------------------------------------------- the order


PLAN: tuple[tuple[float, str, tuple[str, ...], range], ...] = (
    (6, "default", ("coat",), range(1)),
    (60, "curve", ("coat",), range(1)),
    (60, RERANKED, ("coat",), range(1)),
    (1.6, "default", ("coat",), range(1, 10)),
    (3.5, "default", ("world", "s=5"), range(1)),
    (60, "curve", ("s=5",), range(1)),
    (1.6, "trials", ("coat",), range(1)),
    (1.6, "tuned", ("coat",), range(3)),
    (60, RERANKED, DATA, range(1)),
    (3.5, "default", ("s=9", "s=0"), range(1)),
    (3, "default", ("s=5", "world"), range(1, 3)),
    (6, "default", ("coat",), range(1, 3)),
    (60, "curve", CURVES_ON, range(1)),
    (3, "default", ("s=9", "s=0"), range(1, 3)),
    (60, RERANKED, DATA, range(1, 10)),
    (20, "default", DATA, range(1)),
    (6, "trials", ("coat",), range(1)),
    (6, "tuned", ("coat",), range(3)),
    (2, "tuned", ("coat",), range(3, 10)),
    (60, "curve", CURVES_ON, range(1, 3)),
    (3, "trials", ("world",), range(1)),
    (3, "tuned", ("world",), range(3)),
    *((math.inf, kind, DATA, range(10)) for kind in ("default", "trials", "tuned")),  # what was too dear, and the rest
)
"""What matters most first: seconds beyond which a training is left for later, what is trained, on which data, seeds.

Whatever is stopped then leaves few holes, and those where a training is dear.
"""


def waves() -> Iterator[tuple[float, list[Job]]]:
    """The plan's jobs, dataset by dataset."""
    for costliest, kind, places, seeds in PLAN:
        for data in places:
            yield costliest, [job for seed in seeds if seed < SEEDS[data] for job in _jobs(kind, data, seed)]


def _jobs(kind: str, data: str, seed: int) -> list[Job]:
    if kind in ("curve", RERANKED):
        return [Job(data, "re-rankers", "default" if kind == RERANKED else kind, seed)]
    if kind == "default":
        return [Job(data, name, kind, seed) for name in methods()]
    able = [name for name in methods() if space_of(name)]
    if kind == "tuned":
        return [Job(data, name, kind, seed) for name in able]
    return [Job(data, name, f"trial {number}", 0) for number in range(1, TRIALS) for name in able if seed == 0]


# ---------------------------------------------------------------------- one training


@dataclass(frozen=True)
class Sources:
    """Where the real data are: `coat/` and `kuairec/paper-split/`."""

    folder: Path

    @lru_cache(maxsize=2)  # noqa: B019  one object for the whole script
    def dataset(self, name: str, seed: int) -> Dataset:
        """The same from the same seed: split of Coat, draw of KuaiRec or the world itself."""
        if name == "world":
            return simulate(*WORLD, seed=seed)
        if name == "coat":
            return coat(self.folder / "coat", seed=seed)
        return with_severity(self.exposed(), float(name.removeprefix("s=")), seed)

    @lru_cache(maxsize=1)  # noqa: B019
    def exposed(self) -> Any:
        """All positives of KuaiRec's small matrix."""
        places = [str(self.folder / "kuairec" / "paper-split" / f"{name}.txt") for name in ("valid", "test")]
        return read_pairs(places)[0]

    def there(self, name: str) -> bool:
        """Whether its files are at hand."""
        return name == "world" or (self.folder / ("coat" if name == "coat" else "kuairec")).is_dir()


@dataclass(frozen=True)
class Bench:
    """Trains, measures, and keeps LightGCN's runs for the methods that start from one."""

    sources: Sources
    work: Path
    lines: Lines

    def run(self, job: Job) -> Iterator[dict[str, Any]]:
        """Lines of a job; a method that cannot be trained on these data leaves one with the reason."""
        if job.method == "re-rankers":
            yield from self._rerankers(job)
            return
        settings: dict[str, Any] = {}
        if job.kind.startswith("trial"):
            settings = trial_settings(job.method, int(job.kind.split()[1]))
        elif job.kind == "tuned":
            best = self.lines.best(job.data, job.method)
            if best is None:
                return
            same = best["kind"] if job.seed == 0 else "default" if best["kind"] == "default" else None
            ready = self.lines.of(replace(job, kind=same)) if same else None
            if ready is not None:  # the same training, by another name
                yield ready | {"kind": "tuned", "settings": best["settings"]}
                return
            settings = best["settings"]
        data = self.sources.dataset(job.data, job.seed)
        if find_method(job.method).needs_randomised:  # half of the validation pairs become its sample
            data = with_randomised(data, seed=job.seed)
        clock = time.process_time()
        about = {"data": job.data, "method": job.method, "kind": job.kind, "seed": job.seed, "settings": settings}
        try:
            method, epochs = self._trained(job, data, settings)
        except InputError as error:
            yield about | {"error": str(error), "cpu": time.process_time() - clock}
            return
        cpu = time.process_time() - clock
        valid = Evaluator(data, K, "valid", "drop").recall_of(method)
        yield about | {"epochs": epochs, "cpu": round(cpu, 2), "valid": valid} | self._measured(data, method)

    def _trained(self, job: Job, data: Dataset, settings: dict[str, Any]) -> tuple[Method, int | None]:
        """Without the test split, which nothing that trains may see."""
        untested = replace(data, test=Pairs.of([], []))
        in_epochs = issubclass(find_method(job.method).settings_type, TrainedSettings)
        threads = {"threads": 1} if in_epochs else {}
        method = make_method(untested, job.method, {"seed": job.seed} | threads | settings)
        needed = method.pretrained_layers() is not None and not settings  # with others than the defaults: its own
        ready = self._base_run(job.data, job.seed, untested) if needed else None
        model = fit_method(method, untested, dial=False, pretrained=ready)
        return model.method, (model.manifest.get("training") or {}).get("epochs")

    def _base_run(self, data: str, seed: int, untested: Dataset) -> Path:
        """LightGCN at its defaults, as a run folder."""
        folder = self.work / "runs" / f"{data}-{seed}"
        if not (folder / "manifest.json").exists():
            method = make_method(untested, BASE, {"seed": seed, "threads": 1})
            fit_into(folder, untested, method, dial=False, overwrite=folder.exists())
        return folder

    @staticmethod
    def _measured(data: Dataset, method: Method, reranker: Reranker | None = None) -> dict[str, float]:
        found = Evaluator(data, K, "test", "drop").evaluate(method, None, reranker).metrics
        return {name: found[name] for name in MEASURED}

    def _rerankers(self, job: Job) -> Iterator[dict[str, Any]]:
        """Over LightGCN: each at its default strength, or along its strength."""
        data = self.sources.dataset(job.data, job.seed)
        clock = time.process_time()
        method, epochs = self._trained(replace(job, method=BASE), data, {})
        evaluator = Evaluator(data, K, "test", "drop")
        about = {"data": job.data, "seed": job.seed, "settings": {}, "epochs": epochs, "valid": None}
        if job.kind == "curve":
            for name, words in CURVES.items():
                for x in STEPS:
                    reranker = parse_reranker(words.format(x=x, minus=0.0 - 2 * x))
                    found = evaluator.evaluate(method, 0.0, reranker).metrics
                    line = {"method": f"curve {name}", "kind": f"{x:g}", "cpu": 0.0}
                    yield about | line | {one: found[one] for one in MEASURED}
        else:
            for name in RERANKERS.built_in:
                if RERANKERS[name] is Dial:
                    continue
                found = evaluator.evaluate(method, 0.0, make_reranker(name, {})).metrics
                yield (
                    about
                    | {"method": f"re-ranked {name}", "kind": job.kind, "cpu": 0.0}
                    | {one: found[one] for one in MEASURED}
                )
        yield about | {"method": job.method, "kind": job.kind, "cpu": round(time.process_time() - clock, 2)}

"""Many methods on one dataset, tuned equally: as many trials each on validation, then one table of the test split.

    benchmark.json      what all methods have in common, and what was found
    METHOD/             the study of a method (`dpaa.tuning.tune`), or its runs where there is nothing to tune
    comparison.json     for `dpaa report`; table.md, table.tex, table.csv the same as tables

The same call goes on where it was stopped, and with more methods or trials adds to what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dpaa.comparison import FORMATS, Comparison, compare, write_table
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.evaluator import Evaluator
from dpaa.files import LARGE_JSON, as_json, check_folder_name, check_within, own_folder, read_json, settled, write_file
from dpaa.methods import find_method
from dpaa.methods.base import Method
from dpaa.runs.fit import fit_into, make_method
from dpaa.runs.model import Model, load
from dpaa.tuning.space import search_space
from dpaa.tuning.trial import TRAINED
from dpaa.tuning.tune import tune

ABOUT, FORMAT = "benchmark.json", 1
TRIALS, SEEDS = 10, 3
REMEDY = "make room or choose another folder with --out"


@dataclass(frozen=True)
class Benched:
    """A method, and how its settings came about."""

    method: str
    trials: int
    """Settings tried on validation; 0 where there is nothing to tune."""
    settings: dict[str, Any]
    """The best of them."""
    valid_recall: float | None
    """Validation recall@20, the mean over seeds."""
    seconds: float
    """Spent in trials."""
    runs: list[str]


@dataclass(frozen=True)
class Benchmark:
    """What was found."""

    folder: Path
    dataset: str
    methods: list[Benched]
    comparison: Comparison
    notes: list[str] = field(default_factory=list)
    """Methods that were left out, and why."""

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "kind": "benchmark",
            "folder": str(self.folder),
            "dataset": self.dataset,
            "methods": [asdict(one) for one in self.methods],
            "comparison": self.comparison.as_json(),
            "notes": self.notes,
        }


def benchmark(
    folder: str | Path,
    data: Dataset,
    methods: Sequence[str],
    *,
    trials: int = TRIALS,
    seeds: int = SEEDS,
    jobs: int = 1,
    k: int = 20,
    baseline: str | None = None,
    metrics: Sequence[str] = (),
    settings: Mapping[str, object] | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda _line: None,
) -> Benchmark:
    """Tune every method with as many trials, train the best over seeds, and compare them on the test split.

    `settings` are fixed for every method that has them.  Others are held against `baseline`, the first method unless
    named.  A method that cannot be had (an extra that is not installed) is left out and noted.
    """
    kinds = _checked(data, methods, baseline, settings or {})
    for number, name in ((trials, "trials"), (seeds, "seeds"), (jobs, "jobs"), (k, "k")):
        need_whole(number, name)
    home = _begun(Path(folder), data, seed)
    done: list[Benched] = []
    models: dict[str, list[Model]] = {}
    notes: list[str] = []
    for place, kind in enumerate(kinds, start=1):
        say(f"method {place} of {len(kinds)}: {kind.name}")
        own = {name: value for name, value in (settings or {}).items() if name in kind.settings_type.model_fields}
        try:
            one = _bench(check_within(home / kind.name, home), data, kind, own, trials, seeds, jobs, seed, say)
            models[kind.name] = [load(run) for run in one.runs]
        except InputError as error:
            notes.append(f"{kind.name} was left out: {error}")
            continue
        done.append(one)
    if len(done) < 2:
        raise InputError(f"fewer than two methods are left to compare ({'; '.join(notes)})")
    wanted = None if baseline is None else find_method(baseline).name
    found = compare(data, models, k=k, baseline=wanted, metrics=metrics)
    result = Benchmark(Path(folder), data.name, done, found, notes)
    for ending in FORMATS:
        write_table(found, home / (f"comparison{ending}" if ending == ".json" else f"table{ending}"))
    write_file(home / ABOUT, as_json(_about(data, seed) | {"found": result.as_json()}), REMEDY)
    return result


def _checked(
    data: Dataset, methods: Sequence[str], baseline: str | None, settings: Mapping[str, object]
) -> list[type[Method]]:
    """The methods, each once; what is wrong is said before any work."""
    kinds = list({find_method(name).name: find_method(name) for name in methods}.values())
    if len(kinds) < 2:
        raise InputError(
            "a benchmark compares methods; name at least two, such as --methods lightgcn,dpaa,most-popular"
        )
    if baseline is not None and find_method(baseline) not in kinds:
        raise InputError(f"the baseline {baseline!r} is not among the methods; choose one of them")
    for name in settings:
        if name == "seed" or not any(name in kind.settings_type.model_fields for kind in kinds):
            raise InputError(f"none of these methods has a setting {name!r}; `dpaa methods NAME` lists them")
    for split in ("valid", "test"):
        if not len(data.split(split)):
            raise InputError(
                f"the {split} split of {data.name} is empty: settings are chosen on validation and compared on the "
                "test split; make a dataset with both, such as dpaa data log FILE --valid 0.1 --test 0.1"
            )
        Evaluator(data, 20, split, "drop")  # refuses a split of which nothing is left
    return kinds


def _about(data: Dataset, seed: int) -> dict[str, Any]:
    return {"format": FORMAT, "dataset": {"name": data.name, "fingerprint": data.fingerprint}, "seed": seed}


def _begun(folder: Path, data: Dataset, seed: int) -> Path:
    """The folder, new or of the same benchmark."""
    check_folder_name(folder)
    home, about = settled(folder), _about(data, seed)
    if home.is_file():
        raise InputError(f"{folder} is a file; choose another folder with --out")
    if (home / ABOUT).exists():
        before = read_json(home / ABOUT, LARGE_JSON, "choose another folder with --out")
        changed = next((name for name in about if before.get(name) != about[name]), None)
        if changed is not None:
            raise InputError(f"{folder} holds a benchmark with another {changed}; choose another folder with --out")
    elif home.exists() and any(home.iterdir()):
        raise InputError(f"{folder} is not empty and holds no benchmark; choose another folder with --out")
    else:
        own_folder(home, REMEDY)
        write_file(home / ABOUT, as_json(about), REMEDY)
    return home


def _bench(
    folder: Path,
    data: Dataset,
    kind: type[Method],
    fixed: dict[str, object],
    trials: int,
    seeds: int,
    jobs: int,
    seed: int,
    say: Callable[[str], None],
) -> Benched:
    if search_space(kind, "wide", fixed, {}):
        found = tune(
            folder,
            data,
            kind.name,
            trials=trials,
            seeds=seeds,
            jobs=jobs,
            settings=fixed,
            prune_after=0,
            seed=seed,
            say=say,
        )
        recalls = [run.valid_recall for run in found.runs]
        runs = [str(run.folder) for run in found.runs]
        tried = sum(trial.state in TRAINED for trial in found.trials)
        return Benched(kind.name, tried, found.settings, sum(recalls) / len(recalls), found.seconds, runs)
    runs, recalls = [], []
    evaluator = Evaluator(data, 20, "valid", "drop")
    for number in range(seed, seed + (seeds if kind.seeded else 1)):
        run = folder / f"seed-{number}"
        method = make_method(data, kind.name, {**fixed, **({"seed": number} if kind.seeded else {})})
        model = fit_into(run, data, method, resume=run.exists())
        recalls.append(evaluator.recall_of(model.method))
        runs.append(str(run))
    return Benched(kind.name, 0, dict(fixed), sum(recalls) / len(recalls), 0.0, runs)

"""Many methods on one dataset, tuned equally: as many trials each on validation, then one table of the test split.

    benchmark.json      what all methods have in common, and the result
    METHOD/             the study of a method (`dpaa.tuning.tune`), or its runs where there is nothing to tune
    comparison.json     for `dpaa report`; table.md, table.tex, table.csv the same as tables

The same call resumes a benchmark, and with more methods or trials adds to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dpaa._io import LARGE_JSON, as_json, check_folder_name, check_within, own_folder, read_json, settled, write_file
from dpaa.comparison import FORMATS, Comparison, compare, write_table
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods import find_method
from dpaa.methods.base import Method
from dpaa.runs.fit import fit_into, make_method
from dpaa.runs.model import Model, load
from dpaa.tuning.space import search_space
from dpaa.tuning.trial import TRAINED
from dpaa.tuning.tune import REMEDY, tune

ABOUT, FORMAT = "benchmark.json", 1


@dataclass(frozen=True)
class Benched:
    """A method of a benchmark.

    Parameters
    ----------
    method : its name
    trials : hyperparameters tried on validation; 0 where there is nothing to tune
    settings : the best of them
    valid_recall : validation recall@20, the mean over seeds
    seconds : spent in trials
    runs : folders
    """

    method: str
    trials: int
    settings: dict[str, Any]
    valid_recall: float | None
    seconds: float
    runs: list[str]


@dataclass(frozen=True)
class Benchmark:
    """The result of a benchmark.

    Parameters
    ----------
    folder, dataset : where and on what
    methods : in the order of the call
    comparison : on the test split
    notes : methods that were left out, and why
    """

    folder: Path
    dataset: str
    methods: list[Benched]
    comparison: Comparison
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
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
    trials: int = 10,
    seeds: int = 3,
    jobs: int = 1,
    k: int = 20,
    baseline: str | None = None,
    metrics: Sequence[str] = (),
    settings: Mapping[str, object] | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda _line: None,
) -> Benchmark:
    """Tune every method with as many trials, train the best over seeds, and compare them on the test split.

    Parameters
    ----------
    folder : of the benchmark
    data : dataset with a validation and a test split
    methods : at least two; one that cannot be trained (an extra that is not installed) is left out and noted
    trials, seeds, jobs, seed, say : as in `tune`
    k : length of the lists
    baseline : method that the others are compared with; default: the first
    metrics : to compare; default: those of `compare`
    settings : fixed for every method that has them

    Returns
    -------
    How each method was tuned, and the comparison
    """
    fixed = dict(settings or {})
    kinds = _checked(data, methods, baseline, fixed)
    for number, name in ((trials, "trials"), (seeds, "seeds"), (jobs, "jobs"), (k, "k")):
        need_whole(number, name)
    home, about = _begin(Path(folder), data, seed)
    done: list[Benched] = []
    models: dict[str, list[Model]] = {}
    notes: list[str] = []
    for number, kind in enumerate(kinds, start=1):
        say(f"method {number} of {len(kinds)}: {kind.name}")
        own = {name: value for name, value in fixed.items() if name in kind.hyperparameters.model_fields}
        how: dict[str, Any] = {"trials": trials, "seeds": seeds, "jobs": jobs, "settings": own, "seed": seed}
        try:
            one = _bench(check_within(home / kind.name, home), data, kind, how | {"say": say})
            models[kind.name] = [load(run) for run in one.runs]
        except InputError as error:
            notes.append(f"{kind.name} was left out: {error}")
            continue
        done.append(one)
    if len(done) < 2:
        raise InputError(f"fewer than two methods are left to compare ({'; '.join(notes)})")
    named = None if baseline is None else find_method(baseline).name
    comparison = compare(data, models, k=k, baseline=named, metrics=metrics)
    result = Benchmark(Path(folder), data.name, done, comparison, notes)
    for ending in FORMATS:
        write_table(comparison, home / (f"comparison{ending}" if ending == ".json" else f"table{ending}"))
    write_file(home / ABOUT, as_json(about | {"found": result.as_json()}), REMEDY)
    return result


def _checked(
    data: Dataset, methods: Sequence[str], baseline: str | None, settings: Mapping[str, object]
) -> list[type[Method]]:
    """The methods, each once; what is wrong is reported before any work."""
    kinds = list({find_method(name).name: find_method(name) for name in methods}.values())
    if len(kinds) < 2:
        raise InputError(
            "a benchmark compares methods; name at least two, such as --methods lightgcn,dpaa,most-popular"
        )
    if baseline is not None and find_method(baseline) not in kinds:
        raise InputError(f"the baseline {baseline!r} is not among the methods; choose one of them")
    for name in settings:
        if name == "seed" or not any(name in kind.hyperparameters.model_fields for kind in kinds):
            raise InputError(f"none of these methods has a setting {name!r}; `dpaa methods NAME` lists them")
    for split in ("valid", "test"):
        if not len(data.split(split)):
            raise InputError(
                f"the {split} split of {data.name} is empty: settings are chosen on validation and compared on the "
                "test split; make a dataset with both, such as dpaa data log FILE --valid 0.1 --test 0.1"
            )
        Evaluator(data, 20, split, "drop")  # refuses a split of which nothing is left
    return kinds


def _begin(folder: Path, data: Dataset, seed: int) -> tuple[Path, dict[str, Any]]:
    """The folder, new or of the same benchmark, and what its methods have in common."""
    about = {"format": FORMAT, "dataset": {"name": data.name, "fingerprint": data.fingerprint}, "seed": seed}
    check_folder_name(folder)
    home = settled(folder)
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
    return home, about


def _bench(folder: Path, data: Dataset, kind: type[Method], how: dict[str, Any]) -> Benched:
    """Tune a method, or train it as it is where there is nothing to tune."""
    fixed, seed = how["settings"], how["seed"]
    if search_space(kind, "wide", fixed, {}):
        tuned = tune(folder, data, kind.name, prune_after=0, **how)
        recalls = [run.valid_recall for run in tuned.runs]
        tried = sum(trial.state in TRAINED for trial in tuned.trials)
        runs = [str(run.folder) for run in tuned.runs]
        return Benched(kind.name, tried, tuned.settings, sum(recalls) / len(recalls), tuned.seconds, runs)
    runs, recalls = [], []
    evaluator = Evaluator(data, 20, "valid", "drop")
    for number in range(seed, seed + (how["seeds"] if kind.seeded else 1)):
        run = folder / f"seed-{number}"
        method = make_method(data, kind.name, {**fixed, **({"seed": number} if kind.seeded else {})})
        model = fit_into(run, data, method, resume=run.exists())
        recalls.append(evaluator.recall_of(model.method))
        runs.append(str(run))
    return Benched(kind.name, 0, dict(fixed), sum(recalls) / len(recalls), 0.0, runs)

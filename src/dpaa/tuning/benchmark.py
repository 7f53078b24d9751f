"""Benchmark of several methods: equal numbers of trials on validation, then one table on the test split.

    benchmark.json      what all methods have in common, and the result
    METHOD/             the study of a method (`dpaa.tuning.tune`)
    comparison.json     for `dpaa report`; table.md, table.tex, table.csv the same as tables

The same call resumes a benchmark, and with more methods or trials adds to it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaa._io import as_json, check_within, write_file
from dpaa.comparison import FORMATS, Comparison, compare, write_table
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods import find_method
from dpaa.methods._options import known
from dpaa.runs.model import load
from dpaa.tuning.trial import TRAINED
from dpaa.tuning.tune import REMEDY, TuneResult, described_folder, tune

ABOUT, FORMAT = "benchmark.json", 1


@dataclass(frozen=True)
class Benchmark:
    """The result of a benchmark.

    Parameters
    ----------
    folder, dataset : where and on what
    methods : in the order of the call: method, trials, lookups (on validation; more than trials where each trial
        chooses among strengths), the best hyperparameters, valid_recall (validation recall@20, the mean over seeds),
        seconds spent in trials, runs (folders)
    comparison : on the test split
    notes : methods that were left out, and why
    """

    folder: Path
    dataset: str
    methods: list[dict[str, Any]]
    comparison: Comparison
    notes: list[str]

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        own = {"kind": "benchmark", "folder": str(self.folder), "comparison": self.comparison.as_json()}
        return own | {name: getattr(self, name) for name in ("dataset", "methods", "notes")}


def benchmark(
    folder: str | Path,
    data: Dataset,
    methods: Sequence[str],
    *,
    trials: int = 10,
    seeds: int = 3,
    jobs: int = 1,
    k: int = 20,
    metrics: Sequence[str] = (),
    settings: Mapping[str, object] | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda _line: None,
) -> Benchmark:
    """Tune every method with the same number of trials, train the best over seeds, and compare them on the test split.

    Parameters
    ----------
    folder : of the benchmark
    data : dataset with a validation and a test split
    methods : at least two; one that cannot be trained (an extra that is not installed) is left out and noted
    trials, seeds, jobs, seed, say : as in `tune`
    k : length of the lists
    metrics : to compare; default: those of `compare`
    settings : fixed for every method that has them

    Returns
    -------
    How each method was tuned, and the comparison
    """
    kinds = list(dict.fromkeys(find_method(name) for name in methods))
    if len(kinds) < 2:
        raise InputError("name at least two methods, the baseline among them, such as --methods lightgcn,dpaa")
    fixed = {kind.name: known(settings or {}, kind) for kind in kinds}
    unknown = (settings or {}).keys() - {name for own in fixed.values() for name in own if name != "seed"}
    if unknown:
        raise InputError(f"none of these methods has a hyperparameter {min(unknown)!r} to fix; see `dpaa methods NAME`")
    need_whole(seeds, "seeds")
    for split in ("valid", "test"):
        Evaluator(data, 20, split, "drop")  # refuses a split that is empty, or of which nothing is left
    about = {"format": FORMAT, "dataset": data.identity, "seed": seed}
    how: dict[str, Any] = {"trials": trials, "seeds": seeds, "jobs": jobs, "seed": seed, "prune_after": 0, "say": say}
    studies: dict[str, TuneResult] = {}
    notes: list[str] = []
    with described_folder(Path(folder), ABOUT, about) as home:
        for number, kind in enumerate(kinds, start=1):
            say(f"method {number} of {len(kinds)}: {kind.name}")
            try:
                place = check_within(home / kind.name, home)
                studies[kind.name] = tune(place, data, kind.name, settings=fixed[kind.name], **how)
            except InputError as error:
                notes.append(f"{kind.name} was left out: {error}")
        if len(studies) < 2 or kinds[0].name not in studies:
            raise InputError(f"fewer than two methods, or no baseline, are left to compare ({'; '.join(notes)})")
        models = {name: [load(run["folder"]) for run in study.runs] for name, study in studies.items()}
        comparison = compare(data, models, k=k, baseline=kinds[0].name, metrics=metrics)
        result = Benchmark(Path(folder), data.name, [_row(study) for study in studies.values()], comparison, notes)
        for ending in FORMATS:
            write_table(comparison, home / (f"comparison{ending}" if ending == ".json" else f"table{ending}"))
        write_file(home / ABOUT, as_json(about | {"found": result.as_json()}), REMEDY)
    return result


def _row(study: TuneResult) -> dict[str, Any]:
    return {
        "method": study.method,
        "trials": sum(trial.state in TRAINED for trial in study.trials),
        "lookups": sum(trial.lookups for trial in study.trials if trial.state in TRAINED),
        "settings": study.settings,
        "valid_recall": sum(run["valid_recall@20"] for run in study.runs) / len(study.runs),
        "seconds": study.seconds,
        "runs": [run["folder"] for run in study.runs],
    }

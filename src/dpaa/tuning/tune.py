"""Hyperparameters chosen on validation: an Optuna study in a folder, resumed by calling again.

    study.json          what all trials have in common: dataset, method, space, fixed hyperparameters, seed
    study.sqlite        Optuna's storage (absent where a URL is given)
    trials.jsonl        every trial: hyperparameters, validation curve, seconds, state
    best.toml           the best hyperparameters, for `dpaa train --config`
    runs/               the best hyperparameters trained over seeds
    pretrained-…/       the model that methods such as DPAA start from, one per seed

A trial's value is the validation recall@20, or another metric, of the finished model: of the best epoch, and with the
strengths that methods such as PPAC choose after training.  The test split is never opened.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpaa import _io
from dpaa._text import without_secrets
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_whole
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods import METHODS, find_method
from dpaa.methods.base import ChosenAfterwards
from dpaa.methods.graph_method import PAPER_TRAINING, GraphMethod
from dpaa.runs.folder import hold_folder
from dpaa.tuning._study import STORAGE, TRIAL_LINES, Study
from dpaa.tuning.processes import in_pool
from dpaa.tuning.space import first_point, in_words, search_space, size
from dpaa.tuning.trial import DEFAULT, TRAINED, Trial, TuningGoal, best_toml

FORMAT = 3
TRIALS = 30
"""Different hyperparameters that a search tries: the same number for every method."""
POLL_SECONDS = 2.0
REMEDY = "free some space or choose another folder with --out"


@dataclass(frozen=True)
class TuneResult:
    """The result of a study.

    Parameters
    ----------
    folder : of the study
    dataset, method : their names
    space : hyperparameter → what was tried, in words
    goal : the metric that was searched by
    trials : all of them
    best : the best of them
    settings : the best hyperparameters, fixed ones included; without the seed
    runs : the best hyperparameters over seeds: seed, folder and metrics of each
    """

    folder: Path
    dataset: str
    method: str
    space: dict[str, str]
    goal: TuningGoal
    trials: list[Trial]
    best: Trial
    settings: dict[str, Any]
    runs: list[dict[str, Any]]

    @property
    def seconds(self) -> float:
        """Seconds spent in trials, by all workers."""
        return sum(trial.seconds or 0.0 for trial in self.trials)

    def as_json(self) -> dict[str, Any]:
        """Describe the result for `--json`; the curves are in `trials.jsonl`.

        Returns
        -------
        plain data
        """
        metrics = {f"valid_{key}": value for key, value in self.best.metrics.items()}
        trials = [asdict(trial) | {"epochs": len(trial.curve)} for trial in self.trials]
        return {
            "study": str(self.folder),
            **{name: getattr(self, name) for name in ("dataset", "method", "space", "runs", "seconds")},
            "best": {"trial": self.best.number, **metrics, "settings": self.settings},
            "trials": [{name: value for name, value in trial.items() if name != "curve"} for trial in trials],
        }


def tune(
    folder: str | Path,
    data: Dataset,
    method: str,
    *,
    space: str = "wide",
    trials: int | None = None,
    storage: str | None = None,
    jobs: int = 1,
    seeds: int = 3,
    settings: Mapping[str, object] | None = None,
    values: Mapping[str, Sequence[object]] | None = None,
    defaults: Mapping[str, object] | None = None,
    prune_after: int = 30,
    seed: int = 0,
    metric: str = DEFAULT,
    most_loss: str | None = None,
    say: Callable[[str], None] = lambda _line: None,
) -> TuneResult:
    """Search the hyperparameters of a method on validation, and train the best over seeds.

    An existing study is resumed, and gets more trials where more are wanted; calls in other folders with the same
    `storage` share the work.  Early stopping looks at recall@20 whatever the metric.

    Parameters
    ----------
    folder : of the study
    data : dataset with a validation split
    method : its name
    space : `wide` (ranges) or `lists` (listed values, exact zeros among them), both searched by TPE, or `paper` (the
        paper's grids point by point, with its way of training)
    trials : different hyperparameters to try; default: 30, or the whole grid
    storage : URL of a PostgreSQL database or SQLite file that calls share; default: a file in the folder
    jobs : processes
    seeds : how many seeds the best is trained with (`seed`, `seed + 1`, …)
    settings : fixed hyperparameters
    values : hyperparameter → values to try, in place of those of the space
    defaults : in place of the method's own
    prune_after : epochs before a trial that is worse than the median of those with about its learning rate may be
        stopped; 0 for never, as for other goals than recall@20 and methods that choose strengths after training
    seed : of the search and its trainings
    metric : key of `evaluate` to search by, on validation
    most_loss : `ndcg@20=2%`: what may be lost of another metric, compared with the best of all trials
    say : receives progress lines

    Returns
    -------
    Trials, the best hyperparameters and their runs
    """
    kind, goal = find_method(method), TuningGoal(metric, most_loss)
    if defaults is None:
        defaults = PAPER_TRAINING if space == "paper" and issubclass(kind, GraphMethod) else {}
    checked = kind(**{**defaults, **(settings or {})})
    fixed = {name: getattr(checked, name) for name in settings or {}}  # as values, where text was given
    searched = search_space(kind, space, fixed, values or {})
    points = size(searched)
    least = {"trials": (trials, 1), "jobs": (jobs, 1), "seeds": (seeds, 0), "prune_after": (prune_after, 0)}
    for name, (number, smallest) in (least | {"seed": (seed, 0)}).items():
        if number is not None:
            need_whole(number, name, smallest)
    if "seed" in fixed or "seed" in searched:
        raise InputError(
            "the random seed is neither fixed nor searched like a hyperparameter; give it as seed= in Python"
        )
    Evaluator(data, 20, "valid", "drop")  # refuses a split of which nothing is left
    if goal != TuningGoal() or issubclass(kind, ChosenAfterwards):
        prune_after = 0  # an unfinished trial is known by its recall@20 alone, before any strength is chosen
    wanted = trials or (points if space == "paper" and points else TRIALS)
    about = {  # what all trials have in common: results with another of these are not comparable
        "format": FORMAT,
        "dataset": data.identity,
        "method": kind.name,
        "version": kind.version,
        "space": {"name": space, **in_words(searched)},
        "settings": checked.get_params({*searched, "seed", "threads", "device"}),
        "prune_after": prune_after,
        "seed": seed,
        **({} if goal == TuningGoal() else {"goal": asdict(goal)}),
    }
    study = Study(
        folder=Path(folder),
        name=f"{kind.name}-{hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]}",
        method=METHODS.address(kind.name),
        fixed={**defaults, **fixed},
        space=searched,
        first=first_point(checked, searched),
        listed=space == "paper",
        wanted=min(wanted, points or wanted),
        seed=seed,
        prune_after=prune_after,
        goal=goal,
        storage=storage,
    )
    about["storage"] = STORAGE if storage is None else without_secrets(storage)
    with described_folder(study.folder, "study.json", about), study.storage_errors():
        _search(study, data, jobs, say)
        every = study.write()
        ranked = goal.ranked(every)
        if not ranked:
            why = next((trial.diverged for trial in every if trial.diverged), "none was trained to its end")
            raise InputError(f"no trial came to a result: {why}")
        best = study.fixed | ranked[0].settings
        _io.write_file(study.folder / "best.toml", best_toml(kind.name, best, ranked[0], study.wanted), REMEDY)
        again = [(study, data, ranked[0], seed + number) for number in range(seeds if kind.seeded else min(seeds, 1))]
        runs = [run for _, run in in_pool(Study.retrain, again, min(jobs, max(len(again), 1)))]
    runs.sort(key=lambda run: int(run["seed"]))
    return TuneResult(study.folder, data.name, kind.name, in_words(searched), goal, every, ranked[0], best, runs)


def _search(study: Study, data: Dataset, jobs: int, say: Callable[[str], None]) -> None:
    """Try hyperparameters until there are as many as wanted; the last ones may be those of another call."""
    wanted, goal = study.wanted, study.goal
    while True:
        study.release_lost()
        states = [trial.state for trial in study.trials()]
        missing = wanted - sum(state in TRAINED for state in states)
        if missing <= 0:
            return
        if missing <= states.count("running"):  # another call, which shares the storage, trains the last ones
            time.sleep(POLL_SECONDS)
            continue
        # Those that another call trains are not drawn here as well: the storage would hold more than wanted.
        missing -= states.count("running")
        for _, number in in_pool(Study.next_trial, [(study, data)] * missing, min(jobs, missing)):
            trials = study.write()
            (state,) = [trial.state for trial in trials if trial.number == number] or ["missing"]
            done = sum(trial.state in TRAINED for trial in trials)
            best = "".join(f", best {goal.key} {trial.value:.4f}" for trial in goal.ranked(trials)[:1])
            say(f"{done} of {wanted}: trial {number} {state}{best}")


@contextmanager
def described_folder(folder: Path, name: str, about: Mapping[str, Any]) -> Iterator[Path]:
    """Hold the folder of a study or a benchmark, new or with the same description.

    Parameters
    ----------
    folder : new, empty, or of an earlier call; one that is new and came to nothing is removed
    name : of the file with the description
    about : what all calls in this folder have in common
    """
    home = _io.check_folder_name(folder)
    new = not home.exists()
    with hold_folder(folder):
        if (home / name).exists():
            before = _io.read_json(home / name, _io.LARGE_JSON, "restore it or choose another folder with --out")
            changed = next((key for key in about if before.get(key) != about[key]), None)
            if changed is not None:
                raise InputError(f"{folder} belongs to a call with another {changed}; choose another folder with --out")
        elif home.is_file() or (not new and any(file.name[0] != "." for file in home.iterdir())):
            raise InputError(f"{folder} holds something other than {name} and its results; choose another with --out")
        else:
            _io.write_file(_io.own_folder(home, REMEDY) / name, _io.as_json(about), REMEDY)
        try:
            yield home
        except InputError:
            if new and not any(file.is_dir() or file.name == TRIAL_LINES for file in home.iterdir()):
                _io.remove_folder(home)
            raise

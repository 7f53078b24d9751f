"""Hyperparameters chosen on validation: an Optuna study in a folder, resumed by calling again.

    study.json          what all trials have in common: dataset, method, space, fixed hyperparameters, seed
    study.sqlite        Optuna's storage (absent where a URL is given)
    trials.jsonl        every trial: hyperparameters, validation curve, seconds, state
    best.toml           the best hyperparameters, for `dpaa train --config`
    pareto/             for two metrics instead: the hyperparameters of every trial that no other dominates
    runs/               the best hyperparameters trained over seeds
    pretrained-…/       the model that methods such as DPAA start from, one per seed

A trial's value is the validation recall@20, or another metric, of the finished model: of the best epoch, and with the
strengths that methods such as PPAC choose after training.  The test split is never opened.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dpaa._io import (
    LARGE_JSON,
    as_json,
    check_text,
    check_within,
    lock_of,
    locked,
    missing_folders,
    own_folder,
    read_json,
    remove_empty,
    remove_folder,
    settled,
    write_file,
)
from dpaa._text import counted, without_secrets
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_whole, reason
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods import METHODS, find_method
from dpaa.methods.base import ChosenAfterwards, Method
from dpaa.methods.graph_method import PAPER_TRAINING, GraphMethod
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import load
from dpaa.training.trainer import MONITOR
from dpaa.tuning.processes import KilledWorkerError, in_pool
from dpaa.tuning.space import SMALL, Space, first_point, in_words, search_space, size
from dpaa.tuning.study import STORAGE, TRIAL_LINES, StudyPlan, TrialStorage, Worker, next_trial, retrain, storage_errors
from dpaa.tuning.trial import TRAINED, Trial, TuningGoal, best_toml, trials_behind

ABOUT, BEST, FRONT = "study.json", "best.toml", "pareto"
FORMAT = 2
TRIALS = 30
"""Different hyperparameters that a search tries: the same number for every method."""
POLL_SECONDS = 2.0
NOT_COMPARED = ("seed", "threads", "device")
"""Hyperparameters that are named elsewhere, or change no result."""
REMEDY = "make room or choose another folder with --out"


@dataclass(frozen=True)
class Retrained:
    """The best hyperparameters trained with one seed.

    Parameters
    ----------
    seed, folder : of the run
    valid_recall : the metric that was searched for, recall@20 unless another is named
    metrics : all that the search looks at
    """

    seed: int
    folder: Path
    valid_recall: float
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TuneResult:
    """The result of a study.

    Parameters
    ----------
    folder : of the study
    dataset, method : their names
    space : hyperparameter → what was tried, in words
    fixed : hyperparameters that were given and not searched
    trials : all of them
    kept : how many of them earlier calls had trained
    best : for two metrics, the one that is best in the first
    settings : the best hyperparameters, fixed ones included; without the seed
    runs : the best hyperparameters over seeds
    importance : share of each hyperparameter in what distinguishes good trials; None where there are too few
    goal : what was searched for
    front : trials that no other dominates; for one metric, the best alone
    """

    folder: Path
    dataset: str
    method: str
    space: dict[str, str]
    fixed: dict[str, Any]
    trials: list[Trial]
    kept: int
    best: Trial
    settings: dict[str, Any]
    runs: list[Retrained] = field(default_factory=list)
    importance: dict[str, float] | None = None
    goal: TuningGoal = field(default_factory=TuningGoal)
    front: list[Trial] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Spent in trials, by all workers."""
        return sum(trial.seconds or 0.0 for trial in self.trials)

    def as_json(self) -> dict[str, Any]:
        """For `--json`; the curves are in `trials.jsonl`."""
        trials = [asdict(trial) for trial in self.trials]
        for trial in trials:
            trial["epochs"] = len(trial.pop("curve"))
        runs = [
            {"seed": run.seed, "folder": str(run.folder)} | {f"valid_{key}": one for key, one in run.metrics.items()}
            for run in self.runs
        ]
        metrics = {f"valid_{key}": value for key, value in self.best.metrics.items()}
        return {
            "study": str(self.folder),
            **{name: getattr(self, name) for name in ("dataset", "method", "space", "fixed")},
            **({} if self.goal.plain else {"goal": self.goal.as_json()}),
            "best": {"trial": self.best.number, **metrics, "settings": self.settings},
            **({"front": [trial.number for trial in self.front]} if len(self.goal.metrics) > 1 else {}),
            "runs": runs,
            "importance": self.importance,
            "seconds": self.seconds,
            "trials": trials,
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
    metric: str | Sequence[str] | None = None,
    most_loss: str | Sequence[str] | None = None,
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
    seeds : how many seeds the best is trained with (`seed`, `seed + 1`, …); for two metrics none is
    settings : fixed hyperparameters
    values : hyperparameter → values to try, in place of those of the space
    defaults : in place of the method's own
    prune_after : epochs before a trial that is worse than the median of those with about its learning rate may be
        stopped; 0 for never, as for other goals than recall@20 and methods that choose strengths after training
    seed : of the search and its trainings
    metric : key of `evaluate` to search for, or two of them, for which all trials are kept that no other dominates
    most_loss : `ndcg@20=2%`: what may be lost of other metrics, compared with the best of all trials
    say : receives progress lines

    Returns
    -------
    Trials, the best hyperparameters and their runs
    """
    kind, goal = find_method(method), TuningGoal.parse(metric, most_loss)
    if defaults is None:
        defaults = PAPER_TRAINING if space == "paper" and issubclass(kind, GraphMethod) else {}
    checked = kind(**{**defaults, **(settings or {})})
    fixed = {name: getattr(checked, name) for name in settings or {}}  # as values, where text was given
    searched = _checked_space(kind, space, fixed, values or {})
    unsearched = {name: value for name, value in defaults.items() if name not in fixed} | fixed
    least = {"trials": (trials, 1), "jobs": (jobs, 1), "seeds": (seeds, 0), "prune_after": (prune_after, 0)}
    for name, (number, smallest) in (least | {"seed": (seed, 0)}).items():
        if number is not None:
            need_whole(number, name, smallest)
    if not len(data.valid):
        raise InputError(
            f"the validation split of {data.name} is empty, and settings are chosen on it; "
            "make a dataset with one, such as dpaa data log FILE --valid 0.1"
        )
    Evaluator(data, 20, "valid", "drop")  # refuses a split of which nothing is left
    if not goal.plain or chooses_strengths(kind):
        prune_after = 0  # an unfinished trial is known by its recall@20 alone, before any strength is chosen
    points = size(searched)
    wanted = trials or (points if space == "paper" and points else TRIALS)
    about = {  # what all trials have in common: results with another of these are not comparable
        "format": FORMAT,
        "dataset": {"name": data.name, "fingerprint": data.fingerprint},
        "method": kind.name,
        "version": kind.version,
        "space": {"name": space, **in_words(searched)},
        "settings": checked.get_params({*searched, *NOT_COMPARED}),
        "prune_after": prune_after,
        **({} if goal.plain else {"goal": goal.as_json()}),
        "seed": seed,
    }
    plan = StudyPlan(
        folder=Path(folder),
        name=f"{kind.name}-{hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]}",
        method=METHODS.address(kind.name),
        fixed=unsearched,
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
    with _study_folder(plan, about), storage_errors(plan), closing(TrialStorage(plan)) as store:
        kept = sum(trial.state in TRAINED for trial in store.trials())
        team = _Team(Worker(plan, data, store, say), jobs)
        team.search()
        every = store.write()
        front = _front(every, goal)
        best, alone = front[0], len(goal.metrics) == 1
        if alone:
            write_file(plan.folder / BEST, best_toml(kind.name, unsearched | best.settings, best, plan.wanted), REMEDY)
        else:
            _write_front(plan, kind.name, front)
        count = 0 if not alone else seeds if kind.seeded else min(seeds, 1)
        return TuneResult(
            folder=plan.folder,
            dataset=data.name,
            method=kind.name,
            space=in_words(searched),
            fixed=fixed,
            trials=every,
            kept=kept,
            best=best,
            settings=unsearched | best.settings,
            runs=team.retrain(best, range(seed, seed + count)),
            importance=store.importance(),
            goal=goal,
            front=front,
        )


def chooses_strengths(kind: type[Method]) -> bool:
    """Whether strengths are chosen after training, so that recall@20 before says little of the finished model's."""
    return issubclass(kind, ChosenAfterwards)


def _checked_space(
    kind: type[Method], space: str, fixed: Mapping[str, object], values: Mapping[str, Sequence[object]]
) -> Space:
    if "seed" in fixed or "seed" in values:
        raise InputError("the random seed is neither fixed nor searched like a setting; give it with --seed")
    searched = search_space(kind, space, fixed, values)
    if not searched:
        fixed_all = "every setting of the search is fixed" if fixed else f"{kind.name} has no settings to search"
        raise InputError(f"there is nothing to tune: {fixed_all}; train it with dpaa train")
    if space == "paper" and (size(searched) or 0) > SMALL:
        raise InputError(f"the grid has more than {SMALL:,} points; try fewer values")
    return searched


# ---------------------------------------------------------------------- the folder


@contextmanager
def _study_folder(plan: StudyPlan, about: dict[str, Any]) -> Iterator[None]:
    """Hold the folder, new or of the same study; one that came to nothing is not left behind."""
    folder = plan.folder
    check_text(folder)
    if folder.is_file():
        raise InputError(f"{folder} is a file; choose another folder with --out")
    with ExitStack() as hold:
        hold.callback(remove_empty, [folder, *missing_folders(folder)])  # those that are not empty stay
        try:
            settled(folder).parent.mkdir(parents=True, exist_ok=True)
            hold.enter_context(locked(lock_of(settled(folder))))
            new = not folder.exists()
            folder.mkdir(exist_ok=True)
            if (folder / ABOUT).exists():
                _check_same(folder, about)
            elif any(not file.name.startswith(".") for file in folder.iterdir()):
                raise InputError(f"{folder} is not empty and holds no study; choose another folder with --out")
            else:
                write_file(folder / ABOUT, as_json(about), REMEDY)
        except OSError as error:
            raise InputError(f"cannot write {folder} ({reason(error)}); choose another folder with --out") from None
        try:
            yield
        except InputError:
            if new and not (folder / TRIAL_LINES).exists():  # written with the first result
                remove_folder(folder)
            raise


def _check_same(folder: Path, about: dict[str, Any]) -> None:
    before = read_json(folder / ABOUT, LARGE_JSON, "restore it or choose another folder with --out")
    if before.get("format") != FORMAT:
        raise InputError(
            f"{folder} holds a study of another version of dpaa, which cannot be resumed; its trials.jsonl, best.toml "
            "and runs stay usable: start again in another folder with --out"
        )
    for name, value in about.items():
        was = before.get(name)
        if was == value:
            continue
        pairs = [("", was, value)]
        if isinstance(was, dict) and isinstance(value, dict):
            pairs = [(f"{key} ", was.get(key), value.get(key)) for key in was | value if was.get(key) != value.get(key)]
        differences = ", ".join(f"{key}{old!r}, not {new!r}" for key, old, new in pairs)
        raise InputError(
            f"{folder} holds a study with another {name} ({differences}); "
            "choose another folder with --out, or repeat the earlier call to resume it"
        )


def _front(trials: Sequence[Trial], goal: TuningGoal) -> list[Trial]:
    front = goal.front(trials)
    if not front:
        why = next((trial.diverged for trial in trials if trial.diverged), "none was trained to its end")
        raise InputError(f"no trial came to a result: {why}")
    return front


def _write_front(plan: StudyPlan, method: str, front: Sequence[Trial]) -> None:
    """One file of hyperparameters for each trial that is not dominated; those of earlier calls that are go."""
    home = own_folder(check_within(plan.folder / FRONT, plan.folder), REMEDY)
    names = [f"trial-{trial.number}.toml" for trial in front]
    for name, trial in zip(names, front, strict=True):
        content = best_toml(method, plan.fixed | trial.settings, trial, plan.wanted, f"{FRONT}/{name}")
        write_file(home / name, content, REMEDY)
    for left in home.glob("trial-*.toml"):
        if left.name not in names and left.is_file() and trials_behind(left):  # a file of the user's stays
            left.unlink(missing_ok=True)


# ---------------------------------------------------------------------- the work


@dataclass(frozen=True)
class _Team:
    """One worker in this process, or a pool of them."""

    worker: Worker
    jobs: int

    def search(self) -> None:
        """Try hyperparameters until there are as many as wanted; if a worker is killed, start again."""
        plan, store, say = self.worker.plan, self.worker.storage, self.worker.say
        waiting = False
        while True:
            store.requeue_lost(alone=plan.storage is None)  # nobody else has the folder, and no worker is alive
            done, running = map(len, store.taken())
            if done >= plan.wanted:
                return
            if done + running >= plan.wanted:  # another call, which shares the storage, trains the last ones
                if not waiting:
                    say(f"waiting for {counted(running, 'trial', 'trials')} of another process")
                waiting = True
                time.sleep(POLL_SECONDS)
                continue
            before = len(store.trials())
            try:
                for number in self._trials(plan.wanted - done - running):
                    say(_progress(plan, store.write(), number))
            except KilledWorkerError:
                if len(store.trials()) == before:
                    raise InputError(
                        "workers are killed before they can train; give them more memory or use fewer --jobs"
                    ) from None
                say("a worker was killed; what it trained is tried again")

    def _trials(self, missing: int) -> Iterator[int]:
        jobs = min(self.jobs, missing)
        if jobs == 1:
            while (number := self.worker.next_trial()) is not None:
                yield number
            return
        self.worker.prepare()
        for _, trained in in_pool(next_trial, [(self.worker.plan, self._dataset())] * missing, jobs):
            if trained is not None:
                yield trained

    def retrain(self, best: Trial, seeds: Sequence[int]) -> list[Retrained]:
        """Train the best hyperparameters with each seed."""
        worker, goal = self.worker, self.worker.plan.goal
        folders = {seed: worker.plan.run_folder(best.number, seed) for seed in seeds}
        missing = [seed for seed in seeds if not RunFolder(folders[seed]).finished]
        if min(self.jobs, len(missing)) > 1:
            calls = [(worker.plan, self._dataset(), best.settings, best.number, seed) for seed in missing]
            list(in_pool(retrain, calls, min(self.jobs, len(missing))))
        runs = []
        for seed, folder in folders.items():
            worker.retrain(best.settings, best.number, seed)
            metrics = goal.measure(load(folder).method, worker.data)
            if seed in missing:
                worker.say(f"seed {seed}: validation {_values(metrics)}, kept in {folder}")
            runs.append(Retrained(seed, folder, metrics[goal.metrics[0]], metrics))
        return runs

    def _dataset(self) -> Path:
        """Where other processes read the dataset."""
        data, home = self.worker.data, self.worker.plan.folder
        if data.path:
            return data.path.resolve()
        copy = check_within(home / "data", home)
        if not copy.exists():
            data.write(copy)
        return copy


def _progress(plan: StudyPlan, trials: Sequence[Trial], number: int) -> str:
    """A line about a trial that has ended."""
    trial = next(one for one in trials if one.number == number)
    if trial.seconds is None:
        return f"trial {number} was given up for lost by another process, which has its settings now"
    done, front = sum(one.state in TRAINED for one in trials), plan.goal.front(trials)
    result = "" if trial.value is None else f" with {_values(trial.metrics or {MONITOR: trial.value})}"
    epochs = f"{len(trial.curve)} epochs, " if trial.curve else ""
    settings = " ".join(f"{name}={value}" for name, value in trial.settings.items())
    best = ""
    if front:
        one = f"best so far {front[0].metrics[plan.goal.metrics[0]]:.4f}"
        best = f", {one}" if len(front) == 1 else f", {len(front)} not dominated"
    return (
        f"{done} of {plan.wanted}: trial {number} {trial.state}{result} ({epochs}{trial.seconds:.1f} s; "
        f"{settings}){best}"
    )


def _values(metrics: Mapping[str, float]) -> str:
    return ", ".join(f"{key} {value:.4f}" for key, value in metrics.items())

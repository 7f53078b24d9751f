"""Settings chosen on validation: an Optuna study in a folder, shared by workers, resumed by calling again.

    study.json          what all trials have in common: dataset, method, space, fixed settings, seed
    study.sqlite        Optuna's storage (absent where another one is given)
    trials.jsonl        every trial: settings, validation curve, seconds, state
    best.toml           the best settings, for `dpaa train --config`
    pareto/             of two metrics instead: the settings of every trial that no other dominates
    runs/               the best settings trained over seeds
    pretrained-…/       the model that methods such as DPAA start from, one per seed

A trial's value is the validation recall@20 (or another metric, `goal.py`) of the finished model: of the best epoch, and
with the strengths that methods such as PPAC choose after training.  The test split is never opened.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, need_whole, reason
from dpaa.evaluation.evaluator import Evaluator
from dpaa.files import (
    LARGE_JSON,
    as_json,
    check_text,
    check_within,
    locked,
    missing_folders,
    own_folder,
    read_json,
    remove_empty,
    remove_folder,
    write_file,
)
from dpaa.methods import METHODS, find_method
from dpaa.methods.base import Method
from dpaa.methods.settings import PAPER_TRAINING, TrainedSettings, make_settings
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import load
from dpaa.tuning.goal import RECALL, TuningGoal
from dpaa.tuning.locks import LOCK, check_storage
from dpaa.tuning.space import SMALL, Space, first_point, in_words, search_space, size
from dpaa.tuning.storage import on_postgresql, without_secrets
from dpaa.tuning.study import STORAGE, TRIAL_LINES, Study, TrialStore, storage_in_words
from dpaa.tuning.trial import TRAINED, Trial, best_toml, trials_behind
from dpaa.tuning.worker import Stage, Worker, WorkOrder, in_processes
from dpaa.words import counted

ABOUT, BEST, FRONT = "study.json", "best.toml", "pareto"
FORMAT = 1
TRIALS = 30
"""Different settings a wide search tries: the same number for every method."""
POLL_SECONDS = 2.0
NOT_COMPARED = ("seed", "threads", "device")
"""Settings that are told apart elsewhere, or change no result."""
REMEDY = "make room or choose another folder with --out"


@dataclass(frozen=True)
class Retrained:
    """The best settings with one seed."""

    seed: int
    folder: Path
    valid_recall: float
    """What was searched for, recall@20 unless another metric is named."""
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TuneResult:
    """What a study has found."""

    folder: Path
    dataset: str
    method: str
    space: dict[str, str]
    """Setting → what was tried, in words."""
    fixed: dict[str, Any]
    """Settings that were given and not searched."""
    trials: list[Trial]
    kept: int
    """Those among them that earlier calls had trained."""
    best: Trial
    """Of two metrics, the one that is best in the first."""
    settings: dict[str, Any]
    """The best settings, fixed ones included; without the seed."""
    runs: list[Retrained] = field(default_factory=list)
    importance: dict[str, float] | None = None
    """Share of each setting in what sets good trials apart; None where there are too few."""
    goal: TuningGoal = RECALL
    """What was searched for."""
    front: list[Trial] = field(default_factory=list)
    """Trials that no other beats in one metric without losing in the other; of one metric, the best alone."""

    @property
    def seconds(self) -> float:
        """Spent in trials, by all workers together."""
        return sum(trial.seconds or 0.0 for trial in self.trials)

    def as_json(self) -> dict[str, Any]:
        """For machines; the curves are in `trials.jsonl`."""
        trials = [asdict(trial) for trial in self.trials]
        for trial in trials:
            trial["epochs"] = len(trial.pop("curve"))
        runs = [
            {"seed": run.seed, "folder": str(run.folder)} | {f"valid_{key}": one for key, one in run.metrics.items()}
            for run in self.runs
        ]
        found = {f"valid_{key}": value for key, value in self.best.metrics.items()}
        return {
            "study": str(self.folder),
            **{name: getattr(self, name) for name in ("dataset", "method", "space", "fixed")},
            **({} if self.goal.plain else {"goal": self.goal.as_json()}),
            "best": {"trial": self.best.number, **found, "settings": self.settings},
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
    """Search the settings of a method on validation, and train the best over seeds.

    An existing study is resumed, and gets more trials where more are asked for; calls at the same time share the work.

    `space`: `wide` (ranges, searched by TPE), `lists` (listed values, exact zeros among them, searched by TPE) or
    `paper` (the paper's grids, point by point).  `trials`: different settings to try, 30 in the first two, all of a
    grid.  `values`: setting → values to try, in place of those of the
    space.  `settings`: fixed ones.  `defaults`: in place of the method's own; the paper's grids come with its way of
    training (`PAPER_TRAINING`).  `prune_after`: epochs before a trial that is worse than the median of those
    with about its learning rate may be stopped, 0 for never (nor where a method chooses strengths after training).
    `seed`: of the search and its trainings; the best is trained with `seed`, `seed + 1`, …

    `metric`: what is searched for on validation, by the keys of `evaluate` (recall@20 without it); with two, all trials
    are kept that no other dominates, and none is trained again.  `most_loss` ("ndcg@20=2%"): what may be lost of other
    metrics, next to the best that any trial has.  Early stopping looks at recall@20 all the same, and only where that
    alone is searched for are trials pruned.
    """
    kind, goal = find_method(method), TuningGoal.parse(metric, most_loss)
    if defaults is None:
        defaults = PAPER_TRAINING if space == "paper" and issubclass(kind.settings_type, TrainedSettings) else {}
    checked = make_settings(kind.settings_type, {**defaults, **(settings or {})}, kind.name)
    fixed = {name: getattr(checked, name) for name in settings or {}}  # as values, where text was given
    searched = _checked_space(kind, space, fixed, values or {})
    beneath = {name: value for name, value in defaults.items() if name not in fixed}
    least = {"trials": 1, "jobs": 1, "seeds": 0, "prune_after": 0, "seed": 0}
    given = {"trials": trials, "jobs": jobs, "seeds": seeds, "prune_after": prune_after, "seed": seed}
    for name, number in given.items():
        if number is not None:
            need_whole(number, name, least[name])
    if not len(data.valid):
        raise InputError(
            f"the validation split of {data.name} is empty, and settings are chosen on it; "
            "make a dataset with one, such as dpaa data log FILE --valid 0.1"
        )
    Evaluator(data, 20, "valid", "drop")  # refuses a split of which nothing is left
    if not goal.plain or chooses_strengths(kind):
        prune_after = 0  # a trial in the making is known by its recall@20 alone, before any strength is chosen
    if storage is not None:
        check_storage(storage)
    every = size(searched)
    wanted = trials or (every if space == "paper" and every else TRIALS)
    common = checked.model_dump(mode="json", exclude={*searched, *NOT_COMPARED})
    about = {  # what all trials have in common: results with another of these are not comparable
        "format": FORMAT,
        "dataset": {"name": data.name, "fingerprint": data.fingerprint},
        "method": kind.name,
        "version": kind.version,
        "space": {"name": space, **in_words(searched)},
        "settings": common,
        "prune_after": prune_after,
        **({} if goal.plain else {"goal": goal.as_json()}),
        "seed": seed,
        "storage": STORAGE if storage is None else without_secrets(storage),
    }
    shared = storage is not None and on_postgresql(storage)
    named = {key: value for key, value in about.items() if not shared or key != "storage"}  # hosts may write it unalike
    study = Study(
        folder=Path(folder),
        name=f"{kind.name}-{hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:12]}",
        space=searched,
        first=first_point(checked, searched),
        listed=space == "paper",
        seed=seed,
        prune_after=prune_after,
        storage=storage,
        call=uuid.uuid4().hex,
        goal=goal,
    )
    order = WorkOrder(study, METHODS.address(kind.name), beneath | fixed, wanted=min(wanted, every or wanted))
    with _begun(study, about), storage_in_words(study), closing(TrialStore(study)) as store:
        team = _Team(data, jobs, say, store)
        kept = sum(trial.state in TRAINED for trial in store.trials())
        team.search(order)
        front = _front(store.write(), goal)
        best = front[0]
        alone = len(goal.metrics) == 1
        numbers = range(seed, seed + (0 if not alone else seeds if kind.seeded else min(seeds, 1)))
        order = replace(order, best=best.settings, best_number=best.number, seeds=tuple(numbers))
        chosen = beneath | fixed | best.settings
        if alone:
            write_file(study.folder / BEST, best_toml(kind.name, chosen, best, order.wanted), REMEDY)
        else:
            _write_front(study.folder, kind.name, beneath | fixed, front, order.wanted)
        return TuneResult(
            folder=study.folder,
            dataset=data.name,
            method=kind.name,
            space=in_words(searched),
            fixed=fixed,
            trials=store.write(),
            kept=kept,
            best=best,
            settings=chosen,
            runs=team.retrain(order),
            importance=store.importance(),
            goal=goal,
            front=front,
        )


def chooses_strengths(kind: type[Method]) -> bool:
    """Whether strengths are chosen after training, so that recall@20 on the way says little of the finished model's."""
    return kind.tune is not Method.tune


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
def _begun(study: Study, about: dict[str, Any]) -> Iterator[None]:
    """The folder with `study.json`: new, or that of the same study.  What came to nothing is not left behind."""
    folder = study.folder
    check_text(folder)
    made = [folder, *missing_folders(folder)] if not folder.exists() else []
    if folder.is_file():
        raise InputError(f"{folder} is a file; choose another folder with --out")
    if not made and not (folder / ABOUT).exists() and any(not file.name.startswith(".") for file in folder.iterdir()):
        raise InputError(f"{folder} is not empty and holds no study; choose another folder with --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / LOCK, wait=True):
            if (folder / ABOUT).exists():
                _check_same(folder, about)
            else:
                write_file(folder / ABOUT, as_json(about), REMEDY)
    except OSError as error:
        remove_empty(made)
        raise InputError(f"cannot write {folder} ({reason(error)}); choose another folder with --out") from None
    except InputError:
        remove_empty(made)
        raise
    try:
        yield
    except InputError:
        if made:
            _rollback(study, made)
        raise


def _rollback(study: Study, made: Sequence[Path]) -> None:
    """Remove what this call has made, unless a trial came to a result or another call is at work."""
    try:
        with storage_in_words(study), closing(TrialStore(study)) as store:
            nothing = store.counts() == (0, 0)
            if nothing and not (study.storage and on_postgresql(study.storage)):  # there, another host may just begin
                store.forget()
    except InputError:  # no room even for that: nothing was trained if nothing was written
        nothing = not (study.folder / TRIAL_LINES).exists()
    if nothing:
        remove_folder(study.folder)
        remove_empty(made[1:])


def _check_same(folder: Path, about: dict[str, Any]) -> None:
    found = read_json(folder / ABOUT, LARGE_JSON, "restore it or choose another folder with --out")
    for name, value in about.items():
        was = found.get(name)
        if was == value:
            continue
        pairs = [("", was, value)]
        if isinstance(was, dict) and isinstance(value, dict):
            pairs = [(f"{key} ", was.get(key), value.get(key)) for key in was | value if was.get(key) != value.get(key)]
        told = ", ".join(f"{key}{before!r}, not {now!r}" for key, before, now in pairs)
        raise InputError(
            f"{folder} holds a study with another {name} ({told}); "
            "choose another folder with --out, or repeat the earlier call to resume it"
        )


# ---------------------------------------------------------------------- the work


@dataclass(frozen=True)
class _Team:
    """One worker here, or several processes."""

    data: Dataset
    jobs: int
    say: Callable[[str], None]
    store: TrialStore

    def search(self, order: WorkOrder) -> None:
        """Try settings until there are as many as wanted; workers that die are followed by others."""
        waiting = False
        while (state := self.store.counts())[0] < order.wanted:
            known, running = state
            if known + running >= order.wanted:  # another call, which shares the storage, is at the last ones
                if not waiting:
                    self.say(f"waiting for {counted(running, 'trial', 'trials')} of another process")
                waiting = True
                time.sleep(POLL_SECONDS)
                continue
            before = len(self.store.trials())
            died = self._work("search", order, order.wanted - known - running)
            if died:
                self.say(f"{counted(died, 'worker was', 'workers were')} killed; their settings are tried again")
            if died and len(self.store.trials()) == before:
                raise InputError("workers are killed before they can train; give them more memory or use fewer --jobs")

    def retrain(self, order: WorkOrder) -> list[Retrained]:
        """Train the best settings over seeds."""
        for seed in order.seeds:
            order.tidy_run(seed)
        self._work("retrain", order, sum(not RunFolder(order.run_folder(seed)).finished for seed in order.seeds))
        runs = []
        for seed in order.seeds:  # again here, for what a worker that was killed, or another call, has left
            Worker(order, self.data, self.say).retrain_one(seed)
            model = load(order.run_folder(seed))
            found = order.study.goal.measure(model.method, self.data)
            runs.append(Retrained(seed, order.run_folder(seed), found[order.study.goal.metrics[0]], found))
        return runs

    def _work(self, stage: Stage, order: WorkOrder, most: int) -> int:
        """Returns how many workers died."""
        jobs = min(self.jobs, most)
        if jobs > 1:
            home = order.study.folder
            place = self.data.path.resolve() if self.data.path else check_within(home / "data", home)
            if not place.exists():  # other processes read it
                self.data.write(place)
            return in_processes(stage, order, place, jobs, self.say)
        worker = Worker(order, self.data, self.say)
        worker.search(self.store) if stage == "search" else worker.retrain()
        return 0


def _front(trials: Sequence[Trial], goal: TuningGoal) -> list[Trial]:
    found = goal.front(trials)
    if not found:
        reason = next((trial.diverged for trial in trials if trial.diverged), "none was trained to its end")
        raise InputError(f"no trial came to a result: {reason}")
    return found


def _write_front(folder: Path, method: str, fixed: dict[str, Any], front: Sequence[Trial], tried: int) -> None:
    """One file of settings for each trial that is not dominated; those of earlier calls that are go."""
    home = check_within(folder / FRONT, folder)
    own_folder(home, REMEDY)
    names = [f"trial-{trial.number}.toml" for trial in front]
    for name, trial in zip(names, front, strict=True):
        write_file(home / name, best_toml(method, fixed | trial.settings, trial, tried, f"{FRONT}/{name}"), REMEDY)
    for left in home.glob("trial-*.toml"):
        if left.name not in names and left.is_file() and trials_behind(left):  # a file of the user's stays
            left.unlink(missing_ok=True)

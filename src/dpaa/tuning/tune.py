"""Settings chosen on validation: an Optuna study in a folder, shared by workers, resumed by calling again.

    study.json          what all trials have in common: dataset, method, space, fixed settings, seed
    study.sqlite        Optuna's storage (absent where another one is given)
    trials.jsonl        every trial: settings, validation curve, seconds, state
    best.toml           the best settings, for `dpaa train --config`
    runs/               the best settings trained over seeds
    pretrained-…/       the model that methods such as DPAA start from, one per seed

A trial's value is the validation recall@20 of the finished model: of the best epoch, and with the strengths that
methods such as PPAC choose after training.  The test split is never opened.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError, reason
from dpaa.evaluation.evaluator import Evaluator
from dpaa.files import (
    LARGE_JSON,
    as_json,
    check_text,
    check_within,
    locked,
    missing_folders,
    read_bytes,
    read_json,
    remove_empty,
    remove_folder,
    write_file,
)
from dpaa.methods import find_method
from dpaa.methods.base import Method
from dpaa.methods.settings import make_settings
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import load
from dpaa.tuning.processes import Stage, in_processes
from dpaa.tuning.space import SMALL, Space, defaults, in_words, search_space, size
from dpaa.tuning.storage import check_storage, import_optuna, without_secrets
from dpaa.tuning.study import (
    LOCK,
    STORAGE,
    TRAINED,
    TRIAL_LINES,
    Study,
    Trial,
    TrialStore,
    storage_in_words,
)
from dpaa.tuning.work import Order, Worker
from dpaa.words import counted

ABOUT, BEST = "study.json", "best.toml"
FORMAT = 1
TRIALS = 30
"""Different settings a wide search tries: the same number for every method."""
POLL_SECONDS = 2.0
NOT_COMPARED = ("seed", "threads", "device")
"""Settings that are told apart elsewhere, or change no result."""


@dataclass(frozen=True)
class Retrained:
    """The best settings with one seed."""

    seed: int
    folder: Path
    valid_recall: float


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
    settings: dict[str, Any]
    """The best settings, fixed ones included; without the seed."""
    runs: list[Retrained] = field(default_factory=list)
    importance: dict[str, float] | None = None
    """Share of each setting in what sets good trials apart; None where there are too few."""

    @property
    def seconds(self) -> float:
        """Spent in trials, by all workers together."""
        return sum(trial.seconds or 0.0 for trial in self.trials)

    def as_json(self) -> dict[str, Any]:
        """For machines; the curves are in `trials.jsonl`."""
        trials = [asdict(trial) for trial in self.trials]
        for trial in trials:
            trial["epochs"] = len(trial.pop("curve"))
        return {
            "study": str(self.folder),
            "dataset": self.dataset,
            "method": self.method,
            "space": self.space,
            "fixed": self.fixed,
            "best": {"trial": self.best.number, "valid_recall@20": self.best.value, "settings": self.settings},
            "runs": [
                {"seed": run.seed, "folder": str(run.folder), "valid_recall@20": run.valid_recall} for run in self.runs
            ],
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
    prune_after: int = 30,
    seed: int = 0,
    say: Callable[[str], None] = lambda _line: None,
) -> TuneResult:
    """Search the settings of a method on validation, and train the best over seeds.

    The same call again goes on where it was stopped, and adds trials where more are asked for; calls at the same time
    share the work.

    `space`: `wide` (ranges, searched by TPE) or `paper` (the paper's grids, point by point).  `trials`: different
    settings to try, 30 in the wide space, all of a grid.  `values`: setting → values to try, in place of those of the
    space.  `settings`: fixed ones.  `prune_after`: epochs before a trial that is worse than the median may be stopped,
    0 for never.  `seed`: of the search and its trainings; the best is trained with `seed`, `seed + 1`, …
    """
    kind = find_method(method)
    checked = make_settings(kind.settings_type, settings or {}, kind.name)
    fixed = {name: getattr(checked, name) for name in settings or {}}  # as values, where text was given
    searched = _checked_space(kind, space, fixed, values or {})
    _check_numbers(trials=trials, jobs=jobs, seeds=seeds, prune_after=prune_after, seed=seed)
    _check_validation(data)
    import_optuna()
    if storage is not None:
        check_storage(storage)
    every = size(searched)
    wanted = trials or (every if space == "paper" and every else TRIALS)
    about = _about(data, kind, space, fixed, searched, storage, prune_after, seed)
    study = Study(
        folder=Path(folder),
        name=f"{kind.name}-{hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]}",
        space=searched,
        first=defaults(kind, searched),
        listed=space == "paper",
        seed=seed,
        prune_after=prune_after,
        storage=storage,
        call=uuid.uuid4().hex,
    )
    order = Order(study, kind.name, fixed, wanted=min(wanted, every or wanted))
    with _begun(study, about), storage_in_words(study), closing(TrialStore(study)) as store:
        work = _Work(data, jobs, say, store)
        kept = sum(trial.state in TRAINED for trial in store.trials())
        _search(order, work)
        best = _best(store.write())
        numbers = range(seed, seed + (seeds if kind.seeded else min(seeds, 1)))
        order = replace(order, best=best.settings, best_number=best.number, seeds=tuple(numbers))
        chosen = fixed | best.settings
        _write(study.folder / BEST, _as_toml(kind.name, chosen, best, order.wanted))
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
            runs=_retrain(order, work),
            importance=store.importance(),
        )


# ---------------------------------------------------------------------- before anything is written


def _checked_space(
    kind: type[Method], space: str, fixed: Mapping[str, object], values: Mapping[str, Sequence[object]]
) -> Space:
    if kind.chooses_settings:
        raise InputError(f"{kind.name} chooses its settings itself, on validation; train it with dpaa train")
    if "seed" in fixed or "seed" in values:
        raise InputError("the seed is no setting to fix or search; give it with --seed")
    searched = search_space(kind, space, fixed, values)
    if not searched:
        fixed_all = "every setting of the search is fixed" if fixed else f"{kind.name} has no settings to search"
        raise InputError(f"there is nothing to tune: {fixed_all}; train it with dpaa train")
    if space == "paper" and (size(searched) or 0) > SMALL:
        raise InputError(f"the grid has more than {SMALL:,} points; try fewer values")
    return searched


def _check_numbers(**numbers: int | None) -> None:
    least = {"trials": 1, "jobs": 1, "seeds": 0, "prune_after": 0, "seed": 0}
    for name, number in numbers.items():
        if number is not None and number < least[name]:
            raise InputError(f"{name} must be at least {least[name]}, got {number}")


def _check_validation(data: Dataset) -> None:
    if not len(data.valid):
        raise InputError(
            f"the validation split of {data.name} is empty, and settings are chosen on it; "
            "make a dataset with one, such as dpaa data log FILE --valid 0.1"
        )
    Evaluator(data, 20, "valid", "drop")  # refuses a split of which nothing is left


def _about(
    data: Dataset,
    kind: type[Method],
    space: str,
    fixed: Mapping[str, object],
    searched: Space,
    storage: str | None,
    prune_after: int,
    seed: int,
) -> dict[str, Any]:
    """What all trials have in common: results with another of these are not comparable."""
    settings = make_settings(kind.settings_type, fixed, kind.name).model_dump(mode="json")
    return {
        "format": FORMAT,
        "dataset": {"name": data.name, "fingerprint": data.fingerprint},
        "method": kind.name,
        "version": kind.version,
        "space": {"name": space, **in_words(searched)},
        "settings": {
            name: value for name, value in settings.items() if name not in searched and name not in NOT_COMPARED
        },
        "prune_after": prune_after,
        "seed": seed,
        "storage": STORAGE if storage is None else without_secrets(storage),
    }


@contextmanager
def _begun(study: Study, about: dict[str, Any]) -> Iterator[None]:
    """The folder with `study.json`: new, or that of the same study.  What came to nothing is not left behind."""
    folder = study.folder
    check_text(folder)
    made = [folder, *missing_folders(folder)] if not folder.exists() else []
    if folder.is_file():
        raise InputError(f"{folder} is a file; choose another folder with --out")
    if not made and not (folder / ABOUT).exists() and any(not file.name.startswith(".") for file in folder.iterdir()):
        raise InputError(f"{folder} holds something else than a study; choose another folder with --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / LOCK, wait=True):
            if (folder / ABOUT).exists():
                _check_same(folder, about)
            else:
                _write(folder / ABOUT, as_json(about))
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
            if nothing:
                store.forget()
    except InputError:  # no room even for that: nothing was trained if nothing was written
        nothing = not (study.folder / TRIAL_LINES).exists()
    if nothing:
        remove_folder(study.folder)
        remove_empty(made[1:])


def _check_same(folder: Path, about: dict[str, Any]) -> None:
    file = folder / ABOUT
    found = read_json(file, LARGE_JSON, "restore it or choose another folder with --out")
    for name, value in about.items():
        if found.get(name) != value:
            raise InputError(
                f"{folder} holds a study with another {name} ({_difference(found.get(name), value)}); "
                "choose another folder with --out, or call as before to go on"
            )


def _difference(found: Any, wanted: Any) -> str:
    if isinstance(found, dict) and isinstance(wanted, dict):
        names = [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]
        return ", ".join(f"{name} {found.get(name)!r}, not {wanted.get(name)!r}" for name in names)
    return f"{found!r}, not {wanted!r}"


# ---------------------------------------------------------------------- the work


@dataclass(frozen=True)
class _Work:
    """On what, by how many, and who listens."""

    data: Dataset
    jobs: int
    say: Callable[[str], None]
    store: TrialStore

    def do(self, stage: Stage, order: Order, most: int) -> int:
        """A stage, by one worker here or by several processes.  Returns how many of them died."""
        jobs = min(self.jobs, most)
        if jobs > 1:
            return in_processes(stage, order, self._place(order.study.folder), jobs, self.say)
        worker = Worker(order, self.data, self.say)
        worker.search(self.store) if stage == "search" else worker.retrain()
        return 0

    def _place(self, folder: Path) -> Path:
        """Where other processes read the dataset."""
        if self.data.path is not None:
            return self.data.path.resolve()
        place = check_within(folder / "data", folder)
        if not place.exists():
            self.data.write(place)
        return place


def _search(order: Order, work: _Work) -> None:
    """Workers, until as many settings are tried as wanted; those that die are followed by others."""
    store, waiting = work.store, False
    while (state := store.counts())[0] < order.wanted:
        known, running = state
        if known + running >= order.wanted:  # another call, which shares the storage, is at the last ones
            if not waiting:
                work.say(f"waiting for {counted(running, 'trial', 'trials')} of another process")
            waiting = True
            time.sleep(POLL_SECONDS)
            continue
        before = len(store.trials())
        died = work.do("search", order, order.wanted - known - running)
        if died:
            work.say(f"{counted(died, 'worker was', 'workers were')} killed; their settings are tried again")
        if died and len(store.trials()) == before:
            raise InputError("workers are killed before they can train; give them more memory or use fewer --jobs")


def _best(trials: Sequence[Trial]) -> Trial:
    complete = [trial for trial in trials if trial.state == "complete"]
    if not complete:
        reason = next((trial.diverged for trial in trials if trial.diverged), "none was trained to its end")
        raise InputError(f"no trial came to a result: {reason}")
    return max(complete, key=lambda trial: (trial.value, -trial.number))


def _retrain(order: Order, work: _Work) -> list[Retrained]:
    left = [seed for seed in order.seeds if not RunFolder(order.run_folder(seed)).finished]
    work.do("retrain", order, len(left))
    runs = []
    for seed in order.seeds:
        folder = order.run_folder(seed)
        Worker(order, work.data, work.say).retrain_one(seed)  # what a worker that was killed, or another call, has left
        model = load(folder)
        recall = Evaluator(work.data, 20, "valid", "drop").recall_of(model.method)
        runs.append(Retrained(seed, folder, recall))
    return runs


def trials_behind(config: Path) -> int:
    """How many settings were tried to find those of a `best.toml`, wherever it was copied; 0 for any other file."""
    found = re.match(rb"# trial \d+ of (\d{1,9}),", read_bytes(config, 100, whole=False))
    return int(found[1]) if found else 0


def _as_toml(method: str, settings: Mapping[str, Any], best: Trial, tried: int) -> str:
    lines = [
        f"# trial {best.number} of {tried}, validation recall@20 {best.value:.6f}",
        "# dpaa train DATASET --config best.toml --out RUN",
        f'method = "{method}"',
        *(f"{name} = {json.dumps(value)}" for name, value in settings.items()),
    ]
    return "\n".join(lines) + "\n"


def _write(file: Path, text: str) -> None:
    write_file(file, text, "make room or choose another folder with --out")

"""Settings chosen on validation by `dpaa tune`, the same effort for every method; kept, so chosen only once."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dpaa.data.dataset import Dataset, read_dataset
from dpaa.errors import InputError
from dpaa.files import LARGE_JSON, as_json, check_within, read_json, write_file
from dpaa.methods import find_method
from dpaa.methods.settings import first_error
from dpaa.reproduction.budget import Tuning
from dpaa.reproduction.trainings import Runner
from dpaa.tuning.study import TRAINED


@dataclass(frozen=True)
class Chosen:
    """What a study found."""

    data: str
    method: str
    fingerprint: str
    settings: dict[str, Any]
    """Those that were tuned."""
    valid: float
    """Validation recall@20 of the best trial."""
    trials: int
    seconds: float
    """Of the call that ended the study; those of each trial are with it."""


def can_be_tuned(method: str) -> bool:
    """Whether it has settings to choose; `dpaa-auto` chooses its own, most-popular has none."""
    return bool(find_method(method).grid)


def chosen_settings(
    data: str, folder: Path, method: str, tuning: Tuning, fixed: dict[str, Any], runner: Runner
) -> Chosen:
    """The best settings on a dataset, from the file they are kept in or from a study."""
    dataset = read_dataset(folder)
    kind = find_method(method)
    known = {key: value for key, value in fixed.items() if key in kind.settings_type.model_fields}
    key = _key(dataset.fingerprint, kind.name, known, asdict(tuning))
    file = check_within(runner.results / "tuned", runner.results) / f"{key}.json"
    if file.exists():
        return _read(file, kind.name)
    runner.say(f"{data} {method}: settings are chosen on validation")
    began = time.monotonic()
    best = _study(runner.work / "tuned" / key, dataset, kind.name, tuning, known, runner)
    seconds = time.monotonic() - began
    found = Chosen(data, kind.name, dataset.fingerprint, best.settings, best.valid, best.trials, round(seconds, 1))
    runner.trained += best.trials - best.kept
    runner.seconds += seconds
    content = asdict(found) | {"fixed": known, "tuning": asdict(tuning), "tried": best.tried}
    write_file(file, as_json(content, indent=1), "make room and call again", make_folders=True)
    return found


@dataclass(frozen=True)
class _Best:
    settings: dict[str, Any]
    valid: float
    trials: int
    kept: int
    """Those among them that an earlier call had trained."""
    tried: list[dict[str, Any]]
    """Every trial: settings, validation recall, state, seconds."""


def _study(folder: Path, data: Dataset, method: str, tuning: Tuning, fixed: dict[str, Any], runner: Runner) -> _Best:
    """A study of `dpaa tune`; nothing is retrained there, the rows of the tables are."""
    from dpaa.tuning.tune import tune  # Optuna is an extra

    rates = tuning.learning_rates if "learning_rate" in find_method(method).settings_type.model_fields else None
    result = tune(
        folder,
        data,
        method,
        space=tuning.space,
        trials=tuning.trials,
        values={"learning_rate": rates} if rates else None,
        settings=fixed,
        seeds=0,
        jobs=runner.jobs,
        prune_after=tuning.prune_after,
        say=runner.say,
    )
    assert result.best.value is not None
    tried = [asdict(trial) for trial in result.trials]
    trained = sum(one["state"] in TRAINED for one in tried)
    return _Best(result.best.settings, result.best.value, trained, result.kept, tried)


def _key(fingerprint: str, method: str, fixed: Any, tuning: Any) -> str:
    """Names a choice: of which data, method and version, with which settings fixed and what effort."""
    text = json.dumps([fingerprint, method, find_method(method).version, fixed, tuning], sort_keys=True)
    return f"{method}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _read(file: Path, method: str) -> Chosen:
    """The choice, which must be the one that the file's name stands for."""
    content = read_json(file, LARGE_JSON, "remove it to tune again")
    try:
        found = TypeAdapter(Chosen).validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        said = first_error(error)
        raise InputError(f"{file} is not a readable choice of settings ({said}); remove it to tune again") from None
    made_for = _key(found.fingerprint, method, content.get("fixed"), content.get("tuning"))
    if found.method != method or made_for != file.stem:
        raise InputError(f"{file} was chosen for another dataset, method or budget; remove it to tune again")
    return found

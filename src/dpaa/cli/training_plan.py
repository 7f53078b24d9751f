"""Which method and settings a training has: those of the call, over those of a run that it goes on from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaa.errors import InputError
from dpaa.methods import find_method
from dpaa.methods.graph_method import EARLIER_DEFAULTS, PAPER_TRAINING, with_earlier_defaults
from dpaa.ranking.reranker import Reranker, stored_reranker
from dpaa.runs.fit import DEFAULT, like
from dpaa.runs.folder import CONFIG, RunFolder
from dpaa.runs.model import Model, load


@dataclass(frozen=True)
class TrainingPlan:
    """What is trained, and from where."""

    method: str
    settings: dict[str, Any]
    before: Model | None = None
    """The run it starts from."""
    reranker: Reranker | None = None
    """That of a finished run which is trained further."""


def plan_training(
    folder: Path,
    method: str | None,
    settings: dict[str, Any],
    warm_start: Path | None,
    resume: bool,
    overwrite: bool,
    finish: bool = False,
) -> TrainingPlan:
    """The call, completed from the run to be resumed, finished, trained further or started from."""
    before = None if warm_start is None else load(warm_start)
    if finish:
        if resume:
            raise InputError("--finish keeps the best epoch so far, --resume trains on; give one of them")
        return TrainingPlan(*_as_made(RunFolder.to_finish(folder, overwrite), method, settings), before)
    done = RunFolder(folder) if resume and not overwrite and RunFolder(folder).finished else None
    if done is not None:
        if before is not None:
            raise InputError(f"{folder} is finished and is trained further from itself; leave --warm-start out")
        return _further(done, method, settings)
    chosen = (DEFAULT if before is None else before.method.name) if method is None else str(method)
    if before is not None:
        settings = like(before, chosen, settings)[1]
    begun = RunFolder.to_resume(folder, overwrite) if resume else None
    if begun is not None:
        settings = _as_begun(begun, chosen, settings)
    return TrainingPlan(chosen, settings, before)


def _further(done: RunFolder, method: str | None, settings: dict[str, Any]) -> TrainingPlan:
    reranker = stored_reranker(done.read_manifest()[0].get("rerank"), done.path)
    return TrainingPlan(*_as_made(done, method, settings), None, reranker)


def _as_made(run: RunFolder, method: str | None, settings: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The run's method and settings, as far as the call names no others."""
    made_with = run.read_json(CONFIG)
    own = str(made_with.pop("method", DEFAULT))
    chosen = own if method is None else str(method)
    kind = find_method(chosen)
    if kind.name == own:
        settings = with_earlier_defaults(kind, made_with) | settings
    return chosen, settings


def _as_begun(begun: RunFolder, method: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The kernel that was chosen stays, and so do defaults of old."""
    made_with = begun.read_json(CONFIG)
    if made_with.get("kernel") is None or made_with.get("method") != find_method(method).name:
        return settings
    begun_with = ("kernel", *PAPER_TRAINING)  # it may have begun when defaults were others
    return EARLIER_DEFAULTS | {name: made_with[name] for name in begun_with if name in made_with} | settings

"""Run folders and recommendation files become the entries of a comparison."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from dpaa.comparison.chances import Chances, warnings
from dpaa.comparison.entry import Entry
from dpaa.comparison.result import Comparison
from dpaa.data.dataset import ABOUT_FILE, Dataset, read_dataset
from dpaa.errors import InputError
from dpaa.evaluation.dial_curve import BY_DEBIAS
from dpaa.evaluation.evaluator import Evaluation, Evaluator, Overlap
from dpaa.evaluation.recommendations import read_recommendations
from dpaa.files import as_json, settled, write_file
from dpaa.runs.folder import CONFIG, RunFolder, TrainedOn
from dpaa.runs.measure import measured
from dpaa.runs.model import load

NOT_SETTINGS = ("seed", "threads")
"""What runs of one entry may differ in: the seed, and what changes no bit."""


def read_entries(
    paths: Sequence[str | Path],
    dataset: str | Path | None = None,
    *,
    k: int = 20,
    overlap: Overlap = "drop",
    mask_valid: bool = False,
    group_by: str | None = None,
) -> tuple[Evaluator, list[Entry]]:
    """The test split all are measured on, and the entries in the order they were given.

    Runs of one method with the same settings and different seeds become one entry, named after the method; any other
    run is named after its folder, a file after itself.  Where a name would occur twice, whole paths are the names.
    """
    given = [_Given.of(Path(path)) for path in paths]
    _check(given)
    data = _dataset(given) if dataset is None else read_dataset(dataset)
    evaluator = Evaluator(data, k, "test", overlap, mask_valid, group_by)
    groups = _groups(given)
    names = _names(groups)
    entries = [_entry(name, group, evaluator) for name, group in zip(names, groups, strict=True)]
    chances = [[one.chances for one in group if one.chances] for group in groups]
    told = warnings(list(zip(names, chances, strict=True)))
    return evaluator, [replace(entries[0], notes=tuple(told)), *entries[1:]]


@dataclass(frozen=True)
class _Given:
    """A path someone named: a run folder or a file."""

    path: Path
    is_run: bool
    method: str = ""
    seed: int = 0
    settings: str = ""
    """All but the seed, as text, the re-ranker, and the objective that the dial was chosen for afterwards."""
    trained_on: TrainedOn = field(default_factory=TrainedOn)
    finished: str = ""
    """When it was, as ISO text."""
    chances: Chances | None = None
    """What a run had to learn with."""

    @classmethod
    def of(cls, path: Path) -> _Given:
        if not path.exists():
            raise InputError(f"there is no run folder or recommendation file {path}; check the name")
        if not path.is_dir():
            return cls(path, is_run=False)
        if (path / ABOUT_FILE).exists():
            raise InputError(f"{path} is a dataset and not a run; name it with --dataset, and runs or files to compare")
        folder = RunFolder(path)
        (manifest, about), config = folder.read_manifest(), folder.read_json(CONFIG)
        settings = {key: value for key, value in config.items() if key not in NOT_SETTINGS}
        dial = manifest.get("dial")
        dial = dial if isinstance(dial, dict) else {}
        settings["dial chosen for"] = dial.get("chosen_for")
        if settings["dial chosen for"] == BY_DEBIAS:  # for one wish or another: what tells them apart is κ
            settings["dial"] = dial.get("kappa")
        settings["re-ranker"] = manifest.get("rerank")
        settings["dataset"] = about.dataset.fingerprint  # runs of different days are no seeds of one training
        seed = config.get("seed")
        return cls(
            path,
            is_run=True,
            method=str(config.get("method")),
            seed=seed if isinstance(seed, int) else 0,
            settings=json.dumps(settings, sort_keys=True),
            trained_on=about.dataset,
            finished=str(manifest.get("finished", "")),
            chances=Chances.of(config, manifest),
        )


def _check(given: Sequence[_Given]) -> None:
    """Two or more, none twice."""
    if len(given) < 2:
        raise InputError(f"there is nothing to compare {given[0].path} with; name at least two runs or files")
    places = Counter(settled(one.path) for one in given)
    twice = next((one.path for one in given if places[settled(one.path)] > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is named twice; name each run or file once")


def _dataset(given: Sequence[_Given]) -> Dataset:
    """That of the run that was trained last: the others may be of earlier states of its log."""
    runs = [one for one in given if one.is_run]
    if not runs:
        raise InputError(
            f"{given[0].path} does not say what it should have recommended; name the dataset with --dataset"
        )
    run = max(reversed(runs), key=lambda one: one.finished)
    return run.trained_on.read(run.path)


def _groups(given: Sequence[_Given]) -> list[list[_Given]]:
    """Runs that differ in their seed alone together, everything else alone, in order of first appearance.

    Where two of them have the same seed too they are no independent trainings, and all stay alone.
    """
    alike: dict[object, list[_Given]] = {}
    for one in given:
        alike.setdefault(one.settings if one.is_run else one.path, []).append(one)
    groups: dict[object, list[_Given]] = {}
    for key, group in alike.items():
        distinct = len({one.seed for one in group}) == len(group)
        for one in group:
            groups.setdefault(key if distinct else one.path, []).append(one)
    return sorted(groups.values(), key=lambda group: given.index(group[0]))


def _names(groups: Sequence[Sequence[_Given]]) -> list[str]:
    last = [group[0].path.name or settled(group[0].path).name for group in groups]
    short = [group[0].method if len(group) > 1 else name for group, name in zip(groups, last, strict=True)]
    times = Counter(short)
    return [
        name if times[name] == 1 else " + ".join(str(one.path) for one in group)
        for name, group in zip(short, groups, strict=True)
    ]


def _entry(name: str, group: Sequence[_Given], evaluator: Evaluator) -> Entry:
    return Entry(
        name=name,
        kind="run" if group[0].is_run else "file",
        sources=tuple(str(one.path) for one in group),
        evaluations=tuple(_evaluation(one, evaluator) for one in group),
        seeds=tuple(one.seed for one in group if one.is_run),
    )


def _evaluation(one: _Given, evaluator: Evaluator) -> Evaluation:
    data = evaluator.dataset
    if one.is_run:
        found = measured(load(one.path), evaluator)
        kappa, reranker = found.protocol.popularity_dial, found.protocol.rerank
        notes = [f"popularity dial at κ = {kappa:g}"] if kappa else []
        notes += [] if reranker is None else [f"re-ranked by {reranker}"]
        kept = (f"{one.path}: {note}, as the run keeps it" for note in notes)
        found = replace(found, notes=(*found.notes, *kept))
    else:
        k = evaluator.protocol.k[-1]
        found = evaluator.evaluate_recommendations(read_recommendations(one.path, data.user_ids, data.item_ids, k))
    return replace(found, lists=found.lists.astype(np.int32))


def write_comparison(found: Comparison, file: Path) -> None:
    """Write the JSON of a comparison; the file appears whole or not at all."""
    write_file(file, as_json(found.as_json()), "make room or choose another place with --out")

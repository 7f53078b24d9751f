"""The field's benchmark table: published numbers on standard splits, ours beside them (`field.toml` has the rows).

Protocol.  A tenth of every user's training pairs is held out; early stopping on them chooses the number of epochs.  The
method is then fitted on all training pairs for that many epochs, and the test split is opened once.  Rows without
`refit` are tested as their authors do it: the model that chose, which the held-out pairs are new to.
"""

import resource
import subprocess
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import BaseModel, ConfigDict, NonNegativeInt

import dpaa
from dpaa._io import LARGE_JSON, append_line, locked, own_folder, read_text, remove_folder
from dpaa._text import json_text, parse_json
from dpaa.data.dataset import Dataset, from_files
from dpaa.data.pairs import Pairs
from dpaa.data.splits import SplitRule
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.reproduction._tables import Cell, Chapter, Table
from dpaa.runs.fit import Callbacks, fit_into, make_method
from dpaa.runs.model import Model
from dpaa.training.trainer import EpochReport

METRICS = ("recall@20", "ndcg@20", "hit@20", "recall@20/popular", "recall@20/niche", "coverage@20", "arp@20")
HELD_OUT = SplitRule("random", valid=0.1, test=0.0)
WITHIN = (0.02, 0.05)
"""Relative differences to the published number that the table counts."""
REMEDY = "free some space and call again"


class FieldRow(BaseModel):
    """A method on a standard split, as published."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    data: str
    row: str
    """Its name in the table: a method may have several rows."""
    method: str
    hyperparameters: dict[str, Any] = {}
    """The authors', as far as they differ from our defaults."""
    published: dict[str, float] = {}
    """Metric → value; empty where nothing was published on this split."""
    refit: bool = True
    """Whether the tested model sees all training pairs, or held-out ones are new to it and compete with test pairs."""
    held_out_per_item: NonNegativeInt = 0
    """Held-out pairs of each item, as in a test that has as many of each; 0: a tenth of each user's pairs."""
    remark: str = ""
    """What to know of the row beside its numbers; shown below the table's heading."""


class _FieldResult(BaseModel):
    """What was measured for one row."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
    data: str
    row: str
    method: str
    hyperparameters: dict[str, Any]
    """All of them."""
    seed: NonNegativeInt
    chosen_epoch: int | None
    """On held-out training pairs; None for methods without epochs."""
    valid_recall: float | None
    refit: bool
    """Whether the final model saw all training pairs."""
    metrics: dict[str, float | None]
    processor_seconds: dict[str, float]
    """`choice` and `fit`."""
    memory_mb: float
    version: str
    commit: str | None


FIELD = tuple(
    FieldRow(data=data, **row)
    for data, rows in tomllib.loads(files(__package__).joinpath("field.toml").read_text(encoding="utf-8")).items()
    for row in rows
)


def preset(name: str) -> tuple[str, dict[str, Any]]:
    """Look up the authors' hyperparameters.

    Parameters
    ----------
    name : row and split, such as `LightGCN@gowalla`

    Returns
    -------
    the method and its hyperparameters
    """
    for row in FIELD:
        if name.lower() == f"{row.row}@{row.data}".lower():
            return row.method, dict(row.hyperparameters)
    known = ", ".join(f"{row.row}@{row.data}" for row in FIELD)
    raise InputError(f"there is no preset {name!r}; use one of {known}")


def read_results(file: Path) -> dict[tuple[str, str], _FieldResult]:
    """Read what was measured before.

    Parameters
    ----------
    file : a JSON object a line

    Returns
    -------
    split and row → the last result of it
    """
    lines = read_text(file, LARGE_JSON).splitlines() if file.exists() else []
    try:
        results = [_FieldResult.model_validate(parse_json(line)) for line in lines if line]
    except ValueError as error:
        raise InputError(
            f"{file} is not a file of results ({' '.join(str(error).split())[:150]}); restore it"
        ) from None
    return {(result.data, result.row): result for result in results}


def run_field(
    benchmarks: Path, results: Path, work: Path, rows: Sequence[FieldRow], callbacks: Callbacks
) -> Iterator[_FieldResult]:
    """Measure the rows that have no result yet; every result is kept as soon as it is there.

    Parameters
    ----------
    benchmarks : folder with a folder per split, of `train.txt` and `test.txt`
    results : file to which results are appended
    work : folder of unfinished trainings, from which the same call resumes
    rows : what to measure
    callbacks : of the trainings

    Returns
    -------
    new results
    """
    splits: dict[str, tuple[Dataset, Dataset]] = {}
    commit = _commit()  # of the code that is loaded: the checkout may move on while a row is trained
    for folder in (results.parent, work):
        own_folder(folder, REMEDY)
    for row in rows:
        if (row.data, row.row) in read_results(results):
            continue
        if row.data not in splits:
            splits = {row.data: _read_split(benchmarks / row.data, row.data)}  # one at a time: they are large
        with locked(work / f".{_folder_name(row)}.turn", wait=True):
            result = _measure(row, *splits[row.data], work, callbacks, commit)
            append_line(results, json_text(result.model_dump(), indent=None), REMEDY)
        yield result


def _read_split(folder: Path, name: str) -> tuple[Dataset, Dataset]:
    """The split with training pairs held out for validation, and the whole one with its test pairs."""
    missing = [file for file in ("train.txt", "test.txt") if not (folder / file).exists()]
    if missing:
        raise InputError(f"{folder} has no {missing[0]}; name the folder of the splits with --data benchmarks=DIR")
    whole = from_files(folder / "train.txt", test=folder / "test.txt", name=name)
    return Dataset.from_frame(whole.frame("train"), split=HELD_OUT, name=f"{name}-held-out"), whole


def _folder_name(row: FieldRow) -> str:
    return f"{row.data}-{row.row}".lower().replace(" ", "-").replace("@", "-at-").replace("+", "p")


def _measure(
    row: FieldRow, held_out: Dataset, whole: Dataset, work: Path, callbacks: Callbacks, commit: str | None
) -> _FieldResult:
    folder, epoch, valid, tested = work / _folder_name(row), None, None, whole
    if row.held_out_per_item:
        held_out = _balanced(whole, row.held_out_per_item, held_out.name)
    if not row.refit:
        train, valid_pairs = held_out.frame("train"), held_out.frame("valid")
        # Held-out pairs are of the validation split here, so that the test hides neither them nor the test
        # pairs.
        tested = Dataset.from_frame(train, valid=valid_pairs, test=whole.frame("test"), name=held_out.name)
        held_out = replace(tested, test=Pairs.of([], []))  # training cannot look at test
    folder.mkdir(parents=True, exist_ok=True)
    values, seconds = dict(row.hyperparameters), {"choice": 0.0}
    chosen = make_method(held_out, row.method, values)
    if isinstance(chosen, GraphMethod):
        model, seconds["choice"] = _fit(folder / "choice", held_out, chosen, callbacks)
        epoch, valid = (model.manifest["training"][name] for name in ("best_epoch", "best_valid_recall@20"))
        values["epochs"] = epoch
    if row.refit:
        method = make_method(whole, row.method, values)
        model, seconds["fit"] = _fit(folder / "final", whole, method, callbacks, keep_last=True)
    metrics = Evaluator(tested, 20, "test", "drop").evaluate(model.method).metrics
    remove_folder(folder)
    return _FieldResult(
        **row.model_dump(include={"data", "row", "method", "refit"}),
        hyperparameters=model.method.get_params({"threads", "device"}) | ({} if epoch is None else {"epochs": epoch}),
        seed=model.method.seed,
        chosen_epoch=epoch,
        valid_recall=valid,
        metrics={name: metrics[name] for name in METRICS},
        processor_seconds={name: round(value, 1) for name, value in seconds.items()},
        memory_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        version=dpaa.__version__,
        commit=commit,
    )


def _balanced(whole: Dataset, per_item: int, name: str) -> Dataset:
    """Hold out some training pairs of each item (a third of them at most), of users who keep others."""
    pairs = whole.frame("train").sample(fraction=1.0, shuffle=True, seed=0)
    of_item, remaining = pl.int_range(pl.len()).over("item_id"), pl.int_range(pl.len(), 0, -1).over("user_id")
    share = pl.min_horizontal(pl.lit(per_item), pl.len().over("item_id") // 3)
    drawn = pairs.select((of_item < share) & (remaining > 1)).to_series()  # every user keeps the last
    return Dataset.from_frame(pairs.filter(~drawn), valid=pairs.filter(drawn), name=name)


def _fit(folder: Path, data: Dataset, method: Method, callbacks: Callbacks, **how: Any) -> tuple[Model, float]:
    """Fit, or resume; with the processor seconds of all sittings."""
    clock, before = folder.with_suffix(".seconds"), time.process_time()

    def on_epoch(report: EpochReport) -> None:
        nonlocal before
        now = time.process_time()
        append_line(clock, f"{now - before:.3f}", REMEDY)
        before = now
        callbacks.on_epoch(report)

    own = replace(callbacks, on_epoch=on_epoch)
    model = fit_into(folder, data, method, resume=folder.exists(), callbacks=own, dial=False, **how)
    earlier = sum(map(float, read_text(clock, LARGE_JSON).split())) if clock.exists() else 0.0
    return model, earlier + time.process_time() - before


def _commit() -> str | None:
    """Commit of the checkout that this is, if it is one."""
    words = ["git", "-C", str(Path(dpaa.__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def field_chapter(rows: Sequence[FieldRow], results: dict[tuple[str, str], _FieldResult]) -> Chapter:
    """Show results beside the published numbers.

    Parameters
    ----------
    rows : of the table
    results : split and row → result

    Returns
    -------
    a table per split, and how many rows are within 2% and 5%
    """
    tables, missing = [], []
    for data in dict.fromkeys(row.data for row in rows):
        shown, more = list[tuple[str, list[Cell]]](), list[tuple[str, list[Cell]]]()
        of_data = [row for row in rows if row.data == data]
        if left := [row.row for row in of_data if (data, row.row) not in results]:
            missing.append(f"not measured on {data} yet: {', '.join(left)}")
        for row in (cell for cell in of_data if cell.published or cell.row not in left):
            result = results.get((data, row.row))
            cells = {name: Cell(_values(result, name), row.published.get(name)) for name in METRICS}
            about = ["–"] * 3
            if result is not None:
                seconds = sum(result.processor_seconds.values())
                about = [str(result.chosen_epoch or "–"), f"{seconds:,.0f}", f"{result.memory_mb:,.0f}"]
            shown.append((row.row, [cells["recall@20"], cells["ndcg@20"], *(Cell(text=text) for text in about[:2])]))
            more.append((row.row, [*(cells[name] for name in METRICS[2:]), Cell(text=about[2])]))
        if not shown:
            continue
        title, columns = f"{data}: popularity bias and memory", [*METRICS[2:], "MB"]
        tables.append(Table(data, data, "row", ["recall@20", "NDCG@20", "epochs", "CPU s"], shown))
        tables.append(Table(f"{data}-more", title, "row", columns, more, on_screen=False))
    about = ["Below: the published number and the difference.", count_in_words(rows, results)]
    about += [f"{row.row} on {row.data}: {row.remark}." for row in rows if row.remark]
    return Chapter("field", "The field's benchmark table", about, tables, missing=missing)


def _values(result: _FieldResult | None, metric: str) -> tuple[float, ...]:
    value = None if result is None else result.metrics.get(metric)
    return () if value is None else (value,)


def differences(rows: Sequence[FieldRow], results: dict[tuple[str, str], _FieldResult]) -> dict[tuple[str, str], float]:
    """Relative difference of recall@20 to the published number, of every row that has both.

    Parameters
    ----------
    rows, results : as in `field_chapter`

    Returns
    -------
    split and row → difference
    """
    changes = {}
    for row in rows:
        published, result = row.published.get("recall@20"), results.get((row.data, row.row))
        ours = None if result is None else result.metrics["recall@20"]
        if published and ours is not None:
            changes[row.data, row.row] = ours / published - 1
    return changes


def count_in_words(rows: Sequence[FieldRow], results: dict[tuple[str, str], _FieldResult]) -> str:
    """Count the rows near their published number.

    Parameters
    ----------
    rows, results : as in `field_chapter`

    Returns
    -------
    a sentence
    """
    changes = [abs(change) for change in differences(rows, results).values()]
    within = [f"{sum(change <= limit for change in changes)} within {limit:.0%}" for limit in WITHIN]
    above = sum(change > WITHIN[0] for change in differences(rows, results).values())
    published = sum(bool(row.published) for row in rows)
    measured = f"{len(changes)} of {published} rows with a published recall@20 are measured"
    return f"{measured}: {', '.join(within)}; {above} more than 2% above it."

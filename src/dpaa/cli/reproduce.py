"""`dpaa reproduce`: tables and figures of the paper, with our numbers and the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from dpaa.cli import options
from dpaa.cli.console import err, out, print_json, print_notes, print_table
from dpaa.cli.interrupts import resumable
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.reproduction import Chapter

DATA = ("coat", "yahoo-r3", "kuairec", "benchmarks")
WORK = ".dpaa-work"
"""Folder of prepared datasets and unfinished trainings, next to the results."""
TABLES = "datasets, overall, groups, severity, ablation, hyperparameters, all"
Results = Annotated[Path, Option(metavar="DIR", help="Folder of results; existing ones are reused.")]


def reproduce(
    name: Annotated[str, Argument(metavar="TABLE", help=f"{TABLES} or field.")],
    budget: Annotated[str, Option(help="smoke, quick, untuned, standard, standard-2 or paper.")] = "quick",
    data: Annotated[list[str] | None, Option(metavar="NAME=DIR", help="Data folder (see above); repeatable.")] = None,
    method: Annotated[list[str] | None, Option("--method", help="A method instead of all; repeatable.")] = None,
    severities: Annotated[list[float] | None, Option("--severity", min=0, help="Bias of the log; repeatable.")] = None,
    seeds: Annotated[int | None, Option(min=1, help="Random seeds per row and dataset.")] = None,
    jobs: options.Jobs = 1,
    out_folder: Annotated[Path, Option("--out", help="Folder for tables, figures and a page.")] = Path("reproduced"),
    results: Results = Path("results"),
    as_json: options.AsJson = False,
) -> None:
    """Reproduce tables and figures of the DPAA paper, or the field's benchmark table, next to the published numbers.

    Each result is saved in a separate file; repeating the call resumes an interrupted one.  Budgets: smoke, seconds;
    quick, minutes (severity 0, 5, 9, one seed, defaults, embedding size 64, at most 100 epochs); untuned, the paper's
    model size, severities and seeds, with defaults; standard, tuned with 12 trials per method; standard-2, 4 trials per
    hyperparameter, one training schedule for all, one draw of the data; paper, the paper's grids.

    coat, yahoo-r3 and kuairec are folders of the official files, or of train.txt, val.txt and test.txt; for severity,
    valid.txt and test.txt of KuaiRec suffice.  `field` runs the standard splits in benchmarks, with a folder of
    train.txt and test.txt each (Gowalla, Yelp2018, Amazon, Adressa, Epinions), and the authors' hyperparameters.

    \b
    Example:
      dpaa reproduce severity --budget quick --data kuairec=kuairec/ --jobs 2
      dpaa reproduce overall --data coat=coat/ --method lightgcn --method dpaa \\
          --seeds 10
      dpaa reproduce field --data benchmarks=benchmarks/ --method gf-cf
      dpaa reproduce all --budget standard --data coat=coat/ --data \\
          kuairec=kuairec/ --jobs 2
    """
    from dpaa.reproduction import BUDGETS, Plan, chapters, write_chapters

    name = "settings" if name == "hyperparameters" else name  # as its files have always been called
    given_folders = _read_folders(data or [])
    work, benchmarks = results.parent / WORK, given_folders.pop("benchmarks", None)
    if name == "field":
        _field(benchmarks, method or [], results, work, out_folder, as_json)
        return
    if budget not in BUDGETS:
        raise InputError(f"there is no budget {budget!r}; use one of {', '.join(BUDGETS)}")
    if out_folder.exists() and not out_folder.is_dir():
        raise InputError(f"{out_folder} is a file; name a folder with --out DIR")
    folders = {data: given_folders[data] for data in DATA if data in given_folders}
    rows, levels = tuple(method or ()), tuple(severities or ())
    plan = Plan(BUDGETS[budget], folders, results, work, rows, seeds, levels, jobs, err.print)
    finished = []
    with resumable(results):
        for chapter in chapters(name, plan):
            finished.append(chapter)
            if not as_json:
                _print(chapter)
    given = [f"--data {data}=DIR" for data in folders]  # without the reader's own paths
    given += [*(f"--method {row}" for row in rows), *(f"--severity {level:g}" for level in levels)]
    given += [f"--seeds {seeds}"] if seeds else []
    how = f"Made by `{' '.join(['dpaa reproduce', name, '--budget', budget, *given])}` ({plan.budget.about})."
    # Tables of the standard budget have the plain name, and others do not overwrite them.
    files = write_chapters(finished, out_folder, name, "" if budget == "standard" else f"-{budget}", how)
    if as_json:
        print_json({c.name: [{"table": t.name, "cells": t.records()} for t in c.tables] for c in finished})
    err.print(f"{len(files)} files written to {out_folder}, the page is {files[-1]}")
    err.print(f"{plan.trained:,} trained, {plan.reused:,} results taken from {results}")


def _read_folders(texts: list[str]) -> dict[str, Path]:
    """Read `--data`: the folder of each of `DATA`."""
    folders = {}
    for text in texts:
        name, _, folder = text.partition("=")
        if name not in DATA or not folder or name in folders:
            raise InputError(f"--data takes NAME=DIR, each of {', '.join(DATA)} once, got {text!r}")
        folders[name] = Path(folder)
    return folders


def _field(
    benchmarks: Path | None, methods: list[str], results: Path, work: Path, out_folder: Path, as_json: bool
) -> None:
    """Run the missing rows of the field's table whose splits are available, and show the whole table."""
    from dpaa.reproduction import FIELD, field_chapter, read_results, run_field, write_chapters
    from dpaa.runs.progress import watched_training

    names = {method.lower() for method in methods}
    wanted = [row for row in FIELD if not names or {row.method, f"{row.row}@{row.data}".lower()} & names]
    if not wanted:
        known = ", ".join(dict.fromkeys(row.row for row in FIELD))
        raise InputError(f"no row of the table has {', '.join(methods)}; name a method, or ROW@DATA of {known}")
    file = results / "field.jsonl"
    if benchmarks is not None:
        rows = [row for row in wanted if (benchmarks / row.data).is_dir()]
        if not rows:
            raise InputError(
                f"{benchmarks} has none of {', '.join(dict.fromkeys(row.data for row in wanted))}; name their folder"
            )
        with resumable(results, "the same command") as signals, signals:
            for result in run_field(benchmarks, file, work, rows, watched_training(stop_requested=signals.requested)):
                err.print(f"{result.data} {result.row}: recall@20 {result.metrics['recall@20']:.4f}")
    chapter = field_chapter(wanted, read_results(file))
    if as_json:
        print_json({table.name: table.records() for table in chapter.tables})
    else:
        _print(chapter)
    files = write_chapters([chapter], out_folder, "field", "", "Made by `dpaa reproduce field --data benchmarks=DIR`.")
    err.print(f"{len(files)} files written to {out_folder}, the page is {files[-1]}")


def _print(chapter: Chapter) -> None:
    """Print the tables that belong on a screen; the others are in the files."""
    out.print("\n", (chapter.title, "bold"))
    for line in chapter.about:
        out.print(line)
    for table in chapter.tables:
        if table.on_screen:
            print_table(table.title, [table.corner, *table.columns], table.grid(), text=True, multiline=True)
    print_notes(chapter.missing)

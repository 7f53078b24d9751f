"""`dpaa reproduce`: tables and figures of the paper, ours beside the paper's."""

from __future__ import annotations

import re
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from dpaa._text import counted
from dpaa.cli.console import Column, Styled, err, out, print_json, print_notes
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.reproduction import Chapter, Plan
    from dpaa.reproduction import Table as PaperTable
    from dpaa.reproduction._tables import Cell


def reproduce(
    name: Annotated[
        str | None,
        Argument(metavar="NAME", help="datasets, overall, groups, severity, ablation, settings or all."),
    ] = None,
    budget: Annotated[
        str,
        Option(
            help="quick: minutes (s 0, 5, 9, one seed, defaults, D 64, at most 100 epochs); untuned: the paper's size, "
            "every severity, seeds, defaults; standard: tuned with 12 trials per method; standard-2: 4 trials "
            "per hyperparameter, one training for all, one draw of the data; paper: the paper's grids."
        ),
    ] = "quick",
    coat: Annotated[Path | None, Option(help="Coat: the official matrices, or train.txt, val.txt, test.txt.")] = None,
    yahoo_r3: Annotated[Path | None, Option(help="Yahoo! R3: the official ratings, or a split in lists.")] = None,
    kuairec: Annotated[
        Path | None,
        Option(help="KuaiRec: the official matrices, or lists; valid.txt and test.txt suffice for severity."),
    ] = None,
    method: Annotated[
        list[str] | None,
        Option(
            "--method",
            help='A row: a method, with hyperparameters (then not tuned): "dpaa layer_emphasis=2"; repeatable.',
        ),
    ] = None,
    severities: Annotated[list[float] | None, Option("--severity", min=0, help="Severity; repeatable.")] = None,
    seeds: Annotated[int | None, Option(min=1, help="Random seeds per row and dataset.")] = None,
    assignments: Annotated[
        list[str] | None,
        Option("--set", help="A hyperparameter of all methods that have it: --set epochs=50; repeatable."),
    ] = None,
    jobs: Annotated[int, Option(min=1, help="Trainings at a time, one core each.")] = 1,
    out_folder: Annotated[Path, Option("--out", help="Folder for tables (CSV), figures and page.")] = Path(
        "reproduced"
    ),
    label: Annotated[
        str | None, Option(help="Added to the files' names, so that a part does not replace the whole table.")
    ] = None,
    figures: Annotated[bool, Option("--figures/--no-figures", help="Draw figures (extra: report).")] = True,
    results: Annotated[Path, Option(help="Folder of results; what is in it is not trained again.")] = Path("results"),
    check: Annotated[
        bool, Option("--check/--no-check", help="Whether published files must have the published counts.")
    ] = True,
    work: Annotated[Path, Option(help="Folder for prepared datasets and unfinished trainings.")] = Path(".dpaa-work"),
    pack: Annotated[
        bool, Option("--pack", help="Pack the result files into one Parquet file per kind; NAME may be left out.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print the tables as JSON.")] = False,
) -> None:
    """Tables and figures of the DPAA paper on the data you have, ours beside the paper's.

    Every result is kept in a file of its own: after an interruption the same call resumes.  With --pack they become
    one Parquet file per kind, which is read just the same.

    \b
    Example:
      dpaa reproduce severity --budget quick --kuairec kuairec/ --jobs 2
      dpaa reproduce overall --coat coat/ --method lightgcn --method "dpaa layer_emphasis=2" --seeds 10
      dpaa reproduce all --budget standard --coat coat/ --kuairec kuairec/ --jobs 2
      dpaa reproduce --pack
    """
    from dpaa.cli.train import read_settings
    from dpaa.reproduction import (
        Plan,
        Runner,
        Sources,
        chapters,
        check_target,
        find_budget,
        pack_results,
        write_chapter,
        write_page,
    )

    if name is None and not pack:
        raise InputError("name a table, such as `dpaa reproduce overall`, or pack the results with --pack")
    if name is not None:
        chosen, settings = find_budget(budget), read_settings(None, assignments or [], None)
        runner, sources = Runner(results, work, jobs, err.print), Sources(coat, yahoo_r3, kuairec, check)
        plan = Plan(chosen, sources, runner, tuple(method or ()), seeds, tuple(severities or ()), settings)
        check_target(out_folder, figures)
        if label is not None and not re.fullmatch(r"\w[\w.-]*", label):
            raise InputError(f"--label {label!r} is no part of a file's name; use letters, digits, '-', '_' and '.'")
        made, files = [], []
        before = signal.signal(signal.SIGTERM, _terminate)  # as ctrl-C: unfinished trainings leave a checkpoint
        try:
            for chapter in chapters(name, plan):
                made.append(chapter)
                files += write_chapter(chapter, out_folder, _stem(chapter.name, budget, label), figures)
                if not as_json:
                    _show(chapter)
        except KeyboardInterrupt as stop:
            err.print(f"stopped; the same call resumes (finished results are in {results})")
            sys.exit(128 + (stop.args[0] if stop.args else signal.SIGINT))
        finally:
            signal.signal(signal.SIGTERM, before)
        page = write_page(made, out_folder, _stem(name, budget, label), _command(name, plan, label), figures)
        if as_json:
            print_json({chapter.name: [_as_json(table) for table in chapter.tables] for chapter in made})
        err.print(f"{len(files) + 1} files written to {out_folder}, the page is {page}")
        err.print(runner.summary())
    if pack:
        err.print(f"{counted(pack_results(results), 'result', 'results')} packed in {results}")


def _terminate(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(number)


def _stem(name: str, budget: str, label: str | None) -> str:
    """Names of files: tables of the standard budget have the plain name, and others do not overwrite them."""
    return "-".join([name, *([] if budget == "standard" else [budget]), *([label] if label else [])])


def _command(name: str, plan: Plan, label: str | None) -> str:
    """The call that makes it again, without the reader's own paths."""
    words = ["dpaa", "reproduce", name, "--budget", plan.budget.name]
    for source in ("coat", "yahoo-r3", "kuairec"):
        words += [f"--{source}", "DIR"] if plan.sources.folder(source) else []
    words += [word for level in plan.given_severities for word in ("--severity", f"{level:g}")]
    words += [word for row in plan.given_rows for word in ("--method", row)]
    words += ["--seeds", str(plan.given_seeds)] if plan.given_seeds else []
    words += [word for key, value in plan.given_settings.items() for word in ("--set", f"{key}={value}")]
    words += ["--label", label] if label else []
    return shlex.join(words)


def _as_json(table: PaperTable) -> dict[str, object]:
    return {"table": table.name, "title": table.title, "cells": table.records(), "notes": list(table.notes)}


def _show(chapter: Chapter) -> None:
    """Print the tables that belong on a screen; the others are in the files."""
    out.print("\n", Styled(chapter.title, "bold"))
    for line in chapter.about:
        out.print(line)
    for table in chapter.tables:
        if table.on_screen:
            _print(table)
    others = [table.name for table in chapter.tables if not table.on_screen]
    if others:
        out.print(f"In the files besides: {', '.join(others)}.")
    print_notes(chapter.missing)


def _print(table: PaperTable) -> None:
    """Cells may have two lines and are wrapped, never cut."""

    def shown(cell: Cell) -> str:
        return {1: "★ ", 2: "☆ "}.get(cell.rank, "") + cell.ours() + (f"\n({cell.beside()})" if cell.beside() else "")

    worded = [True, *(any(cells[i].text for _, cells in table.rows) for i in range(len(table.columns)))]
    columns = [
        Column(title, left=words, wraps=True, lines=True, widest=44 if words else None)
        for title, words in zip([table.corner, *table.columns], worded, strict=True)
    ]
    rows, footer = (
        [[label, *(shown(cell) for cell in cells)] for label, cells in part] for part in (table.rows, table.footer)
    )
    out.table(table.title, columns, rows, footer)
    for note in table.notes:
        out.print(note)

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
    from dpaa.reproduction.plan import Plan
    from dpaa.reproduction.tables import Cell, Chapter
    from dpaa.reproduction.tables import Table as PaperTable


IMPORT = "import"


def reproduce(
    name: Annotated[
        str | None,
        Argument(
            metavar="NAME",
            help="datasets, overall, groups, severity, ablation, settings or all; draws (other draws of the severity "
            "data); readings (a search for the paper's reading); import (results made elsewhere).",
        ),
    ] = None,
    places: Annotated[
        list[Path] | None, Argument(metavar="FILE|FOLDER", help="With import: results, or folders of them.")
    ] = None,
    budget: Annotated[
        str,
        Option(
            help="quick: minutes (s 0, 5, 9, one seed, defaults, D 64, at most 100 epochs); untuned: the paper's size, "
            "every severity, seeds, defaults; standard: tuned with 12 trials per method; standard-2: 4 trials "
            "per setting, one way of training, one draw of the data; paper: the paper's grids."
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
            help='A row: a method, with settings (then not tuned): "dpaa layer_emphasis=2"; repeatable.',
        ),
    ] = None,
    severities: Annotated[list[float] | None, Option("--severity", min=0, help="Severity; repeatable.")] = None,
    seeds: Annotated[int | None, Option(min=1, help="Random seeds per row and dataset.")] = None,
    assignments: Annotated[
        list[str] | None,
        Option("--set", help="A setting of all methods that have it: --set epochs=50; repeatable."),
    ] = None,
    with_dial: Annotated[bool, Option("--with-dial", help="Add tables with the popularity dial.")] = False,
    jobs: Annotated[int, Option(min=1, help="Trainings at a time, one core each.")] = 1,
    out_folder: Annotated[Path, Option("--out", help="Folder for Markdown, LaTeX, CSV, figures and page.")] = Path(
        "docs/results"
    ),
    label: Annotated[
        str | None, Option(help="Added to the files' names, so that a part does not replace the whole table.")
    ] = None,
    figures: Annotated[bool, Option("--figures/--no-figures", help="Draw figures (extra: report).")] = True,
    results: Annotated[Path, Option(help="Folder of results; what is in it is not trained again.")] = Path("results"),
    expect: Annotated[
        bool, Option("--expect", help="Only say how many trainings are needed and about how long they take.")
    ] = False,
    check: Annotated[
        bool, Option("--check/--no-check", help="Whether published files must have the published counts.")
    ] = True,
    work: Annotated[Path, Option(help="Folder for prepared datasets and unfinished trainings.")] = Path(".dpaa-work"),
    storage: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="PostgreSQL through which machines share the work: the same call on each, with this URL; no training "
            "is done twice (extra: sql).",
        ),
    ] = None,
    origin: Annotated[
        str | None,
        Option(metavar="TEXT", help="With import: who made the results, when, on what; tables say it."),
    ] = None,
    pack: Annotated[
        bool, Option("--pack", help="Pack the result files into one Parquet file per kind; NAME may be left out.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print the tables as JSON.")] = False,
) -> None:
    """Tables and figures of the DPAA paper on the data you have, ours beside the paper's.

    Every result is kept in a file of its own: after an interruption the same call resumes.  With --pack they become
    one Parquet file per kind, which is read just the same.  Results that somebody made elsewhere, on data that you
    have not, are taken in with import, all of them or none; tables show them with their origin and protocol.

    \b
    Example:
      dpaa reproduce severity --budget quick --kuairec kuairec/ --jobs 2
      dpaa reproduce overall --coat coat/ --method lightgcn --method "dpaa layer_emphasis=2" --seeds 10
      dpaa reproduce import yahoo-results/ --origin "Ann, 3 May 2026, the official files"
      dpaa reproduce severity --budget standard-2 --kuairec kuairec/ --jobs 8 --storage postgresql://me@db/paper
      dpaa reproduce --pack
    """
    from dpaa.cli.train import read_settings
    from dpaa.reproduction.budget import find_budget
    from dpaa.reproduction.plan import Plan
    from dpaa.reproduction.reproduce import ALL, chapters
    from dpaa.reproduction.results import pack_results
    from dpaa.reproduction.sources import Sources
    from dpaa.reproduction.trainings import Runner
    from dpaa.reproduction.writing import check_target, write_chapter, write_page

    if name is None or name == IMPORT:
        _without_table(name, places or [], origin, results, pack)
        return
    if places or origin:
        raise InputError(f"dpaa reproduce {name} takes no files and no --origin; dpaa reproduce import does")
    chosen = find_budget(budget)
    settings = read_settings(None, assignments or [], None)
    runner = Runner(results, work, jobs, with_dial, err.print, storage)
    runner.check_storage()
    rows, levels = tuple(method or ()), tuple(severities or ())
    plan = Plan(chosen, Sources(coat, yahoo_r3, kuairec, check), runner, rows, seeds, levels, settings)
    check_target(out_folder, figures)
    if label is not None and not re.fullmatch(r"\w[\w.-]*", label):
        raise InputError(f"--label {label!r} is no part of a file's name; use letters, digits, '-', '_' and '.'")
    if expect:
        from dpaa.reproduction.expected import expected

        plan.check()
        out.print(expected(name, plan))
        return
    command = _command(name, plan, label)
    made, files = [], []
    before = signal.signal(signal.SIGTERM, _terminate)  # as ctrl-C: trainings in flight leave a checkpoint
    try:
        for chapter in chapters(name, plan):
            made.append(chapter)
            files += write_chapter(chapter, out_folder, _stem(chapter.name, budget, label), command, figures)
            if not as_json:
                _show(chapter)
    except KeyboardInterrupt as stop:
        err.print(f"stopped; the same call resumes (finished results are in {results})")
        sys.exit(128 + (stop.args[0] if stop.args else signal.SIGINT))
    finally:
        signal.signal(signal.SIGTERM, before)
    stem = _stem(name if name == ALL else made[0].name, budget, label)
    files.append(write_page(made, out_folder, stem, command, figures))
    if as_json:
        print_json({chapter.name: [table.as_json() for table in chapter.tables] for chapter in made})
    err.print(f"{len(files)} files written to {out_folder}, the page is {files[-1]}")
    err.print(runner.summary())
    if pack:
        err.print(_packed(pack_results(results), results))


def _without_table(name: str | None, places: list[Path], origin: str | None, results: Path, pack: bool) -> None:
    """Results are taken in, or packed."""
    from dpaa.reproduction.importing import import_results
    from dpaa.reproduction.results import pack_results

    if name is None and not pack:
        raise InputError("name a table, such as `dpaa reproduce overall`, or pack the results with --pack")
    if name == IMPORT and (not places or origin is None):
        raise InputError(
            "name what to take in and where it comes from: dpaa reproduce import FOLDER --origin "
            '"who made it, when, on what"'
        )
    if name == IMPORT and origin is not None:
        found = import_results(places, results, origin)
        known = f"; {found.known:,} were there already" if found.known else ""
        err.print(f"{counted(found.new, 'result', 'results')} of {', '.join(found.data)} taken into {results}{known}")
    if pack:
        err.print(_packed(pack_results(results), results))


def _packed(number: int, results: Path) -> str:
    return f"{counted(number, 'result', 'results')} packed in {results}"


def _terminate(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(number)


def _stem(name: str, budget: str, label: str | None) -> str:
    """The tables of the standard budget are the project's results; others do not overwrite them."""
    return "-".join([name, *([] if budget == "standard" else [budget]), *([label] if label else [])])


def _command(name: str, plan: Plan, label: str | None) -> str:
    """The call that makes it again, without the reader's own paths."""
    words = ["dpaa", "reproduce", name, "--budget", plan.budget.name]
    for source in ("coat", "yahoo_r3", "kuairec"):
        words += [f"--{source.replace('_', '-')}", "DIR"] if getattr(plan.sources, source) else []
    words += [word for level in plan.given_severities for word in ("--severity", f"{level:g}")]
    words += [word for row in plan.given_rows for word in ("--method", row)]
    words += ["--seeds", str(plan.given_seeds)] if plan.given_seeds else []
    words += [word for key, value in plan.given_settings.items() for word in ("--set", f"{key}={value}")]
    words += ["--with-dial"] if plan.runner.with_dial else []
    words += ["--label", label] if label else []
    return shlex.join(words)


def _show(chapter: Chapter) -> None:
    """The tables that belong on a screen; the others are in the files."""
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
    from dpaa.reproduction.tables import BEST, SECOND

    def shown(cell: Cell) -> str:
        mark = {1: f"{BEST} ", 2: f"{SECOND} "}.get(cell.place, "")
        return f"{mark}{cell.ours()}" + (f"\n({cell.beside()})" if cell.beside() else "")

    columns = []
    for place, name in enumerate([table.corner, *table.columns]):
        worded = place == 0 or any(cells[place - 1].text for _, cells in table.rows)
        columns.append(Column(name, left=worded, wraps=True, lines=True, widest=44 if worded else None))
    rows, footer = (
        [[label, *(shown(cell) for cell in cells)] for label, cells in part] for part in (table.rows, table.footer)
    )
    out.table(table.title, columns, rows, footer)
    for note in table.notes:
        out.print(note)

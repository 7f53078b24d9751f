"""The command line: thin.  Parse, call, print; torch and polars are imported by the command that needs them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from typer import Option

import dpaa
from dpaa._text import shortened
from dpaa.cli.audit import audit
from dpaa.cli.benchmark import benchmark
from dpaa.cli.compare import compare
from dpaa.cli.console import Styled, err, leave_output, never_fail_to_print, open_closed_streams
from dpaa.cli.data import app as data_app
from dpaa.cli.debias import debias
from dpaa.cli.demo import demo
from dpaa.cli.evaluate import evaluate
from dpaa.cli.export import export
from dpaa.cli.interrupts import Interrupts
from dpaa.cli.methods import methods
from dpaa.cli.recommend import recommend
from dpaa.cli.report import report
from dpaa.cli.reproduce import reproduce
from dpaa.cli.rerank import rerank
from dpaa.cli.serve import serve
from dpaa.cli.similar import similar
from dpaa.cli.trace import trace
from dpaa.cli.train import train
from dpaa.cli.tune import tune
from dpaa.cli.usage import UsageError, asks_for_help, in_one_sentence, unwrapped
from dpaa.errors import InputError, reason

app = typer.Typer(
    name="dpaa",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.add_typer(data_app, name="data", help="Make a prepared dataset from a source, or describe one.")
_COMMANDS = (
    *(audit, train, evaluate, recommend, similar, export, rerank, debias, compare),
    *(tune, benchmark, trace, report, serve, methods, reproduce),
)
for _command in _COMMANDS:
    app.command()(_command)
for _group in (app, data_app):
    for _info in _group.registered_commands:
        _info.help = unwrapped(_info.help or getattr(_info.callback, "__doc__", None) or "")

NO_MEMORY = "DefaultCPUAllocator"
"""In what torch raises where Python raises a `MemoryError`."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpaa {dpaa.__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    plugin: Annotated[
        list[str] | None,
        Option(metavar="PACKAGE.MODULE:CLASS", help="Make a method or re-ranker known to this call; repeatable."),
    ] = None,
) -> None:
    """Find, measure and remove popularity bias in graph recommenders.

    Start with dpaa demo; with a log of your own: dpaa data, train, evaluate, recommend.
    """
    if plugin:
        from dpaa.methods import METHODS
        from dpaa.plugins import add_plugin
        from dpaa.ranking import RERANKERS

        for place in plugin:
            add_plugin(place, METHODS, RERANKERS)


def main() -> None:
    """Run, and turn what is wrong with the input or the call into one sentence and exit code 2."""
    open_closed_streams()
    interrupts = Interrupts()
    try:
        with interrupts:
            never_fail_to_print()
            sys.exit(app(standalone_mode=False, prog_name="dpaa"))
    except (KeyboardInterrupt, typer.Abort):
        _interrupted()
    except SystemExit:
        raise
    except BaseException as error:  # polars' panics are no Exception
        if interrupts.came:  # a library took it for a fault of the file or of its own
            _interrupted()
        _tell(error)


def _tell(error: BaseException) -> None:
    """One sentence; what is no fault of the input is raised again."""
    if isinstance(error, InputError):
        _refuse(str(error))
    elif isinstance(error, UsageError):
        if asks_for_help(error):
            sys.exit(2)
        _refuse(in_one_sentence(error))
    elif isinstance(error, OSError):  # a full disk, a device that is gone
        leave_output(sys.stdout)
        place = error.filename or "the output"
        _refuse(f"cannot go on with {place} ({reason(error)}); check the place and call again")
    elif isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and NO_MEMORY in str(error)):
        _refuse("there is not enough memory; use less data, a smaller model or batch, or a machine or limit with more")
    else:
        raise error


def _interrupted() -> None:
    err.print("interrupted")
    sys.exit(130)


def _refuse(sentence: str) -> None:
    err.print(Styled("error:", "bold red"), " ", shortened(" ".join(sentence.splitlines())))
    sys.exit(2)

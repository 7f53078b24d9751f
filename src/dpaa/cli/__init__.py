"""The command line: thin.  Parse, call, print; torch and polars are imported by the command that needs them."""

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from typer import Option

import dpaa
from dpaa._text import shortened
from dpaa.cli._help import Command, Group, unwrapped
from dpaa.cli.console import abandon_stream, err, open_closed_streams
from dpaa.cli.data import app as data_app
from dpaa.cli.interrupts import recorded_interrupts
from dpaa.errors import InputError, reason

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for a wrong call (unknown option, missing argument …); its own name for it is private."""


def _in_one_sentence(error: Any) -> str:
    """Rewrite typer's message: what is wrong with the call, the value, and where to look."""
    message = " ".join(error.format_message().split()).rstrip(".")
    message = message.replace(". Did you", "; did you").replace(": Input should", ": it should")
    message = message[:1].lower() + message[1:]
    if isinstance(error.__cause__, ValidationError):  # typer's message has the rule but not the value
        message += f", got {error.__cause__.errors()[0]['input']!r}"
    command = error.ctx.command_path if error.ctx else "dpaa"
    if command == "dpaa train" and message.startswith("no such option"):
        message = message.partition(" (Possible")[0] + "; hyperparameters are given as --set NAME=VALUE"
    return f"{message}{'' if message.endswith('?') else ';'} see {command} --help"


app = typer.Typer(
    name="dpaa",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = {
    "Start here": ("audit", "debias", "evaluate", "recommend", "report"),
    "Data and models": ("train", "tune", "methods"),
    "Lists": ("rerank", "similar", "export", "serve"),
    "Compare and explain": ("compare", "backtest", "simulate", "plan", "benchmark", "trace"),
    "See it work": ("demo", "reproduce"),
}
"""Panel of the help → commands; `data`, a group, joins the second."""
_HOME = {"similar": "recommend", "rerank": "recommend", "benchmark": "tune", "plan": "compare", "backtest": "debias"}
"""A command is the function of its name, in the module of that name but for these."""
for _panel, _commands in COMMANDS.items():
    for _command in _commands:
        _module = import_module(f"dpaa.cli.{_HOME.get(_command, _command)}")
        app.command(rich_help_panel=_panel)(getattr(_module, _command))
_about = "Prepare a dataset from a log or a published source, or describe one."
app.add_typer(data_app, name="data", help=_about, cls=Group, rich_help_panel="Data and models")
for _group in (app, data_app):
    for _info in _group.registered_commands:
        _info.cls = Command
        _info.help = unwrapped(_info.help or getattr(_info.callback, "__doc__", None) or "")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpaa {dpaa.__version__}")
        raise typer.Exit


def root(
    _version: Annotated[bool, Option("--version", callback=_show_version, is_eager=True, help="Show version.")] = False,
    plugin: Annotated[list[str] | None, Option(metavar="MODULE:CLASS", help="Add a method or re-ranker.")] = None,
) -> None:
    """Find, measure and reduce popularity bias in recommenders.

    For a demonstration run `dpaa demo`.  With your own log:

    \b
    Example:
      dpaa audit clicks.csv
      dpaa data log clicks.csv --out data/clicks
      dpaa debias data/clicks --keep-accuracy 0.98 --out debiased
      dpaa evaluate debiased
      dpaa recommend debiased --out recs.csv
      dpaa report data/clicks debiased --out report.html
    """
    for location in plugin or ():
        from dpaa.methods import METHODS
        from dpaa.plugins import add_plugin
        from dpaa.ranking import RERANKERS

        add_plugin(location, METHODS, RERANKERS)


app.callback(cls=Group, help=unwrapped(root.__doc__ or ""))(root)


def main() -> None:
    """Run, and turn what is wrong with the input or the call into one sentence and exit code 2."""
    open_closed_streams()
    interrupts: list[int] = []
    try:
        with recorded_interrupts() as interrupts:
            sys.exit(app(standalone_mode=False, prog_name="dpaa"))
    except SystemExit:
        raise
    except BaseException as error:  # polars' panics are no Exception
        # A library may have taken an interrupt for a fault of the file or of its own.
        if interrupts or isinstance(error, KeyboardInterrupt | typer.Abort):
            err.print("interrupted")
            sys.exit(130)
        if type(error).__name__ != "NoArgsIsHelpError":  # then the help was the answer
            err.print(("error:", "bold red"), " ", shortened(" ".join(_sentence(error).splitlines())))
        sys.exit(2)


def _sentence(error: BaseException) -> str:
    """Say what went wrong; what is no fault of the input or the machine is raised again."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, UsageError):
        return _in_one_sentence(error)
    if isinstance(error, OSError):  # a full disk, a device that is gone
        abandon_stream(sys.stdout)
        where = error.filename or "the output"
        return f"cannot continue with {where} ({reason(error)}); check it and call again"
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error):  # the latter is torch's
        return "there is not enough memory; use less data, a smaller model or batch, or a machine or limit with more"
    raise error

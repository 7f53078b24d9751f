"""The command line: thin.  Parse, call, print; torch and polars are imported by the command that needs them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import dpaa
from dpaa.cli.console import err
from dpaa.cli.data import app as data_app
from dpaa.cli.demo import demo
from dpaa.cli.evaluate import evaluate
from dpaa.cli.methods import methods
from dpaa.cli.recommend import recommend
from dpaa.cli.train import train
from dpaa.errors import InputError

app = typer.Typer(
    name="dpaa",
    help="Find, measure and remove popularity bias in graph recommenders.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.add_typer(data_app, name="data", help="Make a prepared dataset from a source, or describe one.")
app.command()(train)
app.command()(evaluate)
app.command()(recommend)
app.command()(methods)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpaa {dpaa.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find, measure and remove popularity bias in graph recommenders.

    The walk: dpaa data → dpaa train → dpaa evaluate → dpaa recommend.  Start with: dpaa demo
    """
    del version


def main() -> None:
    """Run, and turn what is wrong with the input into one sentence and exit code 2."""
    try:
        app()
    except InputError as error:
        err.print("[bold red]error:[/] ", end="")
        err.print(str(error), markup=False)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("interrupted", highlight=False)
        sys.exit(130)
    except BrokenPipeError:  # `dpaa … | head` closed the pipe: not our user's problem
        sys.stderr.close()
        sys.exit(0)

"""`--fail-if` of commands that measure: exit code 1 where a check says no."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaa.cli.console import Styled, err
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.auditing.checks import Check, CheckResult

FailIf = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CHECK",
        help="Exit with code 1 if this holds: METRIC OP NUMBER or METRIC OP NUMBER * RUN, such as "
        '"ndcg@20 < 0.98 * runs/live"; repeatable.',
    ),
]
Metrics = Mapping[str, float]


def parse_checks(texts: Iterable[str] | None, places: bool = False) -> list[Check]:
    """The checks of a call; one that cannot be read is refused before any work.

    With `places`, what a check names is a path; without, it is the name of an entry.
    """
    from dpaa.auditing.checks import Check
    from dpaa.evaluation.metrics import METRICS

    found = [Check.parse(text, references=True) for text in texts or ()]
    for check in found:
        if check.reference is not None and places and not Path(check.reference).exists():
            raise InputError(
                f"--fail-if names {check.reference}: there is no such run or recommendation file; check the name"
            )
        name = check.name.partition("/")[0].partition("@")[0]
        if name not in METRICS:
            near = get_close_matches(name, METRICS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(METRICS)}"
            raise InputError(f"--fail-if names the metric {check.name!r}, which does not exist; {hint}")
    return found


def applied(check: Check, metrics: Metrics, k: int, reference: Metrics) -> CheckResult:
    """A check of these metrics; `reference` are those of the run that it names, if any."""
    from dpaa.comparison.compare import full_name

    name = full_name(check.name, k, list(metrics))
    limit = check if check.reference is None else check.resolved(reference[name])
    return replace(limit, name=name).apply(metrics)


def fail_if_any(results: Iterable[tuple[str, CheckResult]]) -> None:
    """Print the checks that failed, each with whose number it is, and end with exit code 1."""
    failed = [(whose, result) for whose, result in results if result.failed]
    for whose, result in failed:
        err.print(Styled("check failed:", "bold red"), f" {whose}: {result.sentence}")
    if failed:
        raise typer.Exit(1)

"""`--fail-if` of commands that measure: exit code 1 where a check says no."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dpaa.cli.console import Styled, err

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


def parse_checks(texts: Iterable[str] | None) -> list[Check]:
    """The checks of a call; one that cannot be read is refused before any work."""
    from dpaa.auditing.checks import Check

    return [Check.parse(text, references=True) for text in texts or ()]


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

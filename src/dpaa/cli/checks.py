"""`--fail-if`: exit code 1 where a check fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from dpaa.cli.console import err
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.auditing import Check, CheckResult


def parse_checks(texts: Iterable[str] | None) -> list[Check]:
    """Read the checks of a call; one that cannot be read is refused before any work.

    Parameters
    ----------
    texts : as `--fail-if` has them

    Returns
    -------
    the checks
    """
    from dpaa.auditing import Check
    from dpaa.evaluation.metrics import METRICS

    checks = [Check.parse(text, references=True) for text in texts or ()]
    for check in checks:
        name = check.name.partition("/")[0].partition("@")[0]
        if name not in METRICS:
            raise InputError(f"--fail-if: there is no metric {check.name!r}; choose from {', '.join(METRICS)}")
    return checks


def apply_check(check: Check, metrics: Mapping[str, float], k: int, reference: Mapping[str, float]) -> CheckResult:
    """Apply a check to metrics.

    Parameters
    ----------
    check : names a metric
    metrics : of lists
    k : their length, for a metric without one
    reference : metrics of the run that the check names, if any

    Returns
    -------
    the result
    """
    from dpaa.comparison import full_name

    name = full_name(check.name, k, list(metrics))
    limit = check if check.reference is None else check.resolved(reference[name])
    return replace(limit, name=name).apply(metrics)


def print_failed(sentences: Iterable[str]) -> None:
    """Print the checks that failed, and end with exit code 1 if there are any."""
    failed = list(sentences)
    for sentence in failed:
        err.print(("check failed:", "bold red"), " ", sentence)
    if failed:
        raise typer.Exit(1)

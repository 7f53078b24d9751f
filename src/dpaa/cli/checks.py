"""`--fail-if`: exit code 1 where a check fails."""

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
    from dpaa.auditing import Check, CheckResult

FailIf = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CHECK",
        help="Exit with code 1 if this holds: METRIC OP NUMBER or METRIC OP NUMBER * RUN, such as "
        '"ndcg@20 < 0.98 * runs/live"; repeatable.',
    ),
]


def parse_checks(texts: Iterable[str] | None, paths: bool = False) -> list[Check]:
    """Read the checks of a call; one that cannot be read is refused before any work.

    Parameters
    ----------
    texts : as `--fail-if` has them
    paths : whether a reference is a path; otherwise it is the name of an entry

    Returns
    -------
    the checks
    """
    from dpaa.auditing import Check
    from dpaa.evaluation.metrics import METRICS

    checks = [Check.parse(text, references=True) for text in texts or ()]
    for check in checks:
        if check.reference is not None and paths and not Path(check.reference).exists():
            raise InputError(
                f"--fail-if names {check.reference}: there is no such run or recommendation file; check the name"
            )
        name = check.name.partition("/")[0].partition("@")[0]
        if name not in METRICS:
            near = get_close_matches(name, METRICS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(METRICS)}"
            raise InputError(f"--fail-if names the metric {check.name!r}, which does not exist; {hint}")
    return checks


def applied(check: Check, metrics: Mapping[str, float], k: int, reference: Mapping[str, float]) -> CheckResult:
    """A check of these metrics; `reference` are those of the run that it names, if any."""
    from dpaa.comparison import full_name

    name = full_name(check.name, k, list(metrics))
    limit = check if check.reference is None else check.resolved(reference[name])
    return replace(limit, name=name).apply(metrics)


def print_failed(sentences: Iterable[str]) -> None:
    """Print the checks that failed, and end with exit code 1 if there are any."""
    failed = list(sentences)
    for sentence in failed:
        err.print(Styled("check failed:", "bold red"), " ", sentence)
    if failed:
        raise typer.Exit(1)

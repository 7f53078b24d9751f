"""`dpaa plan`: users and days that an online test of two runs needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from dpaa.cli import options
from dpaa.cli.console import cells, number, out, print_json, print_table


def plan(
    run_a: Annotated[Path, Argument(help="The run in production, or its recommendations.")],
    run_b: Annotated[Path, Argument(help="The run that may replace it.")],
    detect: Annotated[str, Option(metavar="X[,power=X,confidence=X]", help="Relative difference to see.")] = "0.01",
    dataset: options.DatasetOption = None,
    metric: options.Metrics = None,
    k: options.K = 20,
    users_per_day: Annotated[int | None, Option(min=1, help="New users in the test each day, for the days.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Plan an online A/B test of two runs: users and days, from the variance over users measured offline.

    Half of the users get each run.  Shown are the users needed to see a difference of --detect, and those needed to see
    the difference that the offline test promises, with a probability of power=0.8 and a two-sided confidence=0.95.  The
    variance online is taken to be that of the same metric offline.

    \b
    Example:
      dpaa plan runs/live runs/debiased --detect 0.01 --users-per-day 20000
    """
    from dpaa.comparison import read_entries
    from dpaa.simulation import PLANNED
    from dpaa.simulation import plan as make_plan

    _, entries = read_entries([run_a, run_b], dataset, k=k)
    how = options.parse_values(detect, "detect", value=float, power=float, confidence=float)
    how["detect"] = how.pop("value", 0.01)
    made = make_plan(entries, k=k, metrics=metric or PLANNED, users_per_day=users_per_day, **how)
    if as_json:
        print_json(made.as_json())
        return
    by_days = users_per_day is not None
    rows = []
    for need in made.needs:
        seen = [*cells(",.0f", need.users), *(cells(",", need.days) if by_days else [])]
        promised = [*cells(",.0f", need.users_promised), *(cells(",", need.days_promised) if by_days else [])]
        rows.append([need.metric, number(need.one), number(need.other), *seen, *promised])
    header = ["", *made.names, f"users ±{made.detect:.1%}", *(["days"] if by_days else []), "users as promised"]
    title = f"Users in both halves, power {made.power:g}, confidence {made.confidence:g}"
    print_table(title, [*header, *(["days"] if by_days else [])], rows)
    out.print(f"as promised: to see the difference between {made.names[0]} and {made.names[1]} measured offline")

"""Pages: whether the promise is kept, and which estimate is nearest to the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import stdev

from scripts.frontier.judge import NAIVE
from scripts.frontier.rows import (
    Record,
    Rows,
    by,
    choices,
    excess,
    flat,
    mean,
    of_all,
    regret,
    seeds,
    share,
    sure,
    table,
    times,
    title,
    write,
)

from dpaa.debiasing import percent

# ---------------------------------------------------------------------- the promise


def promise(place: Path, records: Sequence[Record], command: str) -> None:
    """Whether accuracy on test stayed within the promise."""
    rows = choices(records, biased=False, base_is="best")
    counted = [row for row in rows if row["confidence"] != NAIVE]

    def line(group: Rows) -> list[str]:
        worst = min(row["test_change"][0] - row["keep"] + 1 for row in group)
        return [
            share(row["held"] for row in group),
            share(not row["surely_broken"] for row in group),
            percent(mean(row["test_change"][0] for row in group)),
            "never" if worst >= -1e-12 else percent(worst),
            share(row["held"] for row in group if row["chosen"] != row["base"]),
            times(group),
        ]

    head = [
        "held on test",
        "within test noise",
        "accuracy, mean",
        "farthest below",
        "held if base left",
        "goal, median",
    ]
    parts = []
    for goal, found in by(counted, "goal").items():
        parts.append(f"## Goal {goal[0]}")
        lines = [
            [title(data), percent(keep - 1), sure(confidence), *line(group)]
            for (data, keep, confidence), group in by(found, "data", "keep", "confidence").items()
        ]
        parts.append(table(["data", "promise", "confidence", *head], lines))
    said = []
    for (confidence,), some in by(counted, "confidence").items():
        noise, left = (
            of_all(not row["surely_broken"] for row in some),
            [row for row in some if row["chosen"] != row["base"]],
        )
        said.append(
            f"Confirmed at {sure(confidence)}, the promise held on test in {share(row['held'] for row in some)} "
            f"choices ({of_all(row['held'] for row in some)}; within test noise {noise}); of those that left the base, "
            f"in {share(row['held'] for row in left)}."
        )
    about = (
        "Validation is unbiased, the choice is made on it alone, and test was not used for anything but this page. "
        "Base: the model that is most accurate on validation. *Held*: test NDCG@20 ≥ promise × the base's, as point "
        "estimates; *within test noise*: not below it at 95 %, one-sided. *Farthest below* the promise, as a share of "
        "the base's accuracy. *Goal*: test value of the choice as a multiple of the base's. *Held if base "
        "left*: of the choices other than the base itself. A seed draws world, split and models anew."
    )
    write(
        place,
        "frontier-promise",
        "Is the promised accuracy kept on test?",
        command,
        said,
        [about, seeds(rows), *parts],
        list(map(flat, rows)),
    )


# ---------------------------------------------------------------------- estimates on biased validation


def estimates(place: Path, records: Sequence[Record], command: str) -> None:
    """Which estimate chooses nearest to the truth where validation is as biased as the log."""
    rows = choices(records, biased=True)
    head = [
        "regret",
        "promise broken",
        "surely",
        "mean below",
        "farthest below",
        "accuracy",
        "median goal",
        "base",
        "of the best model",
        "promise × the best missed",
    ]

    def line(group: Rows) -> list[str]:
        below = [excess(row) for row in group]
        broken = [value for value in below if value > 1e-12]
        return [
            f"{mean(regret(row) for row in group):.3f}",
            share(not row["held"] for row in group),
            share(row["surely_broken"] for row in group),
            f"{100 * mean(broken):.1f} %" if broken else "–",
            f"{100 * max(below):.1f} %",
            percent(mean(row["test_change"][0] for row in group)),
            times(group),
            f"{mean(row['base_to_best_plain'] for row in group):.2f}",
            f"{mean(map(of_the_best, group)):.2f}",
            share(map(misses_the_best, group)),
        ]

    parts = []
    for wanted, words in (
        ("best", "the most accurate model by the estimate itself"),
        ("lightgcn", "LightGCN, whatever the estimate"),
    ):
        some = [row for row in rows if row["base_is"] == wanted]
        lines = [
            [estimate, sure(confidence), *line(group)]
            for (confidence, estimate), group in by(some, "confidence", "estimate").items()
        ]
        parts += [f"## All data, goals and promises; base: {words}", table(["estimate", "confidence", *head], lines)]
    for (goal,), some in by(
        [row for row in rows if row["base_is"] == "best" and row["confidence"] == 0.95], "goal"
    ).items():
        lines = [
            [title(data), estimate, str(len({row["seed"] for row in group})), *line(group)]
            for (data, estimate), group in by(some, "data", "estimate").items()
        ]
        parts += [
            f"## Goal {goal}, confirmed at 95 %, all promises",
            table(["data", "estimate", "seeds", *head], lines),
        ]
    confirmed = [row for row in rows if row["confidence"] == 0.95]
    own, common = (by([row for row in confirmed if row["base_is"] == one], "estimate") for one in ("best", "lightgcn"))
    told = {
        name[0]: (mean(regret(row) for row in group), mean(not row["held"] for row in group), max(map(excess, group)))
        for name, group in common.items()
    }
    quiet = [name for name, (_, broken, _) in told.items() if broken <= 0.05]
    nearest = min(quiet or told, key=lambda name: (0 if quiet else round(told[name][1], 2), told[name][0]))
    those = "of those that break at most 5 %" if quiet else "none breaks less than 5 %; of those that break the fewest"
    said = [
        f"With one base for all (LightGCN), {those} of their promises (confirmed at 95 %) on test, `{nearest}` is "
        "nearest to the oracle. Regret, share broken, farthest below: "
        + "; ".join(f"`{name}` {a:.2f}, {100 * b:.0f} %, {100 * c:.1f} %" for name, (a, b, c) in told.items())
        + ".",
        "With the base that each estimate takes itself, its promise is worth what that base is worth. Missed the "
        "promise × the accuracy of the model that truly is the best, and mean share of that accuracy: "
        + "; ".join(
            f"`{name[0]}` {share(map(misses_the_best, group))}, {mean(map(of_the_best, group)):.3f}"
            for name, group in own.items()
        )
        + ".",
    ]
    if nearest != "logged":
        said.append(_paired(common[nearest,], common["logged",], nearest))
    about = (
        "Validation is 15 % of the training pairs, so that it is as biased as the log; test is unbiased. The oracle is "
        "the point that is best for the goal on test among those that keep the promise on test, against the same base. "
        "*Regret*: the part of the oracle's goal that the choice does not reach (0 = all of it). *Promise broken*: "
        "test NDCG@20 below promise × base; *surely*: at 95 %, one-sided; *mean* and *farthest below*: by how much of "
        "the base's accuracy, of the broken ones. `ips` has power 0.5, `ips-0.75` and `ips-1` more. *Not confirmed*: "
        "the best point whose estimate is within the promise. *Median goal*: test value of "
        "the choice as a multiple of the base's. *Base*: its test accuracy as a share of the best "
        "model's as it is; a promise to keep 98 % of a poor base is easy to keep. *Of the best model*: the choice's "
        "test accuracy as a share of the same; *promise × the best missed*: where that is below the promise."
    )
    write(
        place,
        "frontier-estimates",
        "Which estimate, where validation is as biased as the log?",
        command,
        said,
        [about, seeds(rows), *parts],
        [flat(row) for row in rows if row["base_is"] == "best"],
    )


def of_the_best(row: Record) -> float:
    """Test accuracy of a choice, as a share of that of the best model as it is."""
    return float(row["base_to_best_plain"] * (1 + row["test_change"][0]))


def misses_the_best(row: Record) -> bool:
    """Whether that is below the promise."""
    return of_the_best(row) < row["keep"] - 1e-12


def _paired(one: Rows, other: Rows, name: str) -> str:
    """Whether an estimate is told apart from the log's own accuracy, seed by seed."""
    sides = [{key: mean(map(regret, some)) for key, some in by(rows, "data", "seed").items()} for rows in (other, one)]
    less = [sides[0][key] - sides[1][key] for key in sides[0]]
    error = stdev(less) / len(less) ** 0.5 if len(less) > 1 else float("nan")
    found = f"{mean(less):.3f} ± {error:.3f} (standard error, {len(less)} data and seeds)"
    return f"`{name}` has {found} less regret than `logged`."

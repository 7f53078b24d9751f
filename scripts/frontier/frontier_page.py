"""Page: the frontier, who is dominated by it, and the best trained method at the same accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from scripts.frontier.figure import FIGURE
from scripts.frontier.judge import FRONTIER, KEEPS, METHODS, NAIVE
from scripts.frontier.lists import SWEPT, TRAINED
from scripts.frontier.rows import Record, Rows, by, choices, flat, mean, middle, order, share, sure, table, title, write

from dpaa.debiasing import percent

# ---------------------------------------------------------------------- the frontier


def frontier(place: Path, records: Sequence[Record], times: Sequence[Record], command: str) -> None:
    """Chosen points, who is dominated, and the best of the trained methods at the same accuracy."""
    full = [one for one in records if not one["biased"] and set(TRAINED) <= set(one["plain"])]
    picked = choices(full, base_is="best", confidence=(0.95, 0.5))
    plain_rows, lines = _plain_points(full)
    ratio_rows, ratios = _against_best(full)
    said = _said(full, ratio_rows)
    chosen_head = [
        "data (seeds)",
        "promise",
        "confidence",
        "validation",
        "test accuracy",
        "niche recall",
        "coverage",
        "ARP",
    ]
    parts = [
        "Validation is unbiased, all is chosen on it; all values below are of test, means over seeds, intervals the "
        "mean of each seed's 95 % interval over users. Frontier: dial and re-rankers over "
        + ", ".join(SWEPT)
        + ". Every method that is "
        "trained in epochs has the default training. Which methods are candidates was settled on seed 100 of a demo "
        "world (700 × 600), of Coat and of KuaiRec severity 5, which are not in this study; nothing was changed after "
        "its first test figures.",
        f"![NDCG@20 and niche recall@20 on test: the frontier as a line, every method as it is]({FIGURE})",
        "One seed of each. The line goes through the points that are on the frontier on *validation*, from the most "
        "accurate there to the least, as they are on test: where it bends back, validation was mistaken. A method "
        "below and to the left of it is dominated; where names would cover each other, the table below has them.",
        "## Chosen points, goal niche-recall",
        table(chosen_head, _chosen(picked, "niche-recall")),
        "## Chosen points, goal coverage",
        table(chosen_head, _chosen(picked, "coverage")),
        "## Every method as it is: who is dominated?",
        "For each method: the point of the frontier that validation takes instead (the best for niche recall "
        "among those that are at least as accurate on validation). *Dominated*: it is at least as good "
        "in both, on validation; on test.",
        table(
            ["data", "method", "NDCG@20", "niche recall", "coverage", "ARP", "dominated on validation", "on test"],
            lines,
        ),
        "## Against the best trained debiasing method at the same accuracy",
        "The frontier, and the best of "
        + ", ".join(TRAINED)
        + " as trained: equal with equal. Both are chosen on validation for the same goal and promise, against the "
        "same base, by the same rule: confirmed at 95 %, at 50 %, or not at all (the best whose estimate is within the "
        "promise); who has nothing to offer keeps the base. Ratios of test values, median (lowest to highest), above 1 "
        "in favour of the frontier; – where neither finds anything. Last, the method that is best on *test* within the "
        "promise on test, which nobody can choose.",
        table(
            [
                "data (seeds)",
                "promise",
                "rule",
                "niche recall",
                "coverage",
                "promise held: frontier",
                "method",
                "niche recall, their best on test",
                "coverage, their best on test",
            ],
            ratios,
        ),
    ]
    if times:
        parts += [
            "## Time of `dpaa debias` with its defaults",
            table(
                ["data", "seconds", "CPU seconds", "load"],
                [
                    [title(one["data"]), f"{one['seconds']:.0f}", f"{one['cpu']:.0f}", f"{one['load']:.1f}"]
                    for one in times
                ],
            ),
            "*Load*: other work on the two cores at the time; seconds on idle cores are fewer.",
        ]
    write(
        place,
        "frontier",
        "The frontier: chosen points, and who is dominated",
        command,
        said,
        parts,
        [*map(flat, picked), *plain_rows, *ratio_rows],
    )


def _chosen(rows: Rows, goal: str) -> Iterable[list[str]]:
    for (data, keep, confidence), group in by(
        [row for row in rows if row["goal"] == goal], "data", "keep", "confidence"
    ).items():

        def band(name: str, group: Rows = group) -> str:
            middle, low, high = (mean(row[name][place] for row in group) for place in range(3))
            return f"{percent(middle)} ({percent(low)} to {percent(high)})"

        def move(name: str, group: Rows = group) -> str:
            before, after = (mean(row["test"][one][name] for row in group) for one in ("base", "chosen"))
            return f"{before:.4g} → {after:.4g}"

        yield [
            f"{title(data)} ({len(group)})",
            percent(keep - 1),
            sure(confidence),
            band("valid_change"),
            band("test_change"),
            *map(move, ("niche", "coverage", "arp")),
        ]


def _plain_points(records: Sequence[Record]) -> tuple[Rows, list[list[str]]]:
    rows: Rows = []
    for record in records:
        found = {(one["model"], one["goal"]): one for one in record["dominated"]}
        for model, values in record["plain"].items():
            one = found[model, "niche-recall"]
            rows.append(
                {
                    "data": record["data"],
                    "seed": record["seed"],
                    "model": model,
                    **{f"test_{key}": value for key, value in values["test"].items()},
                }
                | {
                    "instead": one["instead"],
                    "dominated_valid": one.get("dominated_valid", False),
                    "dominated_test": one.get("dominated_test", False),
                }
            )
    lines = []
    for (data, model), group in sorted(by(rows, "data", "model").items(), key=lambda pair: order(pair[0][0])):
        values = [f"{mean(row[f'test_{name}'] for row in group):.4f}" for name in ("ndcg", "niche", "coverage")]
        arp = f"{mean(row['test_arp'] for row in group):.1f}"
        lines.append(
            [
                title(data),
                model,
                *values,
                arp,
                share(row["dominated_valid"] for row in group),
                share(row["dominated_test"] for row in group),
            ]
        )
    return rows, lines


def _against_best(records: Sequence[Record]) -> tuple[Rows, list[list[str]]]:
    rows: Rows = []
    for record in records:
        rules = {"base_is": "best", "confidence": (0.95, 0.5, NAIVE)}
        sides = [choices([record], of=who, **rules) for who in (FRONTIER, METHODS)]
        for ours, theirs in zip(*sides, strict=True):
            row = {name: ours[name] for name in ("data", "seed", "goal", "keep")}
            assert row == {name: theirs[name] for name in row}
            rows.append(row | {"confidence": str(ours["confidence"]), **_beside(record, ours, theirs)})
    lines = []
    for (data, keep, confidence), group in sorted(
        by(rows, "data", "keep", "confidence").items(), key=lambda pair: (order(pair[0][0]), -pair[0][1])
    ):
        of = {goal: [row for row in group if row["goal"] == goal] for goal in ("niche-recall", "coverage")}
        lines.append(
            [f"{title(data)} ({len(of['coverage'])})", percent(keep - 1), _rule(confidence)]
            + [_spread(row["ratio"] for row in found) for found in of.values()]
            + [share(row[name] for row in group) for name in ("held", "their_held")]
            + [_spread(row["ratio_test"] for row in found) for found in of.values()]
        )
    return rows, lines


def _rule(confidence: str) -> str:
    return sure(confidence if confidence == NAIVE else float(confidence))


def _spread(values: Iterable[float]) -> str:
    known = [value for value in values if value == value]
    return f"{middle(known):.2f} ({min(known):.2f} to {max(known):.2f})" if known else "–"


def _beside(record: Record, ours: Record, theirs: Record) -> dict[str, Any]:
    """The frontier's choice and theirs, and the method that test itself would choose."""
    measure = "niche" if ours["goal"] == "niche-recall" else "coverage"
    mine, other = (one["test"]["chosen"][measure] for one in (ours, theirs))
    plain = {name: record["plain"][name]["test"] for name in TRAINED}
    within = [one for one in plain.values() if one["ndcg"] >= ours["keep"] * ours["test"]["base"]["ndcg"]]
    best = max([one[measure] for one in within], default=float("nan"))
    return {
        "chosen": ours["chosen"],
        "chosen_value": mine,
        "held": ours["held"],
        "their_chosen": theirs["chosen"],
        "their_value": other,
        "their_held": theirs["held"],
        "ratio": _ratio(mine, other),
        "ratio_test": _ratio(mine, best),
    }


def _ratio(mine: float, theirs: float) -> float:
    """Of nothing there is no multiple, unless both have nothing."""
    return mine / theirs if theirs > 0 else float("nan")


def _said(records: Sequence[Record], ratios: Rows) -> list[str]:
    doubt = [
        one
        for record in records
        for one in record["dominated"]
        if one["goal"] == "niche-recall" and one["model"] in TRAINED
    ]
    on_valid, on_test = (share(one.get(f"dominated_{split}", False) for one in doubt) for split in ("valid", "test"))
    said = [
        f"Of the paper's trained debiasing methods as they are, {on_valid} are dominated on validation, and "
        f"{on_test} by the same point on test.",
        "Against the best of them within −2 %, both chosen on validation by the same rule, median ratio of test values "
        "(how often below 1); in brackets against the one that test itself would choose:",
    ]
    at = [row for row in ratios if row["keep"] == KEEPS[1]]
    for (goal, confidence), some in by(at, "goal", "confidence").items():
        words = []
        for kind, group in _with_taste(records, some).items():
            found = {name: [row[name] for row in group if row[name] == row[name]] for name in ("ratio", "ratio_test")}
            told = [
                f"{middle(values):.2f} × (below 1 in {share(value < 0.9995 for value in values)})"
                for values in found.values()
                if values
            ]
            if told:
                words.append(f"{kind} {told[0]}" + (f" [{told[1]}]" if len(told) > 1 else ""))
        said.append(f"- {goal}, {_rule(confidence)}: {'; '.join(words)}")
    return said


def _with_taste(records: Sequence[Record], rows: Rows) -> dict[str, Rows]:
    """Rows by whether there is taste to find: whether any model beats the most popular items on test by 5 %."""
    found: dict[str, Rows] = {"where there is taste to find": [], "where the most popular items are hard to beat": []}
    there = {}
    for record in records:
        values = {name: one["test"]["ndcg"] for name, one in record["plain"].items()}
        popular = values.pop("most-popular")
        there[record["data"], record["seed"]] = max(values.values()) >= 1.05 * popular
    for row in rows:
        found[list(found)[0 if there[row["data"], row["seed"]] else 1]].append(row)
    return found

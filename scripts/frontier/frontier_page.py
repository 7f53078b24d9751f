"""Page: the frontier, who is dominated by it, and the best trained method at the same accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from dpaa.frontier.choice import percent
from frontier.judge import KEEPS
from frontier.lists import SWEPT, TRAINED
from frontier.rows import Record, Rows, by, choices, flat, mean, middle, order, share, sure, table, title, write

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
        "trained in epochs has learning rate 5e-3, patience 20 and at most 150 epochs.",
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
        "The best of "
        + ", ".join(TRAINED)
        + " as trained whose *test* accuracy is within the promise: it is chosen on test, "
        "the frontier's point on validation. Ratios of test values, above 1 in favour of the frontier; – where no "
        "trained method is within the promise.",
        table(
            [
                "data (seeds)",
                "promise",
                "confidence",
                "niche recall",
                "coverage",
                "its niche recall",
                "its coverage",
                "no method within",
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
        plain = {name: record["plain"][name]["test"] for name in TRAINED}
        for one in choices([record], base_is="best", confidence=(0.95, 0.5)):
            measure = "niche" if one["goal"] == "niche-recall" else "coverage"
            within = {
                name: values
                for name, values in plain.items()
                if values["ndcg"] >= one["keep"] * one["test"]["base"]["ndcg"]
            }
            best = max(within, key=lambda name: within[name][measure], default=None)
            mine = one["test"]["chosen"][measure]
            theirs = within[best][measure] if best else float("nan")
            rows.append(
                {name: one[name] for name in ("data", "seed", "goal", "keep")}
                | {
                    "confidence": str(one["confidence"]),
                    "best_trained": best,
                    "best_trained_value": theirs,
                    "chosen_value": mine,
                }
                | {"ratio": mine / theirs if theirs > 0 else float("nan")}
            )

    def told(group: Rows, key: Callable[[dict[str, Any]], float]) -> str:
        values = [key(row) for row in group if key(row) == key(row)]
        return f"{mean(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else "–"

    lines = []
    for (data, keep, confidence), group in sorted(
        by(rows, "data", "keep", "confidence").items(), key=lambda pair: (order(pair[0][0]), -pair[0][1])
    ):
        of = {goal: [row for row in group if row["goal"] == goal] for goal in ("niche-recall", "coverage")}
        lines.append(
            [f"{title(data)} ({len(of['coverage'])})", percent(keep - 1), sure(float(confidence))]
            + [told(found, lambda row: row["ratio"]) for found in of.values()]
            + [f"{mean(row['best_trained_value'] for row in found):.4f}" for found in of.values()]
            + [share(row["best_trained"] is None for row in of["coverage"])]
        )
    return rows, lines


def _said(records: Sequence[Record], ratios: Rows) -> list[str]:
    doubt = [
        one
        for record in records
        for one in record["dominated"]
        if one["goal"] == "niche-recall" and one["model"] in TRAINED
    ]
    strict = [row for row in ratios if row["keep"] == KEEPS[1] and row["ratio"] == row["ratio"]]
    told = []
    for goal in ("niche-recall", "coverage"):
        for confidence in ("0.95", "0.5"):
            values = [row["ratio"] for row in strict if row["goal"] == goal and row["confidence"] == confidence]
            below = sum(value < 1 for value in values)
            told.append(
                f"{goal} at {sure(float(confidence))} {middle(values):.2f} × (below 1 in {below} of {len(values)})"
                if values
                else ""
            )
    on_valid, on_test = (share(one.get(f"dominated_{split}", False) for one in doubt) for split in ("valid", "test"))
    return [
        f"Of the paper's trained debiasing methods as they are, {on_valid} are dominated on validation, and "
        f"{on_test} by the same point on test.",
        "Against the best of them within −2 %, chosen on test, median ratios: " + "; ".join(filter(None, told)) + ".",
    ]

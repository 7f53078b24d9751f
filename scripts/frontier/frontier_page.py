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
        + " as trained within the promise. The frontier's point is chosen on validation; theirs first on *test*, "
        "which nobody can do, then on validation like ours, but without a confirmation (last column: how "
        "often its test accuracy is within the promise). Ratios of test values, mean (lowest to highest), above 1 in "
        "favour of the frontier; – where there is no such method, or it finds nothing either.",
        table(
            [
                "data (seeds)",
                "promise",
                "confidence",
                "niche recall",
                "coverage",
                "niche recall, its best by validation",
                "coverage, its best by validation",
                "its promise held",
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
        for one in choices([record], base_is="best", confidence=(0.95, 0.5)):
            row = {name: one[name] for name in ("data", "seed", "goal", "keep")}
            rows.append(row | {"confidence": str(one["confidence"]), **_beside(record, one)})

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
            + [told(found, lambda row: row["ratio_valid"]) for found in of.values()]
            + [share(row["trained_held_valid"] for row in group if row["best_trained_valid"])]
        )
    return rows, lines


def _beside(record: Record, one: Record) -> dict[str, Any]:
    """The choice and the best trained method within the promise, as test and as validation choose that."""
    measure = "niche" if one["goal"] == "niche-recall" else "coverage"
    mine = one["test"]["chosen"][measure]
    found: dict[str, Any] = {"chosen_value": mine}
    for split, suffix in (("test", ""), ("valid", "_valid")):
        plain = {name: record["plain"][name][split] for name in TRAINED}
        least = one["keep"] * one[split]["base"]["ndcg"]
        within = [name for name, values in plain.items() if values["ndcg"] >= least]
        best = max(within, key=lambda name, of=plain: of[name][measure], default=None)  # type: ignore[misc]
        theirs = record["plain"][best]["test"][measure] if best else float("nan")
        ratio = mine / theirs if theirs > 0 else float("nan")
        least_on_test = one["keep"] * one["test"]["base"]["ndcg"]
        found[f"trained_held{suffix}"] = best is not None and record["plain"][best]["test"]["ndcg"] >= least_on_test
        found |= {f"best_trained{suffix}": best, f"best_trained_value{suffix}": theirs, f"ratio{suffix}": ratio}
    return found


def _said(records: Sequence[Record], ratios: Rows) -> list[str]:
    doubt = [
        one
        for record in records
        for one in record["dominated"]
        if one["goal"] == "niche-recall" and one["model"] in TRAINED
    ]
    told = []
    for (goal, confidence), some in by(
        [row for row in ratios if row["keep"] == KEEPS[1]], "goal", "confidence"
    ).items():
        words = []
        for name in ("ratio", "ratio_valid"):
            values = [row[name] for row in some if row[name] == row[name]]
            words.append(f"{middle(values):.2f} × (below 1 in {share(value < 1 for value in values)})")
        told.append(f"{goal} confirmed at {sure(float(confidence))} {words[0]}, {words[1]}")
    on_valid, on_test = (share(one.get(f"dominated_{split}", False) for one in doubt) for split in ("valid", "test"))
    return [
        f"Of the paper's trained debiasing methods as they are, {on_valid} are dominated on validation, and "
        f"{on_test} by the same point on test.",
        f"Against the best of them within −2 %, chosen on test, then on validation, median ratios: {'; '.join(told)}.",
    ]

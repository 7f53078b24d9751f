"""Rows of the records, and how they are told in Markdown and CSV."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from scripts.frontier.judge import FRONTIER, NAIVE

Record = Mapping[str, Any]
Rows = list[dict[str, Any]]


def title(data: str) -> str:
    """Of a dataset."""
    kind, *rest = data.split(":")
    if kind == "world":
        return f"demo world {rest[0].replace('x', ' × ')}, severity {rest[1]}"
    return "Coat" if kind == "coat" else f"KuaiRec severity {rest[0]}"


def order(data: str) -> tuple[int, str]:
    """Demo worlds, Coat, KuaiRec."""
    return (("world", "coat", "kuairec").index(data.split(":")[0]), data)


def choices(records: Iterable[Record], **wanted: Any) -> Rows:
    """One row for each choice, flat, of those with these values; of the frontier, unless said otherwise."""
    wanted = {"of": FRONTIER} | wanted
    found = []
    for record in sorted(records, key=lambda one: (order(one["data"]), one["seed"])):
        about = {name: record[name] for name in ("data", "seed", "biased")}
        for one in record["choices"]:
            row = about | one
            if all(
                row[name] in value if isinstance(value, tuple) else row[name] == value for name, value in wanted.items()
            ):
                found.append(row)
    return found


def seeds(rows: Rows) -> str:
    """How many seeds of each data; where they are few, the numbers are of these draws."""
    found = by(rows, "data")
    told = [f"{title(data)}: {len({row['seed'] for row in some})}" for (data,), some in found.items()]
    return f"Seeds: {'; '.join(told)}. Goals and promises of one seed share its models and users."


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for CSV: what was chosen, and what it is worth on test."""
    made = {
        name: value for name, value in row.items() if name not in ("valid", "test", "goal_of", "certainty", "biased")
    }
    made["confidence"] = str(row["confidence"])
    for name in ("valid_change", "test_change"):
        made |= {f"{name}{end}": number for end, number in zip(("", "_low", "_high"), made.pop(name), strict=True)}
    made |= {f"goal_{name}": value for name, value in row["goal_of"].items()}
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in made.items()}


def write(
    place: Path, name: str, heading: str, command: str, said: Sequence[str], parts: Sequence[str], rows: Rows
) -> None:
    """`name.md` and `name.csv`."""
    text = "\n\n".join([f"# {heading}", "Made by", f"    {command}", "\n".join(said), *parts]) + "\n"
    (place / f"{name}.md").write_text(text, encoding="utf-8")
    pl.DataFrame(rows, infer_schema_length=None).write_csv(place / f"{name}.csv")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def share(values: Iterable[bool]) -> str:
    """`19 of 20`."""
    found = list(values)
    return f"{sum(found)} of {len(found)}"


def of_all(values: Iterable[bool]) -> str:
    """`95 %`."""
    return f"{100 * mean(values):.0f} %"


def mean(values: Iterable[float]) -> float:
    """NaN of nothing."""
    known = [value for value in values if value == value]
    return statistics.fmean(known) if known else float("nan")


def middle(values: Iterable[float]) -> float:
    """The median; NaN of nothing."""
    known = [value for value in values if value == value]
    return statistics.median(known) if known else float("nan")


def by(rows: Rows, *names: str) -> dict[tuple[Any, ...], Rows]:
    """Rows with the same values, in the order of the first."""
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def gain(row: Record) -> float:
    """The goal's value of the choice, as a multiple of the baseline's."""
    found = row["goal_of"]
    return found["chosen"] / found["base"] if found["base"] > 0 else float("nan")


def times(rows: Rows) -> str:
    """The median of it, `1.17 ×`; – where no base finds anything."""
    found = middle(gain(row) for row in rows)
    return f"{found:.2f} ×" if found == found else "–"


def regret(row: Record) -> float:
    """The part of the oracle's goal that the choice does not reach."""
    found = row["goal_of"]
    return max(0.0, 1 - found["chosen"] / found["oracle"]) if found["oracle"] > 0 else 0.0


def excess(row: Record) -> float:
    """How far accuracy on test is below the promise, as a share of the baseline's."""
    return float(max(0.0, row["keep"] - 1 - row["test_change"][0]))


def sure(confidence: Any) -> str:
    """A confidence in words."""
    return "not confirmed" if confidence == NAIVE else f"{100 * confidence:.0f} %"

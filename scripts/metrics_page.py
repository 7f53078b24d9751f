"""Write the tables of docs/metrics.md that come from the table of metrics (`dpaa.evaluation.metrics.METRICS`).

python scripts/metrics_page.py
"""

from __future__ import annotations

import re
from pathlib import Path

from dpaa.evaluation.metrics import BETTER, Metric, of_kind

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
HEADER = "| metric | formula | better | range | case | what it says | source |\n|---|---|---|---|---|---|---|\n"


def definition(metric: Metric) -> str:
    """The formula in words: the first paragraph of its docstring."""
    return " ".join((metric.formula.__doc__ or "").partition("\n\n")[0].split()).removesuffix(".")


def line(metric: Metric, key: str) -> str:
    """The line `Range:`, `Case:` or `Source:` of its docstring; empty where there is none."""
    match = re.search(rf"^ *{key}: (.*)$", metric.formula.__doc__ or "", re.MULTILINE)
    return match[1] if match else ""


def table(kind: str) -> str:
    """A row per metric of this kind."""
    rows = [
        (
            *(f"`{one.name}@k`", definition(one), BETTER[one.better].removesuffix(" is better")),
            *(line(one, "Range") or "0 … 1", line(one, "Case"), one.words, line(one, "Source")),
        )
        for one in of_kind(kind)
    ]
    return HEADER + "".join(f"| {' | '.join(row)} |\n".replace("|  |", "| |") for row in rows)


def page(text: str) -> str:
    """The page with its tables regenerated, each between two comments that name its kind."""

    def made(match: re.Match[str]) -> str:
        return f"{match[1]}\n{table(match[2])}{match[3]}"

    return re.sub(r"(<!-- metrics: (\w+) -->)\n.*?(<!-- end -->)", made, text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

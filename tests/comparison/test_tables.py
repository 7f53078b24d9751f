"""The comparison as a table: marks and bold by the verdicts, every number in the CSV, nothing of a name acts."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dpaa._text import finite
from dpaa.comparison import Comparison, write_table
from dpaa.comparison._result import SHOWN


def test_markdown(found: Comparison) -> None:
    lines = found.markdown().splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    metrics = list(dict.fromkeys(delta.metric for delta in found.deltas))
    assert table[0] == ["", *metrics]
    assert [row[0].split(" (")[0] for row in table[2:]] == [entry.name for entry in found.entries]
    marks = {
        (row[0].split(" (")[0], metric): cell[-1]
        for row in table[2:]
        for metric, cell in zip(metrics, row[1:], strict=True)
    }
    for delta in found.deltas:
        assert (marks[delta.entry, delta.metric] == SHOWN.get(delta.verdict)) == (delta.verdict in SHOWN)
    good = next(row for row in table if row[0].startswith("good"))
    assert good[0] == "good (3 runs)"
    assert re.fullmatch(r"\*\*0\.\d{4}\*\* ± 0\.\d{4} \+", good[1 + metrics.index("recall@10")])
    assert found.family in lines[-1]


def test_latex(found: Comparison) -> None:
    text = found.latex()
    assert r"\textbf{" in text
    assert r"$\pm$" in text
    assert "$^{+}$" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + len(found.entries)
    assert {row.count("&") for row in rows} == {len({delta.metric for delta in found.deltas})}
    assert text.count("{") == text.count("}")


def test_csv_has_every_number(found: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(found.csv())))
    metrics = {delta.metric for delta in found.deltas}
    assert len(rows) == len(metrics) * (len(found.entries) - 1)
    by = {(row["entry"], row["metric"]): row for row in rows}
    for delta in found.deltas:
        row = by[delta.entry, delta.metric]
        assert float(row["delta"]) == delta.delta
        assert row["verdict"] == delta.verdict
        assert row["p_holm"] == ("" if delta.p_holm is None else str(delta.p_holm))


def test_names_cannot_break_a_table(found: Comparison) -> None:
    entries = [replace(found.entries[0], name="a|b_\\x\n%"), *found.entries[1:]]
    odd = replace(found, entries=entries, baseline="a|b_\\x\n%")
    assert r"a\|b\_\\x\\n%" in odd.markdown()
    assert r"a|b\_\textbackslash{}x\textbackslash{}n\%" in odd.latex()


@pytest.mark.parametrize("ending", ["json", "md", "tex", "csv"])
def test_files(found: Comparison, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"table.{ending}"
    write_table(found, file)
    text = file.read_text(encoding="utf-8")
    if ending == "json":
        assert json.loads(text) == json.loads(json.dumps(finite(found.as_json())))
    assert "recall@10" in text
    assert [one.name for one in tmp_path.iterdir()] == [file.name]

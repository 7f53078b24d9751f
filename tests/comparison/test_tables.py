"""The comparison as a table: marks and bold by the verdicts, every number in the CSV, nothing of a name acts."""

import csv
import io
import re

from dpaa.comparison import Comparison
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

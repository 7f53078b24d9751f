"""`make bench` uses what lies inside of the trainer: every table is made once, on small graphs."""

import pytest
from benchmarks import __main__ as bench
from benchmarks import graphs
from benchmarks.graphs import Cases

pytestmark = [  # of the code that we are measured against
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:.torch.jit"),
]
PARTS = ("training", "profile", "dpaa", "methods", "evaluation")
"""The others start processes of their own on graphs of the real sizes."""


@pytest.mark.parametrize("part", PARTS)
def test_every_table_can_be_made(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(graphs.SIZES, "Yahoo-size", (120, 40, 900, 2))
    monkeypatch.setitem(graphs.SIZES, "KuaiRec-size", (60, 90, 1_200, 2))
    for name in graphs.SMALL:
        monkeypatch.setitem(graphs.SMALL, name, (60, 50, 600, 2))
    _, header, run = bench.PARTS[part]
    rows = run(Cases(sizes=(64,)))
    assert rows
    assert all(len(row) == len(header) for row in rows)
    assert not any("nan" in cell for row in rows for cell in row)

"""The paper's rows."""

from __future__ import annotations

from dpaa.reproduction import paper


def test_the_papers_rows() -> None:
    assert paper.row_of("dpaa-as-printed layer_emphasis=3") == "dpaa"
    assert paper.row_of("dpaa iiw=false") is None
    assert paper.row_of("most-popular") is None
    assert paper.at_severity(paper.SEVERITY["lightgcn"], 9.0) == 0.0278
    assert paper.at_severity(paper.SEVERITY["lightgcn"], 2.5) is None
    assert paper.at_severity(paper.SEVERITY["lightgcn"], 10.0) is None
    assert all(len(row) == 10 for row in (*paper.SEVERITY.values(), *paper.ABLATION.values()))

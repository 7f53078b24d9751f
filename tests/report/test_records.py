from __future__ import annotations

from dpaa.report.lenient import lenient
from dpaa.report.records import Protocol


def test_metrics_of_the_longest_lists_are_shown() -> None:
    found = lenient(Protocol, {"k": [5, 50, 20], "overlap": "mask"})
    assert found.largest_k == 50
    assert found.in_words == "lists of 50, overlap convention “mask”"


def test_a_protocol_that_says_nothing() -> None:
    assert lenient(Protocol, None).largest_k == 20
    assert lenient(Protocol, {"k": "many"}).in_words == "lists of 20, overlap convention “?”"

"""Cells, places, improvements and the formats of tables."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpaa.reproduction.tables import Cell, Table, improvements, rank_agreement, ranked


def table() -> Table:
    rows = (
        ("most-popular", ranked([Cell((0.2,)), Cell()])),
        ("dpaa a|b_c", (Cell((0.10, 0.12), 0.13, place=2), Cell((12.34,), form=".1f"))),
    )
    footer = (("gain", (Cell((-3.21,), 1.0, form="%"), Cell(text=""))),)
    return Table("t", "Title & `drop`", "method", ("recall@20", "arp@20"), rows, footer, ("Note with 5 %.",))


def test_a_cell_says_mean_deviation_paper_and_difference() -> None:
    cell = Cell((0.10, 0.12), 0.13)
    assert cell.ours() == "0.1100 ± 0.0141"
    assert cell.beside() == "0.1300, −0.0200"
    assert Cell((0.1,)).ours() == "0.1000"
    assert Cell((), 0.13).ours() == "–"
    assert Cell((), 0.13).beside() == "0.1300"
    assert Cell((2.0,), 1.5, form="%").beside() == "+1.5 %"


def test_places_are_those_of_what_is_shown() -> None:
    cells = [Cell((value,)) for value in (0.10001, 0.3, 0.10004, 0.2, 0.29996)]
    assert [cell.place for cell in ranked(cells)] == [0, 1, 0, 2, 1]
    assert [cell.place for cell in ranked([Cell((0.1,)), Cell()])] == [0, 0]


def test_improvement_is_over_the_best_baseline_ours_and_printed() -> None:
    rows = [
        ("most-popular", [Cell((0.5,))]),
        ("ips", [Cell((0.2,), 0.1)]),
        ("cvib", [Cell((0.1,), 0.3)]),
        ("dpaa", [Cell((0.3,), 0.36)]),
    ]
    over, against = improvements(rows, [0], [0.3])
    assert over[1][0].mean == pytest.approx(50)
    assert over[1][0].paper == pytest.approx(20)
    assert against[1][0].mean == pytest.approx(-40)
    assert "most-popular" in against[0]


def test_markdown_latex_and_csv() -> None:
    text = table().markdown()
    assert "| dpaa a\\|b_c | _0.1100 ± 0.0141_<br>(0.1300, −0.0200) | 12.3 |" in text
    assert text.endswith("\nNote with 5 %.\n")
    latex = table().latex()
    assert r"\underline{0.1100 $\pm$ 0.0141}" in latex
    assert r"\caption{Title \& drop}" in latex
    assert r"dpaa a|b\_c" in latex
    assert latex.count(r"\begin{tabular}{lrr}") == latex.count(r"\end{tabular}") == 1
    body = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert {line.replace(r"\&", "").count("&") for line in body} == {2}
    rows = table().csv_rows()
    assert rows[2] == [
        "t",
        "dpaa a|b_c",
        "recall@20",
        pytest.approx(0.11),
        pytest.approx(0.02 / 2**0.5),
        2,
        0.13,
        pytest.approx(-0.02),
        2,
    ]


def test_text_on_the_page_stays_text() -> None:
    odd = Table("t", "<b>", "m", ("x",), (("<script>", (Cell(text="<i>"),)),))
    assert "<script>" not in odd.html()
    assert "&lt;script&gt;" in odd.html()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_rank_agreement_is_spearmans(pairs: list[tuple[int, int]]) -> None:
    one, other = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    found = rank_agreement(one, other)
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(stats.spearmanr(one, other).statistic)


def test_many_columns_are_shown_narrow_so_that_all_are_seen() -> None:
    cells = tuple(Cell((0.2, 0.21), 0.19, place=1) for _ in range(10))
    wide = Table("t", "T", "method", ("a", "b"), (("x", cells[:2]),)).html()
    narrow = Table("t", "T", "method", tuple("abcdefghij"), (("x", cells),)).html()
    assert "0.2050 ± 0.0071" in wide
    assert ".2050<small>± .0071</small><small>(.1900)</small>" in narrow
    assert 'title="0.1900, +0.0150"' in narrow
    assert "In brackets: the paper" in narrow

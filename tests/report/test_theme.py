from __future__ import annotations

from dpaa.report.theme import PALETTE, PAPER, PHONE, WIDE, Theme


def test_colours_repeat_beyond_the_palette() -> None:
    assert [PAPER.colour(place) for place in (0, 6, 7, 15)] == [PALETTE[0], PALETTE[6], PALETTE[0], PALETTE[1]]
    assert [WIDE.colour(place) for place in (0, 6, 7)] == ["var(--c0)", "var(--c6)", "var(--c0)"]


def test_a_title_takes_as_many_lines_as_the_width_asks_for() -> None:
    title = "popularity tenth (1 = rarest items, 10 = most popular)"
    assert WIDE.lines(title) == title
    lines = PHONE.lines(title)
    assert lines == ["popularity tenth (1 = rarest", "items, 10 = most popular)"]
    assert Theme(width=10, height=10).lines("twelve chars and more") == ["twelve chars", "and more"]


def test_a_phone_has_no_room_beside_the_plot() -> None:
    assert [theme.narrow for theme in (PHONE, WIDE, PAPER, Theme(420, 1), Theme(419, 1))] == [True, *[False] * 3, True]

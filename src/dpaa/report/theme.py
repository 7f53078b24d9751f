"""How a figure looks: for paper in fixed colours, for the page in CSS variables that follow light and dark."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito, the strongest first."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


@dataclass(frozen=True)
class Theme:
    """Size and colours of a figure."""

    width: int
    """Of the whole figure, axes and legend included."""
    height: int
    palette: tuple[str, ...] = PALETTE
    ink: str = "#111111"
    soft: str = "#444444"
    grid: str = "#e6e6e6"
    ground: str = "white"
    font: str = FONT
    font_size: int = 12

    def colour(self, place: int) -> str:
        """Of the n-th kind; beyond the palette they repeat, and shapes or dashes tell them apart."""
        return self.palette[place % len(self.palette)]

    def lines(self, title: str) -> str | list[str]:
        """An axis title in as many lines as the width asks for, in a reader's font that may be a wide one."""
        found = textwrap.wrap(title, max(12, int((self.width - 70) / (0.62 * (self.font_size + 1)))))
        return found if len(found) > 1 else title

    @property
    def narrow(self) -> bool:
        """Whether there is no room beside the plot."""
        return self.width < 420


PAPER = Theme(width=520, height=340)
_CSS = {
    "palette": tuple(f"var(--c{place})" for place in range(len(PALETTE))),
    "ink": "var(--ink)",
    "soft": "var(--soft)",
    "grid": "var(--grid)",
    "ground": "transparent",
}
WIDE = Theme(width=660, height=360, **_CSS)  # type: ignore[arg-type]
PHONE = Theme(width=324, height=290, **_CSS)  # type: ignore[arg-type]

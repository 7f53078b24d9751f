"""What all figures share: Altair, themes, files.

Colours can be told apart with any colour vision: Okabe and Ito's for kinds, viridis for an order, blue to orange around
a midpoint.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from dpaa._io import check_file_target, write_file
from dpaa.errors import InputError, MissingExtraError

Chart = Any
"""A chart of Altair, which is an extra."""
FORMATS = ("png", "svg", "pdf", "html", "json")
SAVE_OPTIONS: dict[str, dict[str, Any]] = {"png": {"ppi": 200}, "html": {"inline": True}}
"""Sharp enough for print; a page that needs no network."""
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")


@dataclass(frozen=True)
class Theme:
    """Size of a whole figure, axes and legend included, and its colours."""

    width: int
    height: int
    palette: tuple[str, ...] = PALETTE
    ink: str = "#111111"
    soft: str = "#444444"
    grid: str = "#e6e6e6"
    ground: str = "white"
    font: str = "Liberation Sans, Arial, Helvetica, sans-serif"
    font_size: int = 12

    def colour(self, index: int) -> str:
        """Colour of the n-th kind; they repeat beyond the palette, where shapes or dashes tell kinds apart."""
        return self.palette[index % len(self.palette)]

    def lines(self, title: str) -> str | list[str]:
        """Break an axis title into lines that fit the width even in a wide font."""
        lines = textwrap.wrap(title, max(12, int((self.width - 70) / (0.62 * (self.font_size + 1)))))
        return lines if len(lines) > 1 else title

    @property
    def narrow(self) -> bool:
        """Whether the figure is for a phone."""
        return self.width < 420


PAPER = Theme(width=520, height=340)
# On the page colours are CSS variables, which follow light and dark.
_CSS: dict[str, Any] = {name: f"var(--{name})" for name in ("ink", "soft", "grid")} | {
    "palette": tuple(f"var(--c{index})" for index in range(len(PALETTE))),
    "ground": "transparent",
}
WIDE = Theme(width=660, height=360, **_CSS)
PHONE = Theme(width=324, height=290, **_CSS)


def altair() -> ModuleType:
    """Import the drawing library, or say in one sentence what to install."""
    try:
        import altair
        import vl_convert  # noqa: F401  # Altair draws png, svg and pdf with it
    except ImportError:
        raise MissingExtraError("drawing figures", "report") from None
    return altair


def check_figures(folder: Path, figure_format: str) -> None:
    """Refuse, before anything is computed, a folder that cannot take figures of this format.

    Parameters
    ----------
    folder : where the figures will be written
    figure_format : one of `FORMATS`
    """
    check_figure(folder / f"figure.{figure_format}")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose a folder with --figures")


def check_figure(file: Path) -> None:
    """Refuse, before anything is computed, a file that no figure can be written to.

    Parameters
    ----------
    file : its suffix says the format
    """
    altair()
    check_file_target(file, [f".{form}" for form in FORMATS], "a figure", make_folders=True)


def save(chart: Chart, file: str | Path) -> Path:
    """Write a figure, whole or not at all.

    Parameters
    ----------
    chart : chart of Altair
    file : its suffix says the format

    Returns
    -------
    the file
    """
    target = Path(file)
    check_figure(target)
    form = target.suffix.lower().removeprefix(".")

    def draw(staged: Path) -> None:
        chart.save(str(staged), format=form, **SAVE_OPTIONS.get(form, {}))

    write_file(target, draw, "make room or choose another place", make_folders=True)
    return target


def styled(chart: Chart, theme: Theme = PAPER, padding: int | dict[str, int] = 12) -> Chart:
    """Give a chart the look of all figures: readable type, no box, faint grid.

    Parameters
    ----------
    chart : chart of Altair
    theme : its colours and font
    padding : pixels around the plot

    Returns
    -------
    the configured chart
    """
    small, large = theme.font_size, theme.font_size + 1
    text = {"labelColor": theme.ink, "titleColor": theme.ink, "titleFontWeight": "normal", "labelFontSize": small}
    lines = {"gridColor": theme.grid, "domainColor": theme.soft, "tickColor": theme.soft, "titlePadding": 10}
    title = {"fontSize": 15, "anchor": "start", "fontWeight": "bold", "color": theme.ink}
    return (
        chart.configure(font=theme.font, background=theme.ground, padding=padding)
        .configure_view(stroke=None)
        .configure_title(**title, subtitleFontSize=small, subtitleColor=theme.soft)
        .configure_axis(titleFontSize=large, **lines, **text)
        .configure_legend(titleFontSize=small, symbolStrokeWidth=3, **text)
        .configure_header(titleFontSize=large, **text)
    )


def by_name(channel: str, field: str, names: Sequence[str], values: Sequence[Any], legend: Any = None) -> Any:
    """Encode names by a value each, in this order.

    Parameters
    ----------
    channel : `Color`, `Shape`, `StrokeDash`, …
    field : column with the names
    names, values : in the order of the legend
    legend : of Altair; none unless given

    Returns
    -------
    the channel of Altair
    """
    alt = altair()
    scale = alt.Scale(domain=list(names), range=list(values))
    return getattr(alt, channel)(f"{field}:N", sort=list(names), title=None, scale=scale, legend=legend)

"""The page of `dpaa demo` in headless Chromium, as a reader opens it: from the disk, without network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.report.browser import Browser, find_browser

FIRST = "document.querySelector('#metrics table')"
COLUMN = f"[...{FIRST}.tHead.rows[0].cells].findIndex((head) => head.textContent.startsWith('ndcg@20 '))"

CUT_TEXT = """
[...document.querySelectorAll('.chart svg')].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  const sticksOut = (text) => {
    const own = text.getBoundingClientRect();
    return own.width && (own.left < box.left - 1 || own.right > box.right + 1
      || own.top < box.top - 1 || own.bottom > box.bottom + 1);
  };
  return box.width ? [...svg.querySelectorAll('text')].filter(sticksOut).map((text) => text.textContent) : [];
})
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium here: install Debian's `chromium`, or name a browser in DPAA_BROWSER")
    with Browser(program) as opened:
        yield opened


@pytest.fixture
def opened(browser: Browser, demo_folder: Path) -> Iterator[Browser]:
    browser.size(1280, 900)
    browser.dark(False)
    browser.open(demo_folder / "report.html")
    browser.run("localStorage.clear()")
    browser.open(demo_folder / "report.html")
    yield browser
    assert browser.complaints == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in browser.requests), browser.requests


def values(browser: Browser) -> list[float]:
    found = browser.run(f"[...{FIRST}.tBodies[0].rows].map((row) => Number(row.cells[{COLUMN}].dataset.by))")
    return [float(value) for value in found]


def test_loads_from_the_disk(opened: Browser, demo_folder: Path) -> None:
    dials = opened.run("document.querySelectorAll('#dial figure').length")
    assert dials == 3, "one of each run"
    assert opened.run("document.querySelectorAll('figure').length") - dials == 10
    assert set(opened.requests) == {(demo_folder / "report.html").resolve().as_uri()}
    assert opened.run("document.querySelector('h1').textContent") == "Popularity bias: demo"


def test_sorts_by_click_and_by_key(opened: Browser) -> None:
    before = values(opened)
    opened.run(f"{FIRST}.tHead.rows[0].cells[{COLUMN}].querySelector('button').click()")
    assert values(opened) == sorted(before, reverse=True)
    assert opened.run(f"{FIRST}.tHead.rows[0].cells[{COLUMN}].ariaSort") == "descending"
    opened.run(f"{FIRST}.tHead.rows[0].cells[{COLUMN}].querySelector('button').focus()")
    opened.press("Enter")
    assert values(opened) == sorted(before)
    assert opened.run(f"{FIRST}.tHead.rows[0].cells[{COLUMN}].ariaSort") == "ascending"
    opened.run(f"{FIRST}.tHead.rows[0].cells[0].querySelector('button').click()")
    names = opened.run(f"[...{FIRST}.tBodies[0].rows].map((row) => row.cells[0].textContent)")
    assert names == ["dpaa", "lightgcn", "most-popular"]
    assert opened.run(f"{FIRST}.tHead.rows[0].cells[{COLUMN}].ariaSort") == "none"


def ground(browser: Browser) -> str:
    return str(browser.run("getComputedStyle(document.body).backgroundColor"))


def ink(browser: Browser) -> str:
    return str(browser.run("getComputedStyle(document.querySelector('#long-tail svg text')).fill"))


def test_dark_by_button_and_by_system(opened: Browser, demo_folder: Path) -> None:
    light, light_ink = ground(opened), ink(opened)
    opened.run("document.getElementById('theme').focus()")
    opened.press(" ")
    dark, dark_ink = ground(opened), ink(opened)
    assert dark != light
    assert dark_ink != light_ink, "charts follow"
    assert opened.run("document.getElementById('theme').ariaPressed") == "true"
    opened.open(demo_folder / "report.html")
    assert ground(opened) == dark, "the choice is kept"
    opened.run("localStorage.clear()")
    opened.dark(True)
    opened.open(demo_folder / "report.html")
    assert ground(opened) == dark
    opened.run("document.getElementById('theme').click()")
    assert ground(opened) == light


@pytest.mark.parametrize("width", [360, 700, 1280])
def test_nothing_sticks_out(opened: Browser, width: int) -> None:
    opened.size(width, 740, phone=width < 500)
    assert opened.run("document.documentElement.scrollWidth") <= width
    kind = "phone" if width < 500 else "wide"
    shown = opened.run(
        "[...document.querySelectorAll('.chart')].filter((c) => c.offsetWidth).map((c) => c.className.split(' ')[1])"
    )
    assert set(shown) == ({kind} if width != 700 else set(shown))
    assert opened.run(CUT_TEXT) == [], "text of figures that is cut off"


def test_figures_can_be_saved(opened: Browser) -> None:
    opened.allow_downloads()
    opened.run("document.querySelector('#long-tail [data-save=svg]').click()")
    drawn = opened.wait_for_file("long-tail.svg").decode()
    assert ElementTree.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in drawn
    opened.run("document.querySelector('#long-tail [data-save=png]').click()")
    assert opened.wait_for_file("long-tail.png").startswith(b"\x89PNG")


def test_values_under_the_pointer(opened: Browser) -> None:
    opened.run("document.querySelector('#accuracy-against-bias').scrollIntoView({behavior: 'instant'})")
    x, y = opened.run(
        "(() => { const b = [...document.querySelectorAll('#accuracy-against-bias .wide [data-tip]')].at(-1)"
        ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    opened.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    opened.wait_for("!document.getElementById('tip').hidden")
    assert "ndcg@20" in opened.run("document.getElementById('tip').textContent")


def test_on_paper_it_is_light_and_open(opened: Browser) -> None:
    light = ground(opened)
    opened.run("document.getElementById('theme').click()")
    opened.call("Emulation.setEmulatedMedia", media="print")
    assert ground(opened) == light
    assert opened.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    opened.call("Emulation.setEmulatedMedia", media="")


def test_contrast_is_enough_in_both_colours(opened: Browser) -> None:
    """Ink, soft text and accents against both grounds: 4.5 or more, as WCAG AA asks of text."""
    for dark in (False, True):
        opened.dark(dark)
        names = ("ink", "soft", "accent", "hit", "niche", "paper", "panel", "best", "niche-ground", "warn")
        colours = {
            name: opened.run(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
            for name in names
        }
        pairs = [(text, under) for text in ("ink", "soft", "accent", "hit") for under in ("paper", "panel")]
        pairs += [("niche", "niche-ground"), ("ink", "best"), ("hit", "best"), ("ink", "warn")]
        for text, under in pairs:
            assert contrast(colours[text], colours[under]) >= 4.5, (dark, text, under)


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

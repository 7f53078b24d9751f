"""The page of `dpaa demo` in headless Chromium, as a reader opens it: from the disk, without network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import pytest

pytest.importorskip("playwright", reason="Playwright is not installed: pip install playwright")

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

from tests.accessibility import by_tab, violations
from tests.browser import launched

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


@dataclass
class Opened:
    """The page in a browser; what it asks of the network and what its console says are kept."""

    page: Page
    file: Path
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._keep)

    def _keep(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.complaints.append(message.text)

    def load(self) -> None:
        self.page.goto(self.file.resolve().as_uri())

    def ground(self) -> str:
        return str(self.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    def ink(self) -> str:
        return str(self.page.evaluate("getComputedStyle(document.querySelector('#long-tail svg text')).fill"))

    def head(self, start: str) -> Locator:
        """The column of the first table of metrics whose name begins so."""
        return self.page.locator("#metrics table").first.locator("thead th").filter(has_text=start).first

    def cells(self, column: int) -> list[Locator]:
        return self.page.locator("#metrics table").first.locator(f"tbody tr > :nth-child({column + 1})").all()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture
def opened(browser: Browser, demo_folder: Path) -> Iterator[Opened]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light", accept_downloads=True)
    opened = Opened(context.new_page(), demo_folder / "report.html")
    opened.load()
    yield opened
    assert opened.complaints == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in opened.requests), opened.requests
    context.close()


def test_loads_from_the_disk(opened: Opened) -> None:
    dials = opened.page.locator("#dial figure").count()
    assert dials == 4, "one of each run"
    assert opened.page.locator("figure").count() - dials == 9
    assert set(opened.requests) == {opened.file.resolve().as_uri()}
    assert opened.page.text_content("h1") == "Popularity bias: demo"


def test_sorts_by_click_and_by_key(opened: Opened) -> None:
    ndcg = opened.head("ndcg@20 ")
    column = int(ndcg.evaluate("(head) => head.cellIndex"))

    def values() -> list[float]:
        return [float(cell.get_attribute("data-by") or "nan") for cell in opened.cells(column)]

    before = values()
    ndcg.get_by_role("button").click()
    expect(ndcg).to_have_attribute("aria-sort", "descending")
    assert values() == sorted(before, reverse=True)
    ndcg.get_by_role("button").press("Enter")
    expect(ndcg).to_have_attribute("aria-sort", "ascending")
    assert values() == sorted(before)
    opened.head("run").get_by_role("button").click()
    expect(ndcg).to_have_attribute("aria-sort", "none")
    assert [cell.text_content() for cell in opened.cells(0)] == ["dpaa", "lightgcn", "most-popular", "trade"]


def test_dark_by_button_and_by_system(opened: Opened) -> None:
    light, light_ink = opened.ground(), opened.ink()
    opened.page.press("#theme", " ")
    expect(opened.page.locator("#theme")).to_have_attribute("aria-pressed", "true")
    dark, dark_ink = opened.ground(), opened.ink()
    assert dark != light
    assert dark_ink != light_ink, "charts follow"
    opened.load()
    assert opened.ground() == dark, "the choice is kept"
    opened.page.evaluate("localStorage.clear()")
    opened.page.emulate_media(color_scheme="dark")
    opened.load()
    assert opened.ground() == dark
    opened.page.click("#theme")
    expect(opened.page.locator("#theme")).to_have_attribute("aria-pressed", "false")
    assert opened.ground() == light


@pytest.mark.parametrize("width", [360, 640, 1280])  # 640: a screen of 1280 at a zoom of 200%
def test_nothing_sticks_out(opened: Opened, width: int) -> None:
    opened.page.set_viewport_size({"width": width, "height": 740})
    unfold(opened.page)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.page.evaluate(CUT_TEXT) == [], "text of figures that is cut off"


def test_figures_can_be_saved(opened: Opened) -> None:
    saved = {}
    for form in ("svg", "png"):
        with opened.page.expect_download() as download:
            opened.page.click(f"#long-tail [data-save={form}]")
        assert download.value.suggested_filename == f"long-tail.{form}"
        saved[form] = Path(download.value.path()).read_bytes()
    drawn = saved["svg"].decode()
    assert ElementTree.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in drawn
    assert saved["png"].startswith(b"\x89PNG")


def test_values_under_the_pointer(opened: Opened) -> None:
    for figure in ("long-tail", "frontier"):
        opened.page.locator(f"#{figure} [data-tip]").nth(3).hover(force=True)
        assert opened.page.locator("#tip:not([hidden])").text_content(), figure
    opened.page.locator("#accuracy-against-bias [data-tip]").last.hover()
    expect(opened.page.locator("#tip:not([hidden])")).to_contain_text("ndcg@20")


def test_on_paper_it_is_light_and_open(opened: Opened) -> None:
    light = opened.ground()
    opened.page.click("#theme")
    expect(opened.page.locator("#theme")).to_have_attribute("aria-pressed", "true")
    opened.page.emulate_media(media="print")
    assert opened.ground() == light
    assert opened.page.locator("nav").is_hidden()
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.page.locator("details:not([open])").count() == 0


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(opened: Opened, scheme: Literal["light", "dark"], width: int) -> None:
    opened.page.set_viewport_size({"width": width, "height": 800})
    opened.page.emulate_media(color_scheme=scheme)
    unfold(opened.page)
    assert violations(opened.page) == []


def test_by_keyboard_alone(opened: Opened) -> None:
    reached = by_tab(opened.page)
    assert reached[:2] == ["#content", "theme"]
    chapters = opened.page.locator("nav a").evaluate_all("(all) => all.map((one) => one.getAttribute('href'))")
    assert [one for one in reached if one in chapters] == chapters
    assert any(one.startswith("Accuracy on") for one in reached), "tables scroll by keyboard"
    assert opened.page.locator("#training-loss").is_hidden()
    opened.page.locator("nav a[href='#training']").press("Enter")  # a link opens the section that it leads to
    expect(opened.page.locator("#training-loss")).to_be_visible()


def test_a_wide_table_says_so_and_keeps_its_first_column(opened: Opened) -> None:
    opened.page.set_viewport_size({"width": 390, "height": 800})
    table = opened.page.locator("#metrics .table").first
    expect(table).to_have_attribute("data-more", "right")
    hint = opened.page.locator("#metrics .more").first
    expect(hint).to_be_visible()
    name = table.locator("tbody th").first
    before = name.bounding_box()
    table.locator(".scroll").evaluate("(one) => { one.scrollLeft = 120; }")
    expect(table).to_have_attribute("data-more", "both")
    assert name.bounding_box() == before
    opened.page.set_viewport_size({"width": 2400, "height": 800})


def test_the_verdict_is_on_the_first_screen_of_a_phone(opened: Opened) -> None:
    opened.page.set_viewport_size({"width": 390, "height": 844})
    box = opened.page.locator("#summary .verdict").first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 844

"""The page of `dpaa demo` in headless Chromium, as a reader opens it: from the disk, without network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import pytest

pytest.importorskip("playwright", reason="Playwright is not installed: pip install playwright")

from playwright.sync_api import Browser, Page, expect

from tests.browser import by_tab, launched, violations

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
UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture
def opened(browser: Browser, demo_folder: Path) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light", accept_downloads=True)
    page, requests, complaints = context.new_page(), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto((demo_folder / "report.html").resolve().as_uri())
    yield page
    assert complaints == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in requests), requests
    context.close()


def test_tables_are_sorted_by_click_and_by_key(opened: Page) -> None:
    table = opened.locator("#metrics table").first
    ndcg = table.locator("thead th").filter(has_text="ndcg@20 ").first
    column = int(ndcg.evaluate("(head) => head.cellIndex")) + 1

    def values() -> list[float]:
        cells = table.locator(f"tbody tr > :nth-child({column})").all()
        return [float(cell.get_attribute("data-by") or "nan") for cell in cells]

    before = values()
    ndcg.get_by_role("button").click()
    expect(ndcg).to_have_attribute("aria-sort", "descending")
    assert values() == sorted(before, reverse=True)
    ndcg.get_by_role("button").press("Enter")
    assert values() == sorted(before)


@pytest.mark.parametrize("width", [360, 640, 1280])  # 640: a screen of 1280 at a zoom of 200%
def test_nothing_sticks_out(opened: Page, width: int) -> None:
    opened.set_viewport_size({"width": width, "height": 740})
    opened.evaluate(UNFOLD)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.evaluate(CUT_TEXT) == [], "text of figures that is cut off"


def test_figures_can_be_saved_and_show_their_values(opened: Page) -> None:
    for form, begins in (("svg", b"<svg"), ("png", b"\x89PNG")):
        with opened.expect_download() as download:
            opened.click(f"#long-tail [data-save={form}]")
        content = Path(download.value.path()).read_bytes()
        assert content.startswith(begins)
        if form == "svg":
            assert ElementTree.fromstring(content.decode()) is not None
            assert b"var(" not in content
    opened.locator("#accuracy-against-bias [data-tip]").last.hover()
    expect(opened.locator("#tip:not([hidden])")).to_contain_text("ndcg@20")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(opened: Page, scheme: Literal["light", "dark"], width: int) -> None:
    opened.set_viewport_size({"width": width, "height": 800})
    opened.emulate_media(color_scheme=scheme)
    opened.evaluate(UNFOLD)
    assert violations(opened) == []


def test_by_keyboard_alone(opened: Page) -> None:
    reached = by_tab(opened)
    chapters = opened.locator("nav a").evaluate_all("(all) => all.map((one) => one.getAttribute('href'))")
    assert [one for one in reached if one in chapters] == chapters
    assert opened.locator("#training-loss").is_hidden()
    opened.locator("nav a[href='#training']").press("Enter")  # a link opens the section that it leads to
    expect(opened.locator("#training-loss")).to_be_visible()

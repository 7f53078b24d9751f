"""The live page in headless Chromium."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest

pytest.importorskip("playwright", reason="Playwright is not installed: pip install playwright")

import uvicorn
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from dpaa.data.attributes import ItemAttributes
from dpaa.ranking.reranker import parse_reranker
from dpaa.runs.model import Model
from dpaa.serving._app import create_app
from dpaa.serving._snapshot import Snapshot
from dpaa.serving.options import ServeOptions
from tests.accessibility import MOVING, violations
from tests.browser import launched
from tests.serving.made import drawn_model

pytestmark = pytest.mark.slow
TOKEN = "0123456789abcdef0123"


@dataclass
class Opened:
    """A page; what it asks for and what its console says are kept."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._keep)

    def _keep(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.complaints.append(message.text)

    def after(self) -> list[str]:
        return self.page.locator("#after .name").all_text_contents()

    def dial(self, value: float) -> None:
        self.page.locator("#dial").fill(str(value))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def address(model: Model) -> Iterator[str]:
    with serving(model) as url:
        yield url


@contextmanager
def serving(model: Model, **options: Any) -> Iterator[str]:
    """A service in a thread."""
    app = create_app(ServeOptions(run=Path("run"), **options), Snapshot(model))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Opened]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    opened = Opened(context.new_page())
    opened.page.goto(address)
    expect(opened.page.locator("#after li").first).to_be_visible()
    yield opened
    assert opened.complaints == []
    assert all(url.startswith((address, "data:")) for url in opened.requests), opened.requests
    context.close()


def test_the_dial_moves_lists_and_gauges(opened: Opened, model: Model) -> None:
    page = opened.page
    before = opened.after()
    assert before == [f"Title of {one}" if one < "i00350" else one for one in model.recommend(["u00000"])["item_id"]]
    opened.dial(-2)
    expect(page.locator("#after-how")).to_contain_text("dial at −2.00")
    turned = model.recommend(["u00000"], popularity_dial=-2)["item_id"].to_list()
    assert opened.after() == [f"Title of {one}" if one < "i00350" else one for one in turned]
    assert page.locator("#before .name").all_text_contents() == before
    new = [one for one in opened.after() if one not in before]
    assert page.locator("#after .new").count() == len(new) > 0
    names = page.locator(".gauge .name").all_text_contents()
    assert names[0] == "Niche items in this list"
    assert {"Coverage of the catalogue", "Expected accuracy (NDCG@20)"} <= set(names)
    expect(page.locator(".gauge", has_text="Expected accuracy")).to_contain_text("0.0600")
    expect(page.locator(".gauge", has_text="Coverage").locator(".value")).to_have_text(re.compile(r"\d"))
    page.click("#dial-run")
    expect(page.locator("#after .new")).to_have_count(0)
    assert opened.after() == before


def test_by_keyboard_alone(opened: Opened) -> None:
    page = opened.page
    page.locator("#customer").focus()
    page.keyboard.type("u0001")
    expect(page.locator("#choices li").first).to_have_text("customer u00010")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#customer")).to_have_attribute("aria-activedescendant", "choice-1")
    page.keyboard.press("Enter")
    expect(page.locator("#customer")).to_have_value("u00011")
    page.locator("#dial").focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#dial-value")).to_have_text("κ −0.20")
    expect(page.locator("#after-how")).to_contain_text("dial at −0.20")  # the list is there that the focus goes to
    first = page.locator("#after button").first
    first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#item")).to_be_visible()
    assert page.locator("#item-similar li").count() == 10
    expect(page.locator("#item-share")).to_contain_text("In the lists of")
    page.keyboard.press("Escape")
    expect(page.locator("#item")).to_be_hidden()


@pytest.mark.parametrize(("scheme", "width"), [("light", 640), ("dark", 360)])
def test_axe_finds_nothing(opened: Opened, scheme: Literal["light", "dark"], width: int) -> None:
    page = opened.page
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    assert page.evaluate(MOVING) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    opened.dial(-1)
    expect(page.locator("#after-how")).to_contain_text("dial at −1.00")
    assert violations(page) == []
    page.locator("#customer").fill("u0001")
    expect(page.locator("#choices li").first).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.locator("#after button").first.click()
    expect(page.locator("#item")).to_be_visible()
    assert violations(page) == []


def test_the_page_asks_for_the_token(browser: Browser, model: Model) -> None:
    with serving(model, token=TOKEN) as address:
        page = browser.new_page()
        page.goto(address)
        expect(page.locator("#token-form")).to_be_visible()
        assert page.locator("#main").is_hidden()
        page.fill("#token", TOKEN)
        page.press("#token", "Enter")
        expect(page.locator("#after li").first).to_be_visible()
        page.close()


def test_a_run_that_keeps_a_re_ranker_begins_with_it(browser: Browser, model: Model) -> None:
    """As the choice of `dpaa debias` does, whose run lies in the folder that the user named."""
    own = parse_reranker("xquad,strength=0.9")
    assert own is not None
    manifest = model.manifest | {"rerank": own.as_json(), "debias": {}}
    kept = replace(model, manifest=manifest, attributes=None, path=Path("chosen/run"))
    wanted, plain = (kept.recommend(["u00000"], **how)["item_id"].to_list() for how in ({}, {"rerank": None}))
    assert wanted != plain
    with serving(kept) as address:
        opened = Opened(browser.new_page())
        opened.page.goto(address)
        expect(opened.page.locator("#after li").first).to_be_visible()
        expect(opened.page.locator("#before-how")).to_contain_text("xquad,")
        assert opened.page.locator("#before .name").all_text_contents() == opened.after() == wanted
        assert opened.page.text_content("h1") == "chosen: turn the dial"
        opened.page.select_option("#rerank", "none")
        expect(opened.page.locator("#after-how")).not_to_contain_text("xquad")
        assert opened.after() == plain
        opened.page.click("#dial-run")
        expect(opened.page.locator("#after-how")).to_contain_text("xquad")
        assert opened.after() == wanted
        assert opened.complaints == []
        opened.page.close()


def test_hostile_names_stay_text(browser: Browser) -> None:
    evil = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    model = replace(drawn_model(n_items=150), path=Path("run"))
    titled = replace(model, attributes=ItemAttributes(pl.DataFrame({"title": 150 * [evil]})))
    with serving(titled) as address:
        opened = Opened(browser.new_page())
        opened.page.goto(address)
        expect(opened.page.locator("#after li").first).to_be_visible()
        assert opened.after()[0].startswith("</script><script>")
        assert opened.page.title() == "dpaa live: run"
        assert opened.complaints == []
        opened.page.close()

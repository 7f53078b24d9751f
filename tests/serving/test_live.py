"""The live page in headless Chromium: from a service, and from a file without network."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pytest

pytest.importorskip("playwright", reason="Playwright is not installed: pip install playwright")

import uvicorn
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from dpaa.ranking import RERANKERS
from dpaa.ranking.reranker import parse_reranker
from dpaa.runs.model import Model, load
from dpaa.serving.app import Service
from dpaa.serving.live import _embedded
from dpaa.serving.metrics import Metrics
from dpaa.serving.settings import ServeSettings
from dpaa.serving.snapshot import open_snapshot, write_snapshot
from dpaa.serving.standalone import write_live
from tests.accessibility import MOVING, by_tab, violations
from tests.browser import launched
from tests.command import run_dpaa
from tests.report.test_browser import contrast
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
def address(snapshot_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(snapshot_folder, tmp_path_factory.mktemp("counters")) as found:
        yield found


class serving:  # noqa: N801  # used as `with serving(…)`
    """A service in a thread."""

    def __init__(self, snapshot: Path, counters: Path, **settings: object) -> None:
        told = ServeSettings(run=Path("run"), **settings)  # type: ignore[arg-type]
        service = Service(told, open_snapshot(snapshot), Metrics(counters, 0))
        self._server = uvicorn.Server(uvicorn.Config(service.app(), log_level="warning"))
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})

    def __enter__(self) -> str:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


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
    page.keyboard.press("Escape")
    expect(page.locator("#item")).to_be_hidden()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(opened: Opened, scheme: Literal["light", "dark"], width: int) -> None:
    page = opened.page
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    assert page.evaluate(MOVING) == []
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


def test_at_twice_the_size_nothing_sticks_out(opened: Opened) -> None:
    """Zoom of 200 % on a screen of 1280: half as many pixels to lay out in."""
    opened.page.set_viewport_size({"width": 640, "height": 450})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 640


def test_everything_is_reached_by_tab(opened: Opened) -> None:
    reached = by_tab(opened.page, 30)
    assert reached[:2] == ["#after-title", "theme"]
    assert [one for one in reached if one in ("customer", "dial", "dial-run")] == ["customer", "dial", "dial-run"]


def test_an_item_and_who_gets_it(opened: Opened) -> None:
    page = opened.page
    page.locator("#customer").click()
    page.locator("#customer").fill("title of i00000")
    page.locator("#choices li", has_text="item").first.click()
    expect(page.locator("#item-title")).to_have_text("Title of i00000")
    expect(page.locator("#item-facts")).to_contain_text("number 1 by popularity")
    page.keyboard.press("Escape")
    opened.dial(2)
    expect(page.locator("#after-how")).to_contain_text("dial at +2.00")
    page.locator("#after button").first.click()
    expect(page.locator("#item-share")).to_contain_text("In the lists of")
    page.locator("#item-users button").last.click()
    expect(page.locator("#item")).to_be_hidden()
    expect(page.locator("#customer")).not_to_have_value("")


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_sticks_out_in_either_theme(opened: Opened, width: int) -> None:
    page = opened.page
    page.set_viewport_size({"width": width, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.press("#theme", " ")
    expect(page.locator("#theme")).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    for pair in (
        ("ink", "paper"),
        ("soft", "paper"),
        ("soft", "panel"),
        ("accent", "paper"),
        ("niche", "niche-ground"),
        ("new-ink", "new"),
        ("soft", "new"),
    ):
        for theme in ("light", "dark"):
            page.evaluate("(theme) => { document.documentElement.dataset.theme = theme }", theme)
            one, other = (
                page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
                for name in pair
            )
            assert contrast(one, other) >= 4.5, (pair, theme)


def test_a_token_is_asked_for(browser: Browser, snapshot_folder: Path, tmp_path: Path) -> None:
    with serving(snapshot_folder, tmp_path, token=TOKEN) as address:
        page = browser.new_page()
        page.goto(address)
        expect(page.locator("#token-form")).to_be_visible()
        assert page.locator("#main").is_hidden()
        page.fill("#token", TOKEN)
        page.press("#token", "Enter")
        expect(page.locator("#after li").first).to_be_visible()
        page.close()


def test_from_a_file_without_a_server(browser: Browser, tmp_path: Path, model: Model) -> None:
    model.save(tmp_path / "run")
    said = run_dpaa("report", tmp_path / "run", "--live", tmp_path / "live.html", "--customers", 12)
    assert said.code == 0, said.err
    assert "live page of 12 customers" in said.out
    context = browser.new_context(color_scheme="dark")
    opened = Opened(context.new_page())
    opened.page.goto((tmp_path / "live.html").as_uri())
    expect(opened.page.locator("#after li").first).to_be_visible()
    assert opened.after() == model.recommend(["u00000"])["item_id"].to_list()
    opened.dial(-1)
    expect(opened.page.locator("#after-how")).to_contain_text("dial at −1.00")
    assert opened.after() == model.recommend(["u00000"], popularity_dial=-1)["item_id"].to_list()
    assert violations(opened.page) == []
    opened.page.locator("#after button").first.click()
    expect(opened.page.locator("#item-similar li")).to_have_count(10)
    assert opened.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in opened.requests)
    context.close()


def test_a_run_that_keeps_a_re_ranker_begins_with_it(browser: Browser, tmp_path: Path, model: Model) -> None:
    """As the choice of `dpaa debias` does, whose run lies in the trade's folder."""
    own = parse_reranker("xquad,strength=0.9")
    assert own is not None
    kept = replace(model, manifest=model.manifest | {"rerank": own.as_json(), "debias": {}})
    wanted, plain = (kept.recommend(["u00000"], **how)["item_id"].to_list() for how in ({}, {"rerank": None}))
    assert wanted != plain
    kept.save(tmp_path / "trade" / "run")
    write_snapshot(load(tmp_path / "trade" / "run"), tmp_path / "snapshot")
    write_live(tmp_path / "trade" / "run", tmp_path / "live.html", 3)
    with serving(tmp_path / "snapshot", tmp_path) as address:
        for place in (address, (tmp_path / "live.html").as_uri()):
            opened = Opened(browser.new_page())
            opened.page.goto(place)
            expect(opened.page.locator("#after li").first).to_be_visible()
            expect(opened.page.locator("#before-how")).to_contain_text("xquad,")
            assert opened.page.locator("#before .name").all_text_contents() == wanted
            assert opened.after() == wanted
            assert opened.page.text_content("h1") == "trade: turn the dial"
            opened.page.select_option("#rerank", "none")
            expect(opened.page.locator("#after-how")).not_to_contain_text("xquad")
            assert opened.after() == plain
            opened.page.click("#dial-run")
            expect(opened.page.locator("#after-how")).to_contain_text("xquad")
            assert opened.after() == wanted
            assert opened.complaints == []
            opened.page.close()


def test_hostile_names_stay_text(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    model = drawn_model(n_items=150)
    model.save(tmp_path / "run")
    rows = "".join(f'{one},"{evil.replace(chr(34), chr(34) * 2)}"\n' for one in model.item_ids)
    (tmp_path / "titles.csv").write_text("item_id,title\n" + rows)
    assert write_live(tmp_path / "run", tmp_path / "live.html", 3, tmp_path / "titles.csv") == 3
    context = browser.new_context()
    opened = Opened(context.new_page())
    opened.page.goto((tmp_path / "live.html").as_uri())
    expect(opened.page.locator("#after li").first).to_be_visible()
    assert opened.after()[0].startswith("</script><script>")
    assert opened.page.title() == "dpaa live: run"
    assert opened.complaints == []
    context.close()
    assert "<" not in _embedded({"a": evil})


def test_a_re_ranker_and_its_strength(browser: Browser, address: str) -> None:
    from tests.plugin.dpaa_example.niche_slots import NicheSlots

    RERANKERS._named["niche-slots"] = NicheSlots
    page = browser.new_page()
    page.goto(address)
    expect(page.locator("#after li").first).to_be_visible()
    page.select_option("#rerank", "niche-slots")
    expect(page.locator("#after-how")).to_contain_text("niche-slots,")
    expect(page.locator("#strength")).to_be_visible()
    page.locator("#strength").press("End")
    expect(page.locator("#note")).to_contain_text("for the dial alone")
    assert page.locator("#trouble").is_hidden()
    page.close()

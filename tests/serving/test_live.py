"""The live page in headless Chromium."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest

pytest.importorskip("playwright", reason="Playwright is not installed: pip install playwright")

from playwright.sync_api import Browser, Page, expect

from dpaa.data.attributes import ItemAttributes
from dpaa.runs.model import Model
from dpaa.serving._app import create_app
from dpaa.serving._snapshot import Snapshot
from dpaa.serving.options import ServeOptions
from tests.browser import MOVING, launched, violations
from tests.serving.made import drawn_choice, drawn_model
from tests.serving.running import in_thread

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@contextmanager
def opened(browser: Browser, model: Model, token: str | None = None, **look: Any) -> Iterator[Page]:
    """The page of a service in a thread; it must not complain, nor send requests elsewhere."""
    app = create_app(ServeOptions(run=Path("run"), token=token), Snapshot(model))
    page, requests, complaints = browser.new_page(**look), list[str](), list[str]()
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
    with in_thread(app) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        page.goto(address)
        expect(page.locator("#after li").first if token is None else page.locator("#token-form")).to_be_visible()
        yield page
        page.close()
    assert [one for one in complaints if token is None or "401" not in one] == []
    assert all(url.startswith((address, "data:")) for url in requests), requests


def names(page: Page, part: str = "#after") -> list[str]:
    return page.locator(f"{part} .name").all_text_contents()


def test_the_dial_moves_lists_and_gauges(browser: Browser, model: Model) -> None:
    with opened(browser, model) as page:
        before = names(page)
        assert before == [title or item for item, title in model.recommend(["u00000"])["item_id", "title"].iter_rows()]
        page.fill("#dial", "-2")
        expect(page.locator("#after-how")).to_contain_text("dial at −2.00")
        turned = model.recommend(["u00000"], popularity_dial=-2)["item_id", "title"]
        assert names(page) == [title or item for item, title in turned.iter_rows()]
        assert names(page, "#before") == before
        assert page.locator("#after .new").count() == len(set(names(page)) - set(before)) > 0
        assert {"Coverage of the catalogue", "Niche items in this list"} <= set(names(page, ".gauge"))
        expect(page.locator(".gauge", has_text="Expected accuracy (NDCG@20)")).to_contain_text("0.0600")
        expect(page.locator(".gauge", has_text="Coverage").locator(".value")).to_have_text(re.compile(r"\d"))
        page.click("#dial-run")
        expect(page.locator("#after .new")).to_have_count(0)
        assert names(page) == before


def test_a_choice_opens_with_what_it_replaced(browser: Browser, model: Model) -> None:
    choice = replace(model, manifest=model.manifest | drawn_choice())
    before, after = (choice.recommend(["u00000"], rerank=rerank) for rerank in ("none", "run"))
    left = set(before["item_id"]) - set(after["item_id"])
    counts = dict(zip(model.item_ids, model.method.graph.item_degree.tolist(), strict=True))
    mean = [round(sum(counts[one] for one in lists["item_id"]) / 20) for lists in (before, after)]
    with opened(browser, choice, viewport={"width": 1280, "height": 900}) as page:
        expect(page.locator("#before-title")).to_have_text("Before: lightgcn")
        expect(page.locator("#after-title")).to_have_text("After: lightgcn + fa-ir 0.6")
        assert names(page, "#before") == [title or item for item, title in before["item_id", "title"].iter_rows()]
        assert names(page) == [title or item for item, title in after["item_id", "title"].iter_rows()]
        assert page.locator("#before .gone").count() == page.locator("#after .new").count() == len(left) > 0
        expect(page.locator("#changed")).to_contain_text(f"{len(left)} of 20 items")
        for part, value in zip(("#before-how", "#after-how"), mean, strict=True):
            expect(page.locator(part)).to_contain_text(f"mean popularity {value}")
        sides = [page.locator(part).bounding_box() or {} for part in ("#before", "#after")]
        assert sides[0]["y"] == sides[1]["y"], "side by side"
        assert sides[0]["x"] < sides[1]["x"]
        expect(page.locator(".gauge", has_text="Expected accuracy (NDCG@20)")).to_contain_text("0.2400before 0.2500")
        niche = page.locator(".gauge", has_text="Niche items, all customers")
        unchanged = re.compile(r"customers(\d+\.\d%)before \1$")
        expect(niche).to_have_text(re.compile(r"customers\d+\.\d%before \d"))
        expect(niche).not_to_have_text(unchanged)
        page.fill("#strength", "0")
        expect(page.locator("#after-how")).to_contain_text("fa-ir 0;")
        expect(page.locator("#after-title")).to_have_text("After")
        assert names(page) == names(page, "#before"), "strength 0 leaves lists as they are"
        expect(niche).to_have_text(unchanged)
        page.select_option("#rerank", "xquad")
        expect(page.locator("#strength-value")).to_have_text("0.30")
        page.click("#dial-run")
        expect(page.locator("#after-title")).to_have_text("After: lightgcn + fa-ir 0.6")
        page.set_viewport_size({"width": 390, "height": 844})
        sides = [page.locator(part).bounding_box() or {} for part in ("#before", "#after")]
        assert sides[0]["x"] == sides[1]["x"], "stacked"
        assert sides[0]["y"] < sides[1]["y"]
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.click("#why summary")
        expect(page.locator("#why li")).to_have_text("promised: at least 95% of NDCG@20")
        page.emulate_media(color_scheme="dark")
        assert violations(page) == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 640), ("dark", 360)])
def test_by_keyboard_and_axe(browser: Browser, model: Model, scheme: Literal["light", "dark"], width: int) -> None:
    look = {"color_scheme": scheme, "reduced_motion": "reduce", "viewport": {"width": width, "height": 800}}
    with opened(browser, model, **look) as page:
        assert page.evaluate(MOVING) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("#customer").focus()
        page.keyboard.type("u0001")
        expect(page.locator("#choices li").first).to_have_text("customer u00010")
        assert violations(page) == []
        for key in ("ArrowDown", "ArrowDown", "Enter"):
            page.keyboard.press(key)
        expect(page.locator("#customer")).to_have_value("u00011")
        page.locator("#dial").focus()
        for _ in range(4):
            page.keyboard.press("ArrowLeft")
        expect(page.locator("#after-how")).to_contain_text("dial at −0.20")
        assert violations(page) == []
        page.locator("#after button").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#item-share")).to_contain_text("In the lists of")
        assert page.locator("#item-similar li").count() == 10
        assert violations(page) == []
        page.keyboard.press("Escape")
        expect(page.locator("#item")).to_be_hidden()


def test_hostile_names_stay_text(browser: Browser) -> None:
    evil = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    titles = ItemAttributes(pl.DataFrame({"title": 150 * [evil]}))
    with opened(browser, replace(drawn_model(n_items=150), path=Path("run"), attributes=titles)) as page:
        assert names(page)[0].startswith("</script><script>")
        assert page.title() == "dpaa live: run"

"""A headless Chromium for the tests of pages, without network but for this machine."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip("playwright", reason="Playwright is not installed: pip install playwright")

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
expect.set_options(timeout=60_000)  # a busy machine needs more than the five seconds that Playwright waits
NO_NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser; the test is skipped where there is none."""
    program = os.environ.get("DPAA_BROWSER") or next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium here: install Debian's `chromium`, or name a browser in DPAA_BROWSER")
    with sync_playwright() as started:
        found = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu", NO_NETWORK])
        yield found
        found.close()


MOVING = """
[...document.querySelectorAll('*')].filter((one) => {
  const style = getComputedStyle(one);
  const lasts = (times) => times.split(',').some((time) => parseFloat(time) > 0);
  return lasts(style.transitionDuration) || (style.animationName !== 'none' && lasts(style.animationDuration))
    || style.scrollBehavior === 'smooth';
}).map((one) => one.outerHTML.slice(0, 80))
"""
"""Elements that would move by themselves."""


def violations(page: Page) -> list[str]:
    """Rules that are broken, how badly, and where; none: everybody can use the page, as far as axe sees."""
    found: dict[str, Any] = Axe().run(page).response
    return [
        f"{one['impact']}: {one['id']} at {', '.join(str(node['target']) for node in one['nodes'][:5])}"
        for one in found["violations"]
    ]


def by_tab(page: Page, most: int = 400) -> list[str]:
    """What the Tab key reaches, in order, each by what a screen reader would call it; ends when it comes round."""
    seen: list[str] = []
    first = None
    for _ in range(most):
        page.keyboard.press("Tab")
        place = page.evaluate(
            "(() => { const one = document.activeElement;"
            " const all = (window.__places ??= new Map()); if (!all.has(one)) all.set(one, all.size);"
            " const box = one.getBoundingClientRect();"
            " return [all.get(one), one.id || one.getAttribute('href') || one.getAttribute('aria-label')"
            " || one.textContent.trim().slice(0, 40), box.width > 0, one.tagName] })()"
        )
        if place[3] == "BODY" or place[0] == first:
            break
        first = place[0] if first is None else first
        assert place[2], f"the focus is on something unseen: {place[1]}"
        seen.append(place[1])
    return seen

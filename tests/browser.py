"""A headless Chromium for the tests of pages, without network but for this machine."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip("playwright", reason="Playwright is not installed: pip install playwright")

from playwright.sync_api import Browser, expect, sync_playwright

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

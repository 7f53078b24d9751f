"""Screenshots of the live page: desktop, phone, dark, an item.

    python -m scripts.serve_screenshots http://127.0.0.1:8000 --out docs/images

The service must be running; Chromium is the system's.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
from pathlib import Path

from playwright.sync_api import expect, sync_playwright


def main() -> None:
    """Ask for the page four times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--dial", default="-0.5")
    told = parser.parse_args()
    told.out.mkdir(parents=True, exist_ok=True)
    program = os.environ.get("DPAA_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    views = {"desktop": (1280, 1000, "light"), "phone": (390, 844, "light"), "dark": (1280, 1000, "dark")}
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for name, (width, height, colours) in (*views.items(), ("item", (390, 844, "dark"))):
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=colours,  # type: ignore[arg-type]
            )
            page = context.new_page()
            page.goto(told.address)
            expect(page.locator("#after li").first).to_be_visible()
            page.locator("#dial").fill(told.dial)
            expect(page.locator("#after-how")).to_contain_text("new")
            expect(page.locator(".gauge", has_text="Coverage").locator(".change")).to_contain_text("before")
            value = page.locator(".gauge", has_text="Coverage").locator(".value")
            expect(value).to_have_text(re.compile(r"\d"), timeout=20_000)
            if name == "item":
                page.locator("#after button").nth(1).click()
                expect(page.locator("#item")).to_be_visible()
            page.screenshot(path=told.out / f"live-{name}.png")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()

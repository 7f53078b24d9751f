"""Screenshots of the live page of a running service: desktop, phone, dark, an item.

python -m scripts.serve_screenshots http://127.0.0.1:8000 --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

from playwright.sync_api import expect
from tests.browser import launched

VIEWS: dict[str, tuple[int, int, Literal["light", "dark"]]] = {
    "desktop": (1280, 1000, "light"),
    "phone": (390, 844, "light"),
    "dark": (1280, 1000, "dark"),
    "item": (390, 844, "dark"),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with launched() as browser:
        for name, (width, height, colours) in VIEWS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)
            page.goto(args.address)
            page.locator("#dial").fill("-0.5")
            expect(page.locator("#after-how")).to_contain_text("new")
            if name == "item":
                page.locator("#after button").nth(1).click()
                expect(page.locator("#item")).to_be_visible()
            page.screenshot(path=args.out / f"live-{name}.png")

"""Screenshots of the live page of a running service: desktop, phone, dark, an item; before and after of a choice.

python -m scripts.serve_screenshots http://127.0.0.1:8000 --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

from playwright.sync_api import expect
from tests.browser import launched

Views = dict[str, tuple[int, int, Literal["light", "dark"]]]
VIEWS: Views = {
    "desktop": (1280, 1000, "light"),
    "phone": (390, 844, "light"),
    "dark": (1280, 1000, "dark"),
    "item": (390, 844, "dark"),
}
CHOICE: Views = {"choice": (1280, 1470, "light")}
"""Of a run that `dpaa debias` chose, as the page opens."""

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with launched() as browser:
        about = browser.new_page().request.get(f"{args.address}/about").json()
        for name, (width, height, colours) in (CHOICE if about["choice"] else VIEWS).items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)
            page.goto(args.address)
            if not about["choice"]:
                page.locator("#dial").fill("-0.5")
            expect(page.locator("#after-how")).to_contain_text("new")
            expect(page.locator(".gauge", has_text="Coverage").locator(".value")).not_to_have_text("–")
            if name == "item":
                page.locator("#after button").nth(1).click()
                expect(page.locator("#item")).to_be_visible()
            page.screenshot(path=args.out / f"live-{name}.png")

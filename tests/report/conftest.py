from pathlib import Path

import pytest

from tests.report.reader import Reader


@pytest.fixture(scope="session")
def html(demo_folder: Path) -> str:
    return (demo_folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def page(html: str) -> Reader:
    return Reader(html)

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import dpaa_ok
from tests.report.reader import Reader


@pytest.fixture(scope="session")
def html(demo_folder: Path) -> str:
    return (demo_folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def page(html: str) -> Reader:
    return Reader(html)


@pytest.fixture(scope="session")
def auto_run(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dpaa-auto beside the LightGCN of the demo, at other learning rates."""
    run = tmp_path_factory.mktemp("auto") / "auto"
    settings = [f"--set={one}" for one in ("embedding_size=8", "layers=2", "epochs=30", "threads=1")]
    dpaa_ok("train", demo_folder / "data", "--method", "dpaa-auto", *settings, "--out", run)
    dpaa_ok("evaluate", run)
    return run

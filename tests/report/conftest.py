from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest

from dpaa.data.sources import world
from tests.command import Said, dpaa_ok

TINY: dict[str, object] = {"embedding_size": 8, "layers": 2, "epochs": 3, "threads": 1}


@pytest.fixture(scope="session")
def demo_said(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Said]:
    """`dpaa demo` in a small world with a short training: its folder, and what it said."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world, "simulate", functools.partial(world.simulate, users=150, items=100))
        patch.setattr(sys.modules["dpaa.cli.demo"], "METHODS", {"most-popular": {}, "lightgcn": TINY, "dpaa": TINY})
        said = dpaa_ok("demo", "--out", folder)
    return folder, said


@pytest.fixture(scope="session")
def demo_folder(demo_said: tuple[Path, Said]) -> Path:
    return demo_said[0]

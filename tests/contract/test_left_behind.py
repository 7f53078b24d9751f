"""Training leaves nothing in the temporary folder (torch's compiler, once loaded, makes a folder of its own there)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TRAIN_ALL = """
import sys

import dpaa
from dpaa.data.sources.severity import with_randomised
from dpaa.data.sources.world import simulate
from dpaa.methods import METHODS
from dpaa.methods.graph_method import GraphMethod

data = with_randomised(simulate(users=60, items=40))
for name, method in METHODS.items():
    if issubclass(method, GraphMethod):
        dpaa.fit(data, name, epochs=1, embedding_size=8, layers=1, threads=1)
assert "scipy.stats" not in sys.modules, "half a second of every start"
"""


@pytest.mark.slow
def test_no_training_leaves_anything_in_the_temporary_folder(tmp_path: Path) -> None:
    call = [sys.executable, "-c", TRAIN_ALL]
    ended = subprocess.run(
        call, env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    assert not list(tmp_path.iterdir())

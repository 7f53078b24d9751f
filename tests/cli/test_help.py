"""`dpaa --help` is quick: neither torch nor polars is imported for it."""

from __future__ import annotations

import subprocess
import sys

CALL = """
import sys
from dpaa.cli import main
sys.argv = ["dpaa", *{words!r}]
try:
    main()
except SystemExit:
    pass
print("loaded:", *sorted({{"torch", "polars", "scipy", "safetensors"}} & set(sys.modules)))
"""


def test_help_loads_neither_torch_nor_polars() -> None:
    for words in (["--help"], ["train", "--help"], ["data", "log", "--help"]):
        said = subprocess.run(
            [sys.executable, "-c", CALL.format(words=words)], capture_output=True, text=True, check=True
        )
        assert "Usage: dpaa" in said.stdout
        assert said.stdout.splitlines()[-1] == "loaded:"

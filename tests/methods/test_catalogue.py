from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dpaa.methods.catalogue
from dpaa.methods.catalogue import FILE, catalogue, described
from dpaa.methods.registry import METHODS


def test_the_catalogue_is_what_the_classes_say() -> None:
    file = Path(dpaa.methods.catalogue.__file__).parent / FILE
    wanted = (
        json.dumps({name: described(METHODS[name]) for name in METHODS.built_in}, indent=1, ensure_ascii=False) + "\n"
    )
    if os.environ.get("DPAA_WRITE_DOCS"):
        file.write_text(wanted, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == wanted, "run `DPAA_WRITE_DOCS=1 pytest tests/methods/test_catalogue.py`"


def test_names_as_they_are_typed() -> None:
    assert set(catalogue()) >= set(METHODS.built_in)
    assert list(catalogue("DPAA_as_printed")) == ["dpaa-as-printed"]


def test_the_list_does_not_load_torch() -> None:
    """Nor does the help: `tests/cli/test_help.py`."""
    code = (
        "import sys; from dpaa.cli import main\n"
        "for words in ([], ['dpaa'], ['--json']):\n"
        "    sys.argv = ['dpaa', 'methods', *words]\n"
        "    try: main()\n"
        "    except SystemExit: pass\n"
        "    loaded = {'torch', 'polars', 'scipy'} & set(sys.modules)\n"
        "    assert not loaded, (words, loaded)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""What the pages for developers name is there: symbols of docs/notation.md, files of docs/architecture.md."""

import contextlib
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaa
from dpaa.runs.fit import fit_into, make_method

ROOT = Path(__file__).parents[1]
SOURCE = Path(dpaa.__file__).parent
DEFINED = r"(?:(?:def|class) {0}\b|\b{0}\s*[:=,]|\.{0}\b|\"{0}\")"


def cells(column: int) -> list[str]:
    rows = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8").splitlines()
    return [row.split("|")[column] for row in rows if row.startswith("|")][2:]


def test_names_of_the_notation_exist() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    names = {name for cell in cells(2) for code in re.findall(r"`([^`]+)`", cell) for name in re.findall(r"\w+", code)}
    assert len(names) > 50
    assert not [name for name in sorted(names) if not re.search(DEFINED.format(name), text)]


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/metrics.md", "CONTRIBUTING.md"])
def test_files_that_are_named_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    places = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|html|md))`", text))
    assert places
    missing = [
        one for one in sorted(places) if not any((base / one).exists() for base in (ROOT, SOURCE, SOURCE.parent))
    ]
    assert not [one for one in missing if "NAME" not in one and "COMMAND" not in one]


PAGE = Path(__file__).parents[1] / "docs" / "edges.md"


def test_the_examples_run(small_world: dpaa.Dataset, tmp_path: Path) -> None:
    for package in ("implicit", "networkx", "scipy"):
        pytest.importorskip(package)
    method = make_method(small_world, "dpaa", {"embedding_size": 8, "layers": 2, "epochs": 3, "threads": 1})
    fit_into(tmp_path / "runs" / "dpaa", small_world, method)
    blocks = re.findall(r"<!-- run -->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    space: dict[str, Any] = {}
    with contextlib.chdir(tmp_path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # implicit has an opinion on BLAS threads
        for block in blocks:
            exec(block, space)  # the page's own text
    expected = (method.edge_weights(0).to_user / method.graph.symmetric_weights().to_user).numpy()
    np.testing.assert_allclose(space["edges"]["strength"], expected / expected.mean(), rtol=1e-4)
    assert len(space["items"]) == 10
    assert sum(space["rank"].values()) == pytest.approx(1)

"""The examples of docs/edges.md that can run here do."""

import contextlib
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaa.data.dataset import Dataset
from dpaa.methods.dpaa import DPAA
from dpaa.runs.fit import fit_into, make_method

PAGE = Path(__file__).parents[1] / "docs" / "edges.md"


def test_the_examples_run(small_world: Dataset, tmp_path: Path) -> None:
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
    assert isinstance(method, DPAA)
    expected = (method.edge_weights(0).to_user / method.graph.symmetric_weights().to_user).numpy()
    np.testing.assert_allclose(space["edges"]["strength"], expected / expected.mean(), rtol=1e-4)
    assert len(space["items"]) == 10
    assert sum(space["rank"].values()) == pytest.approx(1)

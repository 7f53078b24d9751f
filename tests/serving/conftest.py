from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from dpaa.data.attributes import ItemAttributes
from dpaa.runs.model import Model
from dpaa.serving._app import create_app
from dpaa.serving._snapshot import Snapshot, make_snapshot
from dpaa.serving.options import ServeOptions
from tests.serving.made import drawn_model

Served = Callable[..., TestClient]


@pytest.fixture(scope="session")
def model() -> Model:
    """Of its items colour and tags are known; every seventh has neither."""
    colours = [None if item % 7 == 0 else ("red", "green", "blue")[item % 3] for item in range(400)]
    tags = [None if item % 7 == 0 else f"t{item % 11}|t{item % 4}" for item in range(400)]
    drawn = drawn_model(n_items=400)
    return replace(drawn, attributes=ItemAttributes(pl.DataFrame({"colour": colours, "tags": tags})))


@pytest.fixture(scope="session")
def snapshot(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    titles = tmp_path_factory.mktemp("titles") / "titles.csv"
    pl.DataFrame({"item_id": one, "title": f"Title of {one}"} for one in model.item_ids[:350]).write_csv(titles)
    return make_snapshot(model, titles=titles)


@pytest.fixture
def served(snapshot: Snapshot) -> Iterator[Served]:
    """A service in this process, with these options."""
    with ExitStack() as stack:

        def start(**options: Any) -> TestClient:
            app = create_app(ServeOptions(run=Path("run"), **options), snapshot)
            return stack.enter_context(TestClient(app, base_url="http://127.0.0.1"))

        yield start

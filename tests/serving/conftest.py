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
from dpaa.serving._snapshot import Snapshot
from dpaa.serving.options import ServeOptions
from tests.serving.made import drawn_model

Served = Callable[..., TestClient]


@pytest.fixture(scope="session")
def model() -> Model:
    """Most items have a title, a colour and tags; every seventh has neither colour nor tags."""
    columns: dict[str, Any] = {
        "title": [f"Title of i{item:05d}" if item < 350 else None for item in range(400)],
        "colour": [None if item % 7 == 0 else ("red", "green", "blue")[item % 3] for item in range(400)],
        "tags": [None if item % 7 == 0 else f"t{item % 11}|t{item % 4}" for item in range(400)],
    }
    return replace(drawn_model(n_items=400), attributes=ItemAttributes(pl.DataFrame(columns)))


@pytest.fixture
def served(model: Model) -> Iterator[Served]:
    """A service in this process, with these options."""
    with ExitStack() as stack:

        def start(served_model: Model = model, **options: Any) -> TestClient:
            app = create_app(ServeOptions(run=Path("run"), **options), Snapshot(served_model))
            return stack.enter_context(TestClient(app, base_url="http://127.0.0.1"))

        yield start

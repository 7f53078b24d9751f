from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from dpaa.data.attributes import ItemAttributes
from dpaa.runs.model import Model
from dpaa.serving.app import Service
from dpaa.serving.metrics import Metrics
from dpaa.serving.settings import ServeSettings
from dpaa.serving.snapshot import open_snapshot, write_snapshot
from tests.serving.made import drawn_model

Served = Callable[..., TestClient]


@pytest.fixture(scope="session")
def model() -> Model:
    """Of its items colour and tags are known; every seventh has neither."""
    colours = [None if item % 7 == 0 else ("red", "green", "blue")[item % 3] for item in range(400)]
    tags = [None if item % 7 == 0 else f"t{item % 11}|t{item % 4}" for item in range(400)]
    return replace(drawn_model(n_items=400), attributes=ItemAttributes(pl.DataFrame({"colour": colours, "tags": tags})))


@pytest.fixture(scope="session")
def snapshot_folder(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("snapshots") / "run-one"
    titles = pl.Series([f"Title of {one}" if place < 350 else None for place, one in enumerate(model.item_ids)])
    write_snapshot(model, folder, titles=titles)
    return folder


@pytest.fixture
def served(snapshot_folder: Path, tmp_path: Path) -> Iterator[Served]:
    """A service in this process, with these settings."""
    clients: list[TestClient] = []

    def make(**settings: Any) -> TestClient:
        told = ServeSettings(run=Path("run"), **settings)
        service = Service(told, open_snapshot(snapshot_folder), Metrics(tmp_path, len(clients)))
        client = TestClient(service.app(), base_url="http://127.0.0.1")
        client.__enter__()
        clients.append(client)
        client.service = service  # type: ignore[attr-defined]
        return client

    yield make
    for client in clients:
        client.__exit__(None, None, None)

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from dpaa.runs.model import Model
from dpaa.serving.app import Service
from dpaa.serving.metrics import Metrics
from dpaa.serving.settings import ServeSettings
from dpaa.serving.snapshot import open_snapshot, write_snapshot
from tests.serving.made import drawn_model

Served = Callable[..., TestClient]


@pytest.fixture(scope="session")
def model() -> Model:
    return drawn_model(n_items=400)


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

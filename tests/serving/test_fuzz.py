"""Requests made up from the OpenAPI document: each answer is one that the document promises, and none is 500."""

from __future__ import annotations

import pytest

pytest.importorskip("schemathesis", reason="schemathesis is not installed")

import schemathesis
from scripts.serve_fuzz import fuzz

from tests.serving.conftest import Served

pytestmark = pytest.mark.slow


@pytest.mark.filterwarnings("ignore")  # schemathesis' own and those of what it is made of
def test_made_up_requests(served: Served) -> None:
    client = served(any_host=True)
    schema = schemathesis.openapi.from_asgi("/openapi.json", client.app)
    found = fuzz(schema, 112)
    assert sum(found.values()) >= 90
    assert not [name for name in found if name.endswith(" 500")]
    assert any(name.startswith("GET /recommend/{user} 200") for name in found)
    assert any(name.startswith("POST /recommend 200") for name in found)

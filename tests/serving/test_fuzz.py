"""Requests made up from the OpenAPI document: each answer is one that the document promises, and none is 500."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

pytest.importorskip("schemathesis", reason="schemathesis is not installed")

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from tests.serving.conftest import Served

pytestmark = pytest.mark.slow
CONFORMANCE = (checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance)


def fuzz(schema: Any, cases: int) -> Counter[str]:
    """So many cases, valid and invalid, evenly over the operations; a wrong answer raises."""
    answers: Counter[str] = Counter()
    operations = [one.ok() for one in schema.get_all_operations()]
    varied = sum(bool(list(one.iter_parameters()) or one.body) for one in operations)
    limits = {"max_examples": max(1, cases // (2 * varied)), "phases": [Phase.generate]}
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @seed(0)
            @settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), **limits)
            @given(case=operation.as_strategy(generation_mode=mode))
            def once(case: Any) -> None:
                answer = case.call()
                answers[f"{case.method} {case.operation.path} {answer.status_code}"] += 1
                case.validate_response(answer, checks=[not_a_server_error, *CONFORMANCE])

            try:
                once()
            except Exception as error:
                if "Unsatisfiable" not in type(error).__name__:  # nothing about this operation can be invalid
                    raise
    return answers


@pytest.mark.filterwarnings("ignore")  # schemathesis' own and those of what it is made of
def test_made_up_requests(served: Served) -> None:
    client = served(any_host=True)
    schema = schemathesis.openapi.from_asgi("/openapi.json", client.app)
    found = fuzz(schema, 112)
    assert sum(found.values()) >= 90
    assert not [name for name in found if name.endswith(" 500")]
    assert any(name.startswith("GET /recommend/{user} 200") for name in found)
    assert any(name.startswith("POST /recommend 200") for name in found)

"""Requests made up from the OpenAPI document: each answer is one that the document promises, and none is 500."""

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("schemathesis", reason="schemathesis is not installed")

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from tests.serving.conftest import Served

pytestmark = pytest.mark.slow
CONFORMANCE = (checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance)


@pytest.mark.filterwarnings("ignore")  # schemathesis' own and those of what it is made of
def test_made_up_requests(served: Served) -> None:
    """Valid and invalid ones, of every operation."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", served(any_host=True).app)
    answers: Counter[str] = Counter()
    for operation in [one.ok() for one in schema.get_all_operations()]:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @seed(0)
            @settings(
                deadline=None,
                database=None,
                max_examples=6,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def once(case: Any) -> None:
                answer = case.call()
                answers[f"{case.method} {case.operation.path} {answer.status_code}"] += 1
                case.validate_response(answer, checks=[not_a_server_error, *CONFORMANCE])

            with suppress(Unsatisfiable):  # nothing about this operation can be invalid
                once()
    assert {"GET /recommend/{user} 200", "POST /recommend 200", "POST /recommend 400"} <= set(answers)

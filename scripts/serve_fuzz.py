"""Requests that schemathesis makes up from the OpenAPI document, sent to a running service.

    dpaa serve RUN --port 8000 &
    python -m scripts.serve_fuzz http://127.0.0.1:8000 --cases 5600

Counts answers by status and fails at any of 500.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--cases", type=int, default=5600)
    args = parser.parse_args()
    counts = fuzz(schemathesis.openapi.from_url(f"{args.address}/openapi.json"), args.cases)
    print("\n".join(f"{number:6,}  {name}" for name, number in sorted(counts.items())))
    sys.exit(1 if any(name.endswith(" 500") for name in counts) else 0)

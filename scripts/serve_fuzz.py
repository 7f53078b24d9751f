"""Requests that a machine makes up from the OpenAPI document, thrown at a running service.

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
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


def fuzz(schema: Any, cases: int, start: int = 0) -> Counter[str]:
    """So many cases, valid and invalid, evenly over the operations; a wrong answer raises."""
    found: Counter[str] = Counter()
    operations = [one.ok() for one in schema.get_all_operations()]
    asking = sum(bool(list(one.iter_parameters()) or one.body) for one in operations)
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @seed(start)
            @settings(
                max_examples=max(1, cases // (2 * asking)),
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def once(case: Any) -> None:
                answer = case.call()
                found[f"{case.method} {case.operation.path} {answer.status_code}"] += 1
                case.validate_response(answer, checks=CHECKS)

            try:
                once()
            except Exception as error:
                if "Unsatisfiable" not in type(error).__name__:  # nothing about this one can be wrong
                    raise
    return found


def main() -> None:
    """Against an address."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--cases", type=int, default=5600)
    parser.add_argument("--start", type=int, default=0, help="of the random numbers")
    told = parser.parse_args()
    found = fuzz(schemathesis.openapi.from_url(f"{told.address}/openapi.json"), told.cases, told.start)
    for name, number in sorted(found.items()):
        print(f"{number:6,}  {name}")
    wrong = sum(number for name, number in found.items() if name.endswith(" 500"))
    print(f"{sum(found.values()):,} requests, {wrong} answers of 500")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

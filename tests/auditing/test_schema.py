"""What `dpaa audit --json` prints keeps to the schema that ships; a change of the schema raises its version."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

import dpaa.auditing.schema as home
from dpaa._text import json_text
from dpaa.auditing.audit import audit
from dpaa.auditing.names import DRIFT_NUMBERS, LOG_NUMBERS
from dpaa.auditing.schema import FILE, SCHEMA_VERSION, audit_schema
from dpaa.data.dataset import Dataset
from tests.auditing.test_drift import NEW, OLD, log

FROZEN = {1: "d949d703c3ac7385"}
"""Version → digest of what it requires: a key that goes or changes its type makes another."""


def requirements(part: Any, place: str = "") -> list[str]:
    """Every required key and every type, with its place."""
    if isinstance(part, list):
        return [line for number, one in enumerate(part) for line in requirements(one, f"{place}/{number}")]
    if not isinstance(part, dict):
        return []
    said = [
        f"{place} {word} {json.dumps(part[word])}" for word in ("required", "type", "const", "enum") if word in part
    ]
    return said + [
        line for key, one in part.items() if key != "required" for line in requirements(one, f"{place}/{key}")
    ]


def validated(found: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json_text(found.as_json()))
    jsonschema.Draft202012Validator(audit_schema()).validate(content)
    return content


def test_the_schema_is_one_and_frozen() -> None:
    jsonschema.Draft202012Validator.check_schema(audit_schema())
    assert (Path(home.__file__).parent / FILE).exists()
    digest = hashlib.sha256("\n".join(requirements(audit_schema())).encode()).hexdigest()[:16]
    assert digest == FROZEN[SCHEMA_VERSION], "raise SCHEMA_VERSION, or add keys without changing those that are there"


def test_every_kind_of_audit_keeps_to_it(small_world: Dataset) -> None:
    recs = pl.DataFrame({"user_id": ["u1", "u1", "u2"], "item_id": ["a", "zz", "f"], "rank": [1, 2, 1]})
    for found in (
        audit(small_world),
        audit(log(NEW).drop("timestamp")),
        audit(log(NEW), recs, k=2, fail_if=["log_gini>0.1", "log_head_share_trend>9"], against=log(OLD)),
    ):
        content = validated(found)
        assert set(content) == set(audit_schema()["properties"])
        assert content["schema"] == SCHEMA_VERSION


def test_a_missing_key_is_noticed(small_world: Dataset) -> None:
    content = validated(audit(small_world))
    del content["numbers"]["log_gini"]
    with pytest.raises(jsonschema.ValidationError, match="'log_gini' is a required property"):
        jsonschema.validate(content, audit_schema())


def test_the_schema_names_every_number() -> None:
    named = audit_schema()["properties"]["numbers"]["properties"]
    assert set(named) == {*LOG_NUMBERS, *DRIFT_NUMBERS}

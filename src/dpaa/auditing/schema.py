"""The form of `dpaa audit --json`, as JSON Schema, and its version.

Within a version keys are only added; where one goes, or means something else, the version is raised.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from dpaa._text import parse_json

SCHEMA_VERSION = 1
FILE = f"audit-{SCHEMA_VERSION}.schema.json"


def audit_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of an audit."""
    found: dict[str, Any] = parse_json(files(__package__).joinpath(FILE).read_bytes())
    return found

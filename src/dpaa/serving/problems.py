"""Errors as problem documents (RFC 9457): one sentence for people, a status for machines."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson
from starlette.responses import Response

from dpaa._text import printable, shortened

TITLES = {
    400: "Bad request",
    401: "Token needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Busy",
    413: "Too large",
    415: "Unsupported type",
    421: "Wrong host",
    500: "Our mistake",
    503: "Overloaded",
    504: "Too late",
}


@dataclass(frozen=True)
class ProblemError(Exception):
    """Ends a request with a problem document."""

    status: int
    detail: str
    headers: dict[str, str] = field(default_factory=dict)


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """The document; what the sentence quotes is harmless text."""
    content = {
        "type": "about:blank",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": shortened(printable(" ".join(detail.split())), 600),
    }
    return Response(orjson.dumps(content), status, headers, "application/problem+json")

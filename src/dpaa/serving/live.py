"""The live page: one file that asks the service, or carries the answers for a sample of users in itself."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from dpaa._text import json_text

POLICY = (
    "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; connect-src {asks}; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""What the page may do: run its own script, known by its hash, and ask the service it came from."""


@cache
def live_page() -> tuple[str, str]:
    """The page of a service, and its policy; `frame-ancestors` is for headers alone."""
    html, policy = _page(None)
    return html, f"{policy}; frame-ancestors 'none'"


def standalone_page(content: dict[str, Any]) -> str:
    """The same page with everything it shows in it."""
    return _page(content)[0]


def _page(content: dict[str, Any] | None) -> tuple[str, str]:
    style, script, body = (_asset(name) for name in ("live.css", "live.js", "live.html"))
    policy = POLICY.format(style=_digest(style), script=_digest(script), asks="'self'" if content is None else "'none'")
    data = "null" if content is None else _embedded(content)
    parts = {"{{policy}}": policy, "{{style}}": style, "{{script}}": script, "{{data}}": data}
    for place, part in parts.items():
        body = body.replace(place, part, 1)
    return body, policy


def _embedded(content: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in, whatever ids and titles say."""
    text = json_text(content, indent=None)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _asset(name: str) -> str:
    return resources.files("dpaa.serving").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

"""Checks of every request: host, token, body size, time limit; counters, and an error response for any failure."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import time
from collections.abc import Callable
from http import HTTPStatus

import orjson
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.openmetrics.exposition import generate_latest
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpaa._text import printable, shortened
from dpaa.serving.options import ServeOptions, is_loopback

MOST_BYTES = 1_000_000
"""Body of a request."""
TIMEOUT = 10.0
"""Seconds for a request: its body and its answer."""
PROBLEM = "application/problem+json"
OPEN = ("/health", "/ready", "/")
"""Paths that need no token: they say nothing of the run (the page asks for the token itself)."""
SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
LOG = logging.getLogger("dpaa.serving")


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """A problem document (RFC 9457).

    Parameters
    ----------
    status : of the answer
    detail : one sentence; what it quotes is made harmless and short
    headers : further headers of the answer

    Returns
    -------
    the answer
    """
    sentence = shortened(printable(" ".join(detail.split())), 600)
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": sentence}
    return Response(orjson.dumps(content), status, headers, PROBLEM)


def overloaded(detail: str = "too many requests are queued; retry in a second") -> Response:
    """The answer while the queue is full, or to a request that took too long."""
    return problem(503, detail, {"Retry-After": "1"})


BUSY = overloaded()
"""Made once: refusing must cost little under overload."""


class Middleware:
    """An ASGI middleware; it stands outside of the routes and inside of CORS."""

    def __init__(self, app: ASGIApp, options: ServeOptions, metrics: Metrics, is_full: Callable[[], bool]) -> None:
        self._app, self._options, self._metrics, self._is_full = app, options, metrics, is_full
        self._hosts = {host.lower() for host in options.allow_host}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it on, count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status, received = time.perf_counter(), 0, 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > MOST_BYTES:
                raise HTTPException(413, f"the body is larger than {MOST_BYTES:,} bytes")
            return message

        async def safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *SAFE]}
            await send(message)

        try:
            async with asyncio.timeout(TIMEOUT):
                await (self._refusal(scope) or self._app)(scope, limited, safely)
        except Exception as error:
            if status:  # the answer has begun: the server can only close the connection
                raise
            if isinstance(error, TimeoutError):
                apology = overloaded("the request timed out; retry in a second")
            else:
                LOG.error("a request failed", exc_info=error)
                apology = problem(500, "internal error; it has been logged")
            await apology(scope, receive, safely)
        self._metrics.count(getattr(scope.get("route"), "name", "other"), status, time.perf_counter() - begun)

    def _refusal(self, scope: Scope) -> Response | None:
        options, headers = self._options, Headers(scope=scope)
        if not options.any_host and not self._is_known(headers.get("host", "").lower()):
            # A web page may have let its own name resolve to this machine; a browser would let it read the answer.
            return problem(421, "this host name is not allowed; see --allow-host")
        if options.token is not None and scope["path"] not in OPEN:
            kind, _, shown = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(shown.strip().encode(), options.token.encode()):
                return problem(401, "a token is required: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        return BUSY if scope["path"].startswith("/recommend") and self._is_full() else None

    def _is_known(self, host: str) -> bool:
        name = host if host.endswith("]") else host.rsplit(":", 1)[0]
        return is_loopback(name) or name in self._hosts


class Metrics:
    """The counters of all workers, in the OpenMetrics format; those of several workers are shared by files."""

    def __init__(self) -> None:
        own = CollectorRegistry()
        self._requests = Counter("dpaa_requests", "Requests handled.", ["route", "status"], registry=own)
        self._seconds = Histogram("dpaa_request_seconds", "Duration of a request.", ["route"], registry=own)
        self.batches = Histogram("dpaa_batch_size", "Lists per batch.", buckets=(1, 2, 4, 8, 16, 32), registry=own)
        self.items = Counter("dpaa_served_items", "Items recommended.", registry=own)
        self.popular_items = Counter("dpaa_served_popular_items", "Popular items recommended.", registry=own)
        self._registry = own
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            self._registry = CollectorRegistry()
            MultiProcessCollector(self._registry)  # type: ignore[no-untyped-call]

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Write all counters as text."""
        return generate_latest(self._registry)  # type: ignore[no-untyped-call,no-any-return]

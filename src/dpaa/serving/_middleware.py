"""What every request passes: host, token, body size, time limit, counters; and an answer whatever happens."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.openmetrics.exposition import generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpaa._text import printable, shortened
from dpaa.serving.options import MOST_BYTES, ServeOptions, is_loopback

PROBLEM = "application/problem+json"
RETRY = {"Retry-After": "1"}
OPEN = ("/health", "/ready", "/")
"""Paths that need no token: they say nothing of the run (the page asks for the token itself)."""
SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
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


def overloaded() -> Response:
    """The answer while the queue is full."""
    return problem(503, "too many requests wait; come again in a second", RETRY)


def _apology(error: Exception) -> Response:
    """The answer to a request that failed on our side; the log has the details."""
    if isinstance(error, TimeoutError):
        return problem(503, "the answer took too long; come again in a second", RETRY)
    LOG.error("a request failed", exc_info=error)
    return problem(500, "something went wrong on our side; it has been logged")


class Middleware:
    """An ASGI middleware; it stands outside of the routes and inside of CORS."""

    def __init__(self, app: ASGIApp, options: ServeOptions, metrics: Metrics, is_full: Callable[[], bool]) -> None:
        self._app, self._options, self._metrics, self._is_full = app, options, metrics, is_full
        self._hosts = {host.lower() for host in options.allow_host}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, pass on, count."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # HEAD is answered like GET; the server sends the head alone.
        scope = {**scope, "method": "GET" if scope["method"] == "HEAD" else scope["method"]}
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
                headers = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, safely)
            return
        try:
            # A reload takes as long as the run is large.
            async with asyncio.timeout(None if scope["path"] == "/reload" else self._options.timeout):
                await self._app(scope, limited, safely)
        except Exception as error:
            if status:  # the answer has begun: the server can only close the connection
                raise
            await _apology(error)(scope, receive, safely)
        self._metrics.request(getattr(scope.get("route"), "name", ""), status, time.perf_counter() - begun)

    def _refusal(self, scope: Scope) -> Response | None:
        options, headers = self._options, Headers(scope=scope)
        if not options.any_host and not self._is_known(headers.get("host", "").lower()):
            # A web page may have let its own name resolve to this machine; a browser would let it read the answer.
            return problem(421, "this service does not go by that name; see --allow-host")
        if options.token is not None and scope["path"] not in OPEN:
            kind, _, shown = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(shown.strip().encode(), options.token.encode()):
                return problem(401, "show the token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        if scope["path"].startswith("/recommend") and self._is_full():
            return overloaded()  # before routing and validation, so that refusing costs little under overload
        return None

    def _is_known(self, host: str) -> bool:
        name = host if host.endswith("]") else host.rsplit(":", 1)[0]
        return is_loopback(name) or host in self._hosts or name in self._hosts


# ------------------------------------------------------------------ counters

ROUTES = ("recommend", "recommend_many", "similar", "items", "users", "search", "audit", "page", "reload")
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
BAND_EDGES = (-1.0, -0.25, 0.0, 0.25, 1.0)
BANDS = ("below -1", "-1 to -0.25", "-0.25 to 0", "0", "0 to 0.25", "0.25 to 1", "above 1")
HOUR = 60
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Where several workers keep their counters, so that any of them can answer for all; prometheus_client reads it."""


class Metrics:
    """The counters of one application, of all its workers where there are several."""

    def __init__(self) -> None:
        folder = os.environ.get(SHARED_FOLDER)
        own = CollectorRegistry()
        self._requests = Counter("dpaa_requests", "Requests answered.", ["route", "status"], registry=own)
        self._seconds = Histogram("dpaa_request_seconds", "Of a request.", ["route"], buckets=SECONDS, registry=own)
        self.batches = Histogram("dpaa_batch_size", "Lists of a batch.", buckets=SIZES, registry=own)
        self.queue = Gauge("dpaa_queue", "Lists that wait.", registry=own, multiprocess_mode="livesum")
        self.reloads = Counter("dpaa_reloads", "Runs taken by a reload.", registry=own)
        self.lists = ServedLists(None if folder is None else Path(folder))
        self._registry = own
        if folder is not None:
            self._registry = CollectorRegistry()
            MultiProcessCollector(self._registry)  # type: ignore[no-untyped-call]
        self._registry.register(self.lists)

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        route = route if route in ROUTES else "other"
        group = "503" if status == 503 else "5xx" if status >= 500 else "4xx" if status >= 400 else "2xx"
        self._requests.labels(route, group).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All counters in the OpenMetrics format."""
        return generate_latest(self._registry)  # type: ignore[no-untyped-call,no-any-return]


class ServedLists:
    """What was listed in the last hour, per band of κ: number of items, share of the head, coverage.

    Coverage needs the last minute of every item, which no counter has; several workers share the arrays as files.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._minutes = self._array(f"lists-{os.getpid()}", (HOUR, len(BANDS), 3), np.float64)
        self._last = np.zeros((len(BANDS), 1), np.int32)

    def _array(self, name: str, shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
        if self._folder is None:
            return np.zeros(shape, kind)
        file = self._folder / f"{name}.served"
        with file.open("ab") as out:  # two workers may: both make it as long
            out.truncate(int(np.prod(shape)) * np.dtype(kind).itemsize)
        return np.memmap(file, kind, "r+", shape=shape)

    def serve(self, snapshot: str, n_items: int) -> None:
        """Count the lists of this snapshot from now on."""
        self._last = self._array(f"items-{snapshot}", (len(BANDS), n_items), np.int32)
        for old in () if self._folder is None else self._folder.glob("items-*.served"):
            if old.name != f"items-{snapshot}.served":
                old.unlink(missing_ok=True)  # a worker that has not reloaded yet keeps its mapping

    def add(self, head: NDArray[np.bool_], kappa: float, items: NDArray[Any]) -> None:
        """Count a list.

        Parameters
        ----------
        head : (n_items,) whether an item belongs to the head
        kappa : where the dial stood
        items : (k,) indices of the listed items
        """
        edge = int(np.searchsorted(BAND_EDGES, kappa, "left" if kappa > 0 else "right"))
        band = edge + (kappa > 0) if kappa else 3
        minute = int(time.time() // 60)
        cell = self._minutes[minute % HOUR, band]
        if cell[0] != minute:
            cell[:] = minute, 0, 0
        cell[1] += len(items)
        cell[2] += np.count_nonzero(head[items])
        self._last[band, items] = minute

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """For the registry."""
        since = int(time.time() // 60) - HOUR
        every = [self._minutes]
        if self._folder is not None:
            every = [
                np.memmap(file, np.float64, "r", shape=(HOUR, len(BANDS), 3))
                for file in self._folder.glob("lists-*.served")
            ]
        listed: Any = sum(np.where(one[:, :, :1] > since, one, 0).sum(axis=0) for one in every)
        items = GaugeMetricFamily("dpaa_served_items", "Items listed in the last hour.", labels=["dial"])
        share = GaugeMetricFamily("dpaa_served_head_share", "Of these, the share of the head.", labels=["dial"])
        coverage = GaugeMetricFamily("dpaa_served_coverage", "Share of all items, last hour.", labels=["dial"])
        for band, name in enumerate(BANDS):
            items.add_metric([name], listed[band, 1])
            if listed[band, 1]:
                share.add_metric([name], listed[band, 2] / listed[band, 1])
            coverage.add_metric([name], float(np.mean(self._last[band] > since)))
        yield from (items, share, coverage)

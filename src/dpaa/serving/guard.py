"""What stands before every route: names, token, origins, time, and an answer whatever happens."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpaa.errors import InputError
from dpaa.serving.batcher import OverloadedError
from dpaa.serving.metrics import Metrics
from dpaa.serving.problems import ProblemError, problem
from dpaa.serving.settings import ServeSettings, is_loopback

Handler = Callable[[Request], Awaitable[Response]]
OPEN = ("/health", "/ready", "/")
"""Paths that need no token: they tell nothing of the run (the page asks for the token itself)."""
RETRY = {"Retry-After": "1"}
LOG = logging.getLogger("dpaa.serving")
SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """One for an application."""

    def __init__(self, settings: ServeSettings, metrics: Metrics) -> None:
        self._settings, self._metrics = settings, metrics
        self._hosts = {host.lower() for host in settings.allow_host}

    def handled(self, handler: Handler, name: str, seconds: float | None) -> Handler:
        """The handler with a time limit; every error becomes a problem document."""

        async def answered(request: Request) -> Response:
            begun = time.perf_counter()
            try:
                async with asyncio.timeout(seconds):
                    response = await handler(request)
            except Exception as error:  # strangers see a sentence, the log has the rest
                response = self._problem(error)
            self._metrics.request(name, response.status_code, time.perf_counter() - begun)
            return response

        return answered

    @staticmethod
    def _problem(error: Exception) -> Response:
        if isinstance(error, ProblemError):
            return problem(error.status, error.detail, error.headers)
        if isinstance(error, InputError):
            return problem(400, str(error))
        if isinstance(error, OverloadedError):
            return problem(503, "too many requests wait; come again in a second", RETRY)
        if isinstance(error, TimeoutError):
            return problem(503, "the answer took too long; come again in a second", RETRY)
        LOG.error("a request failed", exc_info=error)
        return problem(500, "something went wrong on our side; it has been logged")

    @staticmethod
    def handlers() -> Mapping[Any, Any]:
        """For what no route takes."""

        async def no_route(_request: Request, error: Exception) -> Response:
            status = error.status_code if isinstance(error, HTTPException) else 500
            headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
            words = {404: "there is nothing here; see /openapi.json", 405: "this path takes another method"}
            return problem(status, words.get(status, "the request cannot be answered"), headers)

        return {HTTPException: no_route}

    def before(self, app: ASGIApp) -> ASGIApp:
        """The application behind the checks."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            headers = Headers(scope=scope)
            origin = headers.get("origin")
            shared = origin if origin is not None and origin in self._settings.allow_origin else None

            async def send_safely(message: Message) -> None:
                if message["type"] == "http.response.start":
                    out = MutableHeaders(scope=message)
                    for name, value in SAFE.items():
                        out.setdefault(name, value)
                    if shared is not None:
                        out["Access-Control-Allow-Origin"] = shared
                        out["Cross-Origin-Resource-Policy"] = "cross-origin"
                        out.add_vary_header("Origin")
                await send(message)

            refused = self._refused(scope, headers)
            if refused is None and shared is not None and scope["method"] == "OPTIONS":
                allowed = {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Max-Age": "600"}
                refused = Response(
                    status_code=204, headers=allowed | {"Access-Control-Allow-Headers": "Authorization, Content-Type"}
                )
            await (app if refused is None else refused)(scope, receive, send_safely)

        return guarded

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        settings = self._settings
        if not settings.any_host and not self._known_host(headers.get("host", "")):
            # A page of a stranger may have made its own name lead to this machine, and a browser would let it read.
            return problem(421, "this service does not go by that name; see --allow-host")
        if settings.token is None or scope["path"] in OPEN or scope["method"] == "OPTIONS":
            return None
        kind, _, shown = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), settings.token.encode()):
            return None
        return problem(401, "show the token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})

    def _known_host(self, host: str) -> bool:
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        return is_loopback(name.lower()) or host.lower() in self._hosts or name.lower() in self._hosts

"""uvicorn with additional limits: headers of 64 KB, idle connections, connections that arrive during shutdown."""

import asyncio
import gc
import logging
import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors.multiprocess import Multiprocess

from dpaa._io import temporary_folder
from dpaa.errors import InputError, reason
from dpaa.serving._middleware import problem
from dpaa.serving.options import ServeOptions

MOST_HEAD = 65_536
"""Bytes of a request's head, and of its trailers."""
PATIENCE = 10.0
"""Seconds until the head of a request must be there."""
LINGER = 1.0
"""Seconds between the last answer on a connection and its end: what still arrives is read, so nothing is reset."""
GRACE = 10
"""Seconds that open requests get when a worker stops."""
STARTING = 120
"""Seconds that a worker gets to read the run before a reload is given up."""


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with limits for the head of a request, its trailers and the time until it is there."""

    _timer: asyncio.TimerHandle | None = None
    _unread = 0
    """Bytes since the parser last delivered a head, a part of a body or the end of a request."""
    _ending = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock: a connection without a request is closed."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Parse at most as much as a head may have, and look where that has led."""
        while data and not self._ending and not self.transport.is_closing():
            part, data = data[: MOST_HEAD - self._unread + 1], data[MOST_HEAD - self._unread + 1 :]
            self._unread += len(part)
            super().data_received(part)
            if self._unread > MOST_HEAD:
                self._refuse(431, f"the request header is larger than {MOST_HEAD:,} bytes")

    def on_message_begin(self) -> None:
        """Start the clock for the head of this request."""
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        """The head has arrived."""
        self._unread = 0
        self._stop_timer()
        super().on_headers_complete()
        if self.app_state.get("stopping"):
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """A part of the body has arrived; how large it may be is the application's business."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request has arrived."""
        self._unread = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Respond to an invalid HTTP request with a problem document."""
        self._refuse(400, f"this is not a valid HTTP request ({msg.rstrip('.')})")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_timer()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End an idle connection a little later: closing it on a request that is arriving would reset it."""
        self.app_state["stopping"] = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LINGER, super().shutdown)
        else:
            super().shutdown()

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer and close, but read what the client still sends: otherwise it gets a reset instead of the answer."""
        if self._ending or self.transport.is_closing():
            return
        self._ending = True
        answer = problem(status, sentence, {"connection": "close"})
        headers = b"".join(b"%s: %s\r\n" % header for header in answer.raw_headers)
        begin = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
        self.transport.write(begin + headers + b"\r\n" + bytes(answer.body))
        self.transport.write_eof()
        self.loop.call_later(LINGER, self.transport.close)

    def _wait_for_head(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(PATIENCE, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:  # the answer to the request before is on its way
            self._wait_for_head()


class _Workers(Multiprocess):
    """uvicorn's worker processes: one that dies is replaced, and on `SIGHUP` all are, one after the other."""

    def terminate_all(self) -> None:
        """Close the listening sockets first: a connection that no worker will take must be refused, not reset."""
        for listening in self.sockets:
            listening.close()
        super().terminate_all()


def read_app(options: ServeOptions) -> Any:
    """Read the run and make the application that serves it; a run that cannot be served is an `InputError`."""
    import torch

    from dpaa.methods import METHODS
    from dpaa.plugins import add_plugin
    from dpaa.ranking.registry import RERANKERS
    from dpaa.runs.model import load
    from dpaa.serving._app import create_app
    from dpaa.serving._snapshot import Snapshot

    torch.set_num_threads(options.threads)
    for plugin in options.plugins:
        add_plugin(plugin, METHODS, RERANKERS)
    return create_app(options, Snapshot(load(options.run)))


def worker_app(options: ServeOptions) -> Any:
    """The application of a worker process, where an error is seen in the log alone."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        app = read_app(options)
    except InputError as error:
        logging.getLogger("uvicorn.error").error("a worker cannot start: %s", error)
        sys.exit(1)  # a reload keeps the old workers; a dead worker is replaced as soon as the run can be read
    sys.setswitchinterval(0.0005)  # seconds; computing must not keep requests waiting
    gc.collect()
    gc.freeze()  # a full collection would walk all that was imported: 0.1 s without an answer
    return app


def serve(options: ServeOptions, listening: socket.socket, say: Callable[[str], None]) -> None:
    """Serve requests until a signal ends the service.

    Parameters
    ----------
    options : of `dpaa serve`
    listening : from `listen`; closed at the end
    say : gets the address when the run has been read
    """
    host, port = listening.getsockname()[:2]
    with listening, temporary_folder("dpaa-serve-") as folder:
        read_app(options)  # what is wrong with the run is said once, here, and not by every worker
        gc.collect()  # this process does not need it
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        config = uvicorn.Config(
            partial(worker_app, options),
            factory=True,
            workers=options.workers,
            http=Protocol,
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=GRACE,
            timeout_worker_healthcheck=STARTING,
            backlog=1024,
        )
        logging.getLogger("uvicorn.error").setLevel(logging.INFO)  # of this process: which workers came and went
        say(f"serving {options.run} on http://{f'[{host}]' if ':' in host else host}:{port}")
        _Workers(config, [listening]).run()


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; an `InputError` where that is not possible.

    Parameters
    ----------
    host : name or IP address
    port : 0 takes any that is free

    Returns
    -------
    the socket
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError, UnicodeError) as error:
        why = reason(error).partition(" (while")[0]  # the address again
        raise InputError(f"cannot listen on {host} port {port} ({why}); choose another with --port") from None

"""uvicorn with the limits that it lacks: heads of 64 KB, silent connections, connections that come at the end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import uvicorn
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from dpaa._io import temporary_folder
from dpaa.errors import InputError, reason
from dpaa.serving._middleware import SHARED_FOLDER, problem
from dpaa.serving.options import ServeOptions

MOST_HEAD = 65_536
"""Bytes of a request's head, and of its trailers."""
PATIENCE = 10.0
"""Seconds until the head of a request must be there."""
LINGER = 1.0
"""Seconds between the last answer on a connection and its end: what still arrives is read, so nothing is reset."""
SWITCH = 0.0005
"""Seconds after which a thread gives way: computing must not keep requests waiting."""


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
                self._refuse(431, f"the head of the request is larger than {MOST_HEAD:,} bytes")

    def on_message_begin(self) -> None:
        """Start the clock for the head of this request."""
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        """The head has arrived."""
        self._unread = 0
        self._stop_timer()
        super().on_headers_complete()
        if self._draining:
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
        """Answer what is no HTTP request like any other mistake."""
        self._refuse(400, f"this is no HTTP request that can be read ({msg.rstrip('.')})")

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

    @property
    def _draining(self) -> bool:
        return bool(self.app_state.get("stopping"))

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer and close, but read what the client still sends: otherwise it gets a reset instead of the answer."""
        if self._ending or self.transport.is_closing():
            return
        self._ending = True
        answer = problem(status, sentence)
        headers = b"".join(b"%s: %s\r\n" % header for header in answer.raw_headers)
        begin = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nconnection: close\r\n".encode()
        self.transport.write(begin + headers + b"\r\n" + bytes(answer.body))
        if self.transport.can_write_eof():
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
    """uvicorn's worker processes; `SIGHUP` reloads the run in each instead of replacing it."""

    _to_reload: tuple[Process, ...] = ()

    def handle_hup(self) -> None:
        self._to_reload = tuple(self.processes)
        self._pass_on()

    def _pass_on(self) -> None:
        """Signal the workers that can take it: one that is still starting would die of it, and gets it later."""
        ready = [one for one in self._to_reload if one in self.processes and one.is_ready(timeout=1)]
        for process in ready:
            if process.pid is not None:
                os.kill(process.pid, signal.SIGHUP)
        self._to_reload = tuple(one for one in self._to_reload if one in self.processes and one not in ready)

    def keep_subprocess_alive(self) -> None:
        before = {process.pid for process in self.processes}
        super().keep_subprocess_alive()
        for dead in before - {process.pid for process in self.processes}:
            mark_process_dead(dead)  # type: ignore[no-untyped-call]  # its queue counts no more
        self._pass_on()

    def terminate_all(self) -> None:
        """Close the listening sockets first: a connection that no worker will take must be refused, not reset."""
        for one in self.sockets:
            one.close()
        super().terminate_all()


def make_app(options: ServeOptions) -> Any:
    """The application of a worker, with its own copy of the run."""
    import torch

    from dpaa.methods import METHODS
    from dpaa.plugins import add_plugin
    from dpaa.ranking.registry import RERANKERS
    from dpaa.serving._app import create_app
    from dpaa.serving._snapshot import read_snapshot

    for plugin in options.plugins:
        add_plugin(plugin, METHODS, RERANKERS)
    snapshot = read_snapshot(options)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    sys.setswitchinterval(SWITCH)
    torch.set_num_threads(options.threads)
    app = create_app(options, snapshot, read_snapshot)
    gc.collect()
    gc.freeze()  # a full collection would walk all that was imported: 0.1 s without an answer
    return app


def _worker_app(options: ServeOptions) -> Any:
    """`make_app` in a worker process, where nobody but the log hears of an error."""
    try:
        return make_app(options)
    except InputError as error:
        logging.getLogger("uvicorn.error").error("a worker cannot start: %s", error)
        sys.exit(1)  # the parent tries again, until the run can be read


def serve(options: ServeOptions, listening: socket.socket, say: Callable[[str], None]) -> None:
    """Answer requests until a signal ends the service.

    Parameters
    ----------
    options : of `dpaa serve`
    listening : from `listen`; closed at the end
    say : gets the address when the run has been read
    """
    how: dict[str, Any] = {
        "http": Protocol,
        "ws": "none",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": 60,
        "timeout_graceful_shutdown": max(1, int(options.grace)),
        "timeout_worker_healthcheck": 30,
        "backlog": 1024,
    }
    host, port = listening.getsockname()[:2]
    address = f"serving {options.run} on http://{f'[{host}]' if ':' in host else host}:{port}"
    with listening:
        app = make_app(options)  # with several workers only a check: what is wrong with the run is said once, here
        if options.workers == 1:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: None)  # uvicorn raises it again when it has stopped
            say(address)
            uvicorn.Server(uvicorn.Config(app, **how)).run([listening])
            return
        del app
        with temporary_folder("dpaa-serve-") as folder:
            os.environ[SHARED_FOLDER] = folder
            config = uvicorn.Config(partial(_worker_app, options), factory=True, workers=options.workers, **how)
            logging.getLogger("uvicorn.error").setLevel(logging.INFO)  # of this process: which workers came and went
            say(address)
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

"""One worker: `python -m dpaa.serving.worker STATE SLOT LISTENING PARENT`, started by the supervisor.

LISTENING is the descriptor of the socket that all workers take connections from, PARENT that of a pipe which ends when
the supervisor does, however it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import select
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import torch
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dpaa.errors import InputError
from dpaa.methods import METHODS
from dpaa.plugins import add_plugin
from dpaa.ranking.registry import RERANKERS
from dpaa.serving.app import Service
from dpaa.serving.metrics import Metrics
from dpaa.serving.problems import ProblemError, problem
from dpaa.serving.snapshot import Snapshot, open_snapshot
from dpaa.serving.state import ReloadingError, State

LOOK = 0.2
"""Seconds between looks for another snapshot."""
PATIENCE = 10.0
"""Seconds that the head of a request may take."""
SWITCH = 0.0005
"""Seconds after which a thread gives way: what computes must not keep requests waiting."""
LOG = logging.getLogger("dpaa.serving")


class Protocol(HttpToolsProtocol):
    """uvicorn's, for which the head of a request may not take for ever."""

    _head: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request."""
        if self._head is None:
            self._head = self.loop.call_later(PATIENCE, self._too_slow)
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._arrived()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP, or has a head that is too long, is told like any other mistake."""
        body = problem(400, f"this is no HTTP request that can be read ({msg.rstrip('.')})").body
        head = f"content-type: application/problem+json\r\ncontent-length: {len(body)}\r\nconnection: close"
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head.encode() + b"\r\n\r\n" + bytes(body))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Gone."""
        self._arrived()
        super().connection_lost(exc)

    def _arrived(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _too_slow(self) -> None:
        self._head = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


class Worker:
    """Serves what the state names, and follows when it names another."""

    def __init__(self, state: State, slot: int) -> None:
        self.state, self.settings = state, state.settings()
        self.name, snapshot = self._open()
        snapshot.warm()
        self.service = Service(self.settings, snapshot, Metrics(state.folder, slot), self._reload)
        self._refused = ""

    def _open(self) -> tuple[str, Snapshot]:
        for _ in range(10):
            name = self.state.current()
            with contextlib.suppress(InputError, FileNotFoundError):  # replaced meanwhile
                return name, open_snapshot(self.state.snapshot(name))
        raise InputError(f"snapshot {self.state.current()} cannot be opened")

    async def follow(self) -> None:
        """Take whatever snapshot the state names."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK)
            with contextlib.suppress(OSError):
                name = self.state.current()
                if name not in (self.name, self._refused):
                    await loop.run_in_executor(None, self._take_next)

    def _take_next(self) -> None:
        """Opened and touched beside the one in use; the exchange is one assignment."""
        try:
            name, snapshot = self._open()
            snapshot.warm()
        except Exception:
            self._refused = self.state.current()
            LOG.exception("the new snapshot cannot be opened; the old one stays")
            return
        self.service.take(snapshot)
        self.name = name

    async def _reload(self) -> str:
        """Prepare the run anew, and wait until this worker serves it."""
        try:
            name = await asyncio.get_running_loop().run_in_executor(None, self.state.prepare)
        except ReloadingError:
            raise ProblemError(409, "a reload is on its way already; wait for it") from None
        except InputError as error:
            raise ProblemError(409, f"the old run stays: {error}") from None
        for _ in range(int(30 / LOOK)):
            if self.name == name:
                return name
            await asyncio.sleep(LOOK / 2)
        raise ProblemError(500, "the new run was prepared and could not be opened; the old one stays")

    async def serve(self, listening: socket.socket, parent: int) -> None:
        """Until told to stop; requests on their way are finished."""
        app = self.service.app()
        config = uvicorn.Config(
            app,
            http=Protocol,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=max(1, int(self.settings.grace)),
            backlog=1024,
        )
        server = uvicorn.Server(config)
        server.capture_signals = contextlib.nullcontext  # type: ignore[assignment,method-assign]  # ours, below

        def stop() -> None:
            self.service.stopping = True
            server.should_exit = True

        def orphaned() -> None:
            loop.remove_reader(parent)
            stop()

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stop)
        loop.add_signal_handler(signal.SIGINT, lambda: None)  # the supervisor's; it tells us
        loop.add_reader(parent, orphaned)
        async with _running(self.follow()):
            await server.serve(sockets=[listening])


@contextlib.asynccontextmanager
async def _running(work: Any) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()


def main() -> None:
    """Called by the supervisor."""
    state, slot, listening, parent = State(Path(sys.argv[1])), *(int(word) for word in sys.argv[2:5])
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s worker %(process)d %(message)s")
    sys.setswitchinterval(SWITCH)
    settings = state.settings()
    torch.set_num_threads(settings.threads)
    for place in settings.plugins:
        add_plugin(place, METHODS, RERANKERS)
    while not state.begun:
        if select.select([parent], [], [], LOOK)[0]:
            return  # the supervisor has gone: the run could not be prepared
    gc.collect()
    gc.freeze()  # a full collection would walk all that was imported, 0.1 s in which nobody is answered
    worker = Worker(state, slot)
    os.set_inheritable(listening, False)
    loop: Any = None
    with contextlib.suppress(ImportError):
        import uvloop

        loop = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(worker.serve(socket.socket(fileno=listening), parent))


if __name__ == "__main__":
    main()

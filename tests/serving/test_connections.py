"""Connections that send too much, too slowly, or at the end: nobody has shown a token yet where this happens."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dpaa.runs.model import Model
from tests.serving.running import PATIENCE, Running, running, wait_until

LARGE = 100_000
"""Bytes of a head; 64 KB are enough for anybody."""
POST = "POST /recommend HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
SOON = 5
"""Seconds that an answer may take."""


@pytest.fixture(scope="module")
def service(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    run = tmp_path_factory.mktemp("served") / "run"
    model.save(run)
    with running(run) as found:
        yield found


def connected(service: Running, seconds: float) -> socket.socket:
    place = urlsplit(service.url)
    return socket.create_connection((place.hostname, place.port), timeout=seconds)


def status(one: socket.socket) -> int:
    """Of the answer; 0 where the connection was closed without one."""
    words = one.recv(4096).split()
    return int(words[1]) if words else 0


@pytest.mark.parametrize("head", ["X-Large: " + LARGE * "x", "\r\n".join(f"X-{n}: {n}" for n in range(LARGE // 10))])
def test_a_large_head_is_refused(service: Running, head: str) -> None:
    with connected(service, SOON) as one:
        one.sendall(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n\r\n".encode())
        assert status(one) == 431


def test_a_head_that_does_not_end_is_refused(service: Running) -> None:
    with connected(service, SOON) as one, suppress(ConnectionError):  # it need not read the whole
        one.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Large: " + LARGE * b"x")
        assert status(one) in (0, 431)


def test_trailers_that_do_not_end_are_refused(service: Running) -> None:
    with connected(service, SOON) as one:
        one.sendall(f"{POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n".encode())
        with suppress(ConnectionError):  # it need not read them all
            one.sendall(b"X-Trailer: x\r\n" * (LARGE // 14))
            assert status(one) in (0, 400, 431)


@pytest.mark.slow
def test_a_silent_connection_is_closed(service: Running) -> None:
    with connected(service, 15) as one:
        assert status(one) in (0, 408)


def test_who_comes_while_the_service_stops_is_refused_or_answered(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    with running(tmp_path / "run") as service, connected(service, PATIENCE) as busy:
        body = b'{"users": ["u00000"]}'
        busy.sendall(f"{POST}Content-Length: {len(body)}\r\n\r\n".encode())  # on its way until the body is there
        wait_until(lambda: service.get("/health").status_code == 200)
        service.process.send_signal(signal.SIGTERM)

        def come() -> bool:
            """Whether the service has begun to stop: it refuses, or leaves who comes waiting."""
            try:
                with connected(service, 1) as late:
                    late.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                    return status(late) != 200
            except (ConnectionError, TimeoutError):
                return True

        wait_until(come)
        late = None
        with suppress(ConnectionRefusedError):
            late = connected(service, PATIENCE)
            late.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        busy.sendall(body)
        assert status(busy) == 200
        if late is not None:
            with late:
                assert status(late) in (200, 503)
        assert service.process.wait(PATIENCE) == 0

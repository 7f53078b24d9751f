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
"""Bytes of a head that is refused."""
GET = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = "POST /recommend HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
CHUNKED = f"{POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n"


@pytest.fixture(scope="module")
def service(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    run = tmp_path_factory.mktemp("served") / "run"
    model.save(run)
    with running(run) as started:
        yield started


def connected(service: Running, seconds: float = 15) -> socket.socket:
    address = urlsplit(service.url)
    return socket.create_connection((address.hostname, address.port), timeout=seconds)


def status(one: socket.socket) -> int:
    """Of the answer; 0 where the connection was closed without one."""
    words = one.recv(4096).split()
    return int(words[1]) if words else 0


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        (f"{GET}X-Large: {LARGE * 'x'}\r\n\r\n", (431,)),
        (GET + "".join(f"X-{n}: {n}\r\n" for n in range(LARGE // 10)) + "\r\n", (431,)),
        (f"{GET}X-Endless: {LARGE * 'x'}", (0, 431)),
        (CHUNKED + "X-Trailer: x\r\n" * (LARGE // 5), (0, 400, 431)),
        ("this is not HTTP\r\n\r\n", (400,)),
    ],
)
def test_what_is_too_large_or_no_request_is_refused(service: Running, sent: str, statuses: tuple[int, ...]) -> None:
    with connected(service) as one, suppress(ConnectionError):  # it need not read the whole
        one.sendall(sent.encode())
        assert status(one) in statuses


@pytest.mark.slow
def test_a_silent_connection_is_closed(service: Running) -> None:
    with connected(service) as one:
        assert status(one) == 0


def test_who_comes_while_the_service_stops_is_refused_or_answered(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    with running(tmp_path / "run") as service, connected(service, PATIENCE) as busy:
        body = b'{"users": ["u00000"]}'
        busy.sendall(f"{POST}Content-Length: {len(body)}\r\n\r\n".encode())  # on its way until the body is there
        wait_until(service.is_ready)
        service.process.send_signal(signal.SIGTERM)

        def stops() -> bool:
            """Whether it refuses, or leaves who comes waiting."""
            try:
                with connected(service, 1) as late:
                    late.sendall(f"{GET}Connection: close\r\n\r\n".encode())
                    return status(late) != 200
            except (ConnectionError, TimeoutError):
                return True

        wait_until(stops)
        busy.sendall(body)
        assert status(busy) == 200
        assert service.process.wait(PATIENCE) == 0

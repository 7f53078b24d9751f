"""Connections that send too much or too slowly: nobody has shown a token yet where this happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from dpaa.runs.model import Model
from tests.serving.running import GET, POST, Running, running, status

LARGE = 100_000
"""Bytes of a head that is refused."""
CHUNKED = f"{POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n"


@pytest.fixture(scope="module")
def service(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    run = tmp_path_factory.mktemp("served") / "run"
    model.save(run)
    with running(run) as started:
        yield started


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
    with service.connected() as one, suppress(ConnectionError):  # it need not read the whole
        one.sendall(sent.encode())
        assert status(one) in statuses


@pytest.mark.slow
def test_a_silent_connection_is_closed(service: Running) -> None:
    with service.connected() as one:
        assert status(one) == 0

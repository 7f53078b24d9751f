"""The service as processes: reloads, deaths and ends, seen from outside."""

import os
import shutil
import signal
import socket
import threading
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from dpaa.runs.model import load
from dpaa.serving import ServeOptions, _server
from dpaa.serving._app import create_app
from dpaa.serving._snapshot import Snapshot
from tests.serving.made import drawn_model
from tests.serving.running import GET, PATIENCE, POST, Running, in_thread, running, status
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
TOKEN = "0123456789abcdef0123"
KEY = {"Authorization": f"Bearer {TOKEN}"}
USER = "u00003"
LARGE = 100_000
"""Bytes of a head that is refused."""
CHUNKED = f"{POST}Authorization: Bearer {TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one dataset, and a copy of the first."""
    folder = tmp_path_factory.mktemp("runs")
    for seed, name in enumerate(("one", "two")):
        drawn_model(seed=seed).save(folder / name)
    shutil.copytree(folder / "one", folder / "served")
    return folder


def listed(service: Running) -> list[str]:
    return [row["id"] for row in service.get(f"/recommend/{USER}", headers=KEY).json()["items"]]


def exchange(run: Path, other: Path) -> None:
    shutil.rmtree(run)
    shutil.copytree(other, run)


def test_bad_connections_are_refused_or_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has shown a token yet where this happens."""
    app = create_app(ServeOptions(run=Path("run"), token=TOKEN), Snapshot(drawn_model(n_items=60)))
    with in_thread(app, http=_server.Protocol) as listening:
        for sent, statuses in (
            (f"{GET}X-Large: {LARGE * 'x'}\r\n\r\n", (431,)),
            (GET + "".join(f"X-{n}: {n}\r\n" for n in range(LARGE // 10)) + "\r\n", (431,)),
            (f"{GET}X-Endless: {LARGE * 'x'}", (0, 431)),
            (CHUNKED + "X-Trailer: x\r\n" * (LARGE // 5), (0, 400, 431)),
            ("this is not HTTP\r\n\r\n", (400,)),
        ):
            with socket.create_connection(listening.getsockname()) as one, suppress(ConnectionError):
                one.sendall(sent.encode())  # it need not read the whole
                assert status(one) in statuses, sent[:200]
        monkeypatch.setattr(_server, "PATIENCE", 0.2)
        with socket.create_connection(listening.getsockname(), timeout=15) as silent:
            assert status(silent) == 0


def test_the_life_of_a_service(folders: Path, tmp_path: Path) -> None:
    """In one go, since every start loads torch: reloads, a bad run, a killed worker, an end."""
    run = folders / "served"
    with running(run, DPAA_SERVE_TOKEN=TOKEN, TMPDIR=str(tmp_path)) as service:
        assert [oct(one.stat().st_mode)[-3:] for one in tmp_path.iterdir()] == ["700"]
        takes_another_run_without_dropping_a_request(service, folders)
        stays_with_the_old_run_where_the_new_one_is_bad(service, run)
        exchange(run, folders / "two")
        replaces_a_killed_worker(service)
        workers = service.workers()
        answers_who_came_before_it_was_stopped(service)
    assert list(tmp_path.iterdir()) == []
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def takes_another_run_without_dropping_a_request(service: Running, folders: Path) -> None:
    one, two = (load(folders / name).recommend([USER])["item_id"].to_list() for name in ("one", "two"))
    assert listed(service) == one
    failed: list[object] = []
    stop, old = threading.Event(), service.workers()

    def send_requests() -> None:
        with httpx2.Client(headers=KEY, timeout=30) as client:
            while not stop.wait(0.05):
                answer = client.get(f"{service.url}/recommend/{USER}")
                items = [row["id"] for row in answer.json()["items"]] if answer.status_code == 200 else answer.text
                if items not in (one, two):
                    failed.append(items)

    threads = [threading.Thread(target=send_requests) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        exchange(folders / "served", folders / "two")
        assert httpx2.post(f"{service.url}/reload", headers=KEY).status_code == 202
        wait_until(lambda: not set(old) & set(service.workers()))
        assert listed(service) == two
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failed == []


def stays_with_the_old_run_where_the_new_one_is_bad(service: Running, run: Path) -> None:
    before = listed(service)
    (run / "model.safetensors").write_bytes(b"nothing")
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: any("aborting the restart" in line for line in service.said))
    assert any("a worker cannot start: " in line and "model.safetensors" in line for line in service.said)
    assert listed(service) == before


def replaces_a_killed_worker(service: Running) -> None:
    (worker,) = service.workers()
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: service.workers() not in ([], [worker]))
    wait_until(service.is_ready)
    assert listed(service)
    text = service.get("/metrics", headers=KEY).text
    served = next(line for line in text.splitlines() if 'route="recommend",status="200"' in line)
    assert float(served.split()[-1]) > 5, "counters of the dead ones are kept"


def answers_who_came_before_it_was_stopped(service: Running) -> None:
    with service.connected(PATIENCE) as busy:
        body = b'{"users": ["u00000"]}'
        head = f"{POST}Authorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n"
        busy.sendall(head.encode())  # on its way until the body is there
        wait_until(service.is_ready)
        service.process.send_signal(signal.SIGTERM)

        def stops() -> bool:
            """Whether it refuses, or leaves who comes waiting."""
            try:
                with service.connected(1) as late:
                    late.sendall(f"{GET}Connection: close\r\n\r\n".encode())
                    return status(late) != 200
            except (ConnectionError, TimeoutError):
                return True

        wait_until(stops)
        busy.sendall(body)
        assert status(busy) == 200
        assert service.process.wait(PATIENCE) == 0

"""The service as processes: reloads, deaths and ends, seen from outside."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path

import httpx2
import pytest

from dpaa.runs.model import Model, load
from tests.serving.made import drawn_model
from tests.serving.running import Running, answers, running, wait_until

pytestmark = pytest.mark.slow
TOKEN = "0123456789abcdef0123"
KEY = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one dataset."""
    folder = tmp_path_factory.mktemp("runs")
    drawn_model(seed=0).save(folder / "one")
    drawn_model(seed=1).save(folder / "two")
    return folder


def listed(service: Running, user: str = "u00003") -> list[str]:
    return [row["id"] for row in service.get(f"/recommend/{user}", headers=KEY).json()["items"]]


def of(model: Model, user: str = "u00003") -> list[str]:
    return model.recommend([user])["item_id"].to_list()


def exchange(run: Path, other: Path) -> None:
    shutil.rmtree(run)
    shutil.copytree(other, run)


def test_the_life_of_a_service(folders: Path, tmp_path: Path) -> None:
    """In one go, since every start loads torch: reload under load, a bad run, a killed worker, a peaceful end."""
    shutil.copytree(folders / "one", run := folders / "served")
    with running(run, DPAA_SERVE_TOKEN=TOKEN, TMPDIR=str(tmp_path)) as service:
        assert [oct(one.stat().st_mode)[-3:] for one in tmp_path.iterdir()] == ["700"]
        takes_another_run_without_dropping_a_request(service, folders)
        stays_with_the_old_run_where_the_new_one_is_bad(service, folders)
        exchange(run, folders / "two")
        replaces_a_killed_worker(service)
        workers = service.workers()
        assert service.stop() == 0
    assert list(tmp_path.iterdir()) == []
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def takes_another_run_without_dropping_a_request(service: Running, folders: Path) -> None:
    one, two = (of(load(folders / name)) for name in ("one", "two"))
    assert listed(service) == one
    failed: list[object] = []
    stop = threading.Event()

    def ask() -> None:
        with httpx2.Client(headers=KEY, timeout=30) as client:
            while not stop.wait(0.01):
                answer = client.get(f"{service.url}/recommend/u00003")
                items = [row["id"] for row in answer.json()["items"]] if answer.status_code == 200 else answer.text
                if items not in (one, two):
                    failed.append(items)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    old = service.workers()
    try:
        exchange(folders / "served", folders / "two")
        answer = httpx2.post(f"{service.url}/reload", headers=KEY, timeout=120)
        assert answer.status_code == 202, answer.text
        wait_until(lambda: len(service.workers()) == 1 and not set(old) & set(service.workers()))
        assert all(listed(service) == two for _ in range(6))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failed == []


def stays_with_the_old_run_where_the_new_one_is_bad(service: Running, folders: Path) -> None:
    before = listed(service)
    (folders / "served" / "model.safetensors").write_bytes(b"nothing")
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: any("aborting the restart" in line for line in service.said))
    assert any("a worker cannot start: " in line and "model.safetensors" in line for line in service.said)
    assert listed(service) == before


def replaces_a_killed_worker(service: Running) -> None:
    (worker,) = service.workers()
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: len(service.workers()) == 1 and worker not in service.workers())
    assert any(f"[{worker}] died" in line for line in service.said)
    wait_until(lambda: answers(service))
    assert listed(service)
    text = service.get("/metrics", headers=KEY).text
    served = next(line for line in text.splitlines() if 'route="recommend",status="200"' in line)
    assert float(served.split()[-1]) > 5, "counters of the dead ones are kept"


def test_workers_end_with_a_parent_that_was_killed(folders: Path, tmp_path: Path) -> None:
    with running(folders / "one", "--workers", 2, TMPDIR=str(tmp_path)) as found:
        workers = found.workers()
        assert len(workers) == 2
        found.process.kill()
        found.process.wait()
        wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))

"""Machines that share a reproduction through a PostgreSQL server: folders of their own, and no training twice."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dpaa.errors import InputError
from dpaa.reproduction import trainings
from dpaa.reproduction.results import ResultStore, RunResult
from dpaa.reproduction.shared import TABLE, SharedResults
from tests.command import dpaa_ok, run_dpaa
from tests.postgres import Postgres, running
from tests.reproduction.conftest import TINY, places

pytest.importorskip("psycopg")
ROWS = ("--method", "lightgcn", "--method", "ips", "--method", "most-popular", "--seeds", 3)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running() as found:
        yield found


@pytest.fixture
def database(server: Postgres, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"\W", "_", request.node.name).lower()[:40]
    server.psql("-c", f"CREATE DATABASE {name}")
    return f"postgresql://{server.user}@/{name}?host={server.socket}"


def words(files: Path, folder: Path, storage: str) -> list[str]:
    said = ["reproduce", "overall", "--coat", files / "coat", *ROWS, *TINY, "--storage", storage, *places(folder)]
    return [str(word) for word in said]


def begun(call: list[str], log: Path) -> subprocess.Popen[Any]:
    with log.open("w") as file:
        return subprocess.Popen([sys.executable, "-m", "dpaa", *call], stdout=file, stderr=file)


def trained(log: str) -> list[str]:
    """Rows that a call trained itself."""
    return re.findall(r"^\d+/\d+ (.*? seed \d+):", log, re.MULTILINE)


def test_two_machines_train_everything_once_and_both_have_the_table(files: Path, database: str, tmp_path: Path) -> None:
    """An empty database, two first calls at once; one of them is killed, and a third joins."""
    hosts = [tmp_path / name for name in ("one", "two", "three")]
    calls = [begun(words(files, host, database), tmp_path / f"{host.name}.log") for host in hosts[:2]]
    end = time.monotonic() + 120
    while not trained((tmp_path / "two.log").read_text()) and time.monotonic() < end and calls[1].poll() is None:
        time.sleep(0.02)
    calls[1].send_signal(signal.SIGKILL)
    calls.append(begun(words(files, hosts[2], database), tmp_path / "three.log"))
    assert [call.wait(timeout=300) for call in (calls[0], calls[2])] == [0, 0]
    calls[1].wait()
    logs = [(tmp_path / f"{host.name}.log").read_text() for host in hosts]
    rows = [row for log in logs for row in trained(log)]
    assert len(rows) == len(set(rows)), logs  # none twice
    total = int(re.findall(r"^(\d+) trainings, \d+ already", logs[0], re.MULTILINE)[0])
    assert total - 1 <= len(rows) <= total  # the killed one may have ended a training that it could not tell of
    tables = [(host / "out" / "overall-quick.csv").read_bytes() for host in (hosts[0], hosts[2])]
    assert tables[0] == tables[1]
    alone = tmp_path / "alone"
    dpaa_ok("reproduce", "overall", "--coat", files / "coat", *ROWS, *TINY, *places(alone))
    assert (alone / "out" / "overall-quick.csv").read_bytes() == tables[0]
    late = run_dpaa(*words(files, tmp_path / "late", database))
    assert late.code == 0
    assert f"{total} of them taken over from other machines" in late.err
    assert not trained(late.err)


def test_what_was_made_without_the_server_is_handed_over(files: Path, database: str, tmp_path: Path) -> None:
    """So that no other machine makes it again; also where the server was away when a training ended."""
    call = words(files, tmp_path / "one", database)
    at = call.index("--storage")
    dpaa_ok(*call[:at], *call[at + 2 :])
    said = dpaa_ok(*call)
    assert "nothing was trained" in said.err
    other = dpaa_ok(*words(files, tmp_path / "other", database))
    assert "of them taken over from other machines" in other.err
    assert "nothing was trained" in other.err
    results = [sorted((tmp_path / host / "results").rglob("*.json")) for host in ("one", "other")]
    assert [file.name for file in results[0]] == [file.name for file in results[1]]
    assert all(one.read_bytes() == two.read_bytes() for one, two in zip(*results, strict=True))


def test_who_waits_for_others_says_so_and_starts_nothing(
    files: Path, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, host = tmp_path / "alone", tmp_path / "host"
    call = words(files, alone, database)
    at = call.index("--storage")
    dpaa_ok(*call[:at], *call[at + 2 :])
    store, said = ResultStore(alone / "results", "overall", RunResult), []
    other = SharedResults(database)
    with ExitStack() as held:
        for key in store.keys:
            assert held.enter_context(other.claimed(f"overall {key}"))

        def ended(_seconds: float) -> None:
            said.append("slept")
            for key in store.keys:
                other.add(store, key)

        monkeypatch.setattr(trainings.time, "sleep", ended)
        found = dpaa_ok(*words(files, host, database))
    other.close()
    assert found.err.count("waiting for") == 1
    assert said == ["slept"]
    assert not trained(found.err)


def test_what_is_claimed_elsewhere_is_left_and_a_claim_ends_with_its_session(database: str) -> None:
    one, other = SharedResults(database), SharedResults(database)
    with one.claimed("overall x") as mine:
        assert mine
        with other.claimed("overall x") as theirs:
            assert not theirs
        with other.claimed("overall y") as theirs:
            assert theirs
    with other.claimed("overall x") as theirs:
        assert theirs
    kept = one.claimed("overall z")
    assert kept.__enter__()
    one.close()
    assert any(_claimed_after(other, 0.1) for _ in range(100))  # as soon as the server has noticed
    other.close()


def _claimed_after(shared: SharedResults, seconds: float) -> bool:
    time.sleep(seconds)
    with shared.claimed("overall z") as mine:
        return mine


def test_a_row_that_is_no_result_is_refused_in_a_sentence(database: str, server: Postgres, tmp_path: Path) -> None:
    shared, store = SharedResults(database), ResultStore(tmp_path, "overall", RunResult)
    for text in ("{", '{"data": 3}'):
        shared._locks.execute(f"DELETE FROM {TABLE}")
        shared._locks.execute(f"INSERT INTO {TABLE} VALUES ('overall', 'k', %s)", [text])
        with pytest.raises(InputError, match=f"row k of the storage's table {TABLE} is not a readable result"):
            shared.agree(store, ["k"], lambda _key: False)
        assert store.read("k") is None
    shared.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///here.db", "is no PostgreSQL server; give a URL such as"),
        ("postgresql://me:s3cret@127.0.0.1:1/db", "cannot open the storage postgresql://me:***@127.0.0.1:1/db"),
    ],
)
def test_a_storage_that_cannot_be_used_is_refused_first(url: str, said: str, files: Path, tmp_path: Path) -> None:
    found = run_dpaa(*words(files, tmp_path / "host", url))
    assert found.code == 2
    assert said in found.err
    assert "s3cret" not in found.err
    assert not (tmp_path / "host").exists()

"""Workers of several hosts on one PostgreSQL: no settings twice, whoever is killed, and no password anywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("sqlalchemy")

from dpaa.errors import InputError
from dpaa.tuning.locks import ServerLocks, check_storage
from dpaa.tuning.space import Range
from dpaa.tuning.study import Study, TrialStore, key_of
from tests.command import dpaa_ok, run_dpaa
from tests.postgres import Postgres, running

PASSWORD = "s3cret/@ word"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server, and a user who needs a password."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with running() as found:
        found.psql("-c", f"CREATE ROLE dpaa LOGIN PASSWORD '{PASSWORD}'", "-c", "CREATE DATABASE kept OWNER dpaa")
        rules = found.socket / "data" / "pg_hba.conf"
        rules.write_text("local all dpaa scram-sha-256\n" + rules.read_text())
        found.psql("-c", "SELECT pg_reload_conf()")
        yield found


@pytest.fixture
def url(server: Postgres, request: pytest.FixtureRequest) -> str:
    """That of an empty database."""
    name = f"d{abs(hash(request.node.name))}"
    server.psql("-c", f"CREATE DATABASE {name}")
    return f"postgresql://{server.user}@/{name}?host={server.socket}"


def store(folder: Path, url: str, call: str = "") -> TrialStore:
    folder.mkdir(exist_ok=True)
    space = {"x": Range(0, 1)}
    return TrialStore(
        Study(folder, "s", space, {"x": 0.5}, listed=False, seed=0, prune_after=0, storage=url, call=call)
    )


def at_once(work: Callable[[int], Any], many: int) -> list[Any]:
    with ThreadPoolExecutor(many) as pool:
        return list(pool.map(work, range(many)))


@pytest.mark.slow
def test_first_calls_on_an_empty_database_and_claims_from_several_folders(url: str, tmp_path: Path) -> None:
    def host(number: int) -> list[str]:
        check_storage(url)
        claimed = []
        with closing(store(tmp_path / str(number), url)) as one, one.at_work():
            while claim := one.claim(12):
                claimed.append(key_of(claim.settings))
                time.sleep(0.02)
                claim.end("COMPLETE", {"recall@20": claim.settings["x"]})
        return claimed

    claimed = [key for keys in at_once(host, 4) for key in keys]
    assert len(claimed) == len(set(claimed)) == 12
    with closing(store(tmp_path / "later", url)) as after:
        states = [trial.state for trial in after.trials()]
        assert after.counts() == (12, 0)
    assert states.count("complete") == 12
    assert "lost" not in states


KILLED = """
import sys, time
from pathlib import Path
from tests.tuning.test_locks import store
one = store(Path(sys.argv[1]), sys.argv[2], "a call")
with one.at_work():
    print(one.claim(1).settings["x"], flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_the_trial_of_a_worker_that_was_killed_is_done_by_another_host(url: str, tmp_path: Path) -> None:
    call = [sys.executable, "-c", KILLED, str(tmp_path / "far"), url]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as far:
        assert far.stdout is not None
        taken = float(far.stdout.readline())
        with closing(store(tmp_path / "near", url)) as near:
            assert near.claim(1) is None, "it is alive"
            os.kill(far.pid, signal.SIGKILL)
            far.wait()
            deadline = time.monotonic() + 30  # the server notices when the connection ends
            while (claim := near.claim(1)) is None and time.monotonic() < deadline:
                time.sleep(0.02)
            assert claim
            assert claim.settings == {"x": taken}
            claim.end("COMPLETE", {"recall@20": 0.5})
            assert sorted(trial.state for trial in near.trials()) == ["complete", "lost"]


@pytest.mark.slow
def test_a_worker_whose_connection_breaks_takes_its_turn_again(server: Postgres, url: str, tmp_path: Path) -> None:
    database = url.partition("@/")[2].partition("?")[0]
    one, other = store(tmp_path / "one", url), store(tmp_path / "other", url)
    with closing(one), closing(other), one.at_work(), other.at_work():
        claim = one.claim(2)
        assert claim
        before = one.locks.beacon
        server.psql("-c", f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
        again = other.claim(1)
        assert again, "nobody holds it any more"
        assert again.settings == claim.settings
        second = one.claim(3)
        assert second
        assert second.settings != claim.settings
        assert one.locks.beacon != before
        assert other.counts() == (0, 2), "both are at work again"


@pytest.mark.slow
def test_a_password_is_nowhere(server: Postgres, tmp_path: Path) -> None:
    dpaa_ok("data", "demo", "--users", 60, "--items", 40, "--out", tmp_path / "data")
    url = f"postgresql://dpaa:{quote(PASSWORD, safe='')}@/kept?host={server.socket}"
    call = ("tune", tmp_path / "data", "--method", "item-knn", "--trials", 2, "--seeds", 1)
    said = dpaa_ok(*call, "--storage", url, "--out", tmp_path / "study")
    wrong = run_dpaa(*call, "--storage", url.replace("s3cret", "s3creT"), "--out", tmp_path / "wrong")
    assert wrong.code == 2
    assert "password authentication failed" in wrong.err
    assert not (tmp_path / "wrong").exists()
    files = [file.read_bytes() for file in (tmp_path / "study").rglob("*") if file.is_file()]
    told = said.out + said.err + wrong.out + wrong.err
    for secret in (PASSWORD, quote(PASSWORD, safe=""), "s3cret", "s3creT"):
        assert secret not in told
        assert not any(secret.encode() in content for content in files)


def test_the_driver_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"pip install 'dpaa\[sql\]'"):
        check_storage("postgresql://me:s3cret@127.0.0.1:1/db")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg2"])
def test_a_server_that_is_not_there(scheme: str) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(InputError, match=r"cannot open the storage postgres.*127\.0\.0\.1:1/db \(.*refused") as refused:
        check_storage(f"{scheme}://me:s3cret@127.0.0.1:1/db")
    assert "s3cret" not in str(refused.value)


def test_a_stranger_s_beacon_is_nobody_s() -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    locks = ServerLocks("postgresql://127.0.0.1:1/db", "s")
    for beacon in ("", "/tmp/worker-1", "9" * 40, "٣"):
        assert not locks.alive({"beacon": beacon}, 0.0)

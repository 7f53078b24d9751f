"""`dpaa serve` before anything is started."""

from __future__ import annotations

import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from dpaa.errors import InputError
from dpaa.runs.model import Model
from dpaa.serving.prepare import prepare
from dpaa.serving.settings import ServeSettings, check_token, is_loopback
from dpaa.serving.standalone import write_live
from dpaa.serving.supervisor import listen
from tests.command import run_dpaa


@pytest.mark.parametrize(
    ("missing", "words", "extra"), [("starlette", (), "serve"), ("faiss", ("--index", "hnsw"), "index")]
)
def test_a_missing_extra_says_what_to_install(
    missing: str, words: tuple[str, ...], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    said = run_dpaa("serve", "run", *words)
    assert said.code == 2
    assert f"pip install 'dpaa[{extra}]'" in said.err


def test_starting_needs_no_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The supervisor stays light: what it refuses, it refuses at once."""
    for name in [name for name in sys.modules if name.startswith("dpaa.serving")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "token").write_text("x" * 40)
    said = run_dpaa("serve", tmp_path, "--host", "192.0.2.1", "--token-file", tmp_path / "token")
    assert said.code == 2
    assert "cannot listen on 192.0.2.1" in said.err


@pytest.mark.parametrize(
    ("host", "own"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]")),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "localhost.evil.example", "")),
    ],
)
def test_what_is_loopback(host: str, own: bool) -> None:
    assert is_loopback(host) == own


def test_no_token_is_needed_where_a_proxy_watches() -> None:
    check_token("0.0.0.0", None, no_token=True)
    check_token("127.0.0.1", None, no_token=False)
    check_token("0.0.0.0", "x" * 32, no_token=False)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel spreads connections on Linux")
def test_each_worker_gets_some_of_the_connections() -> None:
    sockets = listen("127.0.0.1", 0, 2)
    address = sockets[0].getsockname()
    assert {one.getsockname() for one in sockets} == {address}
    clients = [socket.create_connection(address) for _ in range(40)]
    taken = []
    for one in sockets:
        one.setblocking(False)
        taken.append(0)
        with suppress(BlockingIOError):
            while True:
                one.accept()[0].close()
                taken[-1] += 1
    for one in (*clients, *sockets):
        one.close()
    assert sum(taken) == 40
    assert min(taken) > 0


def test_a_full_temporary_folder_is_named_with_a_remedy(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("7603 requested and 7136 written")  # numpy's words

    model.save(tmp_path / "run")
    monkeypatch.setattr(np, "save", full)
    snapshot = tmp_path / "dpaa-serve-12345678" / "run-one"
    snapshot.parent.mkdir()
    with pytest.raises(InputError) as refused:
        prepare(ServeSettings(run=tmp_path / "run"), snapshot)
    assert str(refused.value) == (
        f"cannot prepare the run in {tmp_path} (No space left on device); make room there, or set TMPDIR"
    )
    assert not snapshot.exists()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(InputError, match=f"cannot prepare the run in {tmp_path} "):
        write_live(tmp_path / "run", tmp_path / "live.html")


def test_a_port_that_somebody_has_is_refused() -> None:
    (busy,) = listen("127.0.0.1", 0)
    with busy, pytest.raises(InputError, match="cannot listen"):
        listen("127.0.0.1", busy.getsockname()[1], 2)

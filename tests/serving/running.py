"""`dpaa serve` as a process of its own, on a port that is free."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

PATIENCE = 120.0


@dataclass
class Running:
    process: subprocess.Popen[str]
    url: str
    said: list[str] = field(default_factory=list)

    def get(self, path: str, **how: Any) -> httpx2.Response:
        return httpx2.get(self.url + path, timeout=30, **how)

    def workers(self) -> list[int]:
        """Their process ids."""
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid), "-f", "spawn_main"], capture_output=True, text=True, check=False
        )
        return [int(word) for word in found.stdout.split()]

    def stop(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)


@contextmanager
def running(run: Path, *words: object, **environment: str) -> Iterator[Running]:
    """Started and ready; killed at the end if it is still there."""
    call = [sys.executable, "-m", "dpaa", "serve", str(run), "--port", "0", *map(str, words)]
    process = subprocess.Popen(call, stderr=subprocess.PIPE, text=True, env=os.environ | environment)
    found = Running(process, "")
    thread = threading.Thread(target=lambda: found.said.extend(line.rstrip() for line in process.stderr or ()))
    try:
        assert process.stderr is not None
        for line in process.stderr:
            found.said.append(line.rstrip())
            if address := re.search(r"http://\S+", line):
                found.url = address[0]
                break
        assert found.url, found.said
        thread.start()
        wait_until(lambda: answers(found))
        yield found
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if thread.ident is not None:
            thread.join()
        assert process.stderr is not None
        process.stderr.close()


def answers(found: Running) -> bool:
    try:
        return found.get("/ready").status_code == 200
    except httpx2.HTTPError:
        return False


def wait_until(true: Any, seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.05)

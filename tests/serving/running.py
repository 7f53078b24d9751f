"""The service on a port that is free: `dpaa serve` as a process of its own, or its application in a thread."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import uvicorn

from tests.waiting import wait_until

PATIENCE = 120.0
GET = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = "POST /recommend HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@dataclass
class Running:
    process: subprocess.Popen[str]
    url: str = ""
    said: list[str] = field(default_factory=list)
    """Lines of its standard error."""

    def get(self, path: str, **how: Any) -> httpx2.Response:
        return httpx2.get(self.url + path, timeout=30, **how)

    def is_ready(self) -> bool:
        try:
            return self.get("/ready").status_code == 200
        except httpx2.HTTPError:
            return False

    def workers(self) -> list[int]:
        """Their process ids."""
        call = ["pgrep", "-P", str(self.process.pid), "-f", "spawn_main"]
        return [int(word) for word in subprocess.run(call, capture_output=True, check=False).stdout.split()]

    def connected(self, seconds: float = 15) -> socket.socket:
        address = urlsplit(self.url)
        return socket.create_connection((address.hostname, address.port), timeout=seconds)


def status(connection: socket.socket) -> int:
    """Of the answer; 0 where the connection was closed without one."""
    words = connection.recv(4096).split()
    return int(words[1]) if words else 0


@contextmanager
def in_thread(app: Any, **how: Any) -> Iterator[socket.socket]:
    """An application that uvicorn serves in a thread; where it listens."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", **how))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield listening
        finally:  # a test that fails must not leave a thread that nobody ends
            server.should_exit = True
            thread.join()


@contextmanager
def running(run: Path, *words: object, **environment: str) -> Iterator[Running]:
    """Started and ready; killed at the end if it is still there."""
    call = [sys.executable, "-m", "dpaa", "serve", str(run), "--port", "0", *map(str, words)]
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True, env=os.environ | environment) as process:
        service = Running(process)
        thread = threading.Thread(target=lambda: service.said.extend(line.rstrip() for line in process.stderr or ()))
        thread.start()
        try:
            wait_until(lambda: any("http://" in line for line in service.said) or process.poll() is not None)
            addresses = re.findall(r"http://\S+", " ".join(service.said))
            assert addresses, service.said
            service.url = addresses[0]
            wait_until(service.is_ready)
            yield service
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
            thread.join()

"""The process that `dpaa serve` is: it listens, starts workers, replaces those that die, and stops them in peace.

It computes nothing and answers nobody.  The sockets are its own, so that while a worker is replaced connections wait
instead of being refused.  On Linux each worker has one of the same address, among which the kernel spreads
connections; from a shared one whoever wakes first would take all that are waiting.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from dpaa._io import temporary_folder
from dpaa.errors import InputError, reason
from dpaa.serving.settings import ServeSettings
from dpaa.serving.state import ReloadingError, State

Say = Callable[[str], None]
LOOK = 0.05
"""Seconds between looks at the workers."""
TOO_OFTEN, WITHIN = 5, 30.0
"""A worker that dies so often within so many seconds has a reason that another start does not mend."""


@dataclass
class Supervisor:
    """One service."""

    settings: ServeSettings
    host: str
    port: int
    say: Say
    _workers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    _deaths: list[float] = field(default_factory=list)
    _signals: list[int] = field(default_factory=list)
    _watching: bool = False

    def run(self) -> int:
        """Until a signal says stop.  Returns the exit code."""
        sockets = listen(self.host, self.port, self.settings.workers)
        place = temporary_folder("dpaa-serve-")
        folder = Path(place.name)
        inside, outside = os.pipe()
        before = {which: signal.signal(which, self._came) for which in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
        try:
            state = State.make(folder, self.settings)
            for slot in range(self.settings.workers):  # they get ready while the run is prepared, and wait for it
                self._start(slot, folder, sockets, inside)
            state.prepare()
            host, port = sockets[0].getsockname()[:2]
            self.say(f"serving {self.settings.run} on http://{f'[{host}]' if ':' in host else host}:{port}")
            return self._watch(state, sockets, inside)
        finally:
            self._stop()
            for which, handler in before.items():
                signal.signal(which, handler)
            os.close(outside)
            os.close(inside)
            for one in sockets:
                one.close()
            place.cleanup()

    def _came(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)
        if not self._watching and number != signal.SIGHUP:
            raise KeyboardInterrupt  # still preparing: nobody is being served

    def _start(self, slot: int, folder: Path, sockets: list[socket.socket], parent: int) -> None:
        handles = (sockets[slot % len(sockets)].fileno(), parent)
        call = [sys.executable, "-m", "dpaa.serving.worker", str(folder), str(slot), *map(str, handles)]
        self._workers[slot] = subprocess.Popen(call, pass_fds=handles, stdin=subprocess.DEVNULL)

    def _watch(self, state: State, sockets: list[socket.socket], parent: int) -> int:
        self._watching = True
        while True:
            time.sleep(LOOK)
            if any(number != signal.SIGHUP for number in self._signals):
                return 0
            if self._signals:
                self._signals.clear()
                self._reload(state)
            for slot, worker in list(self._workers.items()):
                if worker.poll() is not None:
                    self._deaths = [*(at for at in self._deaths if at > time.monotonic() - WITHIN), time.monotonic()]
                    if len(self._deaths) > TOO_OFTEN * self.settings.workers:
                        self.say("the workers die as soon as they are started; see their messages above")
                        return 1
                    self.say(f"worker {worker.pid} ended with {worker.returncode}; another takes its place")
                    self._start(slot, state.folder, sockets, parent)

    def _reload(self, state: State) -> None:
        """On SIGHUP.  Workers go on meanwhile, and follow by themselves."""
        try:
            self.say(f"serving the run as it is now ({state.prepare()})")
        except ReloadingError:
            self.say("a reload is on its way already")
        except InputError as error:
            self.say(f"the old run stays: {error}")

    def _stop(self) -> None:
        for worker in self._workers.values():
            with suppress(ProcessLookupError):
                worker.terminate()
        until = time.monotonic() + self.settings.grace + 2
        for worker in self._workers.values():
            try:
                worker.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        self._workers.clear()


def listen(host: str, port: int, workers: int = 1) -> list[socket.socket]:
    """Sockets at this address, one for each worker where the kernel can spread connections; port 0 is any free one."""
    several = workers if sys.platform == "linux" else 1
    found: list[socket.socket] = []
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        for _ in range(several):
            found.append(one := socket.socket(family, socket.SOCK_STREAM))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if len(found) > 1:  # whether somebody else has the port is asked without it
                for each in found:
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            one.bind((host, found[0].getsockname()[1] if len(found) > 1 else port))
        for one in found:
            one.listen(1024)
    except (OSError, OverflowError, UnicodeError) as error:
        for one in found:
            one.close()
        raise InputError(f"cannot listen on {host} port {port} ({reason(error)}); choose another with --port") from None
    return found

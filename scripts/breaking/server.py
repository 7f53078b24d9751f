"""A fork server: imports the tool once, then runs each command line in a fork of itself, watched and measured.

Importing torch takes seconds and an attack a fraction of one.  Thread pools do not survive a fork, so nothing here may
run a query, open a tensor or start a thread before it forks.  Linux only (/proc, pidfd).

Requests come as JSON lines on one file descriptor, answers go out on another:

    python server.py MODULE:FUNCTION READ_FD WRITE_FD
"""

from __future__ import annotations

import atexit
import base64
import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
SUBREAPER = 36
"""`prctl`: orphans of a killed command become ours, so that we see whether they end."""
AROUND = 3
"""Frames of a stack that ends before the body of the tool's entry point."""
STREAM_BYTES = 2_000_000
"""What is kept of each stream."""
TICK = 0.03
"""Seconds between two looks at memory and processor time."""


@dataclass(frozen=True)
class Kill:
    """A signal, so many seconds after the command began."""

    after: float
    signal: int = signal.SIGKILL
    group: bool = False
    """To the workers too, as the terminal or a machine that goes down does."""


@dataclass(frozen=True)
class Limits:
    """Beyond these a command is stopped."""

    memory: int = 2_500_000_000
    """Bytes resident: above what a verdict allows, so that a peak is seen, and below what harms the machine."""
    idle: float = 10.0
    """Seconds without using the processor: it waits for something that does not come."""
    cpu: float = 60.0
    wall: float = 240.0
    orphans: float = 20.0
    """Seconds that the processes it started may live longer than it does."""


@dataclass(frozen=True)
class Call:
    """A command line to run."""

    words: list[str]
    folder: str
    environment: dict[str, str] = field(default_factory=dict)
    kill: Kill | None = None
    limits: Limits = field(default_factory=Limits)
    control: str | None = None
    """The file through which the interposed library is told what to do (see `disk.c`)."""
    file_size: int | None = None
    """`ulimit -f`, in bytes."""


@dataclass(frozen=True)
class Outcome:
    """What became of it."""

    code: int
    """Exit code; minus the signal's number where a signal ended it."""
    out: str
    err: str
    """What it printed; bytes that are not UTF-8 as surrogates."""
    seconds: float
    peak: int
    """Bytes resident at most, of the largest of its processes."""
    stopped: str | None = None
    """The limit that was passed: memory, idle, cpu or wall."""
    killed: bool = False
    """Whether the signal of `Kill` was sent in time."""
    orphans: int = 0
    """Processes of its own that lived on and on."""


class Server:
    """The other end: starts the server and hands it calls."""

    def __init__(self, tool: str, preload: Path | None = None) -> None:
        to_server, ours = os.pipe()
        theirs, from_server = os.pipe()
        environment = os.environ | ONE_THREAD | ({"LD_PRELOAD": str(preload)} if preload else {})
        environment.pop("RUST_BACKTRACE", None)  # a user has none
        words = [sys.executable, str(Path(__file__).resolve()), tool, str(to_server), str(from_server)]
        self._process = subprocess.Popen(words, env=environment, pass_fds=(to_server, from_server))
        os.close(to_server)
        os.close(from_server)
        self._write, self._read = os.fdopen(ours, "w"), os.fdopen(theirs)
        self._read.readline()  # it is ready

    def run(self, call: Call) -> Outcome:
        """Run one command line to its end."""
        answer = ""
        with suppress(BrokenPipeError):
            self._write.write(json.dumps(asdict(call)) + "\n")
            self._write.flush()
            answer = self._read.readline()
        if not answer:
            raise RuntimeError(f"the fork server has ended with {self._process.wait()} in {call.words}")
        found = json.loads(answer)
        for stream in ("out", "err"):
            found[stream] = base64.b64decode(found[stream]).decode("utf-8", "surrogateescape")
        return Outcome(**found)

    def close(self) -> None:
        """End the server."""
        with suppress(BrokenPipeError):  # it ended before
            self._write.close()
        self._process.wait()
        self._read.close()


# ---------------------------------------------------------------------- in the server


def serve(tool: str, requests: int, answers: int) -> None:
    """Import everything, then fork for each request until there are no more."""
    main = _load(tool)
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    gc.freeze()  # what was imported is never collected, so its pages stay shared
    with os.fdopen(requests) as source, os.fdopen(answers, "w") as target:
        target.write("ready\n")
        target.flush()
        for line in source:
            asked = json.loads(line)
            asked["limits"] = Limits(**asked["limits"])
            asked["kill"] = Kill(**asked["kill"]) if asked["kill"] else None
            target.write(json.dumps(_run(main, Call(**asked), [requests, answers])) + "\n")
            target.flush()


def _load(tool: str) -> Any:
    """The entry point, and every module of its package with what it imports."""
    module, _, function = tool.partition(":")
    found = importlib.import_module(module)
    package = importlib.import_module(module.partition(".")[0])
    for one in pkgutil.walk_packages(getattr(package, "__path__", []), f"{package.__name__}."):
        if not one.name.endswith("__main__"):
            with suppress(ImportError):  # an extra that is not installed
                importlib.import_module(one.name)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
        for extra in ("optuna", "altair", "vl_convert", "sqlalchemy.dialects.sqlite", "scipy.stats"):
            with suppress(ImportError):
                importlib.import_module(extra)
    return getattr(found, function)


def _run(main: Any, call: Call, ours: list[int]) -> dict[str, Any]:
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    start, start_end = os.pipe()
    child = os.fork()
    if child == 0:
        for end in (out, err, start, *ours):
            os.close(end)
        _become(main, call, out_end, err_end, start_end)
    for end in (out_end, err_end, start_end):
        os.close(end)
    os.read(start, 1)  # a signal is meant for the tool, not for what comes before it
    os.close(start)
    began = time.monotonic()
    streams = {out: bytearray(), err: bytearray()}
    watch = _Watch(child, call, began)
    ended = os.pidfd_open(child)
    try:
        while True:
            wait = watch.until_next()
            ready, _, _ = select.select([ended, *streams], [], [], wait)
            for stream in [one for one in ready if one != ended]:
                _drain(stream, streams)
            if ended in ready:
                break
            watch.look()
        _, status, usage = os.wait4(child, 0)
        seconds = time.monotonic() - began
        orphans = _wait_for_orphans(streams, call.limits.orphans)
    finally:
        os.close(ended)
    kept = [base64.b64encode(bytes(content)).decode() for content in streams.values()]
    os.close(out)
    os.close(err)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "out": kept[0],
        "err": kept[1],
        "seconds": seconds,
        "peak": max(usage.ru_maxrss * 1024, watch.peak),
        "stopped": watch.stopped,
        "killed": watch.killed,
        "orphans": orphans,
    }


def _become(main: Any, call: Call, out: int, err: int, start: int) -> None:
    """In the child: a process as if just started with these words.  Never returns."""
    code = 1
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.environ.update(call.environment)
        os.chdir(call.folder)
        sys.argv = ["dpaa", *call.words]
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8", errors="strict")
        sys.stderr = io.TextIOWrapper(
            io.FileIO(2, "w", closefd=False), encoding="utf-8", errors="backslashreplace", line_buffering=True
        )
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if call.file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (call.file_size, call.file_size))
        if call.control is not None:
            os.environ["BREAKING_CONTROL"] = call.control  # for processes that it starts
            ctypes.CDLL(None).breaking_arm(call.control.encode())
        os.write(start, b"!")
        os.close(start)
        code = _called(main)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # too late for it
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and len(traceback.extract_tb(error.__traceback__)) <= AROUND:
            code = 130  # it came before the tool's first line or after its last
        else:
            traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stderr.flush()
        os._exit(code)


def _called(main: Any) -> int:
    """The exit code, as Python would make it."""
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return int(end.code or 0)
        print(end.code, file=sys.stderr)
        return 1
    return 0


class _Watch:
    """Looks after a child: its memory, its time, and the moment it is to be killed."""

    def __init__(self, child: int, call: Call, began: float) -> None:
        self.child, self.call, self.began = child, call, began
        self.peak, self.stopped, self.killed = 0, None, False
        self._cpu, self._busy = -1.0, began

    def until_next(self) -> float:
        """Seconds until there is something to do."""
        if self.call.kill is None or self.killed:
            return TICK
        return max(0.0, min(TICK, self.began + self.call.kill.after - time.monotonic()))

    def look(self) -> None:
        """Send the signal if it is time; stop what is beyond a limit."""
        now, kill, limits = time.monotonic(), self.call.kill, self.call.limits
        if kill is not None and not self.killed and now >= self.began + kill.after:
            self.killed = True
            _send(self.child, kill.signal, kill.group)
            return
        family = _family(self.child)
        self.peak = max([self.peak, *(_resident(one) for one in family)])
        states = [_state(one) for one in family]
        cpu = sum(seconds for _, seconds in states)
        if cpu != self._cpu or any(state == "R" for state, _ in states):
            self._cpu, self._busy = cpu, now
        if self.peak > limits.memory:
            self.stopped = "memory"
        elif now - self._busy > limits.idle:
            self.stopped = "idle"
        elif cpu > limits.cpu:
            self.stopped = "cpu"
        elif now - self.began > limits.wall:
            self.stopped = "wall"
        if self.stopped:
            _send(self.child, signal.SIGKILL, group=True)


def _send(child: int, number: int, group: bool) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child, number) if group else os.kill(child, number)


def _drain(stream: int, streams: dict[int, bytearray]) -> None:
    found = os.read(stream, 65536)
    room = STREAM_BYTES - len(streams[stream])
    streams[stream] += found[: max(room, 0)]
    if not found:  # closed: nothing more will come
        time.sleep(0.001)


def _wait_for_orphans(streams: dict[int, bytearray], seconds: float) -> int:
    """Reap what the command left running; what does not end by itself is killed and counted."""
    deadline, patient = time.monotonic() + seconds, True
    killed = 0
    while True:
        _drain_all(streams)
        try:
            found, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return killed
        if found:
            continue
        if patient and time.monotonic() > deadline:
            left = _family(os.getpid())[1:]
            killed, patient = len(left), False
            for one in left:
                _send(one, signal.SIGKILL, group=False)
        time.sleep(0.005)


def _drain_all(streams: dict[int, bytearray]) -> None:
    while ready := select.select(list(streams), [], [], 0)[0]:
        before = sum(map(len, streams.values()))
        for stream in ready:
            _drain(stream, streams)
        if sum(map(len, streams.values())) == before:
            return


# ---------------------------------------------------------------------- what /proc says


def _family(process: int) -> list[int]:
    """A process and all that it started."""
    found = [process]
    for one in found:
        with suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += [int(word) for word in (task / "children").read_text().split()]
    return found


def _resident(process: int) -> int:
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    return 0


def _state(process: int) -> tuple[str, float]:
    """The state of the process (R: it runs) and the seconds of processor time it has used."""
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return "", 0.0


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

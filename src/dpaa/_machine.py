"""Threads and memory of a computing process: no spinning thread teams, no memory returned between two steps."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
_LARGEST_MMAP_THRESHOLD = 32 * 1024 * 1024  # the most that glibc accepts
_LASTING_BYTES = 1024 * 1024
_NEVER_TRIM = 2**31 - 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch computes on one core; the number of threads is restored afterwards."""
    import torch  # 200 MB, which preparing a log needs for itself

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def computing() -> Iterator[None]:
    """Compute without OpenMP teams, keeping freed memory.

    Tiles are the parallel part, and idle team members would spin on a busy machine.  A step of training frees and takes
    the same few megabytes again; giving them back to the system in between costs a thousand page faults a step (a fifth
    of the time on a graph of 15,000 nodes).
    """
    _keep_freed_memory()
    give_back_memory()
    with one_thread():
        yield


@contextmanager
def lasting() -> Iterator[None]:
    """Allocate large long-lived arrays separately, so that they do not fragment the memory used by training steps."""
    _glibc("mallopt", _M_MMAP_THRESHOLD, _LASTING_BYTES)
    try:
        yield
    finally:
        _glibc("mallopt", _M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)


@cache
def _keep_freed_memory() -> None:
    # glibc adjusts both thresholds by itself until one of them is set.
    _glibc("mallopt", _M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
    _glibc("mallopt", _M_TRIM_THRESHOLD, _NEVER_TRIM)


def _glibc(name: str, *arguments: int) -> None:
    """Call one of malloc's functions that other C libraries than glibc lack."""
    function = getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
    if function is not None:
        function(*arguments)


def give_back_memory() -> None:
    """Return freed memory to the system between two phases with different memory use."""
    _glibc("malloc_trim", 0)


def processes_here() -> int:
    """How many processes of one training share this machine, where `torchrun` started several."""
    started = os.environ.get("LOCAL_WORLD_SIZE", "1")
    return max(1, int(started)) if started.isdigit() else 1


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def memory_at_hand() -> int:
    """Bytes this process may still take without swapping: what the system has, or the rest of a container's limit."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        lines = meminfo.read_text(encoding="ascii").splitlines()
        limits += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    # A container's limit is not in /proc/meminfo: what can be had is the smaller of both.
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists() and limit.read_text(encoding="ascii").strip().isdigit():
        limits.append(int(limit.read_text(encoding="ascii")) - int(used.read_text(encoding="ascii")))
    return min(limits)

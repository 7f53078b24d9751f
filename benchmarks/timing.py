"""Times that can be compared: the candidates take turns, so that a busy machine is busy for all of them."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch


def turns(
    candidates: dict[str, Callable[[], object]],
    warm_ups: int = 3,
    repeats: int = 10,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """Seconds of each, turn by turn; the processor's seconds, which a busy machine stretches least.

    A turn is two runs, of which the second is timed: the first finds the cache and the heap as another has left them.
    """
    for work in candidates.values():
        for _ in range(warm_ups):
            work()
    found: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, work in candidates.items():
            work()
            began = clock()
            work()
            found[name].append(clock() - began)
    return found


def take_turns(
    candidates: dict[str, Callable[[], object]],
    warm_ups: int = 3,
    repeats: int = 10,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Median seconds of each, measured in turn."""
    found = turns(candidates, warm_ups, repeats, clock)
    return {name: statistics.median(times) for name, times in found.items()}


def ratio(times: list[float], others: list[float]) -> float:
    """Median over the turns of the ratio within a turn: an hour that gets busier is busier for both."""
    return statistics.median(one / other for one, other in zip(times, others, strict=True))


def peak_megabytes() -> float:
    """The most memory this process has held; counted from its own start, unlike `getrusage`'s figure."""
    return _megabytes("VmHWM")


def held_megabytes() -> float:
    """The memory this process holds now."""
    return _megabytes("VmRSS")


def _megabytes(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(name))


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def machine() -> str:
    """Processor, versions, and how busy the machine was with other work."""
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        if info.exists()
        else []
    )
    processor = f"{len(names)} × {names[0]}" if names else platform.processor()
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, {platform.system()}"
    return f"{processor}, {versions}, load {os.getloadavg()[0]:.1f} before the first case"

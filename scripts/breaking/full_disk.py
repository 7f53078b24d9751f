"""A full disk at every write of every call that writes: it says so, leaves what was there, works when there is room.

Needs a C compiler: the library's writes are interposed.  Each write fails alone, or with all that follow it, or once
in each way; and with `ulimit -f` no file may grow beyond some size.
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator

from .cases import Cases, broken, finish, left_behind
from .disk import FAIL_FROM, FAIL_ONCE
from .files import record
from .judge import misbehaviour
from .ledger import Attack
from .writers import Writer

CAMPAIGN = "full-disk"
SLOW_SECONDS = 0.2
"""Of a call that takes so long each write fails in one of the two ways, in turn, the other one where it overwrites; of
others in both."""
SIZES = (0, 500, 4_000, 20_000)
"""Bytes that a file may have."""
MODES = {"one write fails": FAIL_ONCE, "full from": FAIL_FROM}

Point = tuple[str, int]
"""What fails, and at which write or size."""


def attacks(
    cases: Cases, writers: list[Writer], seed: int, number: int | None = None, most: int | None = None
) -> Iterator[tuple[Writer, Point]]:
    """Every writer in turn, a point of each; in the end every point of every writer."""
    everything = random.Random(f"{seed} order").sample(writers, len(writers))
    left = number
    queues = {writer.name: _points(cases, writer, seed, most) for writer in everything}
    while queues and left != 0:
        for writer in [writer for writer in everything if writer.name in queues]:
            point = next(queues[writer.name], None)
            if point is None:
                del queues[writer.name]
                continue
            yield writer, point
            left = None if left is None else left - 1
            if left == 0:
                return


def _points(cases: Cases, writer: Writer, seed: int, most: int | None) -> Iterator[Point]:
    """Every write of a call; or so many, evenly, the last ones among them, where results are put in their places."""
    case = cases.case(writer)
    places = range(1, case.writes + 1)
    if most is not None and case.writes > most:
        places = sorted({1 + round(step * (case.writes - 1) / (most - 1)) for step in range(most)})
    turn = writer.name.endswith("--overwrite")
    points = [
        (mode, place)
        for number, mode in enumerate(MODES)
        for place in places
        if case.seconds < SLOW_SECONDS or (place + turn) % len(MODES) == number
    ]
    points += [("no file larger than", size) for size in SIZES]
    random.Random(f"{seed} {writer.name}").shuffle(points)
    yield from points


def attack(cases: Cases, writer: Writer, point: Point) -> Attack:
    """Call with no room from some moment on, look, and call again with room."""
    what, at = point
    case = cases.case(writer)
    cases.start(writer)
    assert cases.disk is not None
    if what in MODES:
        said = cases.world.arena.call(writer.words, control=cases.disk.tell(MODES[what], at))
    else:
        said = cases.world.arena.call(writer.words, file_size=at)
    now = cases.now()
    findings = misbehaviour(said)
    findings += [f"unsteady: {one}" for one in case.unsteady]
    if said.code == 0:
        findings += [f"exit code 0, but {one}" for one in _missing(case.after, now)]
    else:
        findings += broken(case, now) + left_behind(case, now)
    _, wrong = finish(cases, case)
    key, did = f"{writer.name} / {what} {at}", f"{what} {at} of {case.writes}; dpaa {shlex.join(writer.words)}"
    return record(CAMPAIGN, key, did, said, list(dict.fromkeys(findings + wrong)))


def _missing(wanted: dict[str, str], now: dict[str, str]) -> list[str]:
    return [f"{path} is not as it should be" for path, kind in wanted.items() if now.get(path) != kind]

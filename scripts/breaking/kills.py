"""Kills at random moments: what was whole stays whole, and the same call goes on as if nothing had happened.

An attack interrupts a call once, twice or three times in a row, each time at a moment of its own: after a random part
of the time it takes, or (with a C compiler) before one of its changes of a file, which hits the moments between two
renames that hardly any random time hits.  Then it is called once more and left alone.
"""

from __future__ import annotations

import random
import shlex
import signal
from collections.abc import Iterator

from .cases import Case, Cases, broken, finish, left_behind
from .disk import SIGNAL
from .files import record
from .judge import misbehaviour
from .ledger import Attack
from .server import Kill, Outcome
from .writers import DIVERGES, Writer

CAMPAIGN = "kills"
DEFAULT = 1000
SIGNALS = (*[signal.SIGKILL] * 6, signal.SIGINT, signal.SIGTERM)
TRIES = 5
"""A call may end before a random moment comes; then another is drawn."""
NAMES = {signal.SIGKILL: "SIGKILL", signal.SIGINT: "SIGINT", signal.SIGTERM: "SIGTERM"}


def attacks(writers: list[Writer], seed: int, number: int | None = None) -> Iterator[tuple[Writer, int]]:
    """Writers in turn, the slow ones less often."""
    everything = random.Random(f"{seed} order").sample(writers, len(writers))
    left, turn = DEFAULT if number is None else number, 0
    while left:
        turn += 1
        for writer in everything:
            if int(turn * writer.weight) == int((turn - 1) * writer.weight) and turn > 1:
                continue
            yield writer, turn
            left -= 1
            if not left:
                return


def attack(cases: Cases, writer: Writer, turn: int, seed: int) -> Attack:
    """Interrupt a call, perhaps more than once, and finish it."""
    key = f"{writer.name} / {turn}"
    rng = random.Random(f"{seed} {key}")
    case = cases.case(writer)
    cases.start(writer)
    findings = [f"unsteady: {one}" for one in case.unsteady]
    did, worst = [], None
    for place in range(rng.choice((1, 1, 1, 2, 3))):
        words = writer.words if place == 0 else writer.again
        earlier = cases.now() if place else case.before  # what a kill before this one may have left
        said, how, number = _interrupt(cases, case, words, rng, fresh=place == 0)
        did.append(how if said.killed else f"{how} (it had ended)")
        worst = said if worst is None or said.peak > worst.peak else worst
        now = cases.now()
        findings += misbehaviour(said, interrupted=True) + broken(case, now)
        if number == signal.SIGINT and said.killed:
            findings += [one for one in left_behind(case, now) if one.partition(": ")[2] not in earlier]
        if not said.killed:
            break  # it ended before
    if writer.diverges and rng.random() < 0.3:
        said = cases.world.arena.call((*writer.words, *DIVERGES))
        did.append("then a call that diverges")
        findings += misbehaviour(said) + broken(case, cases.now())
    _, wrong = finish(cases, case)
    did.append(f"then once more; dpaa {shlex.join(writer.words)}")
    assert worst is not None
    return record(CAMPAIGN, key, ", ".join(did), worst, list(dict.fromkeys(findings + wrong)))


def _interrupt(
    cases: Cases, case: Case, words: tuple[str, ...], rng: random.Random, fresh: bool
) -> tuple[Outcome, str, int]:
    """Call and send a signal.  Returns what became of it, how, and the signal."""
    number, group = rng.choice(SIGNALS), rng.random() < 0.5
    named = NAMES[number] + (" to the group" if group else "")
    arena = cases.world.arena
    if cases.disk is not None and case.changes and rng.random() < 0.5:
        at = rng.randint(1, case.changes)
        said = arena.call(words, control=cases.disk.tell(SIGNAL, at, number, group))
        reached = cases.disk.counted()[1] >= at
        return _as_killed(said, reached), f"{named} before change {at} of {case.changes}", number
    for attempt in range(TRIES):
        if attempt:
            cases.start(case.writer)
        after = rng.uniform(0.0, case.seconds * 0.8**attempt)
        said = arena.call(words, kill=Kill(after, number, group))
        if said.killed or not fresh:
            break
    return said, f"{named} after {after:.3f} s of {case.seconds:.3f} s", number


def signals(attacks: list[Attack]) -> str:
    """How many of which were sent in time."""
    said = [part for attack in attacks if attack.campaign == CAMPAIGN for part in attack.did.split(", ")]
    counts = {
        name: sum(part.startswith(name) and "it had ended" not in part for part in said) for name in NAMES.values()
    }
    return ", ".join(f"{number:,} {name}" for name, number in counts.items())


def _as_killed(said: Outcome, reached: bool) -> Outcome:
    return Outcome(**{**said.__dict__, "killed": reached})

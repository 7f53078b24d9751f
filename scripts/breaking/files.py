"""Strangers' files: every reader gets spoilt files, other things than files, files of others, and planted links.

An attack is found again by its id, `reader / mutation / round`, and the seed.
"""

from __future__ import annotations

import glob
import hashlib
import os
import random
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from .arena import SECRETS, remove
from .judge import changes, misbehaviour
from .ledger import Attack
from .plants import Plant, plants
from .readers import Reader, readers
from .server import Outcome
from .spoil import ONCE, THINGS, spoilers
from .world import World

CAMPAIGN = "files"
SWAP, NAME, REBOUND = "foreign ", "odd_name", "rebound "
MUST_REFUSE = {"long_row", "extra_field_before"}
"""A row with more fields than the header has would put values under wrong names."""
DIGESTS: tuple[Callable[[bytes], str], ...] = (
    lambda content: hashlib.sha256(content).hexdigest(),
    lambda content: hashlib.sha512(content).hexdigest(),
    lambda content: hashlib.blake2b(content).hexdigest(),
    lambda content: hashlib.blake2b(content, digest_size=16).hexdigest(),
    lambda content: hashlib.md5(content, usedforsecurity=False).hexdigest(),
)
ODD_NAMES = ("a[1]", "[bold]r[", "~", "[red]x[i]", "é ü", "\udcff\udcfe", "x\x1b[31mred", "x\x9b31m", "a\nb", "*", "?",
             "a'b\"c", "{x}", "%s", "$HOME", "./-x", "#", "x" * 120, "a,b", "a:b", "\u202egnp")  # fmt: skip


def targets() -> list[Reader | Plant]:
    """Everything that reads or writes where strangers may have been."""
    return [*readers(), *plants()]


def attacks(
    chosen: list[Reader | Plant], seed: int, number: int | None = None
) -> Iterator[tuple[Reader | Plant, str, int]]:
    """What to try, every reader in turn: first each mutation once, then those that are random again and again.

    Without a number: all mutations once, or 3,000.
    """
    everything = random.Random(f"{seed} order").sample(chosen, len(chosen))
    queues = {one.name: _queue(one, seed) for one in everything}
    least = sum(len(_mutations(one)) for one in everything)
    left = max(3000, least) if number is None else number
    turn = 0
    while left:
        turn += 1
        for one in everything:
            if int(turn * one.share) == int((turn - 1) * one.share) and turn > 1:
                continue
            yield one, *next(queues[one.name])
            left -= 1
            if not left:
                return


def _queue(one: Reader | Plant, seed: int) -> Iterator[tuple[str, int]]:
    rng = random.Random(f"{seed} {one.name}")
    names = _mutations(one)
    rng.shuffle(names)
    yield from ((name, 0) for name in names)
    again = [name for name in names if name.removeprefix(REBOUND) not in ONCE and not name.startswith(SWAP)]
    turn = 0
    while True:
        turn += 1
        rng.shuffle(again)
        yield from ((name, turn) for name in again)


def _mutations(one: Reader | Plant) -> list[str]:
    if isinstance(one, Plant):
        return one.kinds()
    content = list(spoilers(one.kind, one.gz))
    found = [*content, *THINGS, *(f"{SWAP}{place}" for place in range(len(one.others)))]
    found += [f"{REBOUND}{name}" for name in content] if one.bound else []
    return found + [NAME] * (_named(one) is not None)


def attack(world: World, one: Reader | Plant, mutation: str, turn: int, seed: int) -> Attack:
    """Try one."""
    key = f"{one.name} / {mutation} / {turn}"
    rng = random.Random(f"{seed} {key}")
    arena = world.arena
    if mutation.startswith(SWAP) and isinstance(one, Reader):
        world.make(other.partition("/")[0] for other in one.others)
    world.place(one.needs)
    must_refuse, touched = None, ()
    if isinstance(one, Plant):
        did, touched = one.plant(arena.work, arena.outside, mutation, rng)
    elif mutation == NAME:
        did, one = _rename(arena.work, one, rng)
    else:
        did, must_refuse = _spoil(world, one, mutation, rng)
    before, words = arena.tree(), one.words
    said = arena.call(words)
    findings = misbehaviour(said)
    after = arena.tree()
    allowed = one.writes if said.code == 0 or said.stopped else one.keeps  # what we stopped could not tidy up
    findings += changes(before, after, (*allowed, *touched))
    findings += [
        f"altered: {path}" for path in SECRETS if before[path] != after.get(path) and path not in str(findings)
    ]
    if said.code == 0 and must_refuse:
        findings.append(f"accepted: {must_refuse}")
    return record(CAMPAIGN, key, f"{did}; dpaa {shlex.join(words)}", said, findings)


def record(campaign: str, key: str, did: str, said: Outcome, findings: list[str]) -> Attack:
    """A line of the ledger."""
    lines = [line for line in said.err.splitlines() if line.strip()]
    last = lines[-1][:300] if lines else ""
    return Attack(campaign, key, did, said.code, last, round(said.peak / 1e6), round(said.seconds, 3), findings)


# ---------------------------------------------------------------------- what is done to a reader's file


def _spoil(world: World, one: Reader, mutation: str, rng: random.Random) -> tuple[str, str | None]:
    """Spoil the file.  Returns what was done, and why it must be refused if it must."""
    work = world.arena.work
    file = _first(work, one.file)
    shown = file.relative_to(work)
    if mutation in THINGS:
        remove(file)
        THINGS[mutation](file, world.arena.outside)
        return f"{shown}: {mutation}", None
    if mutation.startswith(SWAP):
        other = one.others[int(mutation.split()[1])]
        content = _first(world.folder, other).read_bytes()
        same = content == file.read_bytes()
        file.write_bytes(content)
        why = None if same else f"{one.file.rpartition('/')[2]} of another run or dataset"
        return f"{shown}: that of {other}", why
    content = file.read_bytes()
    spoilt = spoilers(one.kind, one.gz)[mutation.removeprefix(REBOUND)](content, rng)
    file.write_bytes(spoilt)
    if mutation.startswith(REBOUND):
        _rebind(file, content, spoilt)
        return f"{shown}: {mutation}", None
    why = None
    if one.bound and spoilt != content:
        why = f"{file.name} was changed"
    elif mutation in MUST_REFUSE and one.kind in ("csv", "tsv", "inter") and not one.drops:
        why = "a row has more fields than the header"
    return f"{shown}: {mutation}", why


def _first(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise RuntimeError(f"there is no {pattern} to attack")
    return found[0]


def _rebind(file: Path, old: bytes, new: bytes) -> None:
    """Make the digest in the manifest match, so that what reads the file gets to see it."""
    manifest = file.with_name("manifest.json")
    text = manifest.read_text()
    for digest in DIGESTS:
        text = text.replace(digest(old), digest(new))
    manifest.write_text(text)


def _named(one: Reader) -> str | None:
    """The word of the call that names the attacked file or its folder."""
    top = one.file.partition("/")[0]
    return next((word for word in one.words[1:] if word in (top, f"@{top}")), None)


def _rename(work: Path, one: Reader, rng: random.Random) -> tuple[str, Reader]:
    """The same under a name that nobody would give."""
    word = _named(one)
    assert word is not None
    top = word.removeprefix("@")
    name = rng.choice(ODD_NAMES) + "".join(Path(top).suffixes)
    os.rename(work / top, work / name)  # noqa: PTH104  # some names are no paths that pathlib would leave as they are
    words = tuple(one_word.replace(top, name) if one_word == word else one_word for one_word in one.words[1:])
    kept = os.path.relpath(work / name, work)
    writes, keeps = (
        tuple(f"{glob.escape(kept)}{place[len(top) :]}" if place.startswith(top) else place for place in places)
        for places in (one.writes, one.keeps)
    )
    return f"{top}: named {name!r}", replace(one, words=(one.words[0], *words), writes=writes, keeps=keeps)

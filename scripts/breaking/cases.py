"""A call that writes, undisturbed: how long it takes, what it leaves; and what must hold when it is disturbed."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from .disk import WATCH, Disk
from .judge import Tree, changes, misbehaviour
from .sameness import settled
from .server import Outcome
from .world import World
from .writers import OVERWRITE, Writer


@dataclass(frozen=True)
class Case:
    """A writer, and what it does when left alone."""

    writer: Writer
    before: Tree
    after: Tree
    seconds: float
    writes: int
    changes: int
    """Operations that change a file; with the writes, 0 where they could not be counted."""
    unsteady: list[str]
    """What differs between two undisturbed calls."""


class Cases:
    """The world, in which each writer is first left alone."""

    def __init__(self, world: World, disk: Disk | None) -> None:
        self.world, self.disk = world, disk
        self._made: dict[str, Case] = {}

    def case(self, writer: Writer) -> Case:
        """Measured once."""
        if writer.name not in self._made:
            self._made[writer.name] = self._measure(writer)
        return self._made[writer.name]

    def start(self, writer: Writer) -> None:
        """The arena as it is before the call."""
        self.world.place(writer.needs)

    def now(self) -> Tree:
        """What is there, times aside."""
        found = settled(self.world.arena.folder)
        return {path.removeprefix("work/") if path != "work" else ".": kind for path, kind in found.items()}

    def _measure(self, writer: Writer) -> Case:
        trees, said = [], None
        for _ in range(2):
            self.start(writer)
            before = self.now()
            control = self.disk.tell(WATCH) if self.disk else None
            said = self.world.arena.call(writer.words, control=control)
            if said.code != 0:
                raise RuntimeError(f"undisturbed, {writer.name} ends with {said.code}: {said.err[-2000:]}")
            trees.append(self.now())
        assert said is not None
        writes, number = self.disk.counted() if self.disk else (0, 0)
        return Case(writer, before, trees[1], said.seconds, writes, number, changes(*trees))


def broken(case: Case, now: Tree) -> list[str]:
    """What an interrupted call may not do: lose or half write a result, or touch what is not its own."""
    found = [
        one
        for one in changes(case.before, now, (*_places(case.writer.results), *case.writer.unfinished))
        if not one.startswith("left behind")
    ]
    for unit in _units(case):
        old, new, is_now = (_part(tree, unit) for tree in (case.before, case.after, now))
        if old:
            if not (old.items() <= is_now.items() or new.items() <= is_now.items()):
                found.append(f"lost: {unit} is neither the old one nor the new one")
        elif is_now and not new.items() <= is_now.items() and not _within(unit, case.writer.unfinished):
            found.append(f"half written: {unit}")
    return found


def left_behind(case: Case, now: Tree) -> list[str]:
    """What is there beside whole results and work to be gone on with."""
    whole = [unit for unit in _units(case) if _part(now, unit) in (_part(case.after, unit), _part(case.before, unit))]
    allowed = (*_places(whole), *case.writer.unfinished)
    made = tuple(f"{unit.rpartition('/')[0]}" for unit in _units(case) if "/" in unit)  # folders around results
    return [one for one in changes(case.before, now, (*allowed, *made)) if one.startswith("left behind")]


def finish(cases: Cases, case: Case) -> tuple[Outcome, list[str]]:
    """The same call once more, undisturbed: it must succeed, with the very result of an undisturbed first call."""
    writer, words = case.writer, case.writer.last
    there = all(_part(cases.now(), unit) == _part(case.after, unit) for unit in _units(case))
    if there and writer.overwrites and OVERWRITE not in words:
        words = (*writer.words, OVERWRITE)
    if there and writer.once:
        words = ("--version",)
    said = cases.world.arena.call(words)
    found = misbehaviour(said)
    if said.code != 0:
        line = said.err.strip().splitlines()[-1:] or [""]
        found.append(f"call again: exit code {said.code}, {line[0][:160]}")
    else:
        steady = [one.partition(": ")[2] for one in case.unsteady]
        found += [one.replace("altered", "differs") for one in changes(case.after, cases.now(), steady)]
    return said, found


def _units(case: Case) -> list[str]:
    """What is whole by itself: a file, or a folder with all that is in it."""
    found: list[str] = []
    for result in case.writer.results:
        paths = [path for path in {**case.before, **case.after} if fnmatchcase(path, result)]
        found += sorted(paths) if "*" in result else [result]
    return found


def _part(tree: Tree, unit: str) -> Tree:
    return {path: kind for path, kind in tree.items() if path == unit or path.startswith(f"{unit}/")}


def _places(units: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{unit}/" for unit in units)


def _within(unit: str, places: tuple[str, ...]) -> bool:
    return any(fnmatchcase(f"{unit}/", f"{place}*") for place in places)

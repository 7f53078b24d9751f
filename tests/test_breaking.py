"""`scripts/break_everything.py`: a small slice of it finds nothing, and its judge finds what is put before it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "break_everything.py"
if not sys.platform.startswith("linux") or not SCRIPT.exists():
    pytest.skip("the script watches processes through /proc, and is no part of a package", allow_module_level=True)

from scripts.breaking import full_disk, kills  # noqa: E402
from scripts.breaking.arena import Arena  # noqa: E402
from scripts.breaking.cases import Cases  # noqa: E402
from scripts.breaking.disk import Disk, compiled  # noqa: E402
from scripts.breaking.judge import changes, misbehaviour  # noqa: E402
from scripts.breaking.server import Limits, Outcome, Server  # noqa: E402
from scripts.breaking.world import World  # noqa: E402
from scripts.breaking.writers import Writer  # noqa: E402

IMPATIENT = Limits(memory=400_000_000, idle=0.7, cpu=1.0, orphans=0.2)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    return compiled(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory, library: Path | None) -> Iterator[Arena]:
    """Where a tool that misbehaves is called."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
        server = Server("misbehaving:main", library)
    yield Arena(tmp_path_factory.mktemp("judged") / "arena", server)
    server.close()


@pytest.fixture
def cases(arena: Arena, library: Path | None, tmp_path: Path) -> Cases:
    if library is None:
        pytest.skip("there is no C compiler")
    return Cases(World(tmp_path / "world", arena), Disk(arena.folder, tmp_path / "control"))


def test_a_small_slice_finds_nothing(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, SCRIPT, "--slice", "small", "--out", tmp_path / "out"], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr
    again = subprocess.run(
        [sys.executable, SCRIPT, "--slice", "small", "--out", tmp_path / "out", "--seed", "1"], capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert "choose another folder" in again.stderr


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("refuse", []),
        ("leave", ["left behind"]),
        ("alter", ["altered"]),
        ("raise", ["traceback"]),
        ("two-sentences", ["sentence"]),
        ("chatter-after", ["sentence"]),
        ("escape", ["control characters"]),
        ("c1", ["control characters"]),
        ("panic", ["panic"]),
        ("odd-code", ["exit code"]),
        ("die", ["exit code"]),
        ("eat", ["memory"]),
        ("wait", ["hang"]),
        ("spin", ["hang"]),
        ("start-another", ["orphans"]),
    ],
)
def test_the_judge_finds(word: str, found: list[str], arena: Arena) -> None:
    arena.clear()
    (arena.work / "input.txt").write_text("mine")
    os.mkfifo(arena.work / "fifo")
    before = arena.tree()
    said = arena.call([word], limits=IMPATIENT)
    findings = misbehaviour(said) + changes(before, arena.tree())
    assert [finding.partition(":")[0] for finding in findings] == found


def writer(word: str) -> Writer:
    return Writer(word, (), (word, "out.txt"), ("out.txt",), overwrites=False)


def found_by_kills(cases: Cases, word: str) -> set[str]:
    attacks = [kills.attack(cases, writer(word), turn, seed=0) for turn in range(12)]
    return {finding.partition(":")[0] for attack in attacks for finding in attack.findings}


def test_kills_find_what_is_written_in_place(cases: Cases) -> None:
    assert "half written" in found_by_kills(cases, "write-in-place")


def test_kills_find_what_is_left_behind(cases: Cases) -> None:
    assert "left behind" in found_by_kills(cases, "write-beside")


def test_kills_find_nothing_wrong_with_a_good_writer(cases: Cases) -> None:
    assert found_by_kills(cases, "write-well") == set()


def found_on_a_full_disk(cases: Cases, word: str) -> set[str]:
    points = full_disk.attacks(cases, [writer(word)], seed=0)
    attacks = [full_disk.attack(cases, one, point) for one, point in points]
    assert attacks
    return {finding.partition(":")[0] for attack in attacks for finding in attack.findings}


def test_a_full_disk_finds_what_is_half_written_and_raised(cases: Cases) -> None:
    assert found_on_a_full_disk(cases, "write-in-place") >= {"half written", "traceback"}


def test_a_full_disk_finds_nothing_wrong_with_a_good_writer(cases: Cases) -> None:
    assert found_on_a_full_disk(cases, "write-well") == set()


@pytest.mark.parametrize("by_whom", ["kill", "interrupt"])
def test_an_interrupt_is_blamed_for_what_it_left_and_not_for_what_a_kill_left(
    cases: Cases, monkeypatch: pytest.MonkeyPatch, by_whom: str
) -> None:
    def interrupt(*_: object, fresh: bool) -> tuple[Outcome, str, int]:
        if fresh == (by_whom == "kill"):
            (cases.world.arena.work / ".out.txt.new").touch()
        number = signal.SIGKILL if fresh else signal.SIGINT
        return Outcome(-number, "", "", 0.1, 0, killed=True), kills.NAMES[number], number

    monkeypatch.setattr(kills, "_interrupt", interrupt)
    attacks = [kills.attack(cases, writer("write-well"), turn, seed=0) for turn in range(12)]
    twice = [attack for attack in attacks if "SIGINT" in attack.did]
    assert twice
    assert all(attack.findings == ([] if by_whom == "kill" else ["left behind: .out.txt.new"]) for attack in twice)

"""Try to break the tool through its command line: strangers' files, kills, full disks.

    python scripts/break_everything.py --out breaking
    python scripts/break_everything.py --out breaking --only files --number 300 --seed 7

Bounded (a number of attacks), seeded (the same seed tries the same) and resumable: results go to OUT/attacks.jsonl as
they come, a line per attack, and what is there is not tried again.  Ends with a table and with exit code 1 if anything
was found.  `--again ID` repeats one attack and leaves its folder, OUT/arena, to look at.

The whole takes about an hour on one core.  Use another folder after a change of the code: what is attacked is made
once per folder.  Linux only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from breaking import files
from breaking.arena import Arena
from breaking.ledger import Attack, Ledger
from breaking.server import Server
from breaking.world import World

CAMPAIGNS = ("files",)
SLICE = {"files": 40}
"""Attacks of the small slice that runs with the tests."""


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for results and all that is attacked")
    parser.add_argument("--only", choices=CAMPAIGNS, action="append", help="one campaign; repeatable")
    parser.add_argument("--number", type=int, help="attacks of each campaign; else all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slice", choices=("small",), help="a few of each, for tests")
    parser.add_argument("--again", metavar="ID", help="repeat this attack")
    parser.add_argument("--tool", default="dpaa.cli:main", help="the entry point, MODULE:FUNCTION")
    asked = parser.parse_args()
    if not sys.platform.startswith("linux"):
        sys.exit("this script watches processes through /proc, so it runs on Linux only")
    asked.out.mkdir(parents=True, exist_ok=True)
    check_same(asked.out / "about.json", {"seed": asked.seed})
    ledger = Ledger(asked.out / "attacks.jsonl")
    server = Server(asked.tool)
    world = World(asked.out / "world", Arena((asked.out / "arena").resolve(), server))
    try:
        for campaign in asked.only or CAMPAIGNS:
            number = SLICE[campaign] if asked.slice else asked.number
            run(campaign, world, ledger, asked.seed, number, asked.again)
    finally:
        server.close()
    print(ledger.summary())
    sys.exit(1 if ledger.findings else 0)


def run(campaign: str, world: World, ledger: Ledger, seed: int, number: int | None, again: str | None) -> None:
    """The attacks of one campaign that are not in the ledger."""
    began, done = time.monotonic(), 0
    for key, attack in ATTACKS[campaign](world, seed, number):
        if again is not None and key != again:
            continue
        if again is None and (campaign, key) in ledger:
            continue
        found = attack()
        ledger.add(found)
        done += 1
        if found.findings:
            print(f"{campaign}: {key}: {'; '.join(found.findings)}".encode("ascii", "backslashreplace").decode())
        if done % 100 == 0:
            print(f"{campaign}: {done} attacks in {time.monotonic() - began:.0f} s", flush=True)
        if again is not None:
            print(found)
            return


def check_same(file: Path, about: dict[str, object]) -> None:
    """One folder, one seed."""
    if not file.exists():
        file.write_text(json.dumps(about))
    elif json.loads(file.read_text()) != about:
        sys.exit(f"{file.parent} was begun with {file.read_text()}; choose another folder with --out")


def file_attacks(world: World, seed: int, number: int | None) -> object:
    """Keys and attacks."""
    for one, mutation, turn in files.attacks(seed, number):
        key = f"{one.name} / {mutation} / {turn}"
        yield key, lambda one=one, mutation=mutation, turn=turn: files.attack(world, one, mutation, turn, seed)


ATTACKS: dict[str, Callable[[World, int, int | None], object]] = {"files": file_attacks}


if __name__ == "__main__":
    main()

"""Try to break the tool through its command line: strangers' files, kills, full disks.

    python scripts/break_everything.py --out breaking
    python scripts/break_everything.py --out breaking --only files --number 300 --seed 7

Bounded (a number of attacks), seeded (the same seed tries the same) and resumable: results go to OUT/attacks.jsonl as
they come, a line per attack, and what is there is not tried again.  Ends with a table and with exit code 1 if anything
was found.  `--again ID` repeats one attack and leaves its folder, OUT/arena, to look at.

The whole takes about two hours on one core.  A folder is for one code and one seed.
Linux only.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib.util
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from breaking import files, full_disk, kills
from breaking.arena import Arena
from breaking.cases import Cases
from breaking.disk import Disk, compiled
from breaking.ledger import Attack, Ledger
from breaking.server import Server
from breaking.world import World
from breaking.writers import writers

CAMPAIGNS = (files.CAMPAIGN, kills.CAMPAIGN, full_disk.CAMPAIGN)
SLICE = {files.CAMPAIGN: 40, kills.CAMPAIGN: 12, full_disk.CAMPAIGN: 12}
"""Attacks of the small slice that runs with the tests."""
SLICE_WRITERS = ("data log --overwrite", "train lightgcn --overwrite", "evaluate", "recommend csv --overwrite")
SLICE_TARGETS = (
    *("data log log.csv", "data log log.parquet", "data log log.txt.gz", "audit --recs recs.csv"),
    *("data describe data/dataset.json", "train data/train.parquet", "recommend run/manifest.json"),
    *("recommend run/model.safetensors", "recommend run/edges.parquet", "evaluate run/config.json"),
    *("train --config", "recommend --users @some-users.txt", "planted: evaluate", "planted: train --overwrite"),
)
"""What is quick to make and to attack."""


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for results and all that is attacked")
    parser.add_argument("--only", choices=CAMPAIGNS, action="append", help="one campaign; repeatable")
    parser.add_argument("--number", type=int, help="attacks of each campaign; else all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--points", type=int, help="writes of each call that a full disk fails; else all")
    parser.add_argument("--slice", choices=("small",), help="a few of each, for tests")
    parser.add_argument("--matching", metavar="REGEX", help="only attacks whose id has this in it")
    parser.add_argument("--calls", metavar="REGEX", default="", help="of kills and full disks only these calls")
    parser.add_argument("--again", metavar="ID", help="repeat this attack and change no results")
    parser.add_argument("--tool", default="dpaa.cli:main", help="the entry point, MODULE:FUNCTION")
    asked = parser.parse_args()
    if not sys.platform.startswith("linux"):
        sys.exit("this script watches processes through /proc, so it runs on Linux only")
    out: Path = asked.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    check_same(out / "about.json", {"seed": asked.seed, "code": code()})
    with (out / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another call attacks in {out}; choose another folder with --out")
        found = campaigns(asked, out)
    sys.exit(1 if found else 0)


def campaigns(asked: argparse.Namespace, out: Path) -> bool:
    """All that was asked for; whether anything was found."""
    ledger, library = Ledger(out / "attacks.jsonl"), compiled(out)
    server = Server(asked.tool, library)
    world = World(out / "world", Arena(out / "arena", server))
    cases = Cases(world, Disk(world.arena.folder, out / "control") if library else None)
    try:
        for campaign in asked.only or CAMPAIGNS:
            number = SLICE[campaign] if asked.slice else asked.number
            limit = None if asked.matching else number
            found = attacks(campaign, cases, asked.slice is not None, asked.seed, limit, asked.points, asked.calls)
            if asked.matching:
                found = islice((one for one in found if re.search(asked.matching, one[0])), number)
            run(ledger, found, campaign, asked.again)
    finally:
        server.close()
    print(ledger.summary())
    print(f"signals: {kills.signals(ledger.attacks)}")
    return bool(ledger.findings)


def attacks(
    campaign: str, cases: Cases, small: bool, seed: int, number: int | None, points: int | None, calls: str
) -> Iterator[tuple[str, Callable[[], Attack]]]:
    """Every attack of a campaign: its id, and how to make it."""
    chosen = [one for one in writers() if re.search(calls, one.name) and (not small or one.name in SLICE_WRITERS)]
    if campaign == files.CAMPAIGN:
        targets = [one for one in files.targets() if not small or one.name in SLICE_TARGETS]
        for one, mutation, turn in files.attacks(targets, seed, number):
            key = f"{one.name} / {mutation} / {turn}"
            yield key, partial(files.attack, cases.world, one, mutation, turn, seed)
    elif campaign == kills.CAMPAIGN:
        for writer, turn in kills.attacks(chosen, seed, number):
            yield f"{writer.name} / {turn}", partial(kills.attack, cases, writer, turn, seed)
    elif cases.disk is None:
        yield "none", lambda: Attack(campaign, "none", "", None, "", 0, 0.0, skipped="there is no C compiler")
    else:
        for writer, point in full_disk.attacks(cases, chosen, seed, number, points):
            yield f"{writer.name} / {point[0]} {point[1]}", partial(full_disk.attack, cases, writer, point)


def run(ledger: Ledger, found: Iterator[tuple[str, Callable[[], Attack]]], campaign: str, again: str | None) -> None:
    """The attacks that are not in the ledger; or a single one, once more."""
    began, done = time.monotonic(), 0
    for key, attack in found:
        if again is not None:
            if key == again:
                print(attack())
                return
            continue
        if (campaign, key) in ledger:
            continue
        told = attack()
        ledger.add(told)
        done += 1
        if told.findings:
            print(_ascii(f"{campaign}: {key}: {'; '.join(told.findings)}"), flush=True)
        if done % 100 == 0:
            print(f"{campaign}: {done} attacks in {time.monotonic() - began:.0f} s", flush=True)


def code() -> dict[str, str]:
    """The commit and the tree of the sources that are attacked, as git names them."""
    found = importlib.util.find_spec("dpaa")
    place = Path(found.origin).parent if found and found.origin else Path()

    def git(*words: str) -> str:
        said = subprocess.run(["git", "-C", place, *words], capture_output=True, text=True, check=False)
        return said.stdout.strip() if said.returncode == 0 else "unknown"

    changed = " with changes" if git("status", "--porcelain", "--", ".") not in ("", "unknown") else ""
    return {
        "commit": git("rev-parse", "--short=12", "HEAD"),
        "src": git("rev-parse", "--short=12", "HEAD:./") + changed,
    }


def check_same(file: Path, about: dict[str, object]) -> None:
    """One folder, one seed, one code."""
    if not file.exists():
        file.write_text(json.dumps(about))
    elif json.loads(file.read_text()) != about:
        sys.exit(f"{file.parent} was begun with {file.read_text()}; choose another folder with --out")


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


if __name__ == "__main__":
    main()

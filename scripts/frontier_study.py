"""Does `dpaa debias` keep its promise, and is it better than one debiasing method?  Measured where test is unbiased.

    python scripts/frontier_study.py --data DIR --work WORK --part all [--seeds N] [--only PREFIX] [--write]

`DIR` holds `coat/` (official files) and `kuairec/paper-split/` (valid.txt, test.txt); the demo world needs no files.

- `estimates`: validation as biased as the log; logged, inverse-propensity and balanced accuracy against the oracle.
- `promise`: unbiased validation; is the accuracy that was promised kept on test?
- `frontier`: chosen points, the paper's trained debiasing methods as they are, who is dominated, who is better.
- `time`: how long `dpaa debias` takes.

`WORK/lists` keeps the lists of every model with every re-ranker, `WORK/records.jsonl` one line for each dataset and
seed; what is there is not made again, so that the script can be stopped at any time.  `--write` makes
results/frontier.parquet of the lines, and the pages in docs/results of that; a new WORK goes on from it.  `--only
kuairec` does one kind of data: several processes can share the work, each in a WORK of its own, and `--and-work` names
the others when the pages are written.  Everything is chosen on validation; test says only what that was worth.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from scripts.frontier import figure, frontier_page, pages, records  # noqa: E402
from scripts.frontier.judge import judge  # noqa: E402
from scripts.frontier.lists import SWEPT, TRAINED, Cell, Sources, Store  # noqa: E402
from scripts.frontier.rows import title  # noqa: E402

WORLD, SMALL = "world:1000x800", "world:500x400"
DEMO, LARGE = "world:2000x1500:1", "world:2900x2250:1"
"""The world of `dpaa data demo`, and one with a log of 130,000 pairs."""
SLOW_SEEDS = 1
"""Where a training takes long, unless --slow-seeds says otherwise."""
SEEDS_OF_METHODS = 5
"""Where every method of the paper is trained as well."""
RESULTS = ROOT / "docs" / "results"
PARTS = ("estimates", "promise", "frontier", "time")


def cells(part: str, seeds: int, slow: int) -> Iterator[Cell]:
    """What a part looks at, seed by seed, so that all data have some when it is stopped."""
    for seed in range(seeds):
        large = [f"kuairec:{severity}" for severity in (5, 0, 9, 3)] if seed < slow else []
        large += [f"{WORLD}:1"] if seed < min(slow, SEEDS_OF_METHODS) else []
        large += [DEMO] if seed == 0 else []
        if part == "estimates" and seed < SEEDS_OF_METHODS:
            yield from (Cell(f"{SMALL}:{severity}", seed, biased=True) for severity in ("0.5", "1", "2"))
            yield from (Cell(name, seed, biased=True) for name in large if name.startswith("kuairec"))
        elif part == "promise":
            yield from (Cell(name, seed) for name in (f"{SMALL}:1", "coat", *large))
        elif part == "frontier" and seed < SEEDS_OF_METHODS:
            yield from (Cell(name, seed) for name in ("coat", f"{SMALL}:1", *large))


def run(part: str, store: Store, file: Path, asked: argparse.Namespace, stopped: Callable[[], bool]) -> None:
    """Train what is missing and judge what is new."""
    models = [*SWEPT, *(name for name in (*TRAINED, "most-popular") if name not in SWEPT and part == "frontier")]
    for cell in cells(part, asked.seeds, asked.slow_seeds):
        if stopped():
            return
        if not cell.data.startswith(asked.only):
            continue
        if not set(models) <= set(records.read(file).get(cell.name, {"plain": ()})["plain"]):
            store.make(cell, models)
            judge_one(store, cell, file)


def judge_one(store: Store, cell: Cell, file: Path) -> None:
    """A record, unless there is one with the same models."""
    there = {path.stem for path in store.file(cell, "x").parent.glob("*.npz") if ".part" not in path.name}
    known = records.read(file).get(cell.name, {"plain": ()})
    drawn = "line" in known or there == set(SWEPT)
    if not set(SWEPT) <= there or (drawn and there <= set(known["plain"])):
        return
    clock = time.process_time()
    records.append(file, judge(store, cell, sorted(there - set(SWEPT))))
    print(f"{cell.name} judged in {time.process_time() - clock:.0f} s of CPU", flush=True)


def time_debias(data: Path, work: Path, file: Path, only: str) -> None:
    """`dpaa debias` with its defaults, in a process of its own."""
    program = [sys.executable, "-W", "ignore", "-c", "from dpaa.cli import main; main()"]
    sources = {"coat": ["coat", str(data / "coat")], DEMO: ["demo"]}
    sources[LARGE] = ["demo", "--users", "2900", "--items", "2250", "--seed", "7"]
    for name, source in sources.items():
        if not name.startswith(only):
            continue
        made, out = work / "timed" / "data", work / "timed" / "out"
        shutil.rmtree(made.parent, ignore_errors=True)
        made.parent.mkdir(parents=True)
        subprocess.run([*program, "data", *source, "--out", str(made)], check=True, capture_output=True)
        clock, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = ["debias", str(made), "--out", str(out), "--keep-accuracy", "0.98"]
        subprocess.run([*program, *command], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        seconds = time.perf_counter() - clock
        record = {
            "cell": f"{records.TIMED}{name}",
            "data": name,
            "seconds": seconds,
            "cpu": used,
            "load": os.getloadavg()[0],
        }
        print(record, flush=True)
        records.append(file, record)


def write(place: Path) -> None:
    """The pages."""
    kept = records.read().values()
    found = [one for one in kept if not one["cell"].startswith(records.TIMED)]
    times = [one for one in kept if one["cell"].startswith(records.TIMED)]

    def command(part: str, some: list[dict[str, Any]]) -> str:
        seeds = max(one["seed"] for one in some) + 1
        most = max((one["seed"] + 1 for one in some if one["data"].startswith("kuairec")), default=0)
        there = {one["cell"] for one in some}
        undone = [one for one in cells(part, seeds, most) if one.name not in there]
        told = "; ".join(f"{title(one.data)} seed {one.seed}" for one in undone)
        return (
            f"python scripts/frontier_study.py --data DIR --work WORK --part {part} --seeds {seeds} "
            f"--slow-seeds {most} --write" + (f"\n\nStopped before it was through; not done: {told}." if undone else "")
        )

    biased = [one for one in found if one["biased"]]
    full = [one for one in found if not one["biased"] and set(TRAINED) <= set(one["plain"])]
    unbiased = [one for one in found if not one["biased"]]
    if biased:
        pages.estimates(place, biased, command("estimates", biased))
    if unbiased:
        pages.promise(place, unbiased, command("promise", unbiased))
    if full:
        frontier_page.frontier(place, full, times, command("frontier", full))


def main() -> None:
    """Run parts, write pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument(
        "--part", choices=(*PARTS, "judge", "all", "none"), default="none", help="judge: new lines only"
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--slow-seeds", type=int, default=SLOW_SEEDS, help="for KuaiRec and larger worlds")
    parser.add_argument("--only", default="", help="data whose names begin so: coat, kuairec, world")
    parser.add_argument("--and-work", type=Path, nargs="*", default=(), help="further folders whose lines are written")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    store, file = Store(asked.work / "lists", Sources(asked.data)), asked.work / "records.jsonl"
    asked.work.mkdir(parents=True, exist_ok=True)
    for part in PARTS if asked.part == "all" else (asked.part,):
        if part == "time":
            time_debias(asked.data, asked.work, file, asked.only)
        elif part == "judge":
            for folder in sorted(store.folder.glob("*/*/*")):
                data, seed, kind = folder.relative_to(store.folder).parts
                judge_one(store, Cell(data, int(seed), kind == "biased"), file)
        else:
            run(part, store, file, asked, (asked.work / "stop").exists)
    if asked.write:
        records.keep([file, *(work / file.name for work in asked.and_work)])
        write(RESULTS)
        figure.draw(RESULTS, list(records.read().values()))


if __name__ == "__main__":
    main()

"""All methods and re-rankers on Coat, the demo world and KuaiRec with severity 0, 5, 9: defaults and a small tuning.

    python scripts/related_study.py --data DIR --work WORK [--minutes M] [--share I/N]
    python scripts/related_study.py --work WORK [--and-work WORK …] --write

`DIR` holds `coat/` (official files) and `kuairec/paper-split/` (valid.txt, test.txt); the demo world needs no files.
Every training is a line of `WORK/trainings.jsonl`, written when it ends: the same call goes on where it was stopped; a
new WORK begins with what results/related.parquet has.  `--share 1/2` takes every second method: two processes share the
work, each in a WORK of its own.
A seed draws the data (Coat's validation, KuaiRec's log, the world) and the training.  Settings are chosen on the
validation split of seed 0; test is measured with what was chosen.  `--write` makes results/related.parquet of the
lines, and of that file docs/results/related.md, docs/results/reranking-curves.md and a table in docs/methods.md;
without `--work` the pages alone.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from scripts.related import pages  # noqa: E402
from scripts.related.trainings import Bench, Lines, Sources, methods, waves  # noqa: E402


def main() -> None:
    """Train what is missing, then write."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path, help="folder of coat/ and kuairec/")
    asked.add_argument("--work", type=Path, help="where trainings are kept")
    asked.add_argument("--minutes", type=float, default=math.inf, help="no training is begun after so many minutes")
    asked.add_argument("--share", default="1/1", help="the I-th of N parts of the methods, I/N")
    asked.add_argument("--and-work", type=Path, nargs="*", default=(), help="further folders whose lines are written")
    asked.add_argument("--write", action="store_true")
    given = asked.parse_args()
    torch.set_num_threads(1)
    if given.data is not None and given.work is not None:
        train(given.data, given.work, given.minutes, given.share)
    if given.write:
        from scripts.related import curves  # draws, with an extra

        if given.work is not None:
            lines = [line for work in (given.work, *given.and_work) for line in Lines(work / "trainings.jsonl").all]
            pages.write_store(list({Lines.key(line): line for line in lines}.values()))
        pages.write()
        curves.write()


def train(data: Path, work: Path, minutes: float, share: str) -> None:
    """Wave after wave; in each the cheap ones first."""
    part, parts = (int(number) for number in share.split("/"))
    own = {*methods()[part - 1 :: parts], *(["re-rankers"] if part == 1 else [])}
    work.mkdir(parents=True, exist_ok=True)
    file, began = work / "trainings.jsonl", time.monotonic()
    if not file.exists():  # what is committed is not trained again
        file.write_text("".join(json.dumps(line) + "\n" for line in pages.stored_lines()), encoding="utf-8")
    lines = Lines(file)
    bench = Bench(Sources(data), work, lines)
    for costliest, wave in waves():
        missing = [job for job in wave if job.method in own and lines.of(job) is None]
        missing = [job for job in missing if bench.sources.there(job.data)]
        for job in sorted(missing, key=lambda job: (job.seed, lines.seconds(job))):
            if time.monotonic() - began > 60 * minutes or (work / "stop").exists():
                return
            if lines.seconds(job) > costliest:
                continue
            for line in bench.run(job):
                lines.add(line)
                told = line.get("error") or f"recall {line.get('recall@20', math.nan):.4f}"
                print(*job.key, line["method"], f"{line['cpu']:.1f} s", told, flush=True)


if __name__ == "__main__":
    main()

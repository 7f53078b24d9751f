"""Kill a tuned reproduction (-9, workers too) at random moments: the same call must lose only what was in flight.

    python scripts/kill_reproduction.py --kuairec DIR --kills 10

`dpaa reproduce severity --budget standard` on a small scale: studies of 12 trials and trainings over seeds, two at a
time.  After each kill, every finished trial and training must be there and stay as it is; in the end no study may have
more lost trials than kills times jobs, and none more than its 12 trained ones.  Exit 1 on any difference.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

JOBS, TRIALS = 2, 12
SMALL = ["embedding_size=16", "layers=2", "epochs=60"]


def call(kuairec: Path, folder: Path) -> list[str]:
    """The reproduction, with all its files in one folder."""
    words = ["reproduce", "severity", "--budget", "standard", "--kuairec", str(kuairec), "--severity", "9"]
    words += ["--method", "lightgcn", "--method", "dpaa", "--seeds", "3", "--jobs", str(JOBS), "--no-figures"]
    words += [word for setting in SMALL for word in ("--set", setting)]
    words += ["--results", str(folder / "results"), "--work", str(folder / "work"), "--out", str(folder / "out")]
    return [sys.executable, "-c", "from dpaa.cli import main; main()", *words]


def trials(folder: Path) -> dict[tuple[str, int], tuple[str, float | None]]:
    """(study, number) → state and value of every trial that is not under way."""
    found: dict[tuple[str, int], tuple[str, float | None]] = {}
    for file in folder.glob("work/tuned/*/study.sqlite"):
        asked = "select t.number, t.state, v.value from trials t left join trial_values v using (trial_id)"
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as storage:
            for number, state, value in storage.execute(asked):
                if state not in ("RUNNING", "WAITING"):
                    found[file.parent.name, number] = (state, value)
    return found


def kept(folder: Path) -> dict[str, str]:
    """Every finished result, as it is written."""
    return {str(file.relative_to(folder)): file.read_text() for file in folder.glob("results/*/*.json")}


def missing(before: dict, after: dict) -> list[object]:
    """What was there and is not there as it was."""
    return [key for key, value in before.items() if after.get(key) != value]


def main() -> None:
    """Kill until there were enough kills or nothing is left to do; then finish and check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kuairec", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--longest", type=float, default=25.0, help="seconds a call may live")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    rng = random.Random(chosen.seed)
    kills, faults, null = 0, [], subprocess.DEVNULL
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        words = call(chosen.kuairec.resolve(), folder)
        while kills < chosen.kills:
            done, results = trials(folder), kept(folder)
            process = subprocess.Popen(words, stdout=null, stderr=null, start_new_session=True)
            deadline = time.monotonic() + rng.uniform(3.0, chosen.longest)
            while time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.02)
            if process.poll() is not None:
                break
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            faults += missing(done, trials(folder)) + missing(results, kept(folder))
            states = Counter(state for state, _ in trials(folder).values())
            print(f"kill {kills}: {dict(states)}, {len(kept(folder))} results", flush=True)
        done, results = trials(folder), kept(folder)
        said = subprocess.run(words, capture_output=True, text=True, check=True).stderr.splitlines()[-1]
        faults += missing(done, trials(folder)) + missing(results, kept(folder))
        for file in folder.glob("results/tuned/*.json"):
            states = Counter(trial["state"] for trial in json.loads(file.read_text())["tried"])
            trained = sum(states[state] for state in ("complete", "pruned", "diverged"))
            print(f"{file.stem.rsplit('-', 1)[0]}: {dict(states)}")
            if trained != TRIALS or states["lost"] > kills * JOBS:
                faults.append(file.stem)
        print(f"the last call: {said.split(';')[0]}")
    print(f"{kills} kills, {len(faults)} differences")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

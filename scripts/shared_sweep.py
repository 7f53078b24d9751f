"""Two hosts tune on one PostgreSQL while workers are killed: no setting is trained twice, and none is missing.

python -m scripts.shared_sweep [--trials 60] [--jobs 2] [--kills 2]

Starts a server of its own (the system's PostgreSQL) and two calls of `dpaa tune`, each with a folder of its own as on
two machines, both at once on the empty database.  Workers are killed by SIGKILL at random moments.  Prints what became
of the trials; ends with 1 where a setting was trained twice or is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import polars as pl
from tests.postgres import running

from dpaa.data.sources.world import simulate

EPOCHS = 60
TOLD = b": trial "
"""In each line about a finished trial."""


def main() -> None:
    """Tune, kill, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2, help="Workers of each host.")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="Of the moments of the kills.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, running() as server:
        place = Path(home)
        simulate(users=300, items=200, seed=1).write(place / "data")
        server.psql("-c", "CREATE DATABASE sweep")
        url = f"postgresql://{server.user}@/sweep?host={server.socket}"
        began = time.monotonic()
        hosts = [_host(place, name, url, asked.trials, asked.jobs) for name in ("one", "two")]
        killed = _kill_some(place, hosts, asked.kills, random.Random(asked.seed))
        codes = [host.wait() for host in hosts]
        seconds = time.monotonic() - began
        said = "".join((place / f"{name}.log").read_text() for name in ("one", "two"))
        found = [_trials(place / name / "trials.jsonl") for name in ("one", "two")]
    assert found[0] == found[1], "both hosts end with the same trials"
    trained = Counter(json.dumps(one["settings"], sort_keys=True) for one in found[0] if one["seconds"] is not None)
    states = Counter(one["state"] for one in found[0])
    repeated = sum(times - 1 for times in trained.values())
    print(
        f"{len(trained)} settings trained of {asked.trials} wanted, {repeated} of them twice; {killed} workers killed"
    )
    print(f"states: {dict(states)}; {seconds:.0f} s; the hosts ended with {codes}")
    told = [line for line in said.splitlines() if "killed" in line or "lost" in line]
    print("\n".join(told))
    sys.exit(0 if (len(trained), repeated, codes) == (asked.trials, 0, [0, 0]) else 1)


def _host(place: Path, name: str, url: str, trials: int, jobs: int) -> subprocess.Popen[bytes]:
    call = [sys.executable, "-c", "from dpaa.cli import main; main()", "tune", str(place / "data")]
    call += ["--method", "lightgcn"]
    call += ["--trials", str(trials), "--jobs", str(jobs), "--seeds", "0", "--set", f"epochs={EPOCHS}"]
    call += ["--set", "embedding_size=16", "--storage", url, "--out", str(place / name)]
    with (place / f"{name}.log").open("wb") as log:
        return subprocess.Popen(call, stdout=log, stderr=log)


def _kill_some(place: Path, hosts: list[subprocess.Popen[bytes]], kills: int, rng: random.Random) -> int:
    """Kill workers, of one host and the other in turn, some trials after the last kill; returns how many were."""
    killed = before = 0
    while killed < kills and all(host.poll() is None for host in hosts):
        time.sleep(rng.uniform(0.5, 1.5))
        done = sum((place / f"{name}.log").read_bytes().count(TOLD) for name in ("one", "two"))
        workers = _workers(hosts[killed % len(hosts)].pid)
        if workers and done >= before + 8:
            os.kill(rng.choice(workers), signal.SIGKILL)
            killed, before = killed + 1, done
    return killed


def _workers(parent: int) -> list[int]:
    """Processes that a call has started to train."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(one) for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def _trials(file: Path) -> list[dict[str, object]]:
    return pl.read_ndjson(file, infer_schema_length=None).select("number", "state", "settings", "seconds").to_dicts()


if __name__ == "__main__":
    main()

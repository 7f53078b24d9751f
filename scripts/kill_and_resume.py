"""Kill trainings (-9) at random moments, resume them, and compare the finished runs with uninterrupted ones.

    python scripts/kill_and_resume.py --kills 200 --methods lightgcn dpaa

A child process trains with frequent checkpoints and is killed after a random while, again and again until it ends; then
every file of its run must equal the uninterrupted run's byte for byte (times of day and durations aside).  Exit 1 on
any difference.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from dpaa.data.sources.world import simulate
from dpaa.runs.fit import Callbacks, fit_into, make_method
from dpaa.runs.folder import RunFolder

SETTINGS = {"embedding_size": 32, "layers": 2, "batch_size": 512, "epochs": 40, "patience": 40, "threads": 1}
SAME_BYTES = ("config.json", "model.safetensors", "users.parquet", "items.parquet", "edges.parquet")


def train(folder: Path, method: str, resume: bool) -> None:
    """One attempt at a run, in a process of its own: thread pools do not survive a fork, so the parent starts none."""
    data = simulate(users=300, items=200, seed=2)
    callbacks = Callbacks(checkpoint_seconds=0.05)
    fit_into(folder, data, make_method(data, method, SETTINGS), resume=resume, callbacks=callbacks)


def start(folder: Path, method: str, resume: bool) -> int:
    """Train in a child process; its number."""
    child = os.fork()
    if child == 0:
        try:
            train(folder, method, resume)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def finish_with_kills(folder: Path, method: str, longest: float, rng: random.Random) -> int:
    """Start, kill, resume … until the run is whole.  Returns the number of kills."""
    kills = 0
    while not RunFolder(folder).finished:
        child = start(folder, method, resume=True)
        deadline = time.monotonic() + rng.uniform(0.0, longest)
        while time.monotonic() < deadline and os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.002)
        try:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            kills += os.WIFSIGNALED(status)
        except (ProcessLookupError, ChildProcessError):
            pass  # it ended by itself
    return kills


def differences(one: Path, other: Path) -> list[str]:
    """Files that differ; durations in the history and times in the manifest do not count."""
    found = [name for name in SAME_BYTES if (one / name).read_bytes() != (other / name).read_bytes()]
    histories = [[{**line, "seconds": 0} for line in RunFolder(run).history()] for run in (one, other)]
    if histories[0] != histories[1]:
        found.append("history.jsonl")
    manifests = [json.loads((run / "manifest.json").read_text()) for run in (one, other)]
    for manifest in manifests:
        for name in ("started", "finished", "seconds", "pretrained"):
            manifest.pop(name, None)
        manifest["training"].pop("epochs")  # counted from the last resume's history line, compared above
    if manifests[0] != manifests[1]:
        found.append("manifest.json")
    return found


def main() -> None:
    """Kill until there were enough kills."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--methods", nargs="+", default=["lightgcn", "dpaa"])
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    rng, wrong, kills, runs = random.Random(chosen.seed), [], 0, 0
    with tempfile.TemporaryDirectory() as place:
        whole: dict[str, tuple[Path, float]] = {}
        for method in chosen.methods:
            folder = Path(place) / f"whole-{method}"
            began = time.monotonic()
            _, status = os.waitpid(start(folder, method, resume=False), 0)
            if status:
                sys.exit(f"training {method} without interruption failed")
            whole[method] = folder, time.monotonic() - began
        while kills < chosen.kills:
            method = chosen.methods[runs % len(chosen.methods)]
            expected, seconds = whole[method]
            parent = (
                Path(place) / f"killed-{runs}"
            )  # its own parent: the pre-trained model is trained anew, and killed too
            parent.mkdir()
            killed = finish_with_kills(parent / "run", method, longest=0.2 * seconds + 0.3, rng=rng)
            found = differences(parent / "run", expected)
            wrong += found
            kills, runs = kills + killed, runs + 1
            print(f"{method}: {killed} kills, {', '.join(found) or 'no difference'} ({kills} kills so far)", flush=True)
            shutil.rmtree(parent)
    print(f"{kills} kills in {runs} runs of {', '.join(chosen.methods)}: {len(wrong)} differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

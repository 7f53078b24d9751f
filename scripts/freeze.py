"""Freeze what the redesign must not change: digests of results, compared after every step.

    python scripts/freeze.py [--data DATA_FOLDER] [--write]

Without `--write` it recomputes everything, compares with `scripts/freeze.json` and prints "equal" or the entries that
differ, which then belong under "Changed results" in the changelog.  Everything goes through the command line and its
files, so that the code below may change.  Coat, Yahoo! R3, KuaiRec and severities need DATA_FOLDER.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import typer.main
from safetensors.numpy import load_file

from dpaa.cli import main as dpaa_main

FILE = Path(__file__).with_suffix(".json")
REMOVED = {"dpaa-auto", "dpaa-reading"}
COMMANDS = (
    "demo audit train evaluate recommend similar export rerank debias compare tune benchmark trace report serve methods"
)
DATA = "log splits coat yahoo-r3 kuairec demo example severity randomised describe"
VOLATILE = re.compile(
    r"second|started|finished|elapsed|version|path|folder|duration|^(run|out|dataset|created|machine|snapshot|origin)$"
)


def call(*words: object) -> str:
    """Standard output of `dpaa WORDS…` in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with patch.object(sys, "argv", ["dpaa", *map(str, words)]), redirect_stdout(out), redirect_stderr(err):
        try:
            dpaa_main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    if code not in (0, 1):
        raise RuntimeError(f"dpaa {' '.join(map(str, words))}: {err.getvalue()}")
    return out.getvalue()


def digest(content: bytes) -> str:
    """Sixteen digits of a digest."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def of_json(text: str, work: Path) -> str:
    """Digest of JSON without times and paths, numbers to nine digits."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in sorted(value.items()) if not VOLATILE.search(key)}
        if isinstance(value, list):
            return [plain(one) for one in value]
        return float(f"{value:.9g}") if isinstance(value, float) else value

    return digest(json.dumps(plain(json.loads(text.replace(str(work), "WORK"))), sort_keys=True).encode())


def of_dataset(folder: Path) -> str:
    """Digest of the pairs of a prepared dataset, in the order of ids."""
    parts = []
    for name in ("train", "valid", "test"):
        frame = pl.read_parquet(folder / f"{name}.parquet")
        ids = frame.select(pl.col("user_id").cast(pl.String), pl.col("item_id").cast(pl.String)).sort(
            "user_id", "item_id"
        )
        parts.append(ids.write_csv())
    return digest("|".join(parts).encode())


def of_run(run: Path, work: Path) -> dict[str, str]:
    """Digests of a run's tensors and of its lists of 20."""
    tensors = load_file(run / "model.safetensors")
    found = {f"tensor {name}": digest(np.ascontiguousarray(value).tobytes()) for name, value in sorted(tensors.items())}
    out = work / "lists.parquet"
    call("recommend", run, "--out", out, "--overwrite")
    lists = pl.read_parquet(out).sort("user_id", "rank").select("user_id", "item_id")
    return found | {"lists": digest(lists.write_csv().encode())}


def sources(work: Path, data: Path | None) -> dict[str, str]:
    """Splits of every source."""
    found: dict[str, str] = {}
    calls: dict[str, list[object]] = {"demo": [], "demo-small": ["--users", 150, "--items", 120, "--seed", 3]}
    if data is not None:
        calls |= {"coat": [data / "coat"]}
    for name, words in calls.items():
        call("data", name.partition("-")[0], *words, "--out", work / name)
        found[f"source {name}"] = of_dataset(work / name)
    if data is not None:
        pairs = [data / "kuairec" / "paper-split" / f"{part}.txt" for part in ("valid", "test")]
        call("data", "severity", *pairs, "--severity", 0, "--severity", 5, "--out", work / "severity")
        for folder in sorted(path.parent for path in (work / "severity").rglob("dataset.json")):
            found[f"source severity {folder.name}"] = of_dataset(folder)
    return found


def methods(work: Path) -> dict[str, str]:
    """Every kept method, three epochs on a small world."""
    world = work / "demo-small"
    call("data", "randomised", world, "--out", work / "randomised")
    found = {}
    for name in sorted(json.loads(call("methods", "--json")), key=str):
        if name in REMOVED:
            continue
        run, data = work / "runs" / name, work / "randomised" if name == "cause" else world
        options = ["--set", "seed=0"]
        if '"epochs"' in call("methods", name, "--json"):
            options += ["--set", "epochs=3", "--set", "embedding_size=16", "--set", "batch_size=512"]
        call("train", data, "--method", name, *options, "--out", run)
        found |= {f"{name}: {key}": value for key, value in of_run(run, work).items()}
    return found


def products(work: Path) -> dict[str, str]:
    """JSON of the commands that print tables."""
    world, runs = work / "demo-small", work / "runs"
    item = pl.read_parquet(runs / "lightgcn/items.parquet")[0, 0]
    trained = ["--runs", runs / "lightgcn", "--runs", runs / "ease"]
    calls = {
        "evaluate": ["evaluate", runs / "lightgcn", "--dataset", world, "--json"],
        "compare": ["compare", runs / "lightgcn", runs / "ease", runs / "ips", "--dataset", world, "--json"],
        "audit": ["audit", world, "--json"],
        "debias": ["debias", world, *trained, "--out", work / "frontier", "--json"],
        "trace": ["trace", runs / "dpaa", "--json"],
        "similar": ["similar", runs / "lightgcn", "--item", item, "--json"],
    }
    return {f"json {name}": of_json(call(*words), work) for name, words in calls.items()}


def service(work: Path) -> dict[str, str]:
    """Fifty answers of the service: users, histories, dials, filters."""
    command = [sys.executable, "-m", "dpaa", "serve", str(work / "runs" / "lightgcn"), "--port", "8971"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            users = pl.read_parquet(work / "runs/lightgcn/users.parquet")["user_id"].to_list()[:25]
            items = pl.read_parquet(work / "runs/lightgcn/items.parquet")["item_id"].to_list()
            bodies: list[dict[str, Any]] = [{"users": [user], "k": 10} for user in users]
            bodies += [{"histories": [items[n : n + 3]], "k": 5 + n % 7, "dial": -n / 25} for n in range(25)]
            answers = []
            for body in bodies:
                request = urllib.request.Request(
                    "http://127.0.0.1:8971/recommend", json.dumps(body).encode(), {"Content-Type": "application/json"}
                )
                for attempt in range(200):
                    try:
                        answers.append(json.loads(urllib.request.urlopen(request).read()))
                        break
                    except urllib.error.HTTPError as error:
                        answers.append({"status": error.code})
                        break
                    except OSError:
                        if attempt == 199:
                            raise
                        time.sleep(0.2)
            return {f"service {n}": of_json(json.dumps(answer), work) for n, answer in enumerate(answers)}
        finally:
            server.terminate()


def helps() -> dict[str, str]:
    """`--help` of every command."""
    words = (
        [[name] for name in COMMANDS.split()] + [["data", name] for name in DATA.split()] + [["reproduce"], ["methods"]]
    )
    return {f"help {' '.join(one)}": digest(call(*one, "--help").encode()) for one in words}


def main() -> None:
    """Compute, then write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    command = typer.main.get_command
    cache: dict[Any, Any] = {}
    typer.main.get_command = lambda app: cache.setdefault(id(app), command(app))  # read from annotations once
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        now = sources(work, given.data) | methods(work) | products(work) | service(work) | helps()
    if given.write:
        FILE.write_text(json.dumps(now, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        return
    before = json.loads(FILE.read_text(encoding="utf-8"))
    changed = sorted(name for name in before if name in now and now[name] != before[name])
    gone = sorted(name for name in before if name not in now and (given.data or not name.startswith("source")))
    print("\n".join([f"changed: {name}" for name in changed] + [f"gone: {name}" for name in gone]) or "equal")


if __name__ == "__main__":
    main()

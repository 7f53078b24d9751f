"""Load on `dpaa serve`, bounded and on loopback, by `wrk` (Debian's package); prints Markdown.

    python -m scripts.serve_load grid --items 1000 20000 200000
    python -m scripts.serve_load grid --against ../other-checkout/src    # both, alternating
    python -m scripts.serve_load overload --seconds 60 --items 200000
    python -m scripts.serve_load reloads --reloads 50 --items 20000

The runs have drawn vectors of 64 columns; the items of every answer are compared with those of the quiet service.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import numpy as np
from benchmarks.timing import machine
from tests.serving.made import drawn_model
from tests.serving.running import Running, running, wait_until

TOKEN = "a-token-for-the-load-test"
KEY = {"Authorization": f"Bearer {TOKEN}"}
USERS, CHECKED = 5_000, 100
SCRIPT = """
local expected, users = {}, {}
for line in io.lines("EXPECTED") do
  local user, items = line:match("^(%S+) (.*)$")
  expected[user] = items
  users[#users + 1] = user
end
ok, busy, other, wrong = 0, 0, 0, 0
function setup(thread) only = thread end
function init() math.randomseed(os.time()); wrk.headers["Authorization"] = "Bearer TOKEN" end
function request() return wrk.format("GET", "/recommend/" .. users[math.random(#users)]) end
if PAUSE > 0 then function delay() return math.random() * 2 * PAUSE end end
function response(status, headers, body)
  if status == 503 then busy = busy + 1 return end
  if status ~= 200 then other = other + 1 return end
  ok = ok + 1
  local items = {}
  for id in body:gmatch('"id":"([^"]+)"') do items[#items + 1] = id end
  if table.concat(items, ",") ~= expected[body:match('"user":"([^"]+)"')] then wrong = wrong + 1 end
end
function done(summary, latency)
  local e, s = summary.errors, summary.duration / 1e6
  io.write("RESULT ", only:get("ok"), " ", only:get("busy"), " ", only:get("other"), " ", only:get("wrong"), " ",
    e.connect + e.read + e.write + e.timeout, " ", only:get("ok") / s, " ",
    latency:percentile(50) / 1e3, " ", latency:percentile(99) / 1e3, "\\n")
end
"""
Load = namedtuple("Load", "ok busy other wrong lost rate p50 p99")  # answers by kind, answers per second, ms


@contextmanager
def loaded(service: Running, connections: int, seconds: float, pause: float = 0.0) -> Iterator[list[Load]]:
    """Start a load, and wait for it at the end of the block; its result is put into the list."""
    names = [f"u{user:05d}" for user in np.linspace(0, USERS - 1, CHECKED).astype(int)]
    with httpx2.Client(base_url=service.url, headers=KEY, timeout=60) as client:
        lists = {user: client.get(f"/recommend/{user}").json()["items"] for user in names}
    expected = "".join(f"{user} {','.join(row['id'] for row in rows)}\n" for user, rows in lists.items())
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "expected").write_text(expected)
        script = SCRIPT.replace("EXPECTED", f"{folder}/expected").replace("TOKEN", TOKEN)
        Path(folder, "ask.lua").write_text(script.replace("PAUSE", f"{1e3 * pause:.3f}"))
        call = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "15s"]
        process = subprocess.Popen([*call, "-s", f"{folder}/ask.lua", service.url], stdout=subprocess.PIPE, text=True)
        results: list[Load] = []
        yield results
        results.append(Load(*map(float, process.communicate()[0].partition("RESULT ")[2].split())))


def load(service: Running, connections: int, seconds: float, pause: float = 0.0) -> Load:
    """The result of a load with nothing beside it."""
    with loaded(service, connections, seconds, pause) as results:
        pass
    return results[0]


@contextmanager
def served(folder: Path, n_items: int, *words: object, **environment: str) -> Iterator[Running]:
    """A service of a drawn run."""
    run = folder / f"run-{n_items}"
    if not run.exists():
        drawn_model(n_users=USERS, n_items=n_items, size=64).save(run)
    with running(run, *words, DPAA_SERVE_TOKEN=TOKEN, **environment) as service:
        yield service


def codes(args: argparse.Namespace) -> dict[str, dict[str, str]]:
    """This code, and the one it is compared with."""
    other = {} if args.against is None else {"other": {"PYTHONPATH": str(args.against.absolute())}}
    return {"this": {}, **other}


def grid(folder: Path, args: argparse.Namespace) -> Iterator[str]:
    """Latency and throughput by size and number of connections; medians of alternating rounds."""
    yield "| items | connections | code | p50 ms | p99 ms | requests/s | wrong, lost |"
    yield "|---|---|---|---|---|---|---|"
    for n_items in args.items:
        cells: dict[tuple[int, str], list[Load]] = {}
        for _ in range(args.rounds):
            for code, environment in codes(args).items():
                with served(folder, n_items, **environment) as service:
                    for connections in (1, 8, 32):
                        cells.setdefault((connections, code), []).append(load(service, connections, args.seconds))
        for (connections, code), loads in sorted(cells.items()):
            p50, p99, rate = (np.median([getattr(one, name) for one in loads]) for name in ("p50", "p99", "rate"))
            bad = sum(one.wrong for one in loads), sum(one.lost + one.other for one in loads)
            yield f"| {n_items:,} | {connections} | {code} | {p50:.2f} | {p99:.1f} | {rate:,.0f} | {bad[0]}, {bad[1]} |"


def overload(folder: Path, args: argparse.Namespace) -> Iterator[str]:
    """Several times of what the service can do."""
    for n_items in args.items:
        for code, environment in args.rounds * list(codes(args).items()):
            with served(folder, n_items, "--workers", "1,waiting=48", **environment) as service:
                capacity = load(service, 32, 3).rate
                # Refused requests return at once and come again: the pause is for three times the capacity.
                result = load(service, 256, args.seconds, pause=256 / (6 * capacity))
                yield f"{n_items:,} items, {code}: capacity {capacity:,.0f}/s. {result}"


def reloads(folder: Path, args: argparse.Namespace) -> Iterator[str]:
    """One reload after the other, under load."""
    with served(folder, args.items[-1]) as service:
        pause, times = 8 / (0.4 * load(service, 8, 3).rate), []
        yield f"Without: {load(service, 8, 20, pause)}"
        while len(times) < args.reloads:
            with loaded(service, 8, 60, pause) as results:
                until = time.monotonic() + 45
                while len(times) < args.reloads and time.monotonic() < until:
                    begun, old = time.monotonic(), service.workers()
                    assert httpx2.post(f"{service.url}/reload", headers=KEY, timeout=60).status_code == 202
                    wait_until(lambda old=old: not set(old) & set(service.workers()))
                    times.append(time.monotonic() - begun)
            yield f"{len(times)} reloads, median {np.median(times):.1f} s. {results[0]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"grid": grid, "overload": overload, "reloads": reloads}
    parser.add_argument("part", choices=parts)
    parser.add_argument("--items", type=int, nargs="+", default=[20_000])
    parser.add_argument("--against", type=Path, help="the src folder of another checkout")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5, help="of each load")
    parser.add_argument("--reloads", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dpaa-load-") as folder:
        for line in parts[args.part](Path(folder), args):
            print(line, flush=True)
    print(f"\n{machine()}")

"""Load on `dpaa serve`, bounded and on loopback, by `wrk` (Debian's package); puts parts into benchmarks/SERVING.md.

    python -m scripts.serve_load --out benchmarks/SERVING.md
    python -m scripts.serve_load --only grid --seconds 5
    python -m scripts.serve_load --only overload --minutes 10 --out benchmarks/SERVING.md

The runs have drawn vectors of 64 columns.  Every figure stands beside the floor that was measured in the same minute:
one product of a vector with the item table and its top 20, in this process, on one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import torch
from benchmarks.timing import machine
from tests.serving.made import drawn_model
from tests.serving.running import Running, running

from dpaa.graph.kernels import top_k
from dpaa.serving.state import State

TOKEN = "a-token-for-the-load-test"
KEY = {"Authorization": f"Bearer {TOKEN}"}
USERS = 5_000
CHECKED = 200
"""Users whose answers are compared, byte for byte."""

ASK = """
local expected, pause = {}, PAUSE
for line in io.lines("EXPECTED") do
  local user, body = line:match("^(%S+)\\t(.*)$")
  expected[user] = body
end
local users = {}
for user in pairs(expected) do users[#users + 1] = user end
ok, busy, other, wrong = 0, 0, 0, 0
local all = {}
function setup(thread) table.insert(all, thread) end
function init() math.randomseed(os.time()); wrk.headers["Authorization"] = "Bearer TOKEN" end
function request() return wrk.format("GET", "/recommend/" .. users[math.random(#users)]) end
if pause > 0 then function delay() return math.random() * 2 * pause end end
function response(status, headers, body)
  if status == 200 then
    ok = ok + 1
    local user = body:match('"user":"([^"]+)"')
    if CHECK and body:gsub('"snapshot":"[^"]*",', "") ~= expected[user] then wrong = wrong + 1 end
  elseif status == 503 then busy = busy + 1
  else other = other + 1 end
end
function done(summary, latency)
  local sums = { ok = 0, busy = 0, other = 0, wrong = 0 }
  for _, thread in ipairs(all) do
    for name in pairs(sums) do sums[name] = sums[name] + thread:get(name) end
  end
  local e = summary.errors
  io.write(string.format("RESULT {%q: %d, %q: %d, %q: %d, %q: %d, %q: %f, %q: %f, %q: %f, %q: %d}\\n",
    "ok", sums.ok, "busy", sums.busy, "other", sums.other, "wrong", sums.wrong, "seconds", summary.duration / 1e6,
    "p50", latency:percentile(50) / 1e3, "p99", latency:percentile(99) / 1e3,
    "lost", e.connect + e.read + e.write + e.timeout))
end
"""


@dataclass
class Load:
    """What wrk saw."""

    ok: int
    busy: int
    other: int
    wrong: int
    seconds: float
    p50: float
    p99: float
    lost: int

    cpu: float = 0.0
    """Milliseconds of the workers' processor time per answer, which a busy machine stretches least."""

    @property
    def rate(self) -> float:
        """Answers per second."""
        return self.ok / self.seconds


class Wrk:
    """A load that can be started beside other things."""

    def __init__(
        self, service: Running, connections: int, seconds: float, pause: float = 0.0, check: bool = True
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        place = Path(self._folder.name)
        lines = []
        with httpx2.Client(base_url=service.url, headers=KEY, timeout=60) as client:
            names = [f"u{user:05d}" for user in np.linspace(0, USERS - 1, CHECKED).astype(int)]
            bodies = {user: client.get(f"/recommend/{user}").text for user in names}
        for user, body in bodies.items():
            lines.append(f"{user}\t{re.sub(chr(34) + 'snapshot' + chr(34) + ':[^,]*,', '', body)}\n")
        (place / "expected").write_text("".join(lines))
        script = ASK.replace("EXPECTED", str(place / "expected")).replace("TOKEN", TOKEN)
        script = script.replace("PAUSE", f"{1e3 * pause:.3f}").replace("CHECK", "true" if check else "false")
        (place / "ask.lua").write_text(script)
        call = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "15s", "-s"]
        self._process = subprocess.Popen(
            [*call, str(place / "ask.lua"), service.url], stdout=subprocess.PIPE, text=True
        )

    def running(self) -> bool:
        """Whether it goes on."""
        return self._process.poll() is None

    def result(self) -> Load:
        """When it has ended."""
        said = self._process.communicate()[0]
        self._folder.cleanup()
        found = next((line for line in said.splitlines() if line.startswith("RESULT ")), None)
        if found is None:
            raise SystemExit(f"wrk said: {said}")
        return Load(**json.loads(found.removeprefix("RESULT ")))


def load(service: Running, connections: int, seconds: float, pause: float = 0.0) -> Load:
    """From beginning to end."""
    wrk, before = Wrk(service, connections, seconds, pause), processor(service)
    found = wrk.result()
    found.cpu = 1e3 * (processor(service) - before) / max(1, found.ok + found.busy)
    return found


def processor(service: Running) -> float:
    """Seconds that the workers have computed."""
    ticks = 0
    for worker in service.workers():
        parts = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
        ticks += int(parts[11]) + int(parts[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(folder: Path, n_items: int, *words: object) -> Iterator[Running]:
    """A service of a drawn run."""
    run = folder / f"run-{n_items}"
    if not run.exists():
        drawn_model(n_users=USERS, n_items=n_items, size=64).save(run)
    with running(run, *words, DPAA_SERVE_TOKEN=TOKEN) as found:
        yield found


def floor(n_items: int, tries: int = 15) -> tuple[float, float]:
    """Milliseconds, median and 99th percentile."""
    torch.set_num_threads(1)
    rows, vector = torch.randn(n_items, 64), torch.randn(1, 64)
    taken = []
    for _ in range(tries):
        begun = time.perf_counter()
        top_k(vector @ rows.T, 20)
        taken.append(1e3 * (time.perf_counter() - begun))
    return float(np.median(taken)), float(np.percentile(taken, 99))


def grid(folder: Path, told: argparse.Namespace) -> list[str]:
    """Sizes, ways and numbers of connections."""
    lines = [
        "## Latency and throughput",
        "",
        "One worker, one thread, lists of 20. Floor: one product and its top 20 in another process, measured before",
        "and after each service (median); a single request within 1.5 × floor + 1 ms is the target. Processor: the",
        "worker's time per answer.",
        "",
        "| items | way | connections | p50 ms | p99 ms | requests/s | processor ms | floor ms | 1.5 × floor + 1 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for n_items in told.items:
        ways = [("exact", ()), ("exact, no batches", ("--most-together", 1))]
        if n_items >= 20_000:
            ways += [("hnsw", ("--index", "hnsw")), ("ivf", ("--index", "ivf"))]
        for way, words in ways:
            before = floor(n_items)
            with served(folder, n_items, *words) as service:
                about = service.get("/about", headers=KEY).json()
                found = {number: load(service, number, told.seconds) for number in (1, 8, 32)}
            least = (before[0] + floor(n_items)[0]) / 2
            shown = way if about["index"] is None else f"{way}, recall@20 {about['index']['recall']:.3f}"
            for number, one in found.items():
                assert not one.other
                assert way in ("hnsw", "ivf") or not one.wrong, one
                bound = f"{1.5 * least + 1:.1f}" if number == 1 and not way.endswith("batches") else ""
                cells = (f"{n_items:,}", shown, number, f"{one.p50:.1f}", f"{one.p99:.1f}", f"{one.rate:,.0f}")
                lines.append(f"| {' | '.join(map(str, cells))} | {one.cpu:.2f} | {least:.2f} | {bound} |")
                print(lines[-1], flush=True)
    return lines


def resident(service: Running) -> float:
    """Megabytes of the workers, without what they share as files."""
    total = 0
    for worker in service.workers():
        status = Path(f"/proc/{worker}/status").read_text()
        total += int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")))
    return total / 1e3


def overload(folder: Path, told: argparse.Namespace) -> list[str]:
    """Twice of what it can do."""
    with served(folder, told.items[-1], "--most-waiting", 48) as service:
        capacity = load(service, 32, told.seconds).rate
        quiet = load(service, 1, told.seconds)
        connections = 256
        before, samples = resident(service), []
        wrk = Wrk(
            service, connections, 60 * told.minutes, pause=connections / (6 * capacity)
        )  # those that wait ask less
        while wrk.running():
            time.sleep(2)
            samples.append(resident(service))
        found = wrk.result()
        begun = time.perf_counter()
        with httpx2.Client(base_url=service.url, headers=KEY) as client:  # made once: that takes longer than an answer
            while True:
                asked = time.perf_counter()
                fine = client.get("/recommend/u00001").status_code == 200
                if fine and 1e3 * (time.perf_counter() - asked) <= 2 * max(quiet.p99, 10):
                    break
        back = time.perf_counter() - begun
        crashes = sum("another takes its place" in line for line in service.said)
    third = len(samples) // 3
    early, late = np.mean(samples[third : 2 * third]), np.mean(samples[2 * third :])
    offered = (found.ok + found.busy + found.other) / found.seconds
    return [
        f"## {told.minutes:g} minutes of overload",
        "",
        f"{told.items[-1]:,} items; capacity {capacity:,.0f} requests/s; {connections} connections that offered "
        f"{offered:,.0f} requests/s ({offered / capacity:.1f} × capacity).",
        "",
        f"- {found.ok:,} answered, {found.busy:,} told to come again (503), {found.other:,} others, "
        f"{found.lost:,} lost.",
        f"- {found.wrong:,} wrong answers (each compared byte for byte with the quiet service's); {crashes} crashes.",
        f"- p50 {found.p50:.0f} ms, p99 {found.p99:.0f} ms over all of them.",
        f"- Memory of the worker: {before:.0f} MB before, {early:.0f} MB in the middle third, {late:.0f} MB in the "
        "last.",
        f"- A request as quick as on a quiet service (2 × its p99) {back:.2f} s after the load ended.",
    ]


def kill(folder: Path, told: argparse.Namespace) -> list[str]:
    """One of two workers."""
    with served(folder, 20_000, "--workers", 2) as service:
        load(service, 8, 1)
        before = service.workers()
        wrk = Wrk(service, 16, 3 * told.seconds + 10)
        time.sleep(told.seconds)
        os.kill(before[0], signal.SIGKILL)
        begun = time.perf_counter()
        while len(set(service.workers()) - set(before)) == 0:
            time.sleep(0.02)
        replaced = time.perf_counter() - begun
        found = wrk.result()
    return [
        "## A worker killed under load",
        "",
        f"Two workers, 16 connections, {found.seconds:.0f} s, one worker killed (SIGKILL): {found.ok:,} answered, "
        f"{found.lost:,} lost (on the connections of the dead one), {found.wrong} wrong; another was started after "
        f"{replaced:.2f} s, the other answered meanwhile.",
    ]


def reloads(folder: Path, told: argparse.Namespace) -> list[str]:
    """Again and again, under load."""
    n_items = told.items[-1]
    with served(folder, n_items) as service:
        capacity = load(service, 8, told.seconds).rate
        pause = 8 / (0.4 * capacity)
        calm = load(service, 8, max(20, 3 * told.seconds), pause)
        done, took = 0, []
        total = Load(0, 0, 0, 0, 0.0, 0.0, 0.0, 0)
        p99 = []
        begun = time.perf_counter()
        while done < told.reloads and time.perf_counter() - begun < told.most_minutes * 60:
            wrk = Wrk(service, 8, 20, pause)
            while wrk.running() and done < told.reloads:
                answer = httpx2.post(f"{service.url}/reload", headers=KEY, timeout=300)
                assert answer.status_code == 200, answer.text
                took.append(answer.json()["seconds"])
                done += 1
            one = wrk.result()
            for name in ("ok", "busy", "other", "wrong", "lost"):
                setattr(total, name, getattr(total, name) + getattr(one, name))
            p99.append(one.p99)
        after = load(service, 8, max(20, 3 * told.seconds), pause)
    normal = (calm.p99 + after.p99) / 2
    return [
        f"## {done} reloads under load",
        "",
        f"{n_items:,} items, 8 connections at .4 × capacity; each reload loads, checks and prepares the whole run "
        f"(median {np.median(took):.1f} s).",
        "",
        f"- {total.ok:,} answered, {total.busy + total.other + total.lost:,} failed, {total.wrong} wrong.",
        f"- p99 {np.median(p99):.0f} ms while reloading (median of {len(p99)} loads of 20 s, the worst "
        f"{max(p99):.0f}), {normal:.0f} ms without (before {calm.p99:.0f}, after {after.p99:.0f}): "
        f"{np.median(p99) / normal:.1f} ×.",
    ]


def exchanges(folder: Path, told: argparse.Namespace) -> list[str]:
    """What of a reload happens in the worker, many times: copies of a snapshot are published one after the other."""
    n_items, place = told.items[-1], folder / "state"
    place.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = str(place)
    with served(folder, n_items) as service:
        state = State(next(place.glob("dpaa-serve-*")))
        first = state.current()
        pause = 8 / (0.4 * load(service, 8, told.seconds).rate)
        calm = load(service, 8, 15, pause)
        wrk = Wrk(service, 8, 30, pause)
        done = 0
        while wrk.running() and done < told.reloads:
            name = f"run-copy{done}"
            shutil.copytree(state.snapshot(first), state.snapshot(name), copy_function=os.link)
            first = name
            state.publish(name)
            done += 1
            time.sleep(0.5)
        found = wrk.result()
        served_now = service.get("/ready").json()["snapshot"]
        after = load(service, 8, 15, pause)
    del os.environ["TMPDIR"]
    normal = (calm.p99 + after.p99) / 2
    return [
        f"## {done} exchanges under load",
        "",
        f"The worker's part of a reload alone ({n_items:,} items, 8 connections at .4 × capacity): snapshots that were "
        f"prepared before are published one after the other, the last is served at the end ({served_now == name}).",
        "",
        f"- {found.ok:,} answered, {found.busy + found.other + found.lost:,} failed, {found.wrong} wrong.",
        f"- p99 {found.p99:.0f} ms meanwhile, {normal:.0f} ms without (before {calm.p99:.0f}, after {after.p99:.0f}): "
        f"{found.p99 / normal:.1f} ×.",
    ]


PARTS: dict[str, Any] = {
    "grid": grid,
    "overload": overload,
    "kill": kill,
    "reloads": reloads,
    "exchanges": exchanges,
}


def main() -> None:
    """All parts, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--items", type=int, nargs="+", default=[1_000, 20_000, 200_000])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--minutes", type=float, default=10, help="of overload")
    parser.add_argument("--reloads", type=int, default=50)
    parser.add_argument("--most-minutes", type=float, default=30, help="for the reloads")
    told = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: apt install wrk")
    with tempfile.TemporaryDirectory(prefix="dpaa-load-") as folder:
        for name in told.only or PARTS:
            print(f"{name} …", flush=True)
            call = f"python -m scripts.serve_load --only {name} {words(name, told)}".rstrip()
            lines = [*PARTS[name](Path(folder), told), "", f"Made by `{call}` on {machine()}."]
            print("\n".join(lines), flush=True)
            if told.out is not None:
                put(told.out, name, "\n".join(lines))


def words(name: str, told: argparse.Namespace) -> str:
    """What of the call matters for a part."""
    items = " ".join(map(str, told.items))
    more = {"overload": f"--minutes {told.minutes:g} ", "reloads": f"--reloads {told.reloads} "}.get(name, "")
    return f"{more}--seconds {told.seconds:g} --items {items}"


def put(page: Path, name: str, text: str) -> None:
    """A part into its place on the page, which keeps what else it says."""
    begin, end = f"<!-- {name}: made by scripts/serve_load.py -->", f"<!-- end of {name} -->"
    whole = page.read_text(encoding="utf-8") if page.exists() else "# Serving: measured\n"
    before, found, rest = whole.partition(begin)
    after = rest.partition(end)[2] if found else ""
    page.write_text(f"{before.rstrip()}\n\n{begin}\n{text}\n{end}\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

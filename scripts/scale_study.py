"""Training in several processes, measured: equal bits, processor time and bytes of a step, kills of one process.

    python -m scripts.scale_study --work /tmp/scale --out benchmarks/SCALE.md [equality steps kills users user-kills]

What is measured is kept in the work folder, piece by piece, so that a study that was stopped goes on; the page is drawn
from what is there.  Processor time is the sound measure on a machine that others use; wall time stands beside it.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.graphs import SIZES, zipf_pairs
from benchmarks.timing import machine
from safetensors.torch import load_file, save_file
from torch import Tensor

from dpaa.data.sources import world
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.columns import Columns, Peers
from dpaa.graph.users import Users
from dpaa._machine import computing, give_back_memory
from dpaa.methods import METHODS
from dpaa.methods.graph_method import GraphMethod
from dpaa.reproduction.tables import markdown
from dpaa.runs.progress import Callbacks
from dpaa.runs.fit import fit_into, fit_method, make_method
from dpaa.runs.folder import RunFolder
from dpaa.runs.distributed import follow
from dpaa.training.adam import TiledAdam
from dpaa.training.together import ONE_PROCESS, Group, LostProcessError, Together, started_together
from dpaa.training.trainer import Trainer

GRAPHS = SIZES | {"10 million edges": (200_000, 50_000, 10_000_000, 3)}
"""Users, items, pairs, layers."""
CASES = [("KuaiRec-size", 64), ("KuaiRec-size", 256), ("Yahoo-size", 64), ("10 million edges", 64)]
PROCESSES = (1, 2, 4)
GRIDS = ((2, 2), (4, 2), (4, 4))
"""Processes, and parts of the users among them."""
GRID_CASES = [("KuaiRec-size", 64), ("10 million edges", 64)]
SHARED = [
    name
    for name in METHODS
    if issubclass(METHODS[name], GraphMethod) and vars(METHODS[name]).get("uses_whole_table") is not True
]
USERS_SHARED = [name for name in SHARED if vars(METHODS[name]).get("shares_users")]
TINY = {"embedding_size": 64, "layers": 2, "epochs": 3, "batch_size": 1024, "threads": 1}
KILLED = TINY | {"batch_size": 256, "epochs": 120, "patience": 120}
LONGEST = 120.0
"""Seconds after which a process that should have ended has hung."""


class Counted:
    """The processes, and what this one sends to all others in a step."""

    def __init__(self, peers: Peers) -> None:
        self.sent, self._peers = 0, peers
        self.rank, self.count = peers.rank, peers.count

    def everyone(self, part: Tensor) -> list[Tensor]:
        """Counted, and done."""
        self.sent += part.numel() * part.element_size()
        return self._peers.everyone(part)


# ---------------------------------------------------------------------- what one of the processes does


def train_all(group: Together) -> dict[str, str]:
    """Digests of the models of all methods that processes can share."""
    found = {}
    data = world.simulate(users=300, items=200, seed=1)
    data = replace(data, randomised=data.valid)
    if isinstance(group, Group) and group.rank:
        follow(group, data)
        return {}
    for name in SHARED:
        method = make_method(data, name, TINY)
        fit_method(method, data, Callbacks(together=group), dial=False)
        digest = hashlib.sha256()
        for part, tensor in sorted(method.state().items()):
            digest.update(part.encode() + tensor.detach().contiguous().numpy().tobytes())
        found[name] = digest.hexdigest()
    return found


def train_with_users(group: Together, place: Path) -> dict[str, str]:
    """The models of all methods whose users processes can share, in files."""
    data = world.simulate(users=300, items=200, seed=1)
    if isinstance(group, Group) and group.rank:
        follow(group, data)
        return {}
    for name in USERS_SHARED:
        method = make_method(data, name, TINY)
        fit_method(method, data, Callbacks(together=group), dial=False)
        save_file({part: one.detach().contiguous() for part, one in method.state().items()}, place / name)
    return {}


def gaps(whole: Path, shared: Path) -> tuple[float, str]:
    """The largest difference of any number in any model, as a share of the table's root mean square; where."""
    found = []
    for name in USERS_SHARED:
        one, other = load_file(whole / name), load_file(shared / name)
        for part, table in one.items():
            size = table.double().square().mean().sqrt().item() or 1.0
            found.append(((table.double() - other[part].double()).abs().max().item() / size, f"{name}, {part}"))
    return max(found)


def _memory(what: str) -> int:
    """`VmRSS` or `VmHWM` of this process, bytes."""
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith(what))
    return 1024 * int(line.split()[1])


def step_times(group: Together, name: str, size: int, method: str, steps: int) -> dict[str, float]:
    """Medians over some steps of a training, of this process."""
    n_users, n_items, n_pairs, layers = GRAPHS[name]
    counted = [Counted(group.column_peers), Counted(group.user_peers)]
    users = Users.balanced(np.full(n_users, n_pairs // n_users), counted[1])  # type: ignore[arg-type]
    pairs = zipf_pairs(n_users, n_items, n_pairs)
    gc.collect()
    give_back_memory()
    held = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    if users.alone:
        graph = BipartiteGraph.from_pairs(pairs, n_users, n_items)
    else:
        graph = BipartiteGraph.of_users(pairs, users, n_items)
    kind = METHODS[method]
    made = kind(graph, kind.settings_type(embedding_size=size, layers=layers, threads=1))
    assert isinstance(made, GraphMethod)
    made.columns = Columns(size, counted[0])  # type: ignore[arg-type]
    with computing():
        made.start()
        trainer = Trainer(made, together=group)
        trainer._adam = TiledAdam(made)
        began = time.process_time()
        batches = made.batches(1)
        drawn = [next(batches) for _ in range(steps + 3)]
        sampling = (time.process_time() - began) / made.compute.n_batches
        times = []
        for batch in drawn:
            counted[0].sent = counted[1].sent = 0
            clocks = time.process_time(), time.perf_counter()
            trainer._step(batch)
            group.agree(0)
            times.append((time.process_time() - clocks[0], time.perf_counter() - clocks[1]))
    processor, wall = (statistics.median(column) for column in zip(*times[3:], strict=True))
    sent = {"sent": counted[0].sent, "sent_of_users": counted[1].sent}
    return {"processor": processor, "wall": wall, "sampling": sampling, "memory": _memory("VmHWM") - held} | sent


def work(task: list[str], out: Path) -> None:
    """A piece of the study in this process; each writes what it found."""

    def do(group: Together) -> dict[str, Any]:
        if task[0] == "equality":
            return train_all(group)
        if task[0] == "users":
            return train_with_users(group, Path(task[2]))
        return step_times(group, task[1], int(task[2]), task[3], int(task[4]))

    torch.set_num_threads(1)
    if started_together():
        parts = int(task[1]) if task[0] == "users" else int(task[5]) if len(task) > 5 else 1
        with Group.joined(parts) as group:
            found = do(group)
            (out / f"{group.rank}.json").write_text(json.dumps(found))
    else:
        (out / "0.json").write_text(json.dumps(do(ONE_PROCESS)))


# ---------------------------------------------------------------------- the study


class Study:
    """What has been measured, by name; measured once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def known(self, name: str) -> Any:
        """A result, or None."""
        file = self.folder / f"{name}.json"
        return json.loads(file.read_text()) if file.exists() else None

    def keep(self, name: str, found: Any) -> Any:
        """Store a result."""
        (self.folder / f"{name}.json").write_text(json.dumps(found))
        print(name, found if len(str(found)) < 300 else "done", flush=True)
        return found

    def in_processes(self, name: str, count: int, *task: object) -> list[dict[str, Any]]:
        """A piece of work in so many processes: what each found."""
        found = self.known(name)
        if found is not None:
            return list(found)
        place = self.folder / "pieces"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        launcher = [] if count == 1 else ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
        call = [sys.executable, *launcher, "-m", "scripts.scale_study", "--piece", str(place), *map(str, task)]
        subprocess.run(call, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        return list(self.keep(name, [json.loads((place / f"{rank}.json").read_text()) for rank in range(count)]))

    def kills(self, wanted: int, user_parts: int = 1) -> dict[str, int]:
        """Trainings of which one process is killed at a random moment, resumed by one or two, until all are whole.

        With two parts of the users always by two, since one would add up in another order.
        """
        name = "kills" if user_parts == 1 else "user-kills"
        done = self.known(name) or {"kills": 0, "runs": 0, "different": 0, "hung": 0, "odd_exits": 0}
        whole = self.folder / f"whole-{user_parts}"
        os.environ["USER_PARTS"] = str(user_parts)
        if not RunFolder(whole).finished:
            _attempt(user_parts, whole)
        while done["kills"] < wanted:
            run = self.folder / "killed"
            shutil.rmtree(run, ignore_errors=True)
            rng = random.Random(f"{done['runs']} {done['kills']}")
            while not RunFolder(run).finished:
                _attempt_with_a_kill(run, rng, done, user_parts)
                self.keep(name, done)
            done["runs"] += 1
            files = [(place / "model.safetensors").read_bytes() for place in (whole, run)]
            done["different"] += files[0] != files[1]
            self.keep(name, done)
        return dict(done)


def _start(count: int, folder: Path) -> list[int]:
    """As many processes that train together, forked: thread pools do not survive a fork, so the parent starts none."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(count):
        child = os.fork()
        if child == 0:
            told = {"RANK": rank, "WORLD_SIZE": count, "MASTER_ADDR": "localhost", "MASTER_PORT": port}
            os.environ.update({name: str(value) for name, value in told.items()})
            os._exit(_take_part(folder))
        children.append(child)
    return children


def _take_part(folder: Path) -> int:
    """Lead or follow; 0 where all went well, 3 where another process was lost."""
    data = world.simulate(users=300, items=200, seed=2)
    try:
        if not started_together():
            fit_into(folder, data, make_method(data, "lightgcn", KILLED), resume=True)
            return 0
        with Group.joined(int(os.environ["USER_PARTS"])) as group:
            if group.rank:
                follow(group, data)
            else:
                callbacks = Callbacks(checkpoint_seconds=0.05, together=group)
                fit_into(folder, data, make_method(data, "lightgcn", KILLED), resume=True, callbacks=callbacks)
    except LostProcessError:
        return 3
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _attempt(
    count: int, folder: Path, kill_after: float | None = None, victim: int = 0, trained: bool = False
) -> list[int | None]:
    """Go on in so many processes, one of which is perhaps killed: how each ended, None where it hung.

    The time to the kill counts from the start, or from the first checkpoint that this attempt has written.
    """
    file, before = folder / "checkpoint/state.safetensors", _written(folder / "checkpoint/state.safetensors")
    children = _start(count, folder)
    ends: dict[int, int | None] = {}
    began, waits = time.monotonic(), trained
    while len(ends) < count:
        for rank, child in enumerate(children):
            if rank not in ends and (found := os.waitpid(child, os.WNOHANG)) != (0, 0):
                ends[rank] = os.waitstatus_to_exitcode(found[1])
        passed = time.monotonic() - began
        if waits and _written(file) != before:
            kill_after, waits = (kill_after or 0.0) + passed, False
        if not waits and kill_after is not None and passed >= kill_after and victim not in ends:
            os.kill(children[victim], signal.SIGKILL)
            kill_after = None
        if passed > LONGEST:
            for rank in set(range(count)) - set(ends):
                os.kill(children[rank], signal.SIGKILL)
                os.waitpid(children[rank], 0)
                ends[rank] = None
        time.sleep(0.005)
    return [ends[rank] for rank in range(count)]


def _written(file: Path) -> int:
    """When, in nanoseconds; 0 where it is not there."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _attempt_with_a_kill(run: Path, rng: random.Random, done: dict[str, int], user_parts: int) -> None:
    """In two processes mostly, of which one is killed; sometimes in one, for a while, or to the end."""
    count, trained = rng.choice([1, 2, 2, 2, 2]) if user_parts == 1 else 2, rng.random() < 0.7
    victim, after = rng.randrange(count), rng.uniform(0.0, 1.0 if trained else 5.0)
    ends = _attempt(count, run, after, victim, trained)
    killed = ends[victim] == -signal.SIGKILL
    done["kills"] += killed and count == 2
    done["hung"] += ends.count(None)
    others = [end for rank, end in enumerate(ends) if rank != victim or not killed]
    done["odd_exits"] += sum(end not in ((0, 3) if killed else (0,)) for end in others)


# ---------------------------------------------------------------------- the page


def milliseconds(seconds: float) -> str:
    """`12.3`."""
    return f"{1e3 * seconds:,.1f}"


def step_rows(study: Study) -> list[list[str]]:
    """Rows of the table of steps."""
    rows = []
    for name, size in CASES:
        alone = study.known(f"steps-{name}-{size}-1")
        for count in PROCESSES:
            found = study.known(f"steps-{name}-{size}-{count}")
            if alone is None or found is None:
                continue
            most = max(one["processor"] + one["sampling"] for one in found)
            cost = count * most / (alone[0]["processor"] + alone[0]["sampling"])
            rows.append(
                [
                    f"{name}, L {GRAPHS[name][3]}",
                    str(size),
                    str(count),
                    milliseconds(max(one["processor"] for one in found)),
                    milliseconds(max(one["sampling"] for one in found)),
                    f"{cost:.2f}",
                    milliseconds(max(one["wall"] for one in found)),
                    f"{found[0]['sent']:,}" if count > 1 else "-",
                ]
            )
    return rows


def users_section(study: Study) -> list[str]:
    """What has been measured of users over processes."""
    parts, whole = [], study.folder / "models-1-1"
    for count, user_parts in GRIDS:
        shared = study.folder / f"models-{count}-{user_parts}"
        if study.known(f"users-{count}-{user_parts}") and whole.is_dir():
            gap, where = gaps(whole, shared)
            parts.append(
                f"{count} processes, {user_parts} parts of the users × {count // user_parts} of the columns, against "
                f"one process, {len(USERS_SHARED)} methods, D 64, three epochs: the largest difference of any number "
                f"is {gap:.1e} of its table's root mean square ({where})."
            )
    rows = []
    for name, size in GRID_CASES:
        for count, user_parts in ((1, 1), *GRIDS):
            found = study.known(f"grid-{name}-{size}-{count}-{user_parts}")
            alone = study.known(f"grid-{name}-{size}-1-1")
            if found is None or alone is None:
                continue
            cost = count * max(one["processor"] for one in found) / alone[0]["processor"]
            rows.append(
                [
                    *(f"{name}, L {GRAPHS[name][3]}", str(size), f"{user_parts} × {count // user_parts}"),
                    milliseconds(max(one["processor"] for one in found)),
                    f"{cost:.2f}",
                    milliseconds(max(one["wall"] for one in found)),
                    *(f"{max(one[sent] for one in found):,}" for sent in ("sent", "sent_of_users")),
                    f"{max(one['memory'] for one in found) / 1e6:,.0f}",
                ]
            )
    if rows:
        head = ["graph", "D", "users × columns", "processor ms a step, each", "processor time in all / one process"]
        head += ["wall ms", "bytes sent to others' columns", "bytes sent to others' users", "MB more than the pairs"]
        parts.append(markdown(head, rows).strip())
    kills = study.known("user-kills")
    if kills:
        parts.append(
            f"{kills['kills']} kills of one of two processes with half of the users each, in {kills['runs']} "
            f"trainings, resumed by two: {kills['different']} models differ from the uninterrupted "
            f"one; {kills['hung']} hung."
        )
    return ["## Users over processes", *parts] if parts else []


def page(study: Study) -> str:
    """All that has been measured."""
    parts = ["# Several processes", f"Made by `python -m scripts.scale_study`: {machine()}."]
    alone = study.known("equality-1")
    for count in PROCESSES[1:]:
        found = study.known(f"equality-{count}")
        if alone and found:
            different = [name for name in alone[0] if alone[0][name] != found[0][name]]
            told = f"differing: {', '.join(different)}" if different else "0 differ in any bit"
            parts.append(f"{count} processes against one, {len(alone[0])} methods, D 64, three epochs: {told}.")
    rows = step_rows(study)
    if rows:
        head = ["graph", "D", "processes", "processor ms a step, each", "sampling ms a step, each"]
        head += ["processor time in all / one process", "wall ms", "bytes sent by each"]
        told = (
            "Medians. On a machine that others keep busy only processor time is sound; wall time shows how busy it was."
        )
        parts += ["## A step of LightGCN, batch 2,048, one thread each", told, markdown(head, rows).strip()]
    parts += users_section(study)
    kills = study.known("kills")
    if kills:
        parts += [
            "## Kills of one process",
            f"{kills['kills']} kills of one of two processes at random moments in {kills['runs']} trainings, resumed "
            f"by one or two processes: {kills['different']} models differ from the uninterrupted one. Processes that "
            f"did not end by themselves within {LONGEST:.0f} s: {kills['hung']}; those that ended otherwise than by "
            f"saying that another one was lost, besides: {kills['odd_exits'] - kills['hung']}. Here no launcher "
            "watches: who waits for a process that was killed before the two had met waits for half an hour. torchrun "
            "and `--processes` end all others at once.",
        ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure what is asked for (all without), draw the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("what", nargs="*", help="equality, steps, kills, users, user-kills")
    parser.add_argument("--work", type=Path, default=Path("/tmp/scale"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/SCALE.md"))
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--piece", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.piece:
        work(given.what, given.piece)
        return
    study = Study(given.work)
    measure(study, given.what or ["equality", "steps", "kills", "users", "user-kills"], given.kills)
    given.out.write_text(page(study))


def measure(study: Study, what: list[str], kills: int) -> None:
    """What is missing of what is asked for."""
    if "equality" in what:
        for count in PROCESSES:
            study.in_processes(f"equality-{count}", count, "equality")
    if "steps" in what:
        for name, size in CASES:
            for count in PROCESSES:
                steps = 6 if "10 million" in name else 20
                task = ("steps", name, size, "lightgcn", steps)
                study.in_processes(f"steps-{name}-{size}-{count}", count, *task)
    if "users" in what:
        measure_users(study)
    if "kills" in what:
        study.kills(kills)
    if "user-kills" in what:
        study.kills(kills, 2)


def measure_users(study: Study) -> None:
    """Equality and steps with parts of the users."""
    for count, user_parts in ((1, 1), *GRIDS):
        place = study.folder / f"models-{count}-{user_parts}"
        place.mkdir(exist_ok=True)
        study.in_processes(f"users-{count}-{user_parts}", count, "users", user_parts, place)
    for name, size in GRID_CASES:
        for count, user_parts in ((1, 1), *GRIDS):
            task = ("steps", name, size, "lightgcn", 6 if "10 million" in name else 20, user_parts)
            study.in_processes(f"grid-{name}-{size}-{count}-{user_parts}", count, *task)


if __name__ == "__main__":
    main()

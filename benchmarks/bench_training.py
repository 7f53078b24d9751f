"""A training step against its floor, the usual code and PyG; DPAA against LightGCN."""

from __future__ import annotations

import itertools
import statistics
from functools import partial

import torch

from benchmarks.graphs import SIZES, SMALL, Cases, graph_of, zipf_pairs
from benchmarks.timing import ratio, take_turns, turns
from benchmarks.yardsticks import UsualCode, floor, pyg_edge_index
from dpaa._machine import computing
from dpaa.methods import METHODS
from dpaa.methods.base import ClosedForm, Randomised, attach
from dpaa.methods.dpaa import DPAA
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.pretrained import Pretrained, needed_layers
from dpaa.methods.tables import Tables
from dpaa.training.trainer import TiledAdam, Trainer

OPERATIONS = {
    "sparse products": ("_embedding_bag_forward_only", "_embedding_bag", "embedding_bag"),
    "Adam": ("_fused_adam_",),
    "gathering rows": ("index_select",),
    "adding rows": ("scatter_add_",),
    "arithmetic": ("mul", "mul_", "add", "add_", "sub_", "neg_", "sum", "linalg_vecdot", "cumsum", "bincount"),
}
"""Kinds of work in a step, by torch's names for it."""
BAGS = ("bag", "wide-bag")
SHORT = 0.05
"""Seconds of a step up to which the slow code is timed as often as ours."""
WHOLE_EPOCH = 50
"""Batches up to which an epoch is short enough to be timed as a whole."""
TARGETS = {"Yahoo-size": 1.5, "KuaiRec-size": 1.25}


def stepper(method: LightGCN) -> tuple[Trainer, itertools.cycle]:
    """A trainer in the middle of an epoch, and its batches."""
    trainer = Trainer(method)
    trainer._adam = TiledAdam(method.tables)
    return trainer, itertools.cycle(itertools.islice(method.batches(1), 20))


def check_equal(method: LightGCN, usual: UsualCode) -> None:
    """Loss and gradient of one batch agree before anything is timed."""
    batch = next(iter(method.batches(1)))
    rows = method.tables.forward(batch)
    loss = method.loss(batch, rows)
    loss.backward()
    ours = torch.cat([method.tables.tile_gradient(rows, tile) for tile in range(len(method.tables.ego.tiles))], dim=1)
    theirs = usual.loss(batch)
    theirs.backward()
    assert abs(loss.item() - theirs.item()) < 1e-5, "losses differ"
    assert usual.ego.grad is not None
    torch.testing.assert_close(ours, usual.ego.grad, rtol=1e-3, atol=1e-8)


def run(wanted: Cases, repeats: int = 10) -> list[list[str]]:
    """Rows: case, floor, ours, ratios."""
    rows = []
    with computing():
        for name in wanted.graphs(SIZES):
            graph, layers = graph_of(name)
            for size in wanted.sizes:
                rows.append(_case(name, graph, layers, size, repeats))
                print(" | ".join(rows[-1]), flush=True)
    return rows


def run_profile(wanted: Cases, steps: int = 20) -> list[list[str]]:
    """Where the time of a LightGCN step goes, as shares of what torch's profiler sees."""
    rows = []
    with computing():
        for name in wanted.graphs(SIZES):
            graph, layers = graph_of(name)
            for size in wanted.sizes:
                method = attach(LightGCN(embedding_size=size, layers=layers, threads=1), graph)
                Tables.start(method)
                trainer, batches = stepper(method)
                for _ in range(3):
                    trainer._step(next(batches), 1e-3)
                with torch.profiler.profile() as profile:
                    for _ in range(steps):
                        trainer._step(next(batches), 1e-3)
                spent = {event.key: event.self_cpu_time_total for event in profile.key_averages()}
                parts = [sum(spent.get(f"aten::{one}", 0.0) for one in names) for names in OPERATIONS.values()]
                calls = sum(event.count for event in profile.key_averages()) / steps
                shares = [part / sum(spent.values()) for part in parts]
                told = [f"{share:.0%}" for share in (*shares, 1.0 - sum(shares))]
                rows.append([f"{name}, D {size}", *told, f"{calls:,.0f}"])
    return rows


def _case(name: str, graph: object, layers: int, size: int, repeats: int) -> list[str]:
    settings = {"embedding_size": size, "layers": layers, "threads": 1}
    method = attach(LightGCN(**settings), graph)
    Tables.start(method)
    usual, pyg = UsualCode(method), pyg_edge_index(method)
    check_equal(method, usual)
    if pyg is not None:
        check_equal(method, pyg)
    trainer, batches = stepper(method)
    work = {"ours": lambda: trainer._step(next(batches), 1e-3)}
    for kernel in BAGS:  # the floor is the lower of both, whichever the method takes
        base = attach(LightGCN(**settings, kernel=kernel), graph)
        Tables.start(base)
        work[kernel] = floor(base, graph, partial(TiledAdam(base.tables).update, learning_rate=1e-3))
    quick = turns(work, repeats=method.compute.n_batches if method.compute.n_batches <= WHOLE_EPOCH else repeats)
    step, floors = statistics.median(quick["ours"]), {kernel: statistics.median(quick[kernel]) for kernel in BAGS}
    lowest = min(floors, key=floors.__getitem__)
    slow_work = {"ours": work["ours"], "usual": lambda: usual.step(next(batches))}
    if pyg is not None:
        slow_work["pyg"] = lambda: pyg.step(next(batches))
    slow = turns(slow_work, warm_ups=1, repeats=repeats if step < SHORT else repeats // 2)
    return [
        f"{name}, D {size}, L {layers}",
        f"{1e3 * floors[lowest]:.1f} ms",
        f"{1e3 * step:.1f} ms",
        f"{step * method.compute.n_batches:.2f} s",
        f"{ratio(quick['ours'], quick[lowest]):.2f} (≤ {TARGETS[name]})",
        f"{ratio(slow['usual'], slow['ours']):.1f} (≥ 5)",
        f"{ratio(slow['pyg'], slow['ours']):.1f} (≥ 3)" if "pyg" in slow else "not installed",
    ]


def run_methods(wanted: Cases, repeats: int = 10) -> list[list[str]]:
    """A step of every method that is trained in epochs, in LightGCN's steps."""
    rows = []
    with computing():
        for name in wanted.graphs(["KuaiRec-size"]):
            graph, layers = graph_of(name)
            settings = {"embedding_size": 64, "layers": layers, "threads": 1}
            plain = attach(LightGCN(**settings), graph)
            Tables.start(plain)
            plain.finish()
            base, base_batches = stepper(plain)
            for method_type in dict.fromkeys(METHODS.values()):
                if not issubclass(method_type, GraphMethod) or method_type is LightGCN:
                    continue
                if issubclass(method_type, ClosedForm):
                    continue  # computed in one go
                method = attach(method_type(**settings), graph)
                if (layers_before := needed_layers(method)) is not None:
                    method.take_pretrained(Pretrained.of(plain, layers_before, {}))
                if isinstance(method, Randomised):
                    method.take(zipf_pairs(graph.n_users, graph.n_items, graph.n_edges // 10, 0.0, seed=1))
                Tables.start(method)
                trainer, batches = stepper(method)
                work = {
                    "lightgcn": lambda base=base, batches=base_batches: base._step(next(batches), 1e-3),
                    "this": lambda trainer=trainer, batches=batches: trainer._step(next(batches), 1e-3),
                }
                found = turns(work, repeats=repeats)
                step, apart = statistics.median(found["this"]), ratio(found["this"], found["lightgcn"])
                rows.append([f"{method.name}, {name}, D 64", f"{1e3 * step:.1f} ms", f"{apart:.2f} (≤ 1.5)"])
                print(" | ".join(rows[-1]), flush=True)
    return rows


def run_dpaa(wanted: Cases, repeats: int = 10) -> list[list[str]]:
    """DPAA's epoch against LightGCN's: its steps, and its refresh once an epoch."""
    rows = []
    with computing():
        for name in wanted.graphs((*SMALL, *SIZES)):
            graph, layers = graph_of(name)
            size = 256 if name in SMALL else 64
            settings = {"embedding_size": size, "layers": layers, "threads": 1}
            plain = attach(LightGCN(**settings), graph)
            Tables.start(plain)
            plain.finish()
            method = attach(DPAA(**settings), graph)
            method.take_pretrained(Pretrained.of(plain, layers, {}))
            Tables.start(method)
            (one, one_batches), (two, two_batches) = stepper(plain), stepper(method)
            found = take_turns(
                {
                    "lightgcn": lambda one=one, batches=one_batches: one._step(next(batches), 1e-3),
                    "dpaa": lambda two=two, batches=two_batches: two._step(next(batches), 1e-3),
                    "refresh": lambda method=method: method.refresh(2),
                },
                repeats=repeats,
            )
            n = method.compute.n_batches
            apart = (n * found["dpaa"] + found["refresh"]) / (n * found["lightgcn"])
            target = " (≤ 1.10)" if n >= 20 else " (reported)"
            rows.append([f"{name}, D {size}, {n} batches", f"{1e3 * found['refresh']:.1f} ms", f"{apart:.2f}{target}"])
            print(" | ".join(rows[-1]), flush=True)
    return rows

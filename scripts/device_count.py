"""Operations and host waits of a training step on a pretended GPU, of every method that is trained in steps.

    python -m scripts.device_count [--out benchmarks/DEVICE.md] [NAME …]

A host wait is a moment at which the program needs a number, or a size, that only the device knows.  The device is the
one of the tests (`tests/pretend_cuda.py`): real values in main memory, labelled `cuda:0`.  `--code FOLDER` counts with
the code of another checkout, to compare before and after.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZE, PAIRS, BATCH, STEPS = (1500, 800), 3000, 256, 3


def main() -> None:
    """Count, and write the page."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("names", nargs="*")
    asked.add_argument("--out", type=Path)
    asked.add_argument("--code", type=Path, help="a checkout whose src is counted")
    given = asked.parse_args()
    sys.path[:0] = [str((given.code or ROOT) / "src"), str(ROOT)]
    text = page(given.names)
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


def page(names: list[str]) -> str:
    """A row for each method."""
    from dpaa.methods import METHODS
    from dpaa.methods.graph_method import GraphMethod
    from dpaa.methods.base import Method
    from dpaa.reproduction.tables import markdown

    kinds = {name: METHODS[name] for name in names or METHODS.built_in}
    in_steps = [name for name, kind in kinds.items() if issubclass(kind, GraphMethod) and kind.fit is Method.fit]
    rows = []
    for name in in_steps:
        if name == "dpaa-auto":
            continue  # trains the others
        counted = counts_of(name)
        waits = {what.removeprefix("wait: "): n for what, n in counted.items() if what.startswith("wait: ")}
        told = ", ".join(f"{what} {n / STEPS:g}" for what, n in sorted(waits.items()))
        rows.append([name, f"{counted['operations'] / STEPS:.0f}", f"{sum(waits.values()) / STEPS:g}", told])
    n_users, n_items = SIZE
    told = f"{n_users:,} users, {n_items:,} items, {PAIRS:,} pairs, D 64, L 2, batch {BATCH}; mean of {STEPS} steps."
    made = "Made by `python -m scripts.device_count`. One wait more in 64 steps reads the losses."
    table = markdown(["method", "operations", "host waits", "which"], rows)
    return f"# A step on a pretended GPU\n\n{told}\n{made}\n\n{table}"


def counts_of(name: str) -> Counter[str]:
    """What the steps of a method did."""
    import numpy as np
    from tests.pretend_cuda import pretend_cuda

    from dpaa.data.pairs import Pairs
    from dpaa.graph.bipartite import BipartiteGraph
    from dpaa.methods import METHODS
    from dpaa.methods.graph_method import GraphMethod
    from dpaa.methods.lightgcn import LightGCN
    from dpaa.methods.pretrained import Pretrained
    from dpaa.training.optimizer import TiledAdam
    from dpaa.training.trainer import Trainer

    rng = np.random.default_rng(0)
    pairs, exposed = (Pairs.of(rng.integers(0, SIZE[0], n), rng.integers(0, SIZE[1], n)) for n in (PAIRS, PAIRS // 10))
    settings = {"embedding_size": 64, "layers": 2, "batch_size": BATCH}
    with pretend_cuda() as counts:
        graph = BipartiteGraph.from_pairs(pairs, *SIZE, "cuda")
        kind = METHODS[name]
        method = kind(graph, kind.settings_type(**settings))
        assert isinstance(method, GraphMethod)
        if (layers := method.pretrained_layers()) is not None:
            plain = LightGCN(graph, LightGCN.settings_type(**settings))  # type: ignore[arg-type]
            plain.start()
            plain.finish()
            method.take_pretrained(Pretrained.of(plain, layers, {}))
        if method.needs_randomised:
            method.take_randomised(exposed)
        method.start()
        trainer = Trainer(method)
        trainer._adam = TiledAdam(method)
        method.refresh(1)
        batch = next(iter(method.batches(1)))
        trainer._step(batch)
        counts.clear()
        for _ in range(STEPS):
            trainer._step(batch)
        return Counter(counts)


if __name__ == "__main__":
    main()

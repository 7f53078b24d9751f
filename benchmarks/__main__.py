"""`make bench`: print the ratio tables, and write them to RESULTS.md with `--write`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import bench_evaluation, bench_sharing, bench_training
from benchmarks.timing import machine
from dpaa.experiments.tables import markdown

PROFILE = """
## Where a step of the Yahoo-size graph goes (D 64, one thread)

The floor, eight sparse products and Adam on two tiles, is 40 to 60 % of a step, depending on the run. The rest is
spread thin (shares of a step of 10 ms): the loss and its autograd on 3 × 2,048 rows 16 %, gathering the batch's
distinct rows from every layer and finding them 8 %, scattering their gradients into the tiles 7 %, zeroing and the
additions of Horner's rule 7 %; the products themselves are slower than in the floor, which keeps one tile in cache.
On graphs with more edges per node the same work disappears behind the products (the KuaiRec-size graph).
"""


def main() -> None:
    training = [
        "case",
        "floor per step",
        "ours per step",
        "ours per epoch",
        "ours / floor",
        "usual / ours",
        "PyG EdgeIndex / ours",
    ]
    evaluation = ["case", "product and top-k alone", "evaluation", "ratio", "sampling an epoch", "recommend"]
    parts = [
        ("Training step, one thread", training, bench_training.run()),
        ("DPAA epoch / LightGCN epoch", ["case", "refresh", "ratio"], bench_training.run_dpaa()),
        ("Evaluation of all users, sampling, recommendations", evaluation, bench_evaluation.run()),
        ("Sharing the machine", ["case", "alone", "shared", "ratio"], bench_sharing.run()),
        (
            "Peak memory of training",
            ["case", "peak", "allowed (tables × 5 + graph × 2 + 300 MB)"],
            [bench_sharing.peak_memory(name, size) for name in ("Yahoo-size", "KuaiRec-size") for size in (64, 256)],
        ),
    ]
    text = f"# Benchmarks\n\nMade by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {machine()}.\n"
    text += "Ratios are within one run; targets in brackets. Equality of loss and gradient is checked before timing.\n"
    for title, header, rows in parts:
        text += f"\n## {title}\n\n{markdown(header, rows)}"
    text += PROFILE
    print(text)
    if "--write" in sys.argv:
        (Path(__file__).parent / "RESULTS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Does DPAA's premise hold?  LightGCN on Coat and on the severity data, layer by layer, stopped early and trained on.

    python scripts/premise.py --coat DIR --kuairec DIR [--out FILE.md]

The inverse interaction weight `1 − cos(e_u, e_i)` is meant to be smaller on the edges of popular items.  For each
dataset, layer and length of training: its mean over the edges of the rarest fifth of the items, then of the most
popular fifth, and what `dpaa trace` calls that.  One seed.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaa.methods.graph_method import PAPER_TRAINING
from dpaa.reproduction.sources import LAYERS, Sources
from dpaa.runs.fit import fit_into, make_method
from dpaa.trace import RULE, trace_run

if TYPE_CHECKING:
    from dpaa.data.dataset import Dataset

SEVERITIES = (0.0, 1.0, 3.0, 5.0, 7.0, 9.0)
LENGTHS: dict[str, dict[str, Any]] = {"stopped early": {}, "300 epochs": {"epochs": 300}}


def row(place: Path, label: str, data: Dataset, layers: int, length: str, settings: dict[str, Any]) -> str:
    """A line of the table."""
    folder = place / f"{label}-{length}"
    method = make_method(
        data, "lightgcn", PAPER_TRAINING | {"embedding_size": 256, "layers": layers, "seed": 0} | settings
    )
    model = fit_into(folder, data, method, keep_last=bool(settings))
    trained = model.manifest["training"]["best_epoch"]
    told = [
        f"{one.rarest_fifth:.2f} → {one.most_popular_fifth:.2f} **{one.verdict}**" for one in trace_run(folder).premises
    ]
    cells = [*told[:-1], *[""] * (max(LAYERS.values()) + 1 - len(told[:-1])), told[-1]]
    return f"| {label} | {trained} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table; write it with the command that made it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coat", type=Path, required=True)
    parser.add_argument("--kuairec", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    sources = Sources(coat=asked.coat, kuairec=asked.kuairec)
    every = [("Coat", Sources(coat=asked.coat).real()["coat"], LAYERS["coat"])]
    every += [(f"s = {s:g}", data, LAYERS["kuairec"]) for s, data in sources.severity(SEVERITIES, 0)]
    layers = [f"layer {layer}" for layer in range(max(LAYERS.values()) + 1)]
    lines = [f"| data | epoch | {' | '.join(layers)} | read-out |", "|---" * (len(layers) + 3) + "|"]
    with tempfile.TemporaryDirectory() as place:
        for length, settings in LENGTHS.items():
            for label, data, depth in every:
                lines.append(row(Path(place), label, data, depth, length, settings))
                print(lines[-1], flush=True)
    if asked.out:
        command = f"python scripts/premise.py --coat DIR --kuairec DIR --out {asked.out}"
        about = (
            "LightGCN, D 256, lr 1e-3, seed 0: the inverse interaction weight from the rarest to the most popular "
            f"fifth of the items ({RULE}).  First stopped early on validation, then trained for 300 epochs.  Made by"
        )
        table = "\n".join(lines)
        asked.out.write_text(f"# Does DPAA's premise hold?\n\n{about}\n\n    {command}\n\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

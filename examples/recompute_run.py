"""Recompute a DPAA run from its files, without the package: numpy, polars and safetensors are enough.

    python examples/recompute_run.py runs/dpaa

reads the run folder (and the folder of the pre-trained LightGCN its manifest names), and recomputes

    r_m, r_c     inverse interaction weights 1 − cos, of the pre-trained and of the current vectors
    r            β r_m + (1 − β) r_c, with the β of the best epoch
    w^l          c · λ_0 · r, then c · λ_l · ((1 − γ) r + γ): compared with weight_0 … of edges.parquet
    e^0 … e^L    and their mean, the read-out: compared with user_embedding and item_embedding

Everything is float64; the run was float32, so the differences it prints are its rounding (about 1e-6).  Exit code 1
says that something differs by more than 1e-4.  Works for `dpaa` and its presets with any settings.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from safetensors.numpy import load_file

TOLERANCE = 1e-4
METHODS = ("dpaa", "dpaa-as-printed", "dpaa-normalised")


@dataclass
class Files:
    """What a run folder holds, with ids turned into row numbers."""

    config: dict[str, Any]
    manifest: dict[str, Any]
    history: list[dict[str, Any]]
    tensors: dict[str, np.ndarray]
    edges: pl.DataFrame
    user: np.ndarray
    item: np.ndarray
    count: np.ndarray
    n_users: int
    n_items: int
    ids: dict[str, dict[Any, int]]
    """`user` and `item`: id → row."""

    @classmethod
    def read(cls, folder: Path) -> Files:
        """Every file of a finished run."""
        users, items, edges = (pl.read_parquet(folder / f"{name}.parquet") for name in ("users", "items", "edges"))
        row_of_user = {value: row for row, value in enumerate(users["user_id"])}
        row_of_item = {value: row for row, value in enumerate(items["item_id"])}
        return cls(
            config=json.loads((folder / "config.json").read_text(encoding="utf-8")),
            manifest=json.loads((folder / "manifest.json").read_text(encoding="utf-8")),
            history=[json.loads(line) for line in (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()],
            tensors={name: table.astype(np.float64) for name, table in load_file(folder / "model.safetensors").items()},
            edges=edges,
            user=np.array([row_of_user[value] for value in edges["user_id"]]),
            item=np.array([row_of_item[value] for value in edges["item_id"]]),
            count=edges["count"].to_numpy().astype(float) if "count" in edges.columns else np.ones(len(edges)),
            n_users=len(users),
            n_items=len(items),
            ids={"user": row_of_user, "item": row_of_item},
        )

    def rows_of(self, other: Files, side: str) -> np.ndarray:
        """Rows of this run's tables for the users or items of another, in the other's order."""
        return np.array([self.ids[side][value] for value in other.ids[side]])

    def symmetric(self) -> np.ndarray:
        """LightGCN's 1/√(d_u d_i) per edge."""
        user_degree = np.bincount(self.user, self.count, minlength=self.n_users)
        item_degree = np.bincount(self.item, self.count, minlength=self.n_items)
        return self.count / np.sqrt(user_degree[self.user] * item_degree[self.item])

    def inverse_weight(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """1 − cos(e_u, e_i) per edge; the cosine with a zero vector is 0."""
        dots = np.einsum("ed,ed->e", users[self.user], items[self.item])
        lengths = np.linalg.norm(users, axis=1)[self.user] * np.linalg.norm(items, axis=1)[self.item]
        return 1.0 - np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)

    def layers(self, weights: list[np.ndarray], residual: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """e^0 … e^L as pairs (users, items): weighted sums over neighbours, plus δ e^0."""
        ego = self.tensors["user_ego"], self.tensors["item_ego"]
        found = [ego]
        for weight in weights:
            users, items = found[-1]
            heard = np.zeros_like(users), np.zeros_like(items)
            np.add.at(heard[0], self.user, weight[:, None] * items[self.item])
            np.add.at(heard[1], self.item, weight[:, None] * users[self.user])
            found.append((heard[0] + residual * ego[0], heard[1] + residual * ego[1]))
        return found


def layer_weights(config: dict[str, Any]) -> list[float]:
    """λ_l = (l + 1)^η, normalised as the run says."""
    raw = [(layer + 1.0) ** config["layer_emphasis"] for layer in range(config["layers"])]
    scale = {"mean": len(raw) / sum(raw), "sum": 1.0 / sum(raw), "none": 1.0}[config["layer_weight_norm"]]
    return [scale * value for value in raw]


def gamma_of(config: dict[str, Any]) -> float:
    """γ: 1 weights interactions at the first layer only; runs of earlier versions have a word for it."""
    word = config.get("weighted_layers", "first")
    return float(config.get("first_layer_only", {"first": 1.0, "all": 0.0}[word]))


def pretrained_weights(run: Files, weighted: range) -> list[np.ndarray]:
    """r_m per weighted layer, from the files of the run that the manifest names."""
    place = run.manifest["pretrained"].get("run")
    if place is None:
        sys.exit("the pre-trained vectors came from embeddings and not from a run; r_m cannot be recomputed here")
    before = Files.read(Path(place))
    rows = [before.rows_of(run, side) for side in ("user", "item")]
    readout = before.tensors["user_embedding"], before.tensors["item_embedding"]
    same_data = before.manifest["dataset"]["fingerprint"] == run.manifest["dataset"]["fingerprint"]
    known = run.manifest["pretrained"].get("layers", same_data and before.config["method"] == "lightgcn")
    by_readout = run.config["interaction_strength_from"] == "readout" or not known
    layers = before.layers([before.symmetric()] * len(weighted), 0.0)
    tables = [readout if by_readout else layers[layer] for layer in weighted]
    return [run.inverse_weight(users[rows[0]], items[rows[1]]) for users, items in tables]


def current_weights(run: Files, weighted: range) -> list[np.ndarray]:
    """r_c per weighted layer, from the vectors that the run kept for this."""
    tables = len([name for name in run.tensors if name.startswith("strength_user_")])
    places = [min(layer, tables - 1) for layer in weighted]  # one table stands for all layers where there is one
    return [run.inverse_weight(run.tensors[f"strength_user_{p}"], run.tensors[f"strength_item_{p}"]) for p in places]


def interaction_weights(run: Files) -> list[np.ndarray]:
    """The blend r per weighted layer, as in force in the best epoch; no layer without IIW."""
    config = run.config
    if not config["iiw"]:
        return []
    weighted = range(1 if gamma_of(config) == 1 else config["layers"])
    if config["estimate"] == "current":
        return current_weights(run, weighted)
    before = pretrained_weights(run, weighted)
    if config["estimate"] == "pretrained":
        return before
    best = run.manifest["training"]["best_epoch"]
    share = next(line["pretrained_share"] for line in run.history if line["epoch"] == best)  # β_t
    now = current_weights(run, weighted)
    return [share * one + (1.0 - share) * other for one, other in zip(before, now, strict=True)]


def recompute(folder: str | Path) -> dict[str, float]:
    """Largest difference between recomputed and stored, relative to the largest stored value."""
    run = Files.read(Path(folder))
    if run.config["method"] not in METHODS:
        sys.exit(f"{folder} is a run of {run.config['method']}; this script recomputes {', '.join(METHODS)}")
    scaling = run.symmetric() if run.config["neighbour_scaling"] == "symmetric" else run.count
    strengths = interaction_weights(run)
    weights = []
    for layer, emphasis in enumerate(layer_weights(run.config)):
        gamma = gamma_of(run.config) if layer else 0.0
        blended = (1.0 - gamma) * strengths[layer] + gamma if layer < len(strengths) else 1.0
        weights.append(scaling * emphasis * blended)
    stored = [run.edges[f"weight_{layer}"].to_numpy() for layer in range(len(weights))]
    differences = {
        f"weight_{layer}": difference(new, old) for layer, (new, old) in enumerate(zip(weights, stored, strict=True))
    }
    layers = run.layers(weights, run.config["initial_residual"])
    for place, name in enumerate(("user_embedding", "item_embedding")):
        differences[name] = difference(np.mean([layer[place] for layer in layers], axis=0), run.tensors[name])
    return differences


def difference(new: np.ndarray, old: np.ndarray) -> float:
    """Largest difference, relative to the largest stored value."""
    return float(np.abs(new - old).max() / np.abs(old).max())


def main() -> None:
    """Print the differences of one run."""
    parser = argparse.ArgumentParser(description="Recompute a DPAA run from its files.")
    parser.add_argument("run", type=Path, help="a finished run folder of dpaa or one of its presets")
    differences = recompute(parser.parse_args().run)
    for name, value in differences.items():
        print(f"{name:16} largest relative difference {value:.1e}")
    sys.exit(int(max(differences.values()) > TOLERANCE))


if __name__ == "__main__":
    main()

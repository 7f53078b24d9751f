"""SL@K on matrix factorisation as its authors train it, in plain torch, to explain a row of the field table.

    python scripts/sl_at_k_twin.py HEALTH --negatives pair --seeds 0 1      # 1,000 negatives for each pair, as theirs
    python scripts/sl_at_k_twin.py HEALTH --negatives batch --seeds 0 1 2   # shared by the pairs of a batch, as ours

HEALTH is the folder of Amazon Health (train.txt, test.txt).  As in the authors' code, max(1, a tenth rounded down) of
each user's training pairs is held out, a drawn item counts towards the quantile as often as it was drawn, and the epoch
is that of the best held-out NDCG@20, looked for every five epochs.  Prints recall@20 and NDCG@20 on test.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

SIZE, RATE, TEMPERATURE, WEIGHT_TEMPERATURE, DRAWN, K, BATCH, QUANTILE_EPOCHS = 64, 0.1, 0.2, 2.5, 1000, 20, 1024, 5
Matrix = NDArray[np.bool_]


def read(file: Path) -> dict[int, list[int]]:
    """Items of each user."""
    rows = [[int(word) for word in line.split()] for line in file.read_text().splitlines()]
    return {user: items for user, *items in rows}


def quality(cosines: Tensor, relevant: Matrix, hidden: Tensor) -> tuple[float, float]:
    """Recall@20 and NDCG@20 over users with relevant items."""
    top = cosines.masked_fill(hidden, -9.0).topk(K, dim=1)[1].numpy()
    hits, number = np.take_along_axis(relevant, top, 1), relevant.sum(axis=1)
    discount, some = 1 / np.log2(np.arange(K) + 2), number > 0
    best = np.cumsum(discount)[np.minimum(number[some], K) - 1]
    return float((hits.sum(axis=1)[some] / number[some]).mean()), float(((hits @ discount)[some] / best).mean())


def draw(rng: np.random.Generator, per_pair: bool, taken: Tensor) -> Tensor:
    """How often each item is drawn for each pair of a batch, (b, n_items); never one that the user took."""
    n_items = taken.shape[1]
    if not per_pair:
        shared = np.bincount(rng.integers(0, n_items, DRAWN), minlength=n_items)
        return torch.from_numpy(shared).float() * ~taken
    drawn = torch.from_numpy(rng.integers(0, n_items, (len(taken), DRAWN)))
    while (bad := taken.gather(1, drawn)).any():
        drawn[bad] = torch.from_numpy(rng.integers(0, n_items, int(bad.sum())))
    return torch.zeros(taken.shape).scatter_add_(1, drawn, torch.ones(drawn.shape))


def quantile(cosines: Tensor, count: Tensor, taken: Tensor) -> Tensor:
    """The K-th largest cosine among the user's items and those drawn, with their multiplicity."""
    values, order = torch.where((count > 0) | taken, cosines, -1e6).sort(dim=1, descending=True)
    at_least_k = (count + taken).gather(1, order).cumsum(dim=1) >= K
    return values.gather(1, at_least_k.float().argmax(dim=1, keepdim=True))[:, 0]


def run(folder: Path, per_pair: bool, seed: int, epochs: int) -> None:
    """One training; prints held-out and test quality every five epochs, and that of the best one."""
    rng, best = np.random.default_rng(seed), (0.0, "")
    torch.manual_seed(seed)
    splits = [read(folder / f"{name}.txt") for name in ("train", "test")]
    shape = (1 + max(map(max, splits)), 1 + max(max(items) for split in splits for items in split.values() if items))
    train, valid, test = (np.zeros(shape, bool) for _ in range(3))
    for user, items in splits[0].items():
        held_out = set(rng.choice(items, max(len(items) // 10, 1), replace=False).tolist())
        for item in items:
            (valid if item in held_out else train)[user, item] = True
    for user, items in splits[1].items():
        test[user, items] = True
    tables = [torch.nn.Parameter(torch.randn(rows, SIZE)) for rows in shape]
    adam, beta, taken = torch.optim.Adam(tables, lr=RATE), torch.zeros(shape[0]), torch.from_numpy(train)
    users, items = np.nonzero(train)
    for epoch in range(1, epochs + 1):
        order = rng.permutation(len(users))
        for batch in np.array_split(order, range(BATCH, len(order), BATCH)):
            user, item = torch.from_numpy(users[batch]), torch.from_numpy(items[batch])
            cosines = normalize(tables[0][user]) @ normalize(tables[1]).T  # (b, n_items)
            positive = cosines[torch.arange(len(batch)), item]
            count = draw(rng, per_pair, taken[user])
            softmax = torch.logsumexp((cosines - positive[:, None]) / TEMPERATURE + count.log(), dim=1)
            loss = (torch.sigmoid((positive - beta[user]) / WEIGHT_TEMPERATURE) * softmax).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
            if epoch % QUANTILE_EPOCHS == 0:
                with torch.no_grad():
                    cosines = normalize(tables[0][user]) @ normalize(tables[1]).T
                    beta[user] = quantile(cosines, count, taken[user])
        if epoch % 5 == 0:
            with torch.no_grad():
                cosines = normalize(tables[0]) @ normalize(tables[1]).T
            found, tested = (quality(cosines, relevant, taken) for relevant in (valid, test))
            line = f"epoch {epoch}, held-out {found[0]:.4f} {found[1]:.4f}, test {tested[0]:.4f} {tested[1]:.4f}"
            best = max(best, (found[1], line))
            print(line, flush=True)
    print(f"negatives per {'pair' if per_pair else 'batch'}, seed {seed}, best: {best[1]}", flush=True)


def main() -> None:
    """Train the seeds asked for."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--negatives", choices=("pair", "batch"), default="pair")
    asked.add_argument("--seeds", type=int, nargs="+", default=[0])
    asked.add_argument("--epochs", type=int, default=60)
    given = asked.parse_args()
    torch.set_num_threads(1)
    for seed in given.seeds:
        run(given.folder, given.negatives == "pair", seed, given.epochs)


if __name__ == "__main__":
    main()

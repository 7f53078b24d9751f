"""How good can one list for everybody be?  The severity data's ceiling for popularity, and for taste on top of it.

    python scripts/popularity_ceiling.py --kuairec DIR [--out FILE.md]

For each severity, recall@20 (and NDCG@20) on the test split, means over seeds, of

- most-popular: items ranked by training counts, what anybody can do;
- oracle: items ranked by how often they are liked in validation and test, what nobody can know;
- the best of EASE (λ 300, 3,000, 30,000), chosen on test, trained on the whole unbiased pool instead of the biased
  sample, beside most-popular on that same pool: what there is to learn about taste at all.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch

from dpaa.data.dataset import Dataset
from dpaa.data.sources.severity import read_pairs
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods.most_popular import MostPopular
from dpaa.reproduction.sources import Sources
from dpaa.runs.fit import fit

if TYPE_CHECKING:
    from numpy.typing import NDArray


def list_for_everybody(evaluator: Evaluator, value: NDArray[Any]) -> dict[str, float]:
    """Metrics when all get the items of highest value, without their training items."""
    method = fit(evaluator.dataset, "most-popular").method
    assert isinstance(method, MostPopular)
    method.item_count = torch.from_numpy(value.astype(np.float32))
    return evaluator.evaluate(method).metrics


def whole_pool(files: list[Path], data: Dataset) -> Dataset:
    """The same validation and test with everything else for training."""
    every, _ = read_pairs([str(file) for file in files])
    held = [
        pl.DataFrame({"user_id": data.user_ids.gather(part.user), "item_id": data.item_ids.gather(part.item)})
        for part in (data.valid, data.test)
    ]
    rest = every.join(pl.concat(held), on=["user_id", "item_id"], how="anti")
    return Dataset.from_frame(rest, valid=held[0], test=held[1], name="pool")


def main() -> None:
    """Print the table; write it with the command that made it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kuairec", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    severities, sources = (0.0, 1.0, 3.0, 5.0, 7.0, 9.0), Sources(kuairec=asked.kuairec)
    rows: dict[str, list[list[float]]] = {}
    for seed in range(asked.seeds):
        for severity, data in sources.severity(severities, seed):
            evaluator = Evaluator(data, 20)
            liked = np.bincount(np.concatenate([data.valid.item, data.test.item]), minlength=data.n_items)
            plain, oracle = list_for_everybody(evaluator, evaluator.counts), list_for_everybody(evaluator, liked)
            numbers = [plain["recall@20"], oracle["recall@20"], plain["ndcg@20"], oracle["ndcg@20"]]
            rows.setdefault(f"s = {severity:g}", []).append(numbers)
    lines = [
        "| | most-popular | oracle list | ratio | NDCG: most-popular | oracle list | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for label, found in rows.items():
        recall, best, ndcg, best_ndcg = np.mean(found, axis=0)
        lines.append(
            f"| {label} | {recall:.4f} | {best:.4f} | {best / recall:.3f} | {ndcg:.4f} | {best_ndcg:.4f} "
            f"| {best_ndcg / ndcg:.3f} |"
        )
    pool = []
    for seed in range(asked.seeds):
        ((_, data),) = sources.severity(severities[:1], seed)
        whole = whole_pool([asked.kuairec / "valid.txt", asked.kuairec / "test.txt"], data)
        evaluator = Evaluator(whole, 20)
        popular = evaluator.evaluate(fit(whole, "most-popular").method).metrics["recall@20"]
        eases = [evaluator.evaluate(fit(whole, "ease", ridge=ridge).method).metrics for ridge in (300, 3_000, 30_000)]
        pool.append([popular, max(one["recall@20"] for one in eases)])
    popular, ease = np.mean(pool, axis=0)
    lines.append(
        f"\nOn the whole unbiased pool (about 152,000 pairs): most-popular {popular:.4f}, the best EASE {ease:.4f}, "
        f"ratio {ease / popular:.3f}."
    )
    table = "\n".join(lines)
    print(table)
    if asked.out:
        command = f"python scripts/popularity_ceiling.py --kuairec DIR --seeds {asked.seeds} --out {asked.out}"
        title = "# How good can one list for everybody be?"
        about = "Recall@20 and NDCG@20 on KuaiRec severity data, means over seeds.  Made by"
        asked.out.write_text(f"{title}\n\n{about}\n\n    {command}\n\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

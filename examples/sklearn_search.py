"""A search over settings with scikit-learn's tools: python examples/sklearn_search.py [DATASET].

`ParameterGrid` lists the settings (`ParameterSampler` would draw them); each is trained and judged on the validation
split, and the test split is opened once, for the best.
"""

from __future__ import annotations

import sys

from sklearn.model_selection import ParameterGrid

import dpaa
from dpaa.data.sources.world import simulate

GRID = ParameterGrid({"layers": [1, 2], "l2": [1e-4, 1e-3], "epochs": [30], "embedding_size": [16]})


def main() -> None:
    """Search, then test."""
    data = dpaa.read_dataset(sys.argv[1]) if sys.argv[1:] else simulate(users=200, items=150)
    tried = []
    for settings in GRID:
        model = dpaa.LightGCN(**settings).fit(data, progress=False)
        score = dpaa.evaluate(model, data, split="valid").metrics["ndcg@20"]
        print(f"{settings}: validation ndcg@20 {score:.4f}")
        tried.append((score, settings, model))
    score, settings, best = max(tried, key=lambda one: one[0])
    print(f"best: {settings}; test ndcg@20 {dpaa.evaluate(best, data).metrics['ndcg@20']:.4f}")


if __name__ == "__main__":
    main()

"""What larger batches do to quality, on the demo world and on KuaiRec pairs of severity 0.

    python scripts/batch_size_quality.py KUAIREC_DIR

`batch_size=auto` is 2,048 up to 1,024,000 interactions; the larger sizes here are what it would be at 4 and 16 times
that.  KUAIREC_DIR holds valid.txt and test.txt, the small matrix's positives in list form.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dpaa.data.sources.severity import read_pairs, with_severity
from dpaa.data.sources.world import simulate
from dpaa.methods.graph_method import PAPER_TRAINING
from dpaa.runs.fit import evaluate, fit

SIZES = (2048, 8192, 32_768)
SETTINGS = PAPER_TRAINING | {"learning_rate": 5e-3, "patience": 20, "threads": 1}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    pairs, _ = read_pairs([str(folder / "valid.txt"), str(folder / "test.txt")])
    for name, data in (("demo world", simulate()), ("KuaiRec, severity 0", with_severity(pairs, 0))):
        for size in SIZES:
            model = fit(data, "lightgcn", batch_size=size, **SETTINGS)
            metrics, training = evaluate(model, data).metrics, model.manifest["training"]
            print(
                f"{name}, batch {size:,}: recall@20 {metrics['recall@20']:.4f}, ndcg@20 {metrics['ndcg@20']:.4f}, "
                f"best epoch {training['best_epoch']}, {model.manifest['seconds']:.0f} s",
                flush=True,
            )

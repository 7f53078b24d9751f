"""DPAA against LightGCN with default hyperparameters, over seeds, and its β over epochs.

    python scripts/dpaa_against_lightgcn.py DATA_FOLDER --data coat --seeds 10
    python scripts/dpaa_against_lightgcn.py DATA_FOLDER --data s=0 s=5 s=9 --seeds 3

DATA_FOLDER and the names of data sets are those of `default_training.py` (demo, electronic and epinions among them).
Runs are kept in --work, so that the same call continues where it was stopped; a data set's lines of dpaa-mended.csv and
dpaa-beta.csv in --out are written when it is done, in place of earlier ones.  Intervals (95%) are those of
`dpaa compare` (users crossed with seeds); of coverage, which no user has alone, Student's t over pairs of equal seeds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from default_training import dataset
from scipy.stats import t as student

from dpaa.comparison import compare
from dpaa.data.dataset import Dataset
from dpaa.runs.fit import evaluate, fit_into, make_method
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model

METRICS = ("recall@20", "ndcg@20", "recall@20/niche", "coverage@20", "arp@20", "aplt@20")
NAMES = {"baseline": "lightgcn", "value": "dpaa", "delta": "difference", "interval_low": "low", "interval_high": "high"}
EPOCHS = {*range(11), *(round(10 * 1.25**step) for step in range(40))}
"""Those whose β is written: the first ten, then ever fewer."""


def runs(data: Dataset, method: str, seeds: int, work: Path) -> list[Model]:
    """Train what is missing; DPAA's pre-trained model is the LightGCN of the same seed."""
    made = []
    for seed in range(seeds):
        folder, chosen = work / f"{method}-{seed}", make_method(data, method, {"seed": seed, "threads": 1})
        before = work / f"lightgcn-{seed}" if method == "dpaa" else None
        made.append(fit_into(folder, data, chosen, resume=folder.exists(), dial=False, pretrained=before))
        print(folder, made[-1].manifest["training"], flush=True)
    return made


def differences(data: Dataset, models: dict[str, list[Model]]) -> pl.DataFrame:
    """Means of both and the difference with its interval, a row per metric."""
    found = compare(data, models, baseline="lightgcn", metrics=METRICS).to_frame()
    both = [[evaluate(one, data).metrics["coverage@20"] for one in side] for side in models.values()]
    pairs = np.subtract(both[1], both[0])
    reach = student.ppf(0.975, len(pairs) - 1) * pairs.std(ddof=1) / len(pairs) ** 0.5 if len(pairs) > 1 else np.nan
    ends = (pl.col("low").fill_null(pairs.mean() - reach), pl.col("high").fill_null(pairs.mean() + reach))
    table = found.select("metric", *NAMES).rename(NAMES).with_columns(ends)
    return table.with_columns(pl.col(pl.Float64).round(5).fill_nan(None), seeds=pl.lit(len(pairs)))


def main() -> None:
    """Run the data sets one after the other."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--data", nargs="+", required=True)
    asked.add_argument("--seeds", type=int, default=3)
    asked.add_argument("--work", type=Path, default=Path(".dpaa-work/against-lightgcn"))
    asked.add_argument("--out", type=Path, default=Path("docs/results"))
    given = asked.parse_args()
    for name in given.data:
        data, work = dataset(name, given.folder), given.work / name
        models = {method: runs(data, method, given.seeds, work) for method in ("lightgcn", "dpaa")}
        lines = [line for line in RunFolder(work / "dpaa-0").history() if line["epoch"] in EPOCHS]
        shares = {"shift": "embedding_shift", "beta": "pretrained_share"}
        beta = pl.DataFrame({"epoch": [line["epoch"] for line in lines]}).with_columns(
            pl.Series(short, [line[long] for line in lines]).round(6) for short, long in shares.items()
        )
        for file, table in {"dpaa-mended.csv": differences(data, models), "dpaa-beta.csv": beta}.items():
            own = table.select(pl.lit(name).alias("dataset"), pl.all())
            known = pl.read_csv(given.out / file, schema=own.schema) if (given.out / file).exists() else own.clear()
            pl.concat([known.filter(pl.col("dataset") != name), own]).write_csv(given.out / file)


if __name__ == "__main__":
    main()

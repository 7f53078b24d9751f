"""All points of many logs, measured on validation and on test: what `decision_rules.py` and `guarantee.py` are about.

    python -m scripts.measured_points DATA_FOLDER WORK_FOLDER [--only health epinions …] [--minutes 10]

DATA_FOLDER has coat/, kuairec/paper-split/ and benchmarks/.  For each case, a log and a seed, models are trained and
every model with every dial and re-ranker is measured once; WORK_FOLDER keeps the numbers of each user, so that the same
call resumes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

import dpaa
from dpaa.data.dataset import Dataset, from_files
from dpaa.data.sources.published import published
from dpaa.data.sources.severity import read_pairs, with_severity
from dpaa.data.sources.world import simulate
from dpaa.data.splits import SplitRule
from dpaa.debiasing._debias import WORTH
from dpaa.debiasing._points import MOST_USERS, Accuracy, Candidate, Floats, Goal
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import METRICS
from dpaa.evaluation.offpolicy import FLOOR
from dpaa.ranking import RERANKERS
from dpaa.ranking.dial import dialled_family
from dpaa.ranking.reranker import Dial

K, POWERS = 20, (0.0, 0.5, 1.0, -0.25)
"""Length of the lists; powers of the propensities by which accuracy is estimated on validation."""
CLOSED, TRAINED = ("item-knn", "ease", "turbo-cf", "gf-cf"), ("lightgcn", "ssm")
SMALL, EPOCHS = 40_000, 30
"""Training pairs up to which models are trained in epochs, and how many."""
SLOW, SLOW_CATALOGUE = ("scale", "pc", "steck"), 5_000
"""Re-rankers that are left out on catalogues of so many items; dials above 0 always are, showing fewer niche items."""
TEST_USERS, HELD_OUT = 4_000, 0.1
Measured = dict[str, NDArray[Any]]
IDS = ["user_id", "item_id"]
NICHE = Goal.parse("niche-recall")


def held_out(data: Dataset, seed: int) -> Dataset:
    """With a random part of the training log as validation, whatever validation the dataset came with."""
    parts = Dataset.from_frame(data.frame("train"), split=SplitRule("random", valid=HELD_OUT, test=0.0), seed=seed)
    test = pl.concat([data.frame(part).select(IDS) for part in ("valid", "test") if len(data.split(part))]).unique(
        maintain_order=True
    )
    return Dataset.from_frame(parts.frame("train").select(IDS), valid=parts.frame("valid").select(IDS), test=test)


def benchmark(folder: Path, name: str, seed: int) -> Dataset:
    """A published split, validation held out of its training log."""
    home = folder / "benchmarks" / name
    return held_out(from_files(home / "train.txt", test=home / "test.txt"), seed)


def kuairec(folder: Path, severity: float, seed: int) -> Dataset:
    """KuaiRec with a severity."""
    files = [folder / "kuairec" / "paper-split" / name for name in ("valid.txt", "test.txt")]
    return with_severity(read_pairs(files, file_format="list")[0], severity, seed)


def retail(folder: Path, month: str) -> Dataset:
    """Test is a month, validation the one before, training all earlier ones: new pairs of known users and items."""
    log = pl.read_csv(folder / "benchmarks/online-retail/2010-12_2011-08.csv.gz", infer_schema_length=0)
    log = log.filter(pl.col("CustomerID").is_not_null() & (pl.col("Quantity").cast(pl.Int64) > 0))
    log = log.select(user_id="CustomerID", item_id="StockCode", month=pl.col("InvoiceDate").str.slice(0, 7))
    log = log.sort("month").unique(IDS, keep="first", maintain_order=True)
    before = log.filter(pl.col("month") < month)["month"].max()
    train = log.filter(pl.col("month") < before)
    known = log.join(train, on="user_id", how="semi").join(train, on="item_id", how="semi")
    valid, test = (known.filter(pl.col("month") == one).select(IDS) for one in (before, month))
    return Dataset.from_frame(train.select(IDS), valid=valid, test=test)


@dataclass(frozen=True)
class Case:
    """A log whose test is known; `kind` says how validation and test relate."""

    name: str
    seed: int
    kind: str
    make: Callable[[], Dataset]

    @property
    def file(self) -> str:
        """Of its numbers."""
        return f"{self.name}-{self.seed}.npz".replace(" ", "-")


def cases(folder: Path) -> Iterator[Case]:
    """All, the first seed of each first."""
    for seed in range(3):
        for name in ("electronic-popularity", "epinions", "electronic", "health", "adressa"):
            kind = "exposure shifts" if name in ("adressa", "electronic-popularity") else "same log"
            if seed < (3 if name == "health" else 2):
                yield Case(name, seed, kind, partial(benchmark, folder, name, seed))
        own: list[tuple[str, Callable[[], Dataset]]] = [
            ("coat", partial(published, "coat", folder / "coat", seed=seed)),
            *((f"world {s:g}", partial(simulate, 600, 500, s, seed + 5)) for s in (0.5, 1.0, 1.5)),
            *((f"kuairec s={s}", partial(kuairec, folder, s, seed)) for s in (0, 5, 9) if seed < 2),
            *([("demo", partial(simulate, seed=seed))] if seed < 2 else []),
        ]
        for name, make in own:
            yield Case(f"{name} unbiased", seed, "unbiased validation", make)
            yield Case(name, seed, "exposure shifts", lambda make=make, seed=seed: held_out(make(), seed))
        for month in ("2011-03", "2011-05", "2011-06", "2011-07", "2011-08") if seed == 0 else ():
            yield Case(f"online-retail {month}", seed, "next month", partial(retail, folder, month))


class Estimate(Accuracy):
    """Accuracy with any power, also one that makes popular items count for more."""

    @cached_property
    def weight(self) -> Floats:
        """`w_i`, (n_items,)."""
        share = np.maximum(self.truth.counts, 1.0) / self.truth.counts.max()
        return np.asarray(1.0 / np.maximum(FLOOR, share**self.power))


def measure(case: Case, file: Path) -> None:
    """Train, measure all points on both splits and keep the numbers of each user."""
    begun, data = time.process_time(), case.make()
    sides = [
        Evaluator(data, K, "valid", "drop").sample(MOST_USERS),
        Evaluator(data, K, "test", "drop").sample(TEST_USERS),
    ]
    estimates = [Estimate(sides[0].truth, K, power) for power in POWERS]
    left_out = SLOW if data.n_items >= SLOW_CATALOGUE else ()
    sweeps = [one for name in RERANKERS if name not in left_out for one in RERANKERS.find(name).sweep()]
    kappas = [one.kappa for one in sweeps if isinstance(one, Dial) and one.kappa < 0]
    others = [one for one in sweeps if not isinstance(one, Dial)]
    kept: dict[str, list[Any]] = {
        key: [] for key in ("names", "models", "accuracy", "niche", "test", "test_niche", "test_coverage")
    }

    def add(candidate: Candidate, lists: Sequence[NDArray[Any]]) -> None:
        at, test = (side.truth.context(one) for side, one in zip(sides, lists, strict=True))
        row = {
            "names": candidate.name,
            "models": candidate.model,
            "niche": NICHE.of(at),
            "test_niche": np.nanmean(NICHE.of(test)),
        }
        row |= {"accuracy": np.array([one.of(at) for one in estimates], dtype=np.float32)}
        row |= {"test": METRICS["ndcg"].formula(test), "test_coverage": METRICS["coverage"].formula(test)}
        for key, value in row.items():
            kept[key].append(np.float32(value) if key in ("niche", "test") else value)

    names = CLOSED + (TRAINED if len(data.train) <= SMALL else ())
    methods = {
        name: dpaa.fit(data, name, seed=0, **({"epochs": EPOCHS} if name in TRAINED else {})).method for name in names
    }
    for name, method in methods.items():
        add(Candidate(name), [side.lists(method) for side in sides])
    plain = np.array(kept["accuracy"]).mean(axis=2)
    worth = (plain / plain.max(axis=0)).max(axis=1) >= WORTH - 0.05  # by users that choose, it is WORTH
    for name, method in ((name, methods[name]) for name, is_worth in zip(names, worth, strict=True) if is_worth):
        dialled = [side.lists_of(dialled_family(method, kappas), len(kappas)) for side in sides]
        for kappa, *lists in zip(kappas, *dialled, strict=True):
            add(Candidate(name, None, kappa), lists)
        for other, *lists in zip(others, *(side.lists_reranked(method, others) for side in sides), strict=True):
            add(Candidate(name, other), lists)
    part = file.with_name(f"{file.name}.part.npz")
    np.savez_compressed(part, **{key: np.array(value) for key, value in kept.items()})
    part.replace(file)
    spent, users = time.process_time() - begun, [len(side.users) for side in sides]
    told = ", ".join(f"{name} {value:.4f}" for name, value in zip(names, plain[:, 0], strict=True))
    print(f"{case.file}: {len(kept['names'])} points, users {users}, {spent:.0f} s; {told}", flush=True)


def read(file: Path) -> Measured:
    """Read a case: `accuracy` (points, powers, users), `niche` and `test` (points, users), names and means of test."""
    with np.load(file) as stored:
        return {key: stored[key] for key in stored.files}


def main() -> None:
    """Measure what is missing."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, metavar="DATA_FOLDER")
    options.add_argument("work", type=Path, metavar="WORK_FOLDER")
    options.add_argument("--only", nargs="*", default=[""], help="cases whose name begins so")
    options.add_argument("--minutes", type=float, default=float("inf"), help="begin no case after so many")
    given = options.parse_args()
    torch.set_num_threads(1)
    given.work.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    for case in cases(given.folder):
        wanted = case.name.startswith(tuple(given.only)) and not (given.work / case.file).exists()
        if wanted and time.monotonic() < begun + 60 * given.minutes:
            measure(case, given.work / case.file)


if __name__ == "__main__":
    main()

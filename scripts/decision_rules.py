"""Which rule should `dpaa debias` decide by?  Rules compared on logs of which the test split is known.

    python -m scripts.decision_rules DATA_FOLDER --work WORK_FOLDER [--only health epinions …] [--out FILE.csv]

DATA_FOLDER has coat/, kuairec/paper-split/ and benchmarks/.  For each case (a log and a seed), models are trained and
all points (model × dial and re-rankers) are measured once, on validation and on test; WORK_FOLDER keeps the numbers of
each user, so that the same call resumes.  Then every rule chooses by validation alone, with several divisions of its
users, and test tells what came of it: a row of docs/results/decision-rules.csv each.
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
from scipy.special import stdtrit

import dpaa
from dpaa.comparison.statistics import crossed_t
from dpaa.data.dataset import Dataset, from_files
from dpaa.data.sources.published import published
from dpaa.data.sources.severity import read_pairs, with_severity
from dpaa.data.sources.world import simulate
from dpaa.data.splits import SplitRule
from dpaa.debiasing._choice import Chooser, divide, most_accurate
from dpaa.debiasing._debias import WORTH
from dpaa.debiasing._points import MOST_USERS, Accuracy, Candidate, Floats, Goal, Point
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import METRICS
from dpaa.evaluation.offpolicy import FLOOR
from dpaa.ranking import RERANKERS
from dpaa.ranking.dial import dialled_family
from dpaa.ranking.reranker import Dial

OUT = Path("docs/results/decision-rules.csv")
K, POWERS, PROMISES, CONFIDENCE, DIVISIONS = 20, (0.0, 0.5, 1.0, -0.25), (0.98, 0.95), 0.95, 4
RULES = {
    "unknown": (0.0, 0.5),
    "as-logged": (0.0,),
    "shifted": (0.5,),
    "-0.25, 0, 0.5": (-0.25, 0.0, 0.5),
    "0, 1": (0.0, 1.0),
    "previous": (0.5,),
}
"""Powers of the propensities under each of which the promise must hold; `previous` cross-fits instead."""
CLOSED, TRAINED = ("item-knn", "ease", "turbo-cf", "gf-cf"), ("lightgcn", "ssm")
SMALL, EPOCHS = 40_000, 30
"""Training pairs up to which models are trained in epochs, and how many."""
SLOW, SLOW_CATALOGUE = ("scale", "pc", "steck"), 5_000
"""Re-rankers that are left out on catalogues of so many items; dials above 0 are, everywhere: they show fewer niche items."""
TEST_USERS, HELD_OUT, LEAST_NICHE = 4_000, 0.1, 0.002
IDS = ["user_id", "item_id"]
NICHE = Goal.parse("niche-recall")

# ---------------------------------------------------------------------- cases


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


# ---------------------------------------------------------------------- measuring


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


# ---------------------------------------------------------------------- rules


def chosen_by(
    points: dict[str, NDArray[Any]], rule: str, powers: Sequence[float], promise: float, seed: int
) -> tuple[int, int]:
    """Baseline and choice of a rule, by validation alone."""
    rows = [POWERS.index(power) for power in powers]
    accuracy, names, models = points["accuracy"][:, rows], points["names"], points["models"]
    plain = np.flatnonzero(names == models)
    choosing, confirming = divide(accuracy.shape[2], seed)
    if rule == "previous":
        return previous(points, accuracy[:, 0], plain, promise, seed)
    with np.errstate(invalid="ignore"):
        niche = np.nanmean(points["niche"][:, choosing], axis=1)
    made = [Point(Candidate(name), one, (value,), {}) for name, one, value in zip(names, accuracy, niche, strict=True)]
    means = accuracy[plain][:, :, choosing].mean(axis=2)
    worth = models[plain][(means / np.maximum(means.max(axis=0), 1e-12)).max(axis=1) >= WORTH]
    base = int(plain[most_accurate([made[one] for one in plain], choosing)])
    kept = np.flatnonzero((names == models) | np.isin(models, worth))
    chooser = Chooser.of([made[one] for one in kept], [NICHE], (choosing, confirming), kept.tolist().index(base))
    return base, int(kept[chooser.within(promise, CONFIDENCE).index])


def previous(
    points: dict[str, NDArray[Any]], accuracy: Floats, plain: NDArray[Any], promise: float, seed: int
) -> tuple[int, int]:
    """The rule before: five folds; the boldest certainty whose choices the users of the other folds confirm."""
    base, users = int(plain[np.argmax(accuracy[plain].mean(axis=1))]), accuracy.shape[1]
    folds, difference = (
        np.array_split(np.random.default_rng([seed, 17]).permutation(users), 5),
        accuracy - promise * accuracy[base],
    )
    fewest = users - len(folds[0])

    def rule(rows: NDArray[Any]) -> Callable[[float], int]:
        niche = np.nanmean(points["niche"][:, rows], axis=1)
        mean, error = difference[:, rows].mean(axis=1), difference[:, rows].std(axis=1, ddof=1) / np.sqrt(fewest)
        return lambda z: max(
            np.flatnonzero((mean >= z * error) & (niche > niche[base])).tolist(), key=lambda i: niche[i], default=base
        )

    rules, certainty = [rule(np.setdiff1d(np.arange(users), fold)) for fold in folds], None
    least = float(stdtrit(fewest - 1, CONFIDENCE))
    for z in (*(one for one in (5, 4, 3.5, 3, 2.75, 2.5, 2.25, 2, 1.75) if one > least), least):
        picked = [one(z) for one in rules]
        if base in picked:
            continue
        values = np.concatenate([difference[point, fold] for point, fold in zip(picked, folds, strict=True)])
        if crossed_t(values[:, None], np.zeros((users, 1)), 1.0, 2 * CONFIDENCE - 1)[1] < 0:
            break
        certainty = z
    return base, base if certainty is None else rule(np.arange(users))(certainty)


def outcome(points: dict[str, NDArray[Any]], base: int, chosen: int, promise: float) -> dict[str, Any]:
    """What test says of a choice."""
    test, niche, coverage = points["test"].astype(np.float64), points["test_niche"], points["test_coverage"]
    level = test[base].mean()
    ratio = test[chosen].mean() / level
    low, high = (
        (ratio + crossed_t(test[chosen][:, None], test[base][:, None], ratio)[1:3] / level)
        if chosen != base
        else (1.0, 1.0)
    )
    plain = np.flatnonzero(points["names"] == points["models"])
    best = plain[np.argmax(test[plain].mean(axis=1))]
    worse = best != base and crossed_t(test[best][:, None], test[base][:, None], 1 / 0.98)[1] > 0
    allowed = np.flatnonzero(test.mean(axis=1) >= promise * level)
    oracle = allowed[np.argmax(niche[allowed])]
    possible = niche[oracle] - niche[base]
    return {
        "base": points["names"][base],
        "chosen": points["names"][chosen],
        "validation_users": points["accuracy"].shape[2],
        "test_users": test.shape[1],
        "ndcg_base": level,
        "ratio": ratio,
        "low": low,
        "high": high,
        "kept": ratio >= promise,
        "broken": high < promise,
        "niche_base": niche[base],
        "niche_chosen": niche[chosen],
        "niche_oracle": niche[oracle],
        "coverage_base": coverage[base],
        "coverage_chosen": coverage[chosen],
        "coverage_oracle": coverage[oracle],
        "regret": (niche[oracle] - niche[chosen]) / possible if possible > 0 else None,
        "bad_base": worse,
    }


def read(file: Path) -> dict[str, NDArray[Any]]:
    """The numbers of a case."""
    with np.load(file) as stored:
        return {key: stored[key] for key in stored.files}


def compare(wanted: Sequence[Case], work: Path) -> pl.DataFrame:
    """Every rule on every measured case."""
    rows = []
    for case in (one for one in wanted if (work / one.file).exists()):
        points = read(work / case.file)
        for rule, powers in RULES.items():
            powers = (0.0,) if case.kind == "unbiased validation" else powers
            for promise in PROMISES:
                for division in range(DIVISIONS):
                    pair = chosen_by(points, rule, powers, promise, division)
                    about = {"case": case.name, "kind": case.kind, "seed": case.seed, "division": division}
                    rows.append(about | {"rule": rule, "promise": promise} | outcome(points, *pair, promise))
    return pl.DataFrame(rows, infer_schema_length=None)


def summary(found: pl.DataFrame, *by: str) -> pl.DataFrame:
    """What the rules came to."""
    gain = pl.col("niche_chosen") / pl.col("niche_base").clip(LEAST_NICHE)
    could = pl.col("niche_oracle") >= 1.5 * pl.col("niche_base").clip(LEAST_NICHE)
    return found.group_by(*by, maintain_order=True).agg(
        pl.len().alias("cases"),
        (pl.col("base") != pl.col("chosen")).mean().alias("moved"),
        pl.col("kept").mean(),
        pl.col("broken").mean(),
        pl.col("ratio").min().alias("worst"),
        pl.col("bad_base").mean().alias("bad base"),
        gain.median().alias("gain"),
        gain.filter(could).median().alias("where 1.5"),
        (pl.col("coverage_chosen") - pl.col("coverage_base")).mean().alias("coverage"),
        pl.col("regret").mean(),
    )


def main() -> None:
    """Measure what is missing, then compare."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, metavar="DATA_FOLDER")
    options.add_argument("--work", type=Path, required=True, help="where measured points are kept")
    options.add_argument("--only", nargs="*", help="cases whose name begins so")
    options.add_argument("--minutes", type=float, default=float("inf"), help="begin no measurement after so many")
    options.add_argument("--out", type=Path, default=OUT)
    given = options.parse_args()
    torch.set_num_threads(1)
    given.work.mkdir(parents=True, exist_ok=True)
    wanted = [one for one in cases(given.folder) if not given.only or one.name.startswith(tuple(given.only))]
    begun = time.monotonic()
    for case in wanted:
        if not (given.work / case.file).exists() and time.monotonic() < begun + 60 * given.minutes:
            measure(case, given.work / case.file)
    found = compare(wanted, given.work)
    found.with_columns(pl.selectors.float().round_sig_figs(5)).write_csv(given.out)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=150, float_precision=3, tbl_hide_dataframe_shape=True):
        for by in (("rule",), ("rule", "promise"), ("kind", "rule")):
            print(summary(found, *by))


if __name__ == "__main__":
    main()

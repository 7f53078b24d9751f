"""Which rule should `dpaa debias` decide by?  Rules compared on logs of which the test split is known.

    python -m scripts.decision_rules WORK_FOLDER [--out FILE.csv]

WORK_FOLDER has the points that `scripts/measured_points.py` measured.  Every rule chooses by validation alone, with
several divisions of its users, and test tells what came of it: a row of docs/results/decision-rules.csv each.  A call
computes what the table does not have yet, and prints a summary.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import stdtrit
from scripts.measured_points import POWERS, Case, Measured, cases, read

from dpaa.comparison.statistics import crossed_t
from dpaa.debiasing._choice import CERTAINTIES, FOLDS, Chooser, divide, pareto, without_each
from dpaa.debiasing._debias import WORTH
from dpaa.debiasing._guarantee import p_value
from dpaa.debiasing._points import Floats

OUT = Path("docs/results/decision-rules.csv")
PROMISES, CONFIDENCE, DIVISIONS, LEAST_NICHE = (0.98, 0.95), 0.95, 3, 0.002
"""Gains are ratios of niche recall, each at least this much."""
RULES = {
    "unknown": (0.0, 0.5),
    "as-logged": (0.0,),
    "as-logged, baseline of unknown": (0.0, 0.5),
    "shifted": (0.5,),
    "-0.25, 0, 0.5": (-0.25, 0.0, 0.5),
    "0, 1": (0.0, 1.0),
    "unknown, one division": (0.0, 0.5),
    "unknown, a third chooses": (0.0, 0.5),
    "previous": (0.5,),
}
"""Powers of the propensities that name the baseline, and under each of which the promise must hold."""
LOGGED_ALONE = "as-logged, baseline of unknown"
"""The promise need hold under the first power only."""
PLAIN_T = "previous"
"""One estimate, plain t, and certainties that are no lower than the confidence."""


def chosen_by(points: Measured, rule: str, powers: Sequence[float], promise: float, seed: int) -> tuple[int, int]:
    """Baseline and choice of a rule, by validation alone."""
    accuracy, kept = points["accuracy"][:, [POWERS.index(power) for power in powers]], np.arange(len(points["names"]))
    names, models, everybody = points["names"], points["models"], np.arange(accuracy.shape[2])
    plain = np.flatnonzero(names == models)
    means = accuracy[plain].mean(axis=2, dtype=np.float64)
    relative = means / np.maximum(means.max(axis=0), 1e-12)
    base = int(plain[np.argmax(relative.min(axis=1))])
    if rule != PLAIN_T:  # as `dpaa debias` does
        kept = np.flatnonzero((names == models) | np.isin(models, models[plain][relative.max(axis=1) >= WORTH]))
    at, accuracy = kept.tolist().index(base), accuracy[kept]
    if rule == LOGGED_ALONE:
        accuracy = accuracy[:, :1]
    few = Chosen(points["niche"][kept], accuracy, at, seed)
    if rule == "unknown, a third chooses":
        return base, int(kept[few.split(promise)])
    if rule == PLAIN_T:
        return base, int(kept[few.cross_fitted(promise)])
    folds = divide(len(everybody), seed)[: FOLDS if rule == "unknown, one division" else None]
    scores = np.array([few.mean_niche(rows) for rows in without_each(folds)])
    return base, int(kept[Chooser(list(accuracy), scores, folds, at).within(promise, CONFIDENCE).index])


class Chosen:
    """Rules that `dpaa debias` does not decide by."""

    def __init__(self, niche: NDArray[Any], accuracy: NDArray[Any], base: int, seed: int) -> None:
        self.niche, self.accuracy, self.base = niche, accuracy, base
        self.order = np.random.default_rng([seed, 17]).permutation(accuracy.shape[2])

    def folds(self, n: int) -> list[NDArray[Any]]:
        """Users in n folds."""
        return np.array_split(self.order, n)

    def mean_niche(self, rows: NDArray[Any]) -> Floats:
        """Niche recall of each point over some users."""
        with np.errstate(invalid="ignore", divide="ignore"):
            values = self.niche[:, rows]
            return np.asarray(np.nansum(values, axis=1) / (~np.isnan(values[0])).sum())

    def split(self, promise: float) -> int:
        """A third of the users orders the points, the others confirm them in that order."""
        first = round(len(self.order) / 3)
        choosing, confirming = self.order[:first], self.order[first:]
        difference, score = self.accuracy - promise * self.accuracy[self.base], self.mean_niche(choosing)
        part = difference[:, :, choosing]
        with np.errstate(invalid="ignore", divide="ignore"):
            safety = (part.mean(axis=2) / (part.std(axis=2, ddof=1) / np.sqrt(first))).min(axis=1)
        safety = np.where((score > score[self.base]) & np.isfinite(safety), safety, -np.inf)
        chosen = self.base
        for index in pareto(safety, score):
            sides = zip(*(self.accuracy[one][:, confirming].astype(float) for one in (index, self.base)), strict=True)
            if not np.isfinite(safety[index]) or max(p_value(*pair, promise) for pair in sides) > 1 - CONFIDENCE:
                break
            chosen = index
        return chosen

    def cross_fitted(self, promise: float) -> int:
        """Five folds and plain t, certainties down to that of the confidence."""
        folds, accuracy, base = self.folds(5), self.accuracy, self.base
        difference, fewest = accuracy - promise * accuracy[base], len(self.order) - len(folds[0])

        def rule(rows: NDArray[Any]) -> Callable[[float], int]:
            niche, part = self.mean_niche(rows), difference[:, :, rows]
            mean, error = part.mean(axis=2), part.std(axis=2, ddof=1) / np.sqrt(fewest)
            better = niche > niche[base]
            return lambda z: max(
                np.flatnonzero((mean >= z * error).all(axis=1) & better).tolist(),
                key=lambda one: niche[one],
                default=base,
            )

        rules, certainty = [rule(np.setdiff1d(self.order, fold)) for fold in folds], None
        least = float(stdtrit(fewest - 1, CONFIDENCE))
        for z in (*(one for one in CERTAINTIES if one > least), least):
            picked = [one(z) for one in rules]
            if base in picked:
                continue
            values = np.concatenate([accuracy[one][:, fold] for one, fold in zip(picked, folds, strict=True)], axis=1)
            pairs = zip(values.astype(np.float64), accuracy[base][:, self.order].astype(np.float64), strict=True)
            if max(plain_t(*pair, promise) for pair in pairs) > 1 - CONFIDENCE:
                break
            certainty = z
        return base if certainty is None else rule(self.order)(certainty)


def plain_t(one: Floats, other: Floats, share: float) -> float:
    """Student's t of the differences."""
    return float(crossed_t(one[:, None], other[:, None], share)[3] / 2) if one.mean() > share * other.mean() else 1.0


def outcome(points: Measured, base: int, chosen: int, promise: float) -> dict[str, Any]:
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
        "kept": bool(ratio >= promise),
        "broken": bool(high < promise),
        "niche_base": niche[base],
        "niche_chosen": niche[chosen],
        "niche_oracle": niche[oracle],
        "coverage_base": coverage[base],
        "coverage_chosen": coverage[chosen],
        "coverage_oracle": coverage[oracle],
        "regret": (niche[oracle] - niche[chosen]) / possible if possible > 0 else None,
        "bad_base": bool(worse),
    }


def rows_of(case: Case, work: Path) -> list[dict[str, Any]]:
    """Every rule on a case."""
    rows, points = [], read(work / case.file)
    for rule, powers in RULES.items():
        powers = (0.0,) if case.kind == "unbiased validation" else powers
        for promise in PROMISES:
            for division in range(DIVISIONS):
                pair = chosen_by(points, rule, powers, promise, division)
                about = {"case": case.name, "kind": case.kind, "seed": case.seed, "division": division}
                rows.append(about | {"rule": rule, "promise": promise} | outcome(points, *pair, promise))
    return rows


def summary(found: pl.DataFrame, *by: str) -> pl.DataFrame:
    """What the rules came to."""
    chosen, base, oracle = (pl.col(f"niche_{one}").clip(LEAST_NICHE) for one in ("chosen", "base", "oracle"))
    gain, could = chosen / base, oracle >= 1.5 * base
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
    """Compare on what is measured, and print a summary."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("work", type=Path, metavar="WORK_FOLDER")
    options.add_argument("--out", type=Path, default=OUT)
    given = options.parse_args()
    parts = [pl.read_csv(given.out)] if given.out.exists() else []
    done = {(row["case"], row["seed"]) for one in parts for row in one.select("case", "seed").unique().to_dicts()}
    for case in cases(Path()):
        if (case.name, case.seed) not in done and (given.work / case.file).exists():
            new = pl.DataFrame(rows_of(case, given.work), infer_schema_length=None)
            new = new.with_columns(pl.selectors.float().round_sig_figs(4), pl.selectors.integer().cast(pl.Int64))
            parts.append(new)
            pl.concat(parts).write_csv(given.out)
            print(case.file, flush=True)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=150, float_precision=3, tbl_hide_dataframe_shape=True):
        for by in (("rule",), ("rule", "promise"), ("kind", "rule")):
            print(summary(pl.concat(parts), *by))


if __name__ == "__main__":
    main()

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
from scripts.measured_points import NICHE, POWERS, Case, Measured, cases, read

from dpaa.comparison.statistics import crossed_t
from dpaa.debiasing._choice import Chooser, divide, most_accurate
from dpaa.debiasing._debias import WORTH
from dpaa.debiasing._guarantee import p_value
from dpaa.debiasing._points import Candidate, Floats, Point

OUT = Path("docs/results/decision-rules.csv")
PROMISES, CONFIDENCE, DIVISIONS, LEAST_NICHE = (0.98, 0.95), 0.95, 3, 0.002
"""Gains are ratios of niche recall, each at least this much."""
RULES = {
    "unknown": (0.0, 0.5),
    "as-logged": (0.0,),
    "shifted": (0.5,),
    "-0.25, 0, 0.5": (-0.25, 0.0, 0.5),
    "0, 1": (0.0, 1.0),
    "unknown, base by a third": (0.0, 0.5),
    "unknown, cross-fitted": (0.0, 0.5),
    "previous": (0.5,),
}
"""Powers of the propensities under each of which the promise must hold."""


def chosen_by(points: Measured, rule: str, powers: Sequence[float], promise: float, seed: int) -> tuple[int, int]:
    """Baseline and choice of a rule, by validation alone."""
    accuracy = points["accuracy"][:, [POWERS.index(power) for power in powers]]
    names, models = points["names"], points["models"]
    plain, everybody = np.flatnonzero(names == models), np.arange(accuracy.shape[2])
    choosing, confirming = divide(len(everybody), seed)
    if rule in ("previous", "unknown, cross-fitted"):
        return cross_fitted(points, accuracy, plain, promise, seed, plain_t if rule == "previous" else p_value)
    niche = mean_niche(points, choosing)
    made = [Point(Candidate(name), one, (value,), {}) for name, one, value in zip(names, accuracy, niche, strict=True)]
    naming = everybody if rule == "unknown" else choosing  # as `dpaa debias` does; the others were measured by a third
    named = [Point(made[one].candidate, made[one].accuracy[:, naming], made[one].values, {}) for one in plain]
    base = int(plain[most_accurate(named)])
    means = accuracy[plain][:, :, choosing].mean(axis=2)
    worth = models[plain][(means / np.maximum(means.max(axis=0), 1e-12)).max(axis=1) >= WORTH]
    kept = np.flatnonzero((names == models) | np.isin(models, worth))
    chooser = Chooser.of([made[one] for one in kept], [NICHE], (choosing, confirming), kept.tolist().index(base))
    return base, int(kept[chooser.within(promise, CONFIDENCE).index])


def mean_niche(points: Measured, rows: NDArray[Any]) -> Floats:
    """Niche recall of each point over some users."""
    with np.errstate(invalid="ignore", divide="ignore"):
        values = points["niche"][:, rows]
        return np.asarray(np.nansum(values, axis=1) / (~np.isnan(values[0])).sum())


def plain_t(one: Floats, other: Floats, share: float) -> float:
    """Student's t of the differences."""
    return float(crossed_t(one[:, None], other[:, None], share)[3] / 2) if one.mean() > share * other.mean() else 1.0


def cross_fitted(
    points: Measured, accuracy: Floats, plain: NDArray[Any], promise: float, seed: int, test: Callable[..., float]
) -> tuple[int, int]:
    """The rule before: five folds; the boldest certainty whose choices the users of the other folds confirm."""
    means, users = accuracy[plain].mean(axis=2), accuracy.shape[2]
    base = int(plain[np.argmax((means / means.max(axis=0)).min(axis=1))])
    folds = np.array_split(np.random.default_rng([seed, 17]).permutation(users), 5)
    difference, fewest = accuracy - promise * accuracy[base], users - len(folds[0])

    def rule(rows: NDArray[Any]) -> Callable[[float], int]:
        niche, part = mean_niche(points, rows), difference[:, :, rows]
        mean, error = part.mean(axis=2), part.std(axis=2, ddof=1) / np.sqrt(fewest)
        better = niche > niche[base]
        return lambda z: max(
            np.flatnonzero((mean >= z * error).all(axis=1) & better).tolist(), key=lambda one: niche[one], default=base
        )

    rules, certainty = [rule(np.setdiff1d(np.arange(users), fold)) for fold in folds], None
    order = np.concatenate(folds)
    least = float(stdtrit(fewest - 1, CONFIDENCE))
    for z in (*(one for one in (5, 4, 3.5, 3, 2.75, 2.5, 2.25, 2, 1.75) if one > least), least):
        picked = [one(z) for one in rules]
        if base in picked:
            continue
        values = np.concatenate([accuracy[one][:, fold] for one, fold in zip(picked, folds, strict=True)], axis=1)
        pairs = zip(values.astype(np.float64), accuracy[base][:, order].astype(np.float64), strict=True)
        if max(test(*pair, promise) for pair in pairs) > 1 - CONFIDENCE:
            break
        certainty = z
    return base, base if certainty is None else rule(np.arange(users))(certainty)


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

"""The planner: the formula against a table, its promised power against simulated tests, and the command."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

import dpaa
from dpaa.comparison import per_user_values, read_entries
from dpaa.data.sources.world import simulate as world
from dpaa.simulation import plan
from dpaa.simulation._online import users_needed
from tests.command import dpaa_ok, run_dpaa

TESTS = 20_000


def test_users_needed_by_hand() -> None:
    # Cohen's d = 0.5 at 80% power and 5%: 62.8 in each half by the normal approximation (Cohen 1988 has 64 by t).
    assert users_needed(2.0, 0.5, 0.8, 0.95) == pytest.approx(62.79, abs=0.01)
    assert users_needed(2.0, 0.25, 0.8, 0.95) == pytest.approx(4 * users_needed(2.0, 0.5, 0.8, 0.95))
    assert np.isnan(users_needed(2.0, 0.0, 0.8, 0.95))


@cache
def evaluations() -> tuple[dpaa.Evaluation, dpaa.Evaluation]:
    data = world(300, 200)
    one, other = (dpaa.evaluate(dpaa.fit(data, name), data) for name in ("most-popular", "item-knn"))
    return one, other


def simulated_power(one: np.ndarray, other: np.ndarray, users: int, confidence: float, seed: int) -> float:
    """Share of z tests that see the difference, users of each half drawn with replacement."""
    rng, moments = np.random.default_rng(seed), []
    for values in (one, other):
        drawn = rng.multinomial(users, np.full(len(values), 1 / len(values)), size=TESTS)
        mean = drawn @ values / users
        moments.append((mean, (drawn @ values**2 / users - mean**2) / (users - 1)))
    (first, first_error), (second, second_error) = moments
    z = (second - first) / np.sqrt(first_error + second_error)
    return float((np.abs(z) > ndtri((1 + confidence) / 2)).mean())


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["ndcg@20", "recall@20/niche", "aplt@20"])
@pytest.mark.parametrize("detect", [0.02, 0.1])
@pytest.mark.parametrize("power", [0.8, 0.95])
def test_the_promised_power_is_that_of_simulated_tests(metric: str, detect: float, power: float) -> None:
    found = (per_user_values(each, metric) for each in evaluations())
    one, other = (values[~np.isnan(values)] for values in found if values is not None)
    if not other.mean():
        other = one
    wanted = detect * other.mean()
    shifted = one - one.mean() + other.mean() + wanted  # the variance of one, the difference that is to be seen
    users = round(users_needed(one.var(ddof=1) + other.var(ddof=1), wanted, power, 0.95))
    assert simulated_power(other, shifted, users, 0.95, 1) == pytest.approx(power, abs=0.03)


@pytest.mark.slow
def test_plan_and_its_command(tmp_path: Path) -> None:
    data = world(300, 200)
    data.write(tmp_path / "data")
    data = dpaa.read_dataset(tmp_path / "data")
    for name in ("most-popular", "item-knn"):
        dpaa.fit(data, name).save(tmp_path / name)
    runs = [tmp_path / "most-popular", tmp_path / "item-knn"]
    made = plan(read_entries(runs)[1], k=20, detect=0.05, users_per_day=1000)
    ndcg, niche, _ = made.needs
    per_user = [dpaa.evaluate(dpaa.load(run), data).per_user for run in runs]
    variance = sum(float(table["ndcg@20"].drop_nulls().var()) for table in per_user)  # type: ignore[arg-type]
    assert ndcg.users == pytest.approx(2 * users_needed(variance, 0.05 * ndcg.one, 0.8, 0.95))
    assert ndcg.users_promised == pytest.approx(ndcg.users * (0.05 * ndcg.one / (ndcg.other - ndcg.one)) ** 2)
    assert ndcg.days == -(-ndcg.users // 1000)
    known = per_user[0]["recall@20/niche"].drop_nulls().len() / len(per_user[0])
    assert known < 1
    assert niche.metric == "recall@20/niche"
    said = dpaa_ok("plan", *runs, "--detect", "0.05,power=0.8", "--users-per-day", "1000")
    assert f"{ndcg.users:,.0f}" in said.out
    for words, says in {
        ("--detect", "0.1,power=0.3"): "power must be",
        ("--metric", "gini"): "not a mean over users",
    }.items():
        refused = run_dpaa("plan", *runs, *words)
        assert refused.code == 2
        assert says in refused.err
    with pytest.raises(dpaa.InputError, match="a test has two recommenders, got 0"):
        plan([], k=20)

"""`dpaa backtest`: choices at the starts of periods, measured on the periods, on a log whose catalogue drifts."""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpaa
from dpaa.debiasing import _backtest
from tests.command import dpaa_ok, run_dpaa

MONTHS, GROUPS = 5, 4
HOW: dict[str, Any] = {"methods": ["ease", "most-popular"], "rerank": ["dial"], "k": 5}


def drifting(months: int = MONTHS) -> pl.DataFrame:
    """80 users of four tastes; each month four items arrive for each, two taken at once, two a month later.

    A model that is not updated knows nothing of what is taken two months later.
    """
    rng, rows = np.random.default_rng(0), []
    left = {user: [0, 1, 2, 3] for user in range(80)}
    for month in range(months):
        for user in range(80):
            now, later = np.split(rng.permutation(4), 2)
            for arrived, items in ((month - 1, left[user]), (month, now)):
                for item in items:
                    time = datetime(2024, month + 1, 1) + timedelta(minutes=int(rng.integers(28 * 24 * 60)))
                    rows.append((f"u{user}", f"g{user % GROUPS}-m{arrived}-{item}", time))
            left[user] = list(later)
    return pl.DataFrame(rows, schema=["user_id", "item_id", "timestamp"], orient="row")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backtest")
    drifting().write_csv(folder / "log.csv")
    words = ("--methods", "ease,most-popular", "--rerank", "dial", "--k", 5, "--out", folder / "out")
    said = dpaa_ok("backtest", folder / "log.csv", *words)
    assert "origin 1 of 3: 2024-03-01" in said.err
    return folder


def test_a_model_never_updated_loses_what_the_choices_keep(done: Path) -> None:
    content = json.loads((done / "out" / "backtest.json").read_text())
    periods = content["periods"]
    assert [period["origin"] for period in periods] == ["2024-03-01", "2024-04-01", "2024-05-01"]
    assert [period["end"] for period in periods] == ["2024-04-01", "2024-05-01", "2024-06-01"]
    assert all(period["base"]["model"] == "ease" for period in periods)
    assert [period["chosen"]["verdict"].partition(",")[0] for period in periods] == ["kept"] * 3
    assert [period["never_updated"] and period["never_updated"]["verdict"] for period in periods] == [
        None,
        "missed, confirmed",
        "missed, confirmed",
    ]
    assert periods[2]["never_updated"]["metrics"]["ndcg@5"] == 0
    assert [len(period["earlier"]) for period in periods] == [0, 1, 2]
    assert periods[2]["previous"] == periods[2]["earlier"][1]
    assert "never updated: kept in 0 of 2 periods, significantly missed in 2" in content["sentences"][2]


def test_what_is_new_in_a_period_is_counted(done: Path) -> None:
    log, first = drifting(), json.loads((done / "out" / "2024-03-01" / "result.json").read_text())
    pairs = log.sort("timestamp").unique(["user_id", "item_id"], keep="first")
    march = pairs.filter(pl.col("timestamp").dt.month() == 3)
    assert first["following"]["pairs"] == march.height
    assert first["following"]["users"] == 80
    assert first["following"]["new_user_share"] == 0
    assert first["following"]["new_item_share"] == 0.5


def test_the_page_shows_every_choice_in_every_later_period(done: Path) -> None:
    page = (done / "out" / "backtest.html").read_text()
    shown = set(re.findall(r'data-tip="([^"]+), in the period from ([^:]+):', page))
    assert sum(row.startswith("chosen") for row, _ in shown) == 3 + 2 + 1
    assert sum(row.startswith("first") for row, _ in shown) == 2
    assert "<td" in page


def test_a_resumed_backtest_is_the_whole_one(done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, original = [], _backtest.debias

    def counted(folder: Path, *args: Any, **how: Any) -> Any:
        calls.append(folder.parent.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(folder, *args, **how)

    words = ("backtest", done / "log.csv", "--methods", "ease,most-popular", "--rerank", "dial", "--k", 5, "--out")
    monkeypatch.setattr(_backtest, "debias", counted)
    stopped = run_dpaa(*words, tmp_path / "out")
    assert stopped.code == 130
    assert "resume with the same call" in stopped.err.replace("\n", " ")
    assert not (tmp_path / "out" / "backtest.json").exists()
    assert json.loads(dpaa_ok(*words, tmp_path / "out", "--json").out) == json.loads(
        (done / "out" / "backtest.json").read_text()
    )
    assert calls == ["2024-03-01", "2024-04-01", "2024-04-01", "2024-05-01"]
    for origin in ("2024-03-01", "2024-04-01", "2024-05-01"):
        assert (tmp_path / "out" / origin / "result.json").read_bytes() == (
            done / "out" / origin / "result.json"
        ).read_bytes()


def test_later_rows_change_nothing_of_earlier_origins(done: Path, tmp_path: Path) -> None:
    result = dpaa.backtest(tmp_path / "out", drifting(3), **HOW)
    whole = json.loads((done / "out" / "backtest.json").read_text())["periods"][0]
    mine = json.loads((tmp_path / "out" / "2024-03-01" / "result.json").read_text())
    assert {key: mine[key] for key in ("base", "chosen", "following")} == {
        key: whole[key] for key in ("base", "chosen", "following")
    }
    with pytest.raises(dpaa.InputError, match="with other options; pass --overwrite"):
        dpaa.backtest(tmp_path / "out", drifting(3), **HOW | {"k": 4})
    assert result.verdicts() == [whole["chosen"]["verdict"]]
    again = dpaa.backtest(tmp_path / "out", drifting(3), overwrite=True, **HOW | {"k": 4})
    assert "ndcg@4" in again.periods[0]["chosen"]["metrics"]


@pytest.mark.parametrize(
    ("change", "how", "sentence"),
    [
        (lambda log: log.drop("timestamp"), {}, "the frame has no column of times; name it with --columns timestamp=…"),
        (lambda log: log, {"every": "fortnight"}, "--every is month, week or a number of days, got 'fortnight'"),
        (lambda log: log, {"every": "0"}, "--every is month, week or a number of days, got '0'"),
        (lambda log: log, {"every": "365"}, "the frame has 1 periods, from 2024-01-01 to 2024-12-31; a backtest needs"),
        (lambda log: log, {"valid": 1.5}, "the shares of validation (1.5)"),
        (lambda log: log, {"start": datetime(2030, 1, 1)}, "needs one that begins at 2030-01-01"),
        (lambda log: log.with_columns(timestamp=pl.int_range(pl.len())), {}, "from 1970-01-01 to 1970-02-01; a"),
    ],
)  # fmt: skip
def test_what_cannot_be_tested_is_refused(tmp_path: Path, change: Any, how: dict[str, Any], sentence: str) -> None:
    with pytest.raises(dpaa.InputError) as refused:
        dpaa.backtest(tmp_path / "out", change(drifting()), **HOW | how)
    assert sentence in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_seconds_and_milliseconds_are_dates() -> None:
    log = drifting().with_columns(pl.col("timestamp").dt.replace_time_zone("UTC"))
    times = [log, *(log.with_columns(pl.col("timestamp").dt.epoch(unit)) for unit in ("s", "ms"))]  # type: ignore[arg-type]
    starts, period, origins = zip(*(_backtest._periods(one, "week", None, "the log") for one in times), strict=True)
    assert starts[0][0].isoformat() == "2024-01-01T00:00:00+00:00"  # a Monday
    assert starts[0] == starts[1] == starts[2]
    assert period[0].equals(period[1])
    assert period[0].equals(period[2])
    assert origins[0] == origins[1] == origins[2] == list(range(2, 22))


def test_a_change_has_one_sided_bounds_and_verdicts() -> None:
    rng, low, verdicts = np.random.default_rng(1), [], []
    call = {"k": 5, "confidence": 0.95, "keep_accuracy": 0.9}
    one = dict.fromkeys(("name", "model", "popularity_dial", "rerank"))

    def of(values: Any) -> Any:
        return SimpleNamespace(per_user=pl.DataFrame({"ndcg@5": values}), metrics={})

    for _ in range(400):
        before = rng.random(200)
        row = _backtest._against(one, of(0.9 * before + rng.normal(0, 0.2, 200)), of(before), call)
        low.append(row["change"]["low"])
        verdicts.append(row["verdict"])
    assert 0.91 < np.mean(np.array(low) < -0.1) < 0.98  # the truth is −10%, what is promised
    shares = {name: verdicts.count(name) / 400 for name in _backtest.VERDICTS}
    assert max(shares["kept, confirmed"], shares["missed, confirmed"]) < 0.09
    assert min(shares["kept"], shares["missed"]) > 0.3
    nothing = _backtest._against(one, of(np.zeros(5)), of(np.zeros(5)), call)
    assert nothing["verdict"] is None

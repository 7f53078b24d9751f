"""Preparing: in memory and to a folder alike, within a memory limit, by DuckDB and by Spark."""

import json
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dpaa.data import SPLIT_KINDS, SplitRule, open_log
from dpaa.data.dataset import Dataset, read_dataset, write_log
from dpaa.data.ids import SPLITS
from dpaa.data.prepare import one_table
from tests.command import dpaa_ok, run_dpaa


def frame(seed: int = 0, n: int = 1_200) -> pl.DataFrame:
    """A skewed log with repeated pairs, some of them without a rating."""
    rng = np.random.default_rng(seed)
    rating = pl.Series(rng.integers(1, 6, n))
    return pl.DataFrame(
        {
            "user_id": [f"u{user}" for user in (rng.random(n) ** 2 * 70).astype(int)],
            "item_id": (rng.random(n) ** 2 * 30).astype(int),
            "rating": rating.set(pl.Series(rng.random(n) < 0.1), None),
            "timestamp": rng.permutation(n) // 3,
        }
    )


@pytest.mark.parametrize("kind", [None, "random", "time-windows"])
def test_a_folder_is_what_is_prepared_in_memory(kind: str | None, tmp_path: Path) -> None:
    for number, part in enumerate(frame().iter_slices(500)):
        (tmp_path / "logs").mkdir(exist_ok=True)
        part.write_parquet(tmp_path / "logs" / f"part-{number}.parquet")
    how: dict[str, Any] = {"min_user_interactions": 4, "keep_duplicates": kind == "random", "seed": 3}
    table, rule = open_log(tmp_path / "logs"), None if kind is None else SplitRule(kind, parts=3, part=2)
    once = Dataset.of(**one_table(table, rule, **how)._asdict(), name="a")
    once.write(tmp_path / "once")
    written = write_log(table, {tmp_path / "made": rule}, "a", memory=1, **how)[tmp_path / "made"]
    about = [json.loads((tmp_path / name / "dataset.json").read_text()) for name in ("once", "made")]
    assert about[0] == about[1]
    found = read_dataset(tmp_path / "made")
    assert written.fingerprint == once.fingerprint == found.fingerprint
    assert written.counts == once.counts
    for split in SPLITS:
        assert found.frame(split).equals(once.frame(split)) or not once.frame(split).height
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "made", "once"]


def test_more_rows_than_the_limit_holds(tmp_path: Path) -> None:
    """Two million rows with 100 MB, the least that DuckDB gets: sorted on disk, the same pairs."""
    rng, n = np.random.default_rng(0), 2_000_000
    rows = {"user_id": rng.integers(0, 40_000, n), "item_id": rng.integers(0, 4_000, n), "timestamp": np.arange(n)}
    pl.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    made = [
        write_log(open_log(tmp_path / "log.parquet"), {tmp_path / name: SplitRule("leave-last")}, "a", memory=memory)
        for name, memory in (("small", 1), ("large", None))
    ]
    small, large = (next(iter(one.values())) for one in made)
    assert small.fingerprint == large.fingerprint == read_dataset(tmp_path / "small").fingerprint


def test_the_command_writes_every_part_or_none(tmp_path: Path) -> None:
    frame(4).write_csv(tmp_path / "log.csv")
    frame(4).select("item_id").unique().with_columns(title=pl.format("t{}", "item_id")).write_csv(
        tmp_path / "items.csv"
    )
    call = ("data", "log", tmp_path / "log.csv", "--items", tmp_path / "items.csv", "--split")
    dpaa_ok(*call, "user-folds,parts=2", "--memory", "0.2", "--out", tmp_path / "folds")
    assert read_dataset(tmp_path / "folds" / "part-2").titles is not None
    wrong = run_dpaa("data", "log", tmp_path / "log.csv", "--engine", "hadoop", "--out", tmp_path / "wrong")
    assert "--engine is duckdb" in wrong.err
    assert not (tmp_path / "wrong").exists()


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A Spark session of two threads."""
    if find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("pyspark or java is not installed")
    from pyspark.sql import SparkSession

    how = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    session = SparkSession.builder.master("local[2]").config(map=how).getOrCreate()
    yield session
    session.stop()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", SPLIT_KINDS)
def test_spark_prepares_the_same_pairs(kind: str, spark: Any, tmp_path: Path) -> None:
    frame().write_parquet(tmp_path / "a.parquet")
    frame().drop("rating").write_csv(tmp_path / "b.csv")
    for file in ("a.parquet", "b.csv") if kind == "random" else ("a.parquet",):
        how: dict[str, Any] = {"seed": 3, "min_item_interactions": 3, "keep_duplicates": kind == "random"}
        rule, made = SplitRule(kind, parts=3, part=2, support=2), {}
        for engine in ("duckdb", "spark"):
            folder = tmp_path / f"{engine}-{file}"
            made[engine] = write_log(open_log(tmp_path / file), {folder: rule}, "a", engine=engine, **how)[folder]
        assert made["duckdb"].fingerprint == made["spark"].fingerprint
        assert made["duckdb"].notes == made["spark"].notes
        for split in SPLITS:
            one, other = (read_dataset(tmp_path / f"{engine}-{file}").frame(split) for engine in ("duckdb", "spark"))
            assert one.equals(other)

"""A log prepared in pieces is the one that is prepared all at once, to the last bit."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpaa.data.columns import SPLITS
from dpaa.data.dataset import Dataset, read_dataset
from dpaa.data.inputs import open_log
from dpaa.data.large import write_log
from dpaa.data.prepare import one_table
from dpaa.data.splits import SPLIT_KINDS, SplitRule, _permutation
from dpaa.data.table import Table
from dpaa.data.tables import as_table
from dpaa.errors import InputError
from tests.command import dpaa_ok, run_dpaa

N = 1_200


def frame(seed: int = 0, n: int = N) -> pl.DataFrame:
    """A skewed log with repeated pairs."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "user_id": (rng.random(n) ** 2 * 70).astype(int),
            "item_id": (rng.random(n) ** 2 * 30).astype(int),
            "rating": rng.integers(1, 6, n),
            "timestamp": rng.permutation(n) // 3,
        }
    )


def same(table: Table, folder: Path, block_rows: int = 100, **how: Any) -> Dataset:
    """Both ways; all that a dataset has must be equal."""
    once = Dataset.of_prepared(one_table(table, **how), "a")
    once.write(folder / "once")
    pieces = write_log(table, folder / "pieces", "a", memory=0, block_rows=block_rows, **how)
    found = read_dataset(folder / "pieces")
    about = [json.loads((folder / name / "dataset.json").read_text()) for name in ("once", "pieces")]
    assert about[0] == about[1]
    assert pieces.fingerprint == once.fingerprint == found.fingerprint
    assert pieces.counts == once.counts
    assert str(pieces) == str(once)
    for split in SPLITS:
        assert found.frame(split).equals(once.frame(split))
        assert found.frame(split).schema == once.frame(split).schema
    assert (once.invalid is None) == (pieces.invalid is None)
    assert once.invalid is None or once.invalid.equals(pieces.invalid)
    return found


@pytest.mark.parametrize("kind", SPLIT_KINDS)
def test_every_split(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.data.splits.AT_ONCE", 64)
    monkeypatch.setattr("dpaa.data.splits.LOOKED_AT", 100)
    frame().write_csv(tmp_path / "log.csv")
    how = {"positive": "rating>=3", "split": SplitRule(kind, parts=3, part=2), "seed": 3}
    how |= {"min_user_interactions": 4, "min_item_interactions": 9, "keep_duplicates": kind == "random"}
    found = same(open_log(tmp_path / "log.csv"), tmp_path, **how)
    assert any("with fewer than" in note for note in found.notes)
    assert any("duplicate pairs" in note for note in found.notes)


@given(
    st.sampled_from(SPLIT_KINDS),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(1, 5), st.integers(0, 5)), min_size=1),
    st.integers(1, 30),
    st.integers(0, 3),
    st.randoms(use_true_random=False),
)
@settings(max_examples=40)
def test_every_split_of_rows_in_another_order(
    kind: str, rows: list[tuple[int, ...]], block_rows: int, seed: int, random: Random
) -> None:
    """All at once, and in pieces of the same rows in another order: one fingerprint."""
    schema = ["user_id", "item_id", "rating", "timestamp"]
    how: dict[str, Any] = {"split": SplitRule(kind, 0.1, 0.15, support=2), "seed": seed}
    prepared = one_table(as_table(pl.DataFrame(rows, schema, orient="row"), "a"), **how)
    assume(prepared.frames["train"].height)
    whole = Dataset.of_prepared(prepared, "a")
    shuffled = as_table(pl.DataFrame(random.sample(rows, len(rows)), schema, orient="row"), "a")
    with TemporaryDirectory() as folder:
        pieces = write_log(shuffled, Path(folder) / "made", "a", memory=0, block_rows=block_rows, **how)
        found = read_dataset(Path(folder) / "made")
        assert pieces.fingerprint == whole.fingerprint
        for name in SPLITS:
            assert found.frame(name).equals(whole.frame(name))


@pytest.mark.parametrize(
    "columns",
    [
        {"user_id": pl.format("u{}", "user_id")},
        {"user_id": pl.col("user_id").cast(pl.UInt64) + 2**63, "item_id": pl.col("item_id") - 5},
        {"rating": pl.format("{},5", "rating")},
        {"timestamp": pl.format("2024-05-{}", (pl.col("timestamp") % 28 + 1).cast(pl.String).str.zfill(2))},
        {"timestamp": pl.when(pl.col("timestamp") > 380).then(pl.lit("never")).otherwise(pl.col("timestamp"))},
        {"timestamp": pl.lit(None, pl.String)},
    ],
    ids=["text ids", "large ids", "decimal commas", "dates", "times that are none", "no times"],
)
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_what_columns_mean_is_told_by_all_of_them(columns: dict[str, pl.Expr], ending: str, tmp_path: Path) -> None:
    made = frame(1).with_columns(**columns)
    file = tmp_path / f"log{ending}"
    made.write_csv(file, separator=";") if ending == ".csv" else made.write_parquet(file)
    same(open_log(file), tmp_path, positive="rating>2", split=SplitRule())


def test_rows_with_faults_are_left_out_and_named(tmp_path: Path) -> None:
    lines = frame(2).write_csv().splitlines()
    lines[150] = "3,,4,7"
    lines[400] = "3,5,many,7"
    lines[401] = ""
    lines[700] = "x7,5,1,7"
    lines[900] = "1,2,3"
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    table = open_log(tmp_path / "log.csv")
    found = same(table, tmp_path, drop_invalid=True, split=SplitRule("leave-last"))
    assert found.user_ids.dtype == pl.String
    for how in ({}, {"names": None, "positive": "rating>9", "drop_invalid": True}):
        with pytest.raises(InputError) as once:
            one_table(table, **how)  # type: ignore[arg-type]
        with pytest.raises(InputError) as pieces:
            write_log(table, tmp_path / "none", "a", memory=0, block_rows=100, **how)  # type: ignore[arg-type]
        assert str(once.value) == str(pieces.value)
    assert not (tmp_path / "none").exists()


def test_a_folder_of_files(tmp_path: Path) -> None:
    place = tmp_path / "logs"
    place.mkdir()
    for number, part in enumerate(frame(3).iter_slices(500)):
        part.write_parquet(place / f"part-{number}.parquet")
    same(open_log(place), tmp_path, block_rows=130, split=SplitRule("temporal"))


def test_a_permutation_in_half_the_memory_is_the_same() -> None:
    for n in (0, 1, 7, 1_000):
        one, other = np.random.default_rng(n), np.random.default_rng(n)
        assert (one.permutation(n) == _permutation(n, other)).all()
        assert one.random() == other.random()


def test_the_command_with_a_limit(tmp_path: Path) -> None:
    frame(4).write_csv(tmp_path / "log.csv")
    frame(4).select("item_id").unique().with_columns(title=pl.format("t{}", "item_id")).write_csv(
        tmp_path / "items.csv"
    )
    call = ("data", "log", tmp_path / "log.csv", "--items", tmp_path / "items.csv", "--split", "user-folds")
    large = dpaa_ok(*call, "--parts", 2, "--memory", 1e-6, "--out", tmp_path / "large")
    dpaa_ok(*call, "--parts", 2, "--out", tmp_path / "small")
    assert "prepared in pieces" in large.err
    for part in ("part-1", "part-2"):
        one, other = (read_dataset(tmp_path / size / part) for size in ("large", "small"))
        assert one.fingerprint == other.fingerprint
        assert one.titles is not None
        assert one.titles.equals(other.titles)  # type: ignore[arg-type]
    wrong = run_dpaa(*call, "--memory", 0, "--out", tmp_path / "wrong")
    assert wrong.code == 2
    assert "--memory must be more than 0" in wrong.err
    taken = run_dpaa(*call, "--parts", 2, "--memory", 1e-6, "--out", tmp_path / "large")
    assert "already exists" in taken.err

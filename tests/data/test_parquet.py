"""Untrusted Parquet files: bombs and lies are refused before they are read, sound files pass."""

import os
import resource
import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dpaa.data import open_table, read_log
from dpaa.data.parquet import BYTES_PER_VALUE, parquet_schema, read_parquet
from dpaa.errors import InputError
from tests.command import dpaa_ok, run_dpaa


def test_files_that_unpack_to_too_much_are_refused(tmp_path: Path) -> None:
    file, ones = tmp_path / "log.parquet", np.ones(4_000_000, dtype=np.int64)
    pl.DataFrame({"user": ["x" * 120_000_000], "item": [1]}).write_parquet(file)
    assert file.stat().st_size < 100_000
    assert "would unpack from" in little_memory(lambda: read_log(open_table(file)))
    assert read_parquet(file, ["item"]).rows() == [(1,)]  # only what would be read is weighed
    pl.DataFrame({"user": ones, "item": ones}).write_parquet(file)
    assert "claims 4,000,000 rows in" in little_memory(lambda: read_log(open_table(file)))


def test_sound_parquet_files_of_every_kind_pass(tmp_path: Path) -> None:
    rng, file = np.random.default_rng(0), tmp_path / "log.parquet"
    frame = pl.DataFrame(
        {
            "user": rng.integers(0, 1000, 30_000),
            "item": [f"item {number}" for number in rng.integers(0, 500, 30_000)],
            "constant": pl.repeat(1.0, 30_000, eager=True),
            "empty": pl.repeat(None, 30_000, dtype=pl.Int64, eager=True),
            "nested": [[1, 2]] * 30_000,
        }
    )
    for compression in ("zstd", "snappy", "lz4", "gzip", "uncompressed"):
        frame.write_parquet(file, compression=compression, row_group_size=7_000)  # type: ignore[arg-type]
        assert read_parquet(file, frame.columns).equals(frame)
    frame.clear().write_parquet(file)
    assert read_parquet(file, frame.columns).shape == (0, 5)
    assert parquet_schema(file) == dict(frame.schema)
    with pytest.raises(FileNotFoundError):
        read_parquet(tmp_path / "nothing.parquet", ["user"])


def test_a_panic_of_polars_is_an_error_of_a_damaged_file(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    pl.DataFrame({"user": ["a", None] * 200}).write_parquet(file)
    content = file.read_bytes()
    optional = b"\x15\x0c\x25\x02\x18\x04user"  # a byte array that may be missing; now one that may not
    assert optional in content
    file.write_bytes(content.replace(optional, optional.replace(b"\x25\x02", b"\x25\x00")))
    with pytest.raises(pl.exceptions.PolarsError):
        read_parquet(file, ["user"])


def test_a_file_whose_lengths_lie_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    pl.DataFrame({"user": [1, 2, 3], "item": [1, 2, 3]}).write_parquet(file)
    whole = file.read_bytes()
    (length,) = struct.unpack("<I", whole[-8:-4])
    for lie in (length + 1_000_000, 2**32 - 1, 0):
        file.write_bytes(whole[:-8] + struct.pack("<I", lie) + whole[-4:])
        with pytest.raises((InputError, pl.exceptions.PolarsError)):
            parquet_schema(file)
        with pytest.raises(InputError, match="is not a readable Parquet file"):
            read_log(open_table(file))
    for place in range(0, len(whole), 7):
        file.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        with suppress(InputError):
            read_log(open_table(file))


def test_more_rows_than_memory_holds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "log.parquet"
    pl.DataFrame({"user": np.arange(1000) % 5, "item": np.arange(1000) % 7}).write_parquet(file)
    monkeypatch.setattr("dpaa.data.parquet.memory_at_hand", lambda: 2 * 1000 * BYTES_PER_VALUE - 1)
    with pytest.raises(InputError, match="claims 1,000 rows, more than the available memory"):
        read_parquet(file, ["user", "item"])


@pytest.mark.parametrize(
    "words",
    [
        "data log BAD.csv --out made",
        "data log BAD.parquet --out made",
        "data splits --train log.csv --candidates BAD.txt --out made",
        "audit BAD.csv",
        "train data --config BAD.toml --out made",
        "data describe spoilt",
    ],
)
def test_pipes_and_devices_do_not_hang(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("user,item\n1,2\n2,3\n")
    dpaa_ok("data", "log", "log.csv", "--split", "random", "--out", "data")
    shutil.copytree("data", "spoilt")
    bad = next((Path(word) for word in words.split() if word.startswith("BAD")), Path("spoilt/dataset.json"))
    for make in (os.mkfifo, lambda file: file.symlink_to("/dev/zero")):
        bad.unlink(missing_ok=True)
        make(bad)
        said = run_dpaa(*words.split())
        assert said.code == 2
        assert "is a pipe or device" in said.err or "is not a prepared dataset" in said.err
        assert not Path("made").exists()


def little_memory(work: Callable[[], object]) -> str:
    """What an `InputError` says; the process may not have grown by more than 300 MB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError) as refused:
        work()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
    return str(refused.value)

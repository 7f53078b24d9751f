"""Packed results are the same results; what is damaged is refused in one sentence."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from dpaa.errors import InputError
from dpaa.reproduction import pack_results
from dpaa.reproduction._results import ResultStore, RunResult, TunedSettings
from tests.command import dpaa_ok
from tests.reproduction.conftest import overall_of_ips


def result(seed: int = 0, **more: object) -> RunResult:
    content = {
        "data": "s=5",
        "label": "dpaa layer_emphasis=2",
        "method": "dpaa",
        "seed": seed,
        "settings": {"layers": 4, "l2": 2.73e-06, "iiw": True, "kernel": "auto"},
        "metrics": {"drop": {"recall@20": 0.1 + 0.2, "arp@20": 1 / 3, "hit@20": None}},
        "details": {"fingerprint": "f" * 64, "training": {"best_epoch": 7}, "tuned": None},
    }
    return RunResult(**content | more)  # type: ignore[arg-type]


def store(folder: Path) -> ResultStore[RunResult]:
    return ResultStore(folder, "severity", RunResult)


def test_packed_results_are_the_same_to_the_last_digit(tmp_path: Path) -> None:
    one = store(tmp_path)
    written = {f"dpaa-{seed}": result(seed) for seed in range(3)}
    written["dpaa-failed"] = result(9, metrics={}, details={"failed": "the loss became nan"})
    for key, content in written.items():
        one.write(key, content)
    loose = {key: one.read(key) for key in written}
    assert loose["dpaa-1"] == written["dpaa-1"]
    tuned = TunedSettings(data="s=5", method="ips", fingerprint="f", settings={"l2": 1e-5}, valid=0.1, trials=2,
                          seconds=0.3, fixed={}, tuning={"space": "wide"}, tried=[{"curve": [0.1, 0.2]}])  # fmt: skip
    ResultStore(tmp_path, "tuned", TunedSettings).write("ips-1", tuned)
    assert pack_results(tmp_path) == 5
    assert sorted(file.name for file in tmp_path.iterdir()) == ["severity.parquet", "tuned.parquet"]
    assert {key: one.read(key) for key in written} == loose
    assert ResultStore(tmp_path, "tuned", TunedSettings).read("ips-1") == tuned
    assert one.keys == sorted(written)
    assert one.read("dpaa-10") is None
    assert pack_results(tmp_path) == 0


def test_a_loose_result_comes_first_and_is_packed_over_the_older_one(tmp_path: Path) -> None:
    one = store(tmp_path)
    for seed in (1, 2):
        one.write(f"dpaa-{seed}", result(seed))
    one.pack()
    one.write("dpaa-1", result(1, label="newer"))
    for _ in range(2):
        assert [found.label for key in one.keys if (found := one.read(key))] == ["newer", "dpaa layer_emphasis=2"]
        one.pack()


def spoilt(text: str) -> pl.DataFrame:
    return pl.DataFrame({"key": ["dpaa-1"], "json": [text]})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PAR1 no Parquet at all PAR1", "severity.parquet is not a readable file of packed results"),
        (pl.DataFrame({"key": ["dpaa-1"], "text": ["{}"]}), "it has no columns 'key' and 'json' of text"),
        (pl.DataFrame({"key": [1], "json": ["{}"]}), "it has no columns 'key' and 'json' of text"),
        (spoilt("{"), "severity.parquet, row dpaa-1, is not a readable result"),
        (spoilt("{}"), "is not a readable result (data: field required); restore the file, or remove it"),
        (spoilt(result().model_dump_json().replace('"seed":0', '"seed":"0"')), "(seed: input should be a valid"),
    ],
)
def test_a_damaged_packed_file_is_refused(tmp_path: Path, content: bytes | pl.DataFrame, message: str) -> None:
    file = tmp_path / "severity.parquet"
    file.write_bytes(content) if isinstance(content, bytes) else content.write_parquet(file)
    with pytest.raises(InputError) as refused:
        store(tmp_path).read("dpaa-1")
    assert message in str(refused.value)
    assert "restore" in str(refused.value)


def test_a_packed_file_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"key": ["a"], "json": ["x" * 100_000_000]}).write_parquet(tmp_path / "severity.parquet")
    with pytest.raises(InputError, match="would unpack from"):
        store(tmp_path).read("a")


def test_a_spoilt_loose_result_stops_the_packing_before_anything_is_moved(tmp_path: Path) -> None:
    one = store(tmp_path)
    one.write("dpaa-1", result(1))
    (tmp_path / "severity/dpaa-2.json").write_text("{")
    with pytest.raises(InputError, match=r"dpaa-2\.json is not readable JSON .*remove it"):
        one.pack()
    assert sorted(file.name for file in tmp_path.rglob("*.json")) == ["dpaa-1.json", "dpaa-2.json"]
    assert not one.packed.exists()


def test_tables_of_packed_results_are_the_same(twice: Path, files: Path, tmp_path: Path) -> None:
    shutil.copytree(twice, tmp_path / "copy")
    call, results = overall_of_ips(files, tmp_path / "copy"), tmp_path / "copy" / "results"
    dpaa_ok(*call)
    table = (tmp_path / "copy/out/overall-quick.csv").read_bytes()
    assert "3 results packed in" in dpaa_ok("reproduce", "--pack", "--results", results).err
    assert [file.name for file in results.iterdir()] == ["overall.parquet"]
    assert "nothing was trained; 3 results" in dpaa_ok(*call, "--pack").err
    assert (tmp_path / "copy/out/overall-quick.csv").read_bytes() == table

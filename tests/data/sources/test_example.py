"""The log that ships with the package."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import example_log

from dpaa.data.sources.world import example_files, write_example
from dpaa.errors import InputError
from tests.command import dpaa_ok, run_dpaa


def test_it_is_what_the_script_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example_log, "FOLDER", tmp_path / "example")
    example_log.main()
    committed = Path(example_log.__file__).parents[1] / "src" / "dpaa" / "data" / "example"
    assert (tmp_path / "example" / "titles.csv").read_bytes() == (committed / "titles.csv").read_bytes()
    monkeypatch.setattr(
        "dpaa.data.sources.world.resources.files", lambda _: tmp_path
    )  # gzip's bytes may differ between versions of zlib; what is packed may not
    made = example_files()
    monkeypatch.undo()
    assert made == example_files()


def test_the_command_writes_files_that_the_next_one_reads(tmp_path: Path) -> None:
    said = dpaa_ok("data", "example", "--out", tmp_path / "shop")
    assert f"dpaa audit {tmp_path / 'shop' / 'clicks.csv'}" in said.out.replace("\n", "")
    dpaa_ok("data", "log", tmp_path / "shop" / "clicks.csv", "--out", tmp_path / "data")
    titles = (tmp_path / "shop" / "titles.csv").read_text(encoding="utf-8").splitlines()
    assert titles[0] == "item_id,title"
    assert len({line.partition(",")[0] for line in titles}) == len(titles)


def test_what_is_there_stays(tmp_path: Path) -> None:
    write_example(tmp_path)
    (tmp_path / "clicks.csv").write_text("mine")
    said = run_dpaa("data", "example", "--out", tmp_path)
    assert said.code == 2
    assert "clicks.csv already exists; pass --overwrite" in " ".join(said.err.split())
    assert (tmp_path / "clicks.csv").read_text() == "mine"
    write_example(tmp_path, overwrite=True)
    assert (tmp_path / "clicks.csv").read_bytes() == example_files()["clicks.csv"]
    with pytest.raises(InputError, match="is a file"):
        write_example(tmp_path / "clicks.csv")

"""What is there is not run again; what is of another training is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpaa._io import MARK
from dpaa.reproduction.trainings import Runner
from tests.command import dpaa_ok, run_dpaa
from tests.reproduction.conftest import ROWS, TINY, cells, places


def test_again_nothing_is_trained(made: tuple[Path, str, str], files: Path) -> None:
    folder = made[0]
    call = ("reproduce", "groups", "--coat", files / "coat", *ROWS, *TINY, *places(folder), "--json")
    said = dpaa_ok(*call)
    assert "nothing was trained; 5 results" in said.err
    tables = json.loads(said.out)["groups"]
    assert [table["table"] for table in tables] == ["coat-drop", "coat-mask", "coat-keep"]
    assert "Yahoo! R3 is not shown" not in said.out


def test_a_result_of_another_training_is_refused(twice: Path, files: Path) -> None:
    one, other = sorted((twice / "results" / "overall").glob("ips-*.json"))
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    call = ("reproduce", "overall", "--coat", files / "coat", "--method", "ips", *TINY, "--seeds", 2, *places(twice))
    said = run_dpaa(*call)
    one.write_bytes(kept)
    assert said.code == 2
    assert "is the result of another dataset, method or seed" in said.err
    assert dpaa_ok(*call)


def test_an_older_result_without_a_dial_is_run_again_only_for_the_dial(twice: Path, files: Path) -> None:
    file = next((twice / "results" / "overall").glob("ips-*.json"))
    before = json.loads(file.read_text())
    file.write_text(json.dumps({key: value for key, value in before.items() if key != "dial"}))
    call = ("reproduce", "overall", "--coat", files / "coat", "--method", "ips", *TINY, "--seeds", 2, *places(twice))
    assert "nothing was trained" in dpaa_ok(*call).err
    assert "1 training in" in dpaa_ok(*call, "--with-dial").err
    after = json.loads(file.read_text())
    assert after["metrics"] == before["metrics"]
    assert after["dial"] == before["dial"]


def test_a_training_that_diverges_is_told_and_the_others_go_on(files: Path, tmp_path: Path) -> None:
    said = dpaa_ok("reproduce", "severity", "--kuairec", files / "kuairec", "--method", "lightgcn", "--severity", 0,
                   "--method", "lightgcn learning_rate=1e30", *TINY, *places(tmp_path))  # fmt: skip
    assert "the loss became" in said.err
    row = next(row for row in cells(tmp_path, "severity") if "1e30" in row["row"] and row["table"] == "recall@20")
    assert row["mean"] == ""
    assert "nothing was trained" in dpaa_ok(
        "reproduce", "severity", "--kuairec", files / "kuairec", "--method", "lightgcn learning_rate=1e30",
        "--severity", 0, *TINY, *places(tmp_path)).err  # fmt: skip


def test_the_summary_of_a_runner_that_had_nothing_to_do(tmp_path: Path) -> None:
    assert Runner(tmp_path, tmp_path).summary().startswith("nothing was trained")


def test_a_result_of_other_settings_is_refused(twice: Path, files: Path) -> None:
    file = min((twice / "results" / "overall").glob("ips-*.json"))
    kept = file.read_text()
    file.write_text(json.dumps(json.loads(kept) | {"settings": json.loads(kept)["settings"] | {"l2": 0.5}}))
    call = ("reproduce", "overall", "--coat", files / "coat", "--method", "ips", *TINY, "--seeds", 2, *places(twice))
    said = run_dpaa(*call)
    file.write_text(kept)
    assert said.code == 2
    assert "is the result of other settings (l2=0.5, not 0.0001); remove it" in said.err
    assert dpaa_ok(*call)


def test_what_killed_processes_left_is_swept(twice: Path, files: Path) -> None:
    home = next(folder for folder in (twice / "work").iterdir() if (folder.name != "coat" and folder.is_dir()))
    key = min((twice / "results" / "overall").glob("ips-*.json")).stem
    left = [home.parent / ".dpaa-0123456789ab", home / ".dpaa-new-0123456789ab"]
    for folder in left:
        folder.mkdir()
    (left[0] / ".lock").write_bytes(MARK)
    left += [home / f".{key}.lock", home / f".{key}.turn"]
    for file in left[2:]:
        file.write_bytes(MARK)
    dpaa_ok("reproduce", "overall", "--coat", files / "coat", "--method", "ips", *TINY, "--seeds", 2, *places(twice))
    assert [file for file in left if file.exists()] == []


@pytest.mark.parametrize("name", ["results/overall", "work/coat"])
def test_a_planted_link_is_refused(tmp_path: Path, files: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "outside")
    said = run_dpaa("reproduce", "overall", "--coat", files / "coat", "--method", "ips", *TINY, *places(tmp_path))
    assert said.code == 2
    assert "remove it and call again" in said.err
    assert not any((tmp_path / "outside").iterdir())

"""`dpaa reproduce` as a user types it, on a world small enough to train in moments."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dpaa.reproduction.budget import BUDGETS
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.sources import Sources
from dpaa.reproduction.trainings import Runner
from tests.command import dpaa_ok, run_dpaa
from tests.reproduction.conftest import TINY

ROWS = ("--method", "lightgcn", "--method", "dpaa", "--method", "dpaa-as-printed", "--method", "ips")


@pytest.fixture(scope="module")
def made(files: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Everything at once; the folder and what was said."""
    folder = tmp_path_factory.mktemp("made")
    said = dpaa_ok("reproduce", "all", "--coat", files / "coat", "--kuairec", files / "kuairec", *ROWS, *TINY[:-1],
                   "--severity", 9, *places(folder))  # fmt: skip
    return folder, said.out, said.err


@pytest.fixture(scope="module")
def twice(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The overall table with two seeds and the dial."""
    folder = tmp_path_factory.mktemp("twice")
    dpaa_ok("reproduce", "overall", "--coat", files / "coat", "--method", "ips", *TINY, "--seeds", 2, "--with-dial",
            *places(folder))  # fmt: skip
    return folder


def places(folder: Path) -> tuple[object, ...]:
    return ("--results", folder / "results", "--work", folder / "work", "--out", folder / "out")


def cells(folder: Path, name: str) -> list[dict[str, str]]:
    import csv

    with (folder / "out" / f"{name}-quick.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_all_tables_figures_and_the_page_are_there(made: tuple[Path, str, str]) -> None:
    folder, out, err = made
    names = {file.name for file in (folder / "out").iterdir()}
    tables = ("datasets", "overall", "groups", "severity", "ablation", "settings")
    assert {f"{name}-quick.{form}" for name in tables for form in ("md", "tex", "csv")} <= names
    figures = ("datasets-quick-training-data", "severity-quick", "ablation-quick-dpaa")
    assert {f"{name}.{form}" for name in figures for form in ("png", "svg")} <= names
    page = (folder / "out" / "all-quick.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in page for name in tables)
    assert 'src="http' not in page
    assert "Spearman" in out
    assert "LightGCN's recall@20 against the paper's" in out
    assert "trainings in" in err
    assert "an hour with --jobs 1" in err
    left = {run.parent.name.rpartition("-")[0] for run in (folder / "work").glob("*/*/config.json")}
    assert left == {"pretrained-lightgcn"}  # finished trainings are cleared away


def test_numbers_are_the_results_and_no_table_mixes_conventions(twice: Path) -> None:
    folder = twice
    results = [json.loads(file.read_text()) for file in (folder / "results" / "overall").iterdir()]
    rows = [row for row in cells(folder, "overall") if row["row"] == "ips" and row["column"] == "recall@20"]
    for overlap in ("drop", "mask", "keep"):
        values = [one["metrics"][overlap]["recall@20"] for one in results if one["method"] == "ips"]
        row = next(row for row in rows if row["table"] == f"coat-{overlap}")
        assert len(values) == int(row["seeds"]) == 2
        assert float(row["mean"]) == pytest.approx(sum(values) / 2)
        assert float(row["difference"]) == pytest.approx(sum(values) / 2 - 0.2107)
    dialled = next(row for row in rows if row["table"] == "coat-drop-dial")
    values = [one["dial"]["metrics"]["recall@20"] for one in results if one["method"] == "ips"]
    assert float(dialled["mean"]) == pytest.approx(sum(values) / 2)
    text = (folder / "out" / "overall-quick.md").read_text(encoding="utf-8")
    assert [text.count(f"overlap convention `{name}`\n") for name in ("drop", "mask", "keep")] == [1, 1, 1]
    assert "Nearest convention by row of the paper" in text
    assert "most-popular" in text  # though nobody asked for it


def test_the_ablation_takes_its_columns_from_settings(made: tuple[Path, str, str]) -> None:
    folder = made[0]
    rows = [row for row in cells(folder, "ablation") if row["table"] == "dpaa-as-printed recall@20"]
    assert [row["column"] for row in rows[:8]] == [
        "DPAA",
        "γ0",
        "w/o c",
        "γ0 w/o c",
        "w/o m",
        "γ0 w/o m",
        "w/o IIW",
        "w/o LW",
    ]
    results = [json.loads(file.read_text()) for file in (folder / "results" / "severity").iterdir()]
    names = ("iiw", "estimate", "weighted_layers", "layer_emphasis")
    kinds = {tuple(one["settings"][name] for name in names) for one in results if one["method"] == "dpaa"}
    blend, first, every = "blend", "first", "all"
    assert kinds == {
        (True, blend, first, 1.0), (True, blend, every, 1.0), (True, "pretrained", first, 1.0),
        (True, "pretrained", every, 1.0), (True, "current", first, 1.0), (True, "current", every, 1.0),
        (False, blend, first, 1.0), (True, blend, first, 0.0),
    }  # fmt: skip


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
    left += [home / f".{key}.lock", home / f".{key}.turn"]
    for file in left[2:]:
        file.touch()
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


# ---------------------------------------------------------------------- tuned


@dataclass(frozen=True)
class Trial:
    settings: dict[str, Any]
    value: float | None
    state: str = "complete"
    curve: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Result:
    trials: list[Trial]
    best: Trial
    kept: int = 1
    """As if an earlier call had been killed after its first trial."""


@pytest.fixture
def studies(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A stand-in for `dpaa tune` that remembers its calls; what it finds depends on data and method."""
    calls: list[dict[str, Any]] = []

    def tune(folder: Path, data: Any, method: str, **options: Any) -> Result:
        calls.append(options | {"data": data.name, "method": method})
        own = {"layer_emphasis": 2.0} if method.startswith("dpaa") else {}
        best = Trial({"learning_rate": 1e-4 if "s9" in data.name else 1e-2} | own, 0.5)
        return Result([best, Trial({"learning_rate": 1e-3}, None, "pruned")], best)

    stand_in = ModuleType("dpaa.tuning.tune")
    stand_in.tune = tune  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dpaa.tuning.tune", stand_in)
    return calls


def test_standard_tunes_at_0_5_9_and_others_take_the_nearest(
    files: Path, tmp_path: Path, studies: list[dict[str, Any]]
) -> None:
    rows = ("--method", "lightgcn", "--method", "dpaa", "--method", "ips cap_quantile=1.0")
    call = ("reproduce", "severity", "--budget", "standard", "--kuairec", files / "kuairec", *rows, *TINY,
            "--severity", 1, "--severity", 8, "--seeds", 1, *places(tmp_path))  # fmt: skip
    told = dpaa_ok(*call).err
    assert "\n12 trainings in " in told  # 8 rows, most-popular's among them, and 4 of 8 trials: the others were kept
    assert [(one["data"], one["method"]) for one in studies] == [
        ("kuairec-s0-seed0", "lightgcn"), ("kuairec-s0-seed0", "dpaa"),
        ("kuairec-s9-seed0", "lightgcn"), ("kuairec-s9-seed0", "dpaa"),
    ]  # fmt: skip
    first = studies[0]
    assert (first["space"], first["trials"], first["prune_after"], first["seeds"]) == ("wide", 12, 30, 0)
    assert first["values"] == {"learning_rate": (1e-3, 1e-4)}
    assert first["settings"] == {"embedding_size": "4", "layers": "1", "epochs": "2"}
    found = [json.loads(file.read_text()) for file in (tmp_path / "results" / "severity").iterdir()]
    rates = {
        (one["method"], one["data"]): one["settings"]["learning_rate"]
        for one in found
        if one["method"] != "most-popular"
    }
    assert rates["lightgcn", "s=1"] == rates["dpaa", "s=1"] == 1e-2
    assert rates["lightgcn", "s=8"] == rates["dpaa", "s=8"] == 1e-4
    assert rates["ips", "s=8"] == 1e-3
    told = (tmp_path / "out" / "severity.md").read_text(encoding="utf-8")
    assert "In this call: 1 seed; severity 1, 8; embedding_size 4; layers 1; epochs 2." in told
    # The pre-trained model has the settings that were not searched, as in the trials.
    plain = [
        json.loads(file.read_text())["learning_rate"] for file in (tmp_path / "work").glob("*/pretrained-*/config.json")
    ]
    assert set(plain) == {1e-3}
    kept = [json.loads(file.read_text()) for file in (tmp_path / "results" / "tuned").iterdir()]
    assert all(len(one["tried"]) == one["trials"] == 2 for one in kept)
    studies.clear()
    said = dpaa_ok(*call)
    assert studies == []
    assert "nothing was trained" in said.err


def test_settings_chosen_for_something_else_are_refused(
    files: Path, tmp_path: Path, studies: list[dict[str, Any]]
) -> None:
    call = ("reproduce", "overall", "--budget", "standard", "--coat", files / "coat", "--method", "lightgcn", *TINY,
            "--seeds", 1, *places(tmp_path))  # fmt: skip
    dpaa_ok(*call)
    dpaa_ok(*call, "--set", "layers=2")
    one, other = (tmp_path / "results" / "tuned").glob("lightgcn-*.json")
    for target, source in ((one, other), (other, one)):
        kept = target.read_bytes()
        target.write_bytes(source.read_bytes())
        said = [run_dpaa(*call), run_dpaa(*call, "--set", "layers=2")]
        target.write_bytes(kept)
        assert sorted(one.code for one in said) == [0, 2]
        assert "was chosen for another dataset, method or budget; remove it" in "".join(one.err for one in said)
    assert len(studies) == 2


def test_settings_stand_beside_the_papers(files: Path, tmp_path: Path, studies: list[dict[str, Any]]) -> None:
    said = dpaa_ok("reproduce", "settings", "--budget", "paper", "--coat", files / "coat", "--method", "dpaa", *TINY,
                   *places(tmp_path), "--json")  # fmt: skip
    assert studies[0]["space"] == "paper"
    assert studies[0]["trials"] is None
    told = {
        cell["column"]: cell["mean"] for cell in json.loads(said.out)["settings"][0]["cells"] if cell["row"] == "dpaa"
    }
    assert "η 2" in told["settings"]
    assert told["the paper's"] == "C 0.0001, η 2, δ 0.2"
    assert told["validation recall@20"] == 0.5


def test_settings_of_the_severities_that_were_asked_for(
    files: Path, tmp_path: Path, studies: list[dict[str, Any]]
) -> None:
    said = dpaa_ok("reproduce", "settings", "--budget", "standard", "--kuairec", files / "kuairec", "--severity", 8,
                   "--severity", 6, "--method", "lightgcn", *TINY, *places(tmp_path), "--json")  # fmt: skip
    assert [table["table"] for table in json.loads(said.out)["settings"]] == ["settings s=5", "settings s=9"]


def test_a_label_keeps_a_part_beside_the_whole_table(files: Path, tmp_path: Path) -> None:
    dpaa_ok("reproduce", "datasets", "--budget", "standard", "--coat", files / "coat", "--label", "mine",
            *places(tmp_path))  # fmt: skip
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"datasets-mine.md", "datasets-mine.tex", "datasets-mine.csv", "datasets-mine.html"} <= names
    assert not any(name.startswith("datasets.") for name in names)
    assert "--coat DIR --label mine" in (tmp_path / "out" / "datasets-mine.md").read_text(encoding="utf-8")


def test_a_row_is_there_once_under_the_name_the_paper_knows(tmp_path: Path) -> None:
    given = ("sam_reg", "dpaa", "dpaa", "dpaa_as_printed layer_emphasis=2", "most_popular", "sam-reg")
    plan = Plan(BUDGETS["quick"], Sources(), Runner(tmp_path, tmp_path), given_rows=given)
    assert plan.rows == ("sam-reg", "dpaa", "dpaa-as-printed layer_emphasis=2", "most-popular")


def test_budgets_are_what_they_say() -> None:
    quick, standard = BUDGETS["quick"], BUDGETS["standard"]
    assert (quick.severities, quick.seeds, quick.settings) == ((0, 5, 9), 1, {"embedding_size": 64, "epochs": 100})
    assert (standard.seeds, standard.coat_seeds, standard.as_printed_severities) == (3, 10, (0, 5, 9))
    assert all("most-popular" in budget.rows and "dpaa-as-printed" in budget.rows for budget in BUDGETS.values())


def test_the_summary_of_a_runner_that_had_nothing_to_do(tmp_path: Path) -> None:
    assert Runner(tmp_path, tmp_path).summary().startswith("nothing was trained")


def test_help_has_an_example() -> None:
    said = run_dpaa("reproduce", "--help")
    assert "dpaa reproduce severity --budget quick" in said.out

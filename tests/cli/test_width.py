"""All tables in a terminal of 80 columns: nothing longer, nothing elided, no word broken."""

import io
import re
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from dpaa.cli import console
from tests.cli.conftest import TINY
from tests.cli.test_backtest import drifting
from tests.command import dpaa_ok, run_dpaa

WIDTH = 80
RULE = re.compile(r"^ ?─+ ?$")


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Where results are printed: a terminal of 80 columns."""
    shown = io.StringIO()
    how = {"markup": False, "emoji": False, "highlight": False, "soft_wrap": True}
    monkeypatch.setattr(console.out, "console", Console(file=shown, width=WIDTH, force_terminal=True, **how))
    return shown


def lines_of(screen: io.StringIO) -> list[str]:
    """What is on the screen, which is cleared."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    screen.seek(0)
    screen.truncate()
    return text.splitlines()


def tables(lines: list[str]) -> list[list[str]]:
    """The tables that were printed: lines around a rule, up to an empty one."""
    found: list[list[str]] = []
    for index, line in enumerate(lines):
        if RULE.match(line):
            first = next((at for at in range(index, 0, -1) if not lines[at - 1].strip()), 0)
            last = next((at for at in range(index, len(lines)) if not lines[at].strip()), len(lines))
            found.append(lines[first:last])
    return found


@pytest.mark.slow
def test_every_table_is_complete(walk: Path, tmp_path: Path, screen: io.StringIO) -> None:
    folder, data, run = tmp_path, walk / "data", walk / "run"
    log = drifting(4)
    log.write_csv(folder / "log.csv")
    items = log.select("item_id").unique(maintain_order=True)
    items = items.with_columns(genre=pl.Series(["Family", "a genre of many words"][n % 2] for n in range(len(items))))
    items.write_csv(folder / "items.csv")
    dpaa_ok("data", "log", folder / "log.csv", "--items", folder / "items.csv", "--out", folder / "drift")
    dpaa_ok("train", folder / "drift", "--method", "most-popular", "--out", folder / "grouped")
    dpaa_ok("train", data, "--method", "most-popular", "--out", folder / "a-run-with-a-rather-long-name")
    dpaa_ok("train", data, *TINY, "--method", "dpaa", "--pretrained", run, "--out", folder / "dpaa")
    dpaa_ok("recommend", run, "--k", 10, "--out", folder / "recs.csv")
    tiny = ("--set", "epochs=2", "--set", "embedding_size=4", "--seeds", 1)
    calls: list[tuple[object, ...]] = [
        ("data", "describe", data),
        ("audit", folder / "log.csv"),
        ("audit", data, "--recs", folder / "recs.csv", "--k", 10),
        ("evaluate", run, "--k", 5, "--k", 20, "--off-policy"),
        ("recommend", run, "--k", 3),
        ("evaluate", folder / "grouped", "--group-by", "genre"),
        ("similar", run, "i0003"),
        ("debias", data, "--methods", "ease,item-knn", "--rerank", "calibrated-popularity", "--rerank", "dial",
         "--k", 10, "--out", folder / "debiased"),
        ("backtest", folder / "log.csv", "--methods", "ease,most-popular", "--rerank", "dial", "--k", 5,
         "--out", folder / "backtest"),
        ("compare", folder / "a-run-with-a-rather-long-name", run, folder / "dpaa", folder / "recs.csv",
         "--dataset", data),
        ("tune", data, "--method", "dpaa", "--trials", 2, *tiny[:4], "--seeds", 0, "--out", folder / "study"),
        ("benchmark", data, "--methods", "most-popular,ease,lightgcn", "--trials", 1, *tiny[:2],
         "--seeds", 1, "--out", folder / "benchmark"),
        ("simulate", "world:60x40", "--policy", "most-popular", "--policy", "random", "--rounds", 2),
        ("plan", run, folder / "a-run-with-a-rather-long-name", "--users-per-day", 20000),
        ("trace", folder / "dpaa"),
        ("methods",),
        ("reproduce", "field", "--results", folder / "results", "--out", folder / "field"),
    ]  # fmt: skip
    lines_of(screen)
    for words in calls:
        said = run_dpaa(*words)
        assert said.code != 2, (words, said.err)
        lines = lines_of(screen)
        found = tables(lines)
        assert found, (words, lines)
        for line in (line for table in found for line in table):
            assert len(line.rstrip()) <= WIDTH, (words, line)
            assert not re.search(r"[0-9]…|…[0-9]|^\s*…\s*$", line), (words, line)
        for line in lines:  # words of sentences are whole, and only a word alone may be longer than the terminal
            assert len(line.rstrip()) <= WIDTH or " " not in line.strip(), (words, line)


def test_a_table_that_is_too_wide_is_stacked(screen: io.StringIO) -> None:
    names = ["ease + calibrated-popularity 0.9", "* mine + dial -0.25 + calibrated-popularity 0.9 depth=200"]
    header = ["", *(f"NDCG@20 of estimate {number}" for number in range(9))]
    console.print_table("Candidates", header, [[name, *["12,345.1234"] * 9] for name in names])
    lines = lines_of(screen)
    assert max(len(line.rstrip()) for line in lines) <= WIDTH
    assert sum(line.count("12,345.1234") for line in lines) == 18
    assert sum("calibrated-popularity 0.9" in line for line in lines) >= 4, "a name in each part"
    assert len(tables(lines)) > 1
    console.out.print("a word " * 20 + "/a/path" * 20)
    assert lines_of(screen)[-1] == "/a/path" * 20, "whole, so that it can be clicked"

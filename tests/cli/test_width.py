"""All tables and all help pages in a terminal of 80 columns: nothing longer, nothing elided, no word broken."""

import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from threading import Thread

import polars as pl
import pytest
from rich.console import Console

from dpaa.cli import console
from tests.cli.conftest import TINY
from tests.cli.test_backtest import drifting
from tests.cli.test_help import NAMES
from tests.command import dpaa_ok

WIDTH = 80
CALLS = """
import json, sys
from dpaa.cli import main
for words in json.load(open(sys.argv[1])):
    print("\\f" + " ".join(words), flush=True)
    sys.argv = ["dpaa", *words]
    try:
        main()
    except SystemExit as end:
        print(f"\\nexit code {end.code}" if end.code else "")
"""
RULE = re.compile(r"^ ?─+ ?$")
NUMBER = re.compile(r"^[-+±*=]?[0-9][0-9,.]*%?$")


def in_terminal(calls: list[tuple[object, ...]], folder: Path) -> list[tuple[str, list[str]]]:
    """Each call, and the lines that a terminal of 80 columns shows of its results; all calls in one process."""
    (folder / "calls.json").write_text(json.dumps([[str(word) for word in call] for call in calls]))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    shown: list[bytes] = []

    def read() -> None:
        try:
            while block := os.read(ours, 65536):
                shown.append(block)
        except OSError:  # Linux says so where the other end is closed
            pass

    reader = Thread(target=read)
    reader.start()
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    command = [sys.executable, "-c", CALLS, str(folder / "calls.json")]
    with (folder / "err.txt").open("w") as err:
        subprocess.run(
            command, stdout=theirs, stderr=err, env=environment | {"TERM": "xterm"}, check=False, timeout=600
        )
    os.close(theirs)
    reader.join(60)
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", b"".join(shown).decode()).replace("\r\n", "\n")
    parts = [part.partition("\n") for part in text.split("\f")[1:]]
    assert len(parts) == len(calls), (folder / "err.txt").read_text()
    return [(words, lines.splitlines()) for words, _, lines in parts]


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
def test_every_table_is_complete(walk: Path, tmp_path: Path) -> None:
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
    shown = in_terminal(calls, folder)
    for words, lines in shown:
        assert "exit code 2" not in lines, (words, (folder / "err.txt").read_text())
        found = tables(lines)
        assert found, (words, lines)
        for line in (line for table in found for line in table):
            assert len(line.rstrip()) <= WIDTH, (words, line)
            assert not re.search(r"[0-9]…|…[0-9]|^\s*…\s*$", line), (words, line)
        for line in lines:  # words of sentences are whole, and only a word alone may be longer than the terminal
            assert len(line.rstrip()) <= WIDTH or " " not in line.strip(), (words, line)


def test_a_table_that_is_too_wide_is_stacked(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(console.out, "console", Console(file=screen, width=WIDTH, force_terminal=True, soft_wrap=True))
    names = ["ease + calibrated-popularity 0.9", "* mine + dial -0.25 + calibrated-popularity 0.9 depth=200"]
    header = ["", *(f"NDCG@20 of estimate {number}" for number in range(9))]
    console.print_table("Candidates", header, [[name, *["12,345.1234"] * 9] for name in names])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= WIDTH
    assert sum(line.count("12,345.1234") for line in lines) == 18
    assert sum("calibrated-popularity 0.9" in line for line in lines) >= 4, "a name in each part"
    assert len(tables(lines)) > 1
    console.out.print("a word " * 20 + "/a/path" * 20)
    assert screen.getvalue().splitlines()[-1] == "/a/path" * 20, "whole, so that it can be clicked"


@pytest.mark.slow
def test_every_page_of_help_is_complete(tmp_path: Path) -> None:
    for words, lines in in_terminal([("--help",), *((*name.split(), "--help") for name in NAMES)], tmp_path):
        text = "\n".join(lines)
        assert max(len(line.rstrip()) for line in lines) <= WIDTH, words
        assert not re.search(r"<\w+( range)?>|\[x[<>]", text), words
        assert f"dpaa {words.removesuffix('--help')}".strip() in text.partition("Example")[2], words
        for line in lines:
            assert not re.search(r"\w…\s*│?$", line.rstrip()), (words, line)
    first = dpaa_ok("--help").out.partition("Start here")[2].partition("╰")[0]
    assert re.findall(r"│ (\w+) ", first) == ["audit", "debias", "evaluate", "recommend", "report"]

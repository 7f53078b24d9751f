"""Notations of options: `VALUE,PARAMETER=VALUE,…`, goals and values to reach, pages and numbers of `--out`."""

from pathlib import Path
from typing import Any

import pytest

from dpaa.cli import options
from dpaa.errors import InputError
from dpaa.serving.options import ServeOptions
from tests.command import dpaa_ok, run_dpaa

KINDS: dict[str, Any] = {"value": int, "threads": int, "share": float}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("2", {"value": 2}),
        ("2, threads=3", {"value": 2, "threads": 3}),
        ("share=0.5,threads=3", {"share": 0.5, "threads": 3}),
    ],
)
def test_values_are_read_by_name(text: str, values: dict[str, Any]) -> None:
    assert options.parse_values(text, "workers", **KINDS) == values


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("many", "--workers takes a whole number, got 'many'"),
        ("2,threads=0.5", "--workers takes a whole number for threads, got '0.5'"),
        ("2,share=x", "--workers takes a number for share, got 'x'"),
        ("2,3", "--workers cannot have '3'; it takes threads=…, share=…, each once, separated by commas"),
        ("2,threads=1,threads=2", "--workers cannot have 'threads=2'"),
        ("2,cores=1", "--workers cannot have 'cores=1'"),
        ("", "--workers cannot have ''"),
    ],
)
def test_wrong_values_are_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        options.parse_values(text, "workers", **KINDS)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(("text", "pairs"), [("5", (5, 5)), ("user=5,item=2", (5, 2)), ("item=2", (1, 2))])
def test_fewest_pairs(text: str, pairs: tuple[int, int]) -> None:
    assert tuple(options.parse_min_pairs(text).values()) == pairs


def test_confidence_is_given_with_the_promise() -> None:
    assert "keep_accuracy" not in options.ChoiceOptions(goals=["coverage"]).arguments
    how = options.ChoiceOptions(keep_accuracy="0.9,confidence=0.8").arguments
    assert how["goals"] == ("niche-recall",)
    assert (how["keep_accuracy"], how["confidence"]) == (0.9, 0.8)


def test_a_service_has_at_least_one_of_each() -> None:
    for name in ("workers", "threads", "most_waiting"):
        with pytest.raises(InputError, match=f"{name} must be at least 1"):
            ServeOptions(Path("run"), **{name: 0})


def test_pages_and_numbers_are_told_apart_by_their_ending(walk: Path, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    page, numbers = tmp_path / "audit.html", tmp_path / "audit.prom"
    call = ("audit", walk / "data", "--out", page, "--out", numbers)
    dpaa_ok(*call)
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert numbers.read_text().endswith("# EOF\n")
    refused = run_dpaa(*call)
    assert (refused.code, refused.err) == (2, f"error: {page} already exists; pass --overwrite or name another file\n")
    dpaa_ok(*call, "--overwrite")


def test_an_option_that_has_left_is_refused(walk: Path) -> None:
    refused = run_dpaa("evaluate", walk / "run", "--dial-objective", "ndcg")
    assert refused.code == 2
    assert refused.err.startswith("error: no such option: --dial-objective")
    assert refused.err.endswith("see dpaa evaluate --help\n")


def test_memory_is_that_of_duckdb(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user_id,item_id\n1,2\n")
    log = ("data", "log", tmp_path / "log.csv", "--out", tmp_path / "data")
    for words in (("--engine", "spark", "--memory", "2"), ("--memory", "0.01"), ("--memory", "nan")):
        assert run_dpaa(*log, *words).err.startswith("error: --memory is that of DuckDB, 0.1 GB or more, got"), words
    assert run_dpaa(*log, "--engine", "polars").err == "error: --engine is duckdb or spark, got 'polars'\n"

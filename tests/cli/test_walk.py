"""The whole walk, command by command, as a user types it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

import dpaa
from dpaa.methods import METHODS
from tests.cli.conftest import TINY
from tests.command import dpaa_ok, run_dpaa


@pytest.fixture
def run(walk: Path, tmp_path: Path) -> Path:
    """A copy of the run, for commands that write into it."""
    return Path(shutil.copytree(walk / "run", tmp_path / "run"))


def test_version() -> None:
    assert dpaa_ok("--version").out == f"dpaa {dpaa.__version__}\n"


@pytest.mark.parametrize(
    "command",
    [
        *("demo", "train", "evaluate", "recommend", "methods"),
        *(f"data {source}" for source in ("log", "splits", "coat", "yahoo-r3", "kuairec", "demo", "describe")),
    ],
)
def test_help_has_an_example(command: str) -> None:
    shown = dpaa_ok(*command.split(), "--help").out
    assert "Example" in shown
    assert f"dpaa {command}" in shown.partition("Example")[2]
    assert dpaa_ok(*command.split(), "-h").out == shown


@pytest.mark.parametrize("command", [[], ["data"]])
def test_without_a_command_the_help_is_shown(command: list[str]) -> None:
    said = run_dpaa(*command)
    assert said.code == 2
    assert "Usage" in said.out + said.err
    assert "error:" not in said.err


def test_from_a_log_to_recommendations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [(f"u{u}", 10**15 + i, 1 + (u * i) % 5, 1000 * i + u) for u in range(30) for i in range(u % 5, 20, 2)]
    schema = ["customer_id", "product_id", "stars", "ts"]
    pl.DataFrame(rows, schema=schema, orient="row").write_csv("log.csv")
    said = dpaa_ok("data", "log", "log.csv", "--positive", "stars>=2", "--split", "leave-last", "--out", "data")
    assert "next: dpaa train data --out RUN" in said.out
    assert "rows are not positive (stars >= 2) and were dropped" in said.err
    assert "best epoch" in dpaa_ok("train", "data", *TINY, "--out", "run").out
    assert "recall" in dpaa_ok("evaluate", "run").out
    dpaa_ok("recommend", "run", "--k", 2, "--out", "recs.parquet")
    recommended = pl.read_parquet("recs.parquet")
    assert recommended.schema == {"user_id": pl.String, "item_id": pl.Int64, "score": pl.Float32, "rank": pl.Int32}
    assert recommended["item_id"].min() >= 10**15  # type: ignore[operator]


def test_from_ready_made_splits(walk: Path, tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        pl.read_parquet(walk / "data" / f"{split}.parquet").write_csv(tmp_path / f"{split}.csv")
    files = [word for split in ("train", "valid", "test") for word in (f"--{split}", tmp_path / f"{split}.csv")]
    dpaa_ok("data", "splits", *files, "--out", tmp_path / "data")
    found = [json.loads(dpaa_ok("data", "describe", folder / "data", "--json").out) for folder in (walk, tmp_path)]
    assert found[0]["fingerprint"] == found[1]["fingerprint"]
    dpaa_ok("evaluate", walk / "run", "--dataset", tmp_path / "data")


def test_from_coat(real_data: Path, tmp_path: Path) -> None:
    dpaa_ok("data", "coat", real_data / "coat", "--out", tmp_path / "coat")
    dpaa_ok("train", tmp_path / "coat", "--method", "most-popular", "--out", tmp_path / "run")
    found = json.loads(dpaa_ok("evaluate", tmp_path / "run", "--json").out)
    about = json.loads(dpaa_ok("data", "describe", tmp_path / "coat", "--json").out)
    assert found["protocol"]["overlapping"] == about["overlap"]["train & test"] > 0


def test_what_is_there_is_overwritten_when_asked(walk: Path, tmp_path: Path) -> None:
    for method in ("lightgcn", "most_popular"):
        dpaa_ok("train", walk / "data", "--method", method, *(TINY if method == "lightgcn" else ()),
                "--out", tmp_path / "run", "--overwrite")  # fmt: skip
    assert json.loads((tmp_path / "run" / "config.json").read_text()) == {"method": "most-popular", "seed": 0}
    assert not (tmp_path / "run" / "history.jsonl").exists()
    for name in ("recs.csv", "recs.parquet"):
        for k in (1, 2):
            dpaa_ok("recommend", tmp_path / "run", "--k", k, "--out", tmp_path / name, "--overwrite")
    assert pl.read_csv(tmp_path / "recs.csv")["rank"].max() == 2


def test_evaluate(run: Path) -> None:
    shown = dpaa_ok("evaluate", run, "--k", 10, "--k", 5)
    assert "lists of 5" in shown.out
    assert "overlap convention 'drop'" in shown.out
    assert shown.err == ""
    said = dpaa_ok("evaluate", run, "--overlap", "keep", "--mask-valid", "--json")
    found = json.loads(said.out)
    assert found["metrics"].keys() >= {"recall@20", "ndcg@20/niche", "hit@20", "arp@20"}
    assert found["protocol"]["overlap"] == "keep"
    assert found["protocol"]["mask_valid"] is True
    assert json.loads((run / "metrics.json").read_text())["protocol"] == found["protocol"]
    assert "user_id" in pl.read_parquet(run / "per_user.parquet").columns


def test_recommend_to_files(walk: Path, tmp_path: Path) -> None:
    run = walk / "run"
    for name in ("recs.parquet", "recs.csv"):
        said = dpaa_ok("recommend", run, "--k", 3, "--out", tmp_path / name)
        assert "recommendations written to" in said.out
    found = pl.read_parquet(tmp_path / "recs.parquet")
    assert found.columns == ["user_id", "item_id", "score", "rank"]
    assert found.equals(dpaa.load(run).recommend(k=3))
    text = pl.read_csv(tmp_path / "recs.csv")
    assert text["item_id"].equals(found["item_id"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["recs.csv", "recs.parquet"]


def test_recommend_to_some(walk: Path, tmp_path: Path) -> None:
    run, out = walk / "run", tmp_path / "recs.parquet"
    model = dpaa.load(run)
    users = model.user_ids.head(4).to_list()
    (tmp_path / "who.txt").write_text(f"{users[1]}\n\n{users[2]}\r\n")
    dpaa_ok("recommend", run, "--users", users[3], "--users", f"@{tmp_path / 'who.txt'}", "--out", out)
    assert pl.read_parquet(out)["user_id"].unique(maintain_order=True).to_list() == [users[3], users[1], users[2]]
    items = model.item_ids.head(6).to_list()
    (tmp_path / "what.txt").write_text("\n".join(items))
    dpaa_ok("recommend", run, "--items", f"@{tmp_path / 'what.txt'}", "--exclude", items[0], "--seen", "--k", 9,
            "--out", out, "--overwrite")  # fmt: skip
    assert pl.read_parquet(out).group_by("user_id").agg(pl.col("item_id").sort())["item_id"].to_list() == [
        items[1:]
    ] * len(model.user_ids)


def test_recommend_to_newcomers(walk: Path, tmp_path: Path) -> None:
    run = walk / "run"
    items = dpaa.load(run).item_ids
    history = pl.DataFrame({"who": [7, 7, 8, 9], "what": [items[0], items[1], "unheard-of", items[2]]})
    history.write_csv(tmp_path / "new.csv")
    columns = ("--user-column", "who", "--item-column", "what")
    said = dpaa_ok("recommend", run, "--history", tmp_path / "new.csv", *columns, "--k", 4, "--out", tmp_path / "r.csv")
    assert "1 history row names an item the model does not know" in said.err
    found = pl.read_csv(tmp_path / "r.csv")
    assert found["user_id"].to_list() == [7] * 4 + [9] * 4
    assert not set(found.filter(pl.col("user_id") == 7)["item_id"]) & {items[0], items[1]}


def test_recommend_shows_some(walk: Path) -> None:
    said = dpaa_ok("recommend", walk / "run", "--k", 2)
    assert "preview of the first users" in said.err
    users = dpaa.load(walk / "run").user_ids
    assert all(user in said.out for user in users.head(3))
    assert users[3] not in said.out
    said = dpaa_ok("recommend", walk / "run", "--k", 2, "--users", users[3])
    assert users[3] in said.out
    assert said.err == ""


def test_methods() -> None:
    shown = dpaa_ok("methods").out
    assert all(name in shown for name in METHODS)
    listed = json.loads(dpaa_ok("methods", "--json").out)
    assert list(listed) == list(METHODS)
    assert "embedding_size = 64" in dpaa_ok("methods", "lightgcn").out
    one = json.loads(dpaa_ok("methods", "most_popular", "--json").out)
    assert one["most-popular"]["settings"]["seed"]["default"] == 0


def test_json_is_all_there_is_on_stdout(walk: Path, run: Path) -> None:
    for command in (["data", "describe", walk / "data"], ["evaluate", run], ["methods"]):
        assert isinstance(json.loads(dpaa_ok(*command, "--json").out), dict)

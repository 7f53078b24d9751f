"""`dpaa recommend`, `similar` and `rerank`: to files and on the screen."""

import json
from pathlib import Path

import polars as pl
import pytest

import dpaa
from dpaa.cli.options import read_ids
from tests.command import dpaa_ok, run_dpaa


def test_recommend_to_some(walk: Path, tmp_path: Path) -> None:
    run, out = walk / "run", tmp_path / "recs.parquet"
    model = dpaa.load(run)
    users = model.user_ids.head(4).to_list()
    (tmp_path / "who.txt").write_text(f"{users[1]}\n\n{users[2]}\r\n")
    dpaa_ok("recommend", run, "--users", users[3], "--users", f"@{tmp_path / 'who.txt'}", "--out", out)
    assert pl.read_parquet(out)["user_id"].unique(maintain_order=True).to_list() == [users[3], users[1], users[2]]
    items = model.item_ids.head(6).to_list()
    (tmp_path / "what.txt").write_text("\n".join(items))
    dpaa_ok("recommend", run, "--items", f"@{tmp_path / 'what.txt'}", "--exclude", items[0], "--include-seen", "--k", 9,
            "--out", out, "--overwrite")  # fmt: skip
    assert pl.read_parquet(out).group_by("user_id").agg(pl.col("item_id").sort())["item_id"].to_list() == [
        items[1:]
    ] * len(model.user_ids)


def test_recommend_shows_some(walk: Path) -> None:
    said = dpaa_ok("recommend", walk / "run", "--k", 2)
    assert "preview of the first users" in said.err
    users = dpaa.load(walk / "run").user_ids
    assert all(user in said.out for user in users.head(3))
    assert users[3] not in said.out
    said = dpaa_ok("recommend", walk / "run", "--k", 2, "--users", users[3])
    assert users[3] in said.out
    assert said.err == ""


def test_recommend_within_limits_and_to_anybody(walk: Path, tmp_path: Path) -> None:
    model, out = dpaa.load(walk / "run"), tmp_path / "recs.csv"
    known = model.user_ids[0]
    stock = model.item_ids.head(30).to_list()
    (tmp_path / "stock.csv").write_text("item_id,left\n" + "".join(f"{one},3\n" for one in [*stock, "nothing"]))
    first = model.recommend(["nobody"], 1, items=stock)["item_id"][0]
    (tmp_path / "bought.csv").write_text(f"who,what\nnobody,{first}\n")
    (tmp_path / "new.csv").write_text(f"who,what\nnew,{stock[3]}\nnew,unheard-of\n")
    asked = ["--users", known, "--users", "nobody", "--users", "new", "--items", f"@{tmp_path / 'stock.csv'}"]
    said = dpaa_ok("recommend", walk / "run", *asked, "--exclude-pairs", tmp_path / "bought.csv",
                   "--history", tmp_path / "new.csv", "--columns", "user=who,item=what", "--k", 3,
                   "--out", out)  # fmt: skip
    found = pl.read_csv(out)
    assert found.columns == ["user_id", "item_id", "score", "rank", "source"]
    assert found["source"].to_list() == ["model"] * 3 + ["popularity"] * 3 + ["history"] * 3
    assert set(found["item_id"]) <= set(stock)
    assert first not in found.filter(pl.col("user_id") == "nobody")["item_id"].to_list()
    assert stock[3] not in found.filter(pl.col("user_id") == "new")["item_id"].to_list()
    note = "2 users have no training pairs: lists from the history for 1, the popularity list for 1, such as 'nobody'"
    assert note in said.err
    assert "1 item is not known to the model and left out ('nothing')" in said.err
    said = dpaa_ok("evaluate", out, "--dataset", walk / "data", "--k", 3)  # unknown users are left out
    assert "6 rows of users and 0 of items that are not in the data" in said.err
    assert "source" in dpaa_ok("recommend", walk / "run", "--users", "nobody", "--k", 2).out


def test_recommend_in_shards(walk: Path, tmp_path: Path) -> None:
    run, lists = walk / "run", tmp_path / "lists"
    dpaa_ok("recommend", run, "--k", 3, "--out", tmp_path / "whole.parquet")
    for number in (2, 1, 3):
        dpaa_ok("recommend", run, "--k", 3, "--shard", f"{number}/3", "--out", lists)
    whole = pl.read_parquet(tmp_path / "whole.parquet")
    assert pl.read_parquet(lists / "*.parquet").equals(whole)
    data = ("--dataset", walk / "data", "--k", 3, "--json")
    measured = [dpaa_ok("evaluate", place, *data).out for place in (lists, tmp_path / "whole.parquet")]
    assert measured[0] == measured[1].replace("whole.parquet", "lists")

    second = lists / "part-00002-of-00003.parquet"
    before = second.stat().st_mtime_ns
    said = dpaa_ok("recommend", run, "--k", 3, "--shard", "2/3", "--out", lists)
    assert "shard 2 of 3 is in" in said.out
    assert second.stat().st_mtime_ns == before
    second.unlink()
    missing = run_dpaa("evaluate", lists, *data)
    assert "lacks 1 of 3 shards (2)" in missing.err
    dpaa_ok("recommend", run, "--k", 3, "--shard", "2/3", "--out", lists)
    assert pl.read_parquet(lists / "*.parquet").equals(whole)
    for more in (["--k", 4], ["--k", 3, "--include-seen"], ["--k", 3, "--shard", "1/4"]):
        other = run_dpaa("recommend", run, "--shard", "1/3", *more, "--out", lists)
        assert other.code == 2
        assert "holds shards with another" in other.err
    assert run_dpaa("recommend", run, "--shard", "1/3").code == 2


def test_similar(walk: Path, tmp_path: Path) -> None:
    model = dpaa.load(walk / "run")
    first, second = model.item_ids[0], model.item_ids[1]
    found = model.similar_items([first, second], 3)
    said = dpaa_ok("similar", walk / "run", first, second, "--k", 3)
    assert "Similar items" in said.out
    assert all(one in said.out for one in found["similar_item_id"])
    told = json.loads(dpaa_ok("similar", walk / "run", first, second, "--k", 3, "--json").out)
    assert [row["similar_item_id"] for row in told["similar"]] == found["similar_item_id"].to_list()
    dpaa_ok("similar", walk / "run", first, second, "--k", 3, "--out", tmp_path / "s.parquet")
    assert pl.read_parquet(tmp_path / "s.parquet").equals(found)
    assert run_dpaa("similar", walk / "run", first, "--out", tmp_path / "s.parquet").code == 2


def test_a_file_and_a_run_give_the_same(walk: Path, tmp_path: Path) -> None:
    run, data = walk / "run", walk / "data"
    dpaa_ok("recommend", run, "--k", 80, "--out", tmp_path / "recs.parquet")
    words = ("--method", "xquad,strength=0.7,coverage=smooth", "--k", 5)
    said = dpaa_ok("rerank", tmp_path / "recs.parquet", "--dataset", data, *words, "--out", tmp_path / "file.csv")
    assert f"{5 * len(pl.read_parquet(run / 'users.parquet'))} recommendations written to" in said.out
    assert "re-ranked by xquad,depth=100,strength=0.7,coverage=smooth,popular_mass=0.8" in said.out
    assert said.err == ""
    dpaa_ok("rerank", run, *words, "--dataset", data, "--out", tmp_path / "run.parquet")
    dpaa_ok(
        "recommend", run, "--k", 5, "--rerank", "xquad,strength=0.7,coverage=smooth", "--out", tmp_path / "same.parquet"
    )
    lists = [
        pl.read_csv(tmp_path / "file.csv"),
        *(pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("run", "same")),
    ]
    assert lists[0]["item_id"].equals(lists[1]["item_id"])
    assert lists[1].equals(lists[2])
    plain = pl.read_parquet(tmp_path / "recs.parquet").filter(pl.col("rank") <= 5)
    assert not lists[1]["item_id"].equals(plain["item_id"])


def test_ids_come_with_commas_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "one,two.txt"
    file.write_text("7\n\n9\n")
    assert read_ids(["4,196", f"@{file}"], pl.Series([1, 2]), "user").to_list() == [4, 196, 7, 9]
    assert read_ids(["a,@@at", "3"], pl.Series(["a"]), "user").to_list() == ["a", "@at", "3"]
    file.write_text("x,y\nz\n")
    assert read_ids([f"@{file}"], pl.Series(["a"]), "item").to_list() == ["x,y", "z"]
    with pytest.raises(dpaa.InputError, match="but '' is not"):
        read_ids(["4,"], pl.Series([1]), "user")

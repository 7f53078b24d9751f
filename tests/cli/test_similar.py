"""`dpaa similar`: the items of `Model.similar_items`, shown, as JSON, in a file."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

import dpaa
from tests.command import dpaa_ok, run_dpaa


def test_similar(walk: Path, tmp_path: Path) -> None:
    model = dpaa.load(walk / "run")
    first, second = model.item_ids[0], model.item_ids[1]
    found = model.similar_items([first, second], 3)
    said = dpaa_ok("similar", walk / "run", "--item", first, "--item", second, "--k", 3)
    assert "Similar items" in said.out
    assert all(one in said.out for one in found["similar_item_id"])
    told = json.loads(dpaa_ok("similar", walk / "run", "--item", first, "--item", second, "--k", 3, "--json").out)
    assert [row["similar_item_id"] for row in told["similar"]] == found["similar_item_id"].to_list()
    dpaa_ok("similar", walk / "run", "--item", first, "--item", second, "--k", 3, "--out", tmp_path / "s.parquet")
    assert pl.read_parquet(tmp_path / "s.parquet").equals(found)
    assert run_dpaa("similar", walk / "run", "--item", first, "--out", tmp_path / "s.parquet").code == 2


def test_unknown_items_are_counted(walk: Path) -> None:
    first = dpaa.load(walk / "run").item_ids[0]
    words = ("similar", walk / "run", "--item", "hat", "--item", first, "--item", "shoe", "--item", "hat", "--json")
    said = dpaa_ok(*words)
    assert {row["item_id"] for row in json.loads(said.out)["similar"]} == {first}
    assert "2 items are not known to the model and left out ('hat', 'shoe')" in said.err
    refused = run_dpaa("similar", walk / "run", "--item", "hat")
    assert (refused.code, refused.out) == (2, "")
    assert "1 item is not known to the model and left out ('hat'); give an item of the training log" in refused.err

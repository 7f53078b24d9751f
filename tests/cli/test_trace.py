"""`dpaa trace` as a user meets it."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import TINY
from tests.command import dpaa_ok


@pytest.fixture(scope="module")
def weighted(walk: Path) -> Path:
    """A run of DPAA, its pre-trained model beside it."""
    dpaa_ok("train", walk / "data", *TINY, "--method", "dpaa", "--out", walk / "traced" / "dpaa")
    return walk / "traced" / "dpaa"


def test_verdicts_come_first_and_name_their_rule(weighted: Path) -> None:
    lines = dpaa_ok("trace", weighted).out.splitlines()
    assert lines[0].startswith("dpaa weights messages by layer 0: there the premise ")
    assert lines[1].startswith("  layer 0: the premise ")
    assert lines[4].startswith("  read-out: the premise ")
    assert lines[5].startswith("  layer 0 of the pre-trained model: the premise ")
    assert lines[9].startswith("rule: ")
    for title in ("Lemma 1", "some epochs", "messages of layer 1"):
        assert title in "\n".join(lines[9:])


def test_json_is_one_object_beside_figures(weighted: Path, tmp_path: Path) -> None:
    said = dpaa_ok("trace", weighted, "--json", "--figures", tmp_path / "drawn")
    found = json.loads(said.out)  # what is said about figures goes to the other stream
    assert found["method"] == "dpaa"
    assert {verdict["verdict"] for verdict in found["premises"]} <= {"holds", "flat", "reversed"}
    assert len(found["weights"]) == 2
    assert [pair["groups"] for pair in found["contributions"]] == ["popular / niche", "decile 10 / decile 1"]
    assert [line["epoch"] for line in found["epochs"]] == [1, 2, 3]
    assert dpaa_ok("trace", weighted, "--json").out == said.out
    assert len(list((tmp_path / "drawn").glob("*.svg"))) == len(list((tmp_path / "drawn").glob("*.png"))) == 3
    assert "figures written to" in said.err

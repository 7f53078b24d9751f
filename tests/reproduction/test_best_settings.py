"""The table of settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.command import dpaa_ok
from tests.reproduction.conftest import TINY, places


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

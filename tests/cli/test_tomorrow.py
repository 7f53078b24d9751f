"""docs/how-to/tomorrow.md can be pasted: the first evening and two nights after it."""

import itertools
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dpaa
from dpaa.data.sources.world import simulate
from tests.command import dpaa_ok

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "tomorrow.md"


def paste(commands: str) -> str:
    """Each line as it stands; ours in this process."""
    said = ""
    for line in commands.strip().splitlines():
        if line.startswith("dpaa "):
            told = dpaa_ok(*shlex.split(line)[1:])
            said += told.out + told.err
        else:
            subprocess.run(["bash", "-e", "-c", line], check=True)
    return said


@pytest.mark.usefixtures("short_trainings")
def test_the_page_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    log = simulate(users=180, items=140, seed=2).frame("train").select("user_id", "item_id")
    late = log["user_id"].unique().sort().tail(6).implode()
    log = log.with_columns(timestamp=pl.Series(rng.permutation(len(log)))).with_columns(
        timestamp=pl.when(pl.col("user_id").is_in(late)).then(len(log)).otherwise(0) + pl.col("timestamp")
    )
    log = log.sort("timestamp")
    cut = [0, len(log) - 160, len(log) - 80, len(log)]
    days = [log[first:last] for first, last in itertools.pairwise(cut)]
    first, nightly, one = re.findall(r"```console\n(.*?)```", PAGE.read_text(), flags=re.S)
    days[0].write_csv("first.csv")
    paste(first)
    for day in days[1:]:
        before = dpaa.load("runs/live")
        day.write_csv("today.csv")
        said = paste(nightly.replace("0.98 *", "0.5 *"))  # times are random here: the log has no trend to follow
        assert "joined dataset" in said
        assert "users and items keep their vectors" in said
        now = dpaa.load("runs/live")
        assert now.manifest["warm_start"]["fingerprint"] == before.trained_on.fingerprint
        assert set(pl.read_parquet("lists.parquet")["user_id"]) == set(now.user_ids)
    data = dpaa.read_dataset("data/shop")
    assert data.n_interactions == len(log)
    assert [one["new_pairs"] for one in data.about["appended"]] == [80, 80]
    assert data.frame("test")["timestamp"].min() > data.frame("train")["timestamp"].max()  # type: ignore[operator]
    Path("visitors.csv").write_text(f"user_id\n{data.user_ids[0]}\nnobody\n")
    Path("in-stock.csv").write_text("item_id\n" + "\n".join(data.item_ids.head(40)))
    Path("bought.csv").write_text(f"user_id,item_id\nnobody,{data.item_ids[0]}\n")
    assert "1 user has no training pairs" in paste(one)
    assert pl.read_csv("lists.csv")["source"].unique(maintain_order=True).to_list() == ["model", "popularity"]

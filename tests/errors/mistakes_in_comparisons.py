"""Comparisons of runs and recommendation files."""

from __future__ import annotations

from pathlib import Path

from tests.errors.mistake import Mistake
from tests.errors.workshop import edit_json

RECS = "user_id,item_id,rank\nu0002,i0001,1\nu0002,i0002,2\n"
FILES = {"a.csv": RECS, "b.csv": RECS.replace("i0002", "i0003")}


def compare(kind: str, options: str, *says: str) -> Mistake:
    return Mistake(kind, f"dpaa compare {options}", says, FILES)


def moved() -> None:
    edit_json(Path("run/manifest.json"), dataset={"name": "x", "fingerprint": "y", "path": "/gone/data"})


def nowhere() -> None:
    edit_json(Path("run/manifest.json"), dataset={"name": "x", "fingerprint": "y", "path": None})


COMPARE = [
    compare("one run to compare", "run", "name at least two runs or files to compare"),
    compare("the same run twice", "run ./run", "to compare, each once; got run, run"),
    compare("something to compare that is not there", "run nowhere", "there is no file nowhere"),
    compare("a dataset among the runs to compare", "run data", "data is not a run folder"),
    compare("a folder to compare that is no run", "run diary", "diary is not a run folder"),
    compare("an unfinished run to compare", "run unfinished", "unfinished is an unfinished run"),
    compare(
        "runs on different datasets",
        "run numbers-run",
        "was trained on another dataset than",
        "or on later states of its log",
    ),
    compare("runs compared on another dataset", "run a.csv --dataset numbers", "trained on another dataset"),
    compare("files to compare and no dataset", "a.csv b.csv", "a.csv does not say", "--dataset"),
    Mistake(
        "a run to compare whose dataset has moved",
        "dpaa compare run a.csv",
        ("no longer at /gone/data", "--dataset"),
        FILES,
        moved,
    ),
    compare("a table to compare that is no recommendations", "run log.csv", "no user in log.csv is in the dataset"),
    compare("a baseline that is not there", "run a.csv --baseline b", "baseline 'b'", "choose from run, a.csv"),
    compare("a metric that does not exist", "run a.csv --metric recal", "no metric 'recal'", "did you mean recall@20?"),
    compare("a metric of other lists", "run a.csv --metric recall@5", "no metric 'recall@5' of lists of 20"),
    compare("lists of length 0 to compare", "run a.csv --k 0", "'--k'", "'0'"),
    compare("a margin that is a percentage", "run a.csv --margin 5", "margin must be between 0 and 1, got 5"),
    compare("a margin of nothing", "run a.csv --margin 0", "margin must be between 0 and 1, got 0"),
    compare("an overlap convention to compare by", "run a.csv --overlap no", "one of drop, mask, keep", "'no'"),
    compare("a comparison in another format", "run a.csv --out c.pdf", "'.pdf'", "written to .json"),
    compare("a comparison that is there", "run a.csv --out run/config.json", "already exists; pass --overwrite"),
    compare("no folder for the comparison", "run a.csv --out no/c.json", "there is no folder no"),
    compare("a comparison where nobody may write", "run a.csv --out /proc/c.json", "cannot write /proc/c.json"),
]

SECTIONS = {"Comparisons": COMPARE}

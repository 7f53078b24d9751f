"""Searches for settings: what can be tuned, where it is kept."""

from __future__ import annotations

from pathlib import Path

from tests.command import dpaa_ok
from tests.errors.mistake import Mistake


def tune(kind: str, options: str, *says: str) -> Mistake:
    return Mistake(kind, f"dpaa tune data {options}".strip(), says)


def begun() -> None:
    """A study of item-knn, done."""
    dpaa_ok("tune", "data", "--method", "item-knn", "--trials", 1, "--seeds", 0, "--out", "study")


def spoiled_storage() -> None:
    begun()
    Path("study/study.sqlite").write_bytes(b"nothing of the kind" * 100)


TUNE = [
    tune("a method to tune that does not exist", "--method dpa", "there is no method 'dpa'", "did you mean dpaa?"),
    tune(
        "a goal that does not exist",
        "--method ease --metric fame@20",
        "there is no metric 'fame@20'",
        "such as recall@20",
    ),
    tune("a loss without its share", "--method ease --most-loss ndcg@20", "KEY=SHARE", "ndcg@20=2%"),
    tune(
        "a search space that does not exist", "--method dpaa --space narrow", "no search space 'narrow'", "wide, paper"
    ),
    tune(
        "a setting both fixed and searched",
        "--method dpaa --set layers=2 --try layers=1,2",
        "hyperparameter layers: no value to try, or it is fixed too",
    ),
    tune(
        "a setting to search that does not exist", "--method dpaa --try layer=2", "no hyperparameter 'layer'", "layers?"
    ),
    tune("a value to try that is none", "--method dpaa --try layers=1,many", "hyperparameter layers", "got 'many'"),
    tune("no value to try", "--method dpaa --try layers=", "hyperparameter layers: no value to try"),
    tune("a seed among the settings of a search", "--method dpaa --set seed=3", "--seed"),
    tune("no trials", "--method dpaa --trials 0", "trials must be at least 1, got 0"),
    Mistake(
        "tuning without a validation split",
        "dpaa tune untested --method dpaa",
        ("no valid pair is left to evaluate", "a larger split"),
    ),
    tune("a study in a file", "--method dpaa --out log.csv", "log.csv holds something else", "--out"),
    tune("a study among other things", "--method dpaa --out diary", "diary holds something else", "--out"),
    tune("a study where nobody may write", "--method dpaa --out /proc/study", "cannot write /proc/study", "--out"),
    Mistake(
        "another study in the folder",
        "dpaa tune data --method ease --out study",
        ("study belongs to a call with another method", "--out"),
        spoil=begun,
    ),
    Mistake(
        "a study resumed with another space",
        "dpaa tune data --method item-knn --try neighbours=5,6 --out study",
        ("another space", "neighbours", "'5 · 6'"),
        spoil=begun,
    ),
    Mistake(
        "a study whose storage is spoiled",
        "dpaa tune data --method item-knn --out study",
        ("cannot use the storage study/study.sqlite",),
        spoil=spoiled_storage,
    ),
    tune(
        "a storage that cannot be reached",
        "--method dpaa --storage sqlite:////gone/study.db",
        "cannot use the storage sqlite:////gone/study.db (No such file",
    ),
]

SECTIONS = {"Studies": TUNE}

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


def spoiled_about() -> None:
    begun()
    Path("study/study.json").write_text("{")


def spoiled_storage() -> None:
    begun()
    Path("study/study.sqlite").write_bytes(b"nothing of the kind" * 100)


TUNE = [
    tune("no method to tune", "", "missing option '--method'"),
    tune("a method to tune that does not exist", "--method dpa", "there is no method 'dpa'", "did you mean dpaa?"),
    tune(
        "a method without settings to tune",
        "--method most-popular",
        "nothing to tune: most-popular has no settings to search",
        "dpaa train",
    ),
    tune("a goal that does not exist", "--method ease --metric fame@20", "there is no metric 'fame@20'", "NAME@K"),
    tune("three metrics", "--method ease --metric arp@20 --metric gini@20 --metric hit@5", "one metric or two, got 3"),
    tune("a loss without its share", "--method ease --most-loss ndcg@20", "KEY=SHARE", "ndcg@20=2%"),
    tune("a search in which all is fixed", "--method ease --set ridge=3", "nothing to tune", "is fixed"),
    tune(
        "a search space that does not exist", "--method dpaa --space narrow", "no search space 'narrow'", "wide, paper"
    ),
    tune(
        "a setting both fixed and searched", "--method dpaa --set layers=2 --try layers=1,2", "both fixed and searched"
    ),
    tune("a setting to fix that does not exist", "--method dpaa --set layer=2", "no hyperparameter 'layer'", "layers?"),
    tune(
        "a setting to search that does not exist", "--method dpaa --try layer=2", "no hyperparameter 'layer'", "layers?"
    ),
    tune("a value to try that is none", "--method dpaa --try layers=1,many", "hyperparameter layers", "got 'many'"),
    tune("no value to try", "--method dpaa --try layers=", "hyperparameter layers: no value to try"),
    tune("values to try without a name", "--method dpaa --try 1,2", "--try takes NAME=A,B,…, got '1,2'"),
    tune("a seed among the settings of a search", "--method dpaa --set seed=3", "--seed"),
    tune("no trials", "--method dpaa --trials 0", "trials must be at least 1, got 0"),
    tune("no job", "--method dpaa --jobs 0", "jobs must be at least 1, got 0"),
    tune("fewer than no seeds", "--method dpaa --seeds -1", "seeds must be at least 0, got -1"),
    tune("pruning before the beginning", "--method dpaa --prune-after -1", "prune_after must be at least 0, got -1"),
    tune("a seed of the search below 0", "--method dpaa --seed -1", "seed must be at least 0, got -1"),
    Mistake(
        "tuning without a validation split",
        "dpaa tune untested --method dpaa",
        ("the validation split of log is empty", "--valid"),
    ),
    tune("a study in a file", "--method dpaa --out log.csv", "log.csv is a file", "--out"),
    tune("a study among other things", "--method dpaa --out diary", "diary is not empty and holds no study", "--out"),
    tune("a study where nobody may write", "--method dpaa --out /proc/study", "cannot write /proc/study", "--out"),
    Mistake(
        "another study in the folder",
        "dpaa tune data --method ease --out study",
        ("study holds a study with another method ('item-knn', not 'ease')", "--out"),
        spoil=begun,
    ),
    Mistake(
        "a study gone on with otherwise",
        "dpaa tune data --method item-knn --try neighbours=5,6 --out study",
        ("another space", "neighbours", "'5 · 6'"),
        spoil=begun,
    ),
    Mistake(
        "a study whose description is spoiled",
        "dpaa tune data --method item-knn --out study",
        ("study/study.json is not readable",),
        spoil=spoiled_about,
    ),
    Mistake(
        "a study whose storage is spoiled",
        "dpaa tune data --method item-knn --out study",
        ("study/study.sqlite is not a usable Optuna storage",),
        spoil=spoiled_storage,
    ),
    tune(
        "a storage that is no URL", "--method dpaa --storage here", "cannot open the storage here", "sqlite:///study.db"
    ),
    tune(
        "a storage that cannot be reached",
        "--method dpaa --storage sqlite:////gone/study.db",
        "cannot open the storage sqlite:////gone/study.db",
    ),
]

SECTIONS = {"Studies": TUNE}

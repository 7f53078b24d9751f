"""The popularity dial: its κ, its objective, and vectors that serve every κ."""

from __future__ import annotations

from pathlib import Path

from tests.errors.mistake import Mistake
from tests.errors.workshop import edit_json


def turned(kind: str, dial: str, *says: str) -> Mistake:
    return Mistake(kind, f"dpaa recommend run --popularity-dial {dial} --out recs.csv", says)


def measured(kind: str, options: str, *says: str) -> Mistake:
    return Mistake(kind, f"dpaa evaluate {options}", says)


def spoiled(kind: str, dial: object, *says: str) -> Mistake:
    """The manifest of a run was changed by somebody."""
    return Mistake(
        kind,
        "dpaa recommend run --out recs.csv",
        says,
        spoil=lambda: edit_json(Path("run/manifest.json"), dial=dial),
    )


def made() -> None:
    """A folder as an export leaves it."""
    Path("made").mkdir()
    Path("made/users.parquet").write_bytes(b"")


SETTINGS = [
    turned("a dial that is no number", "much", "must be `run` or a number from −1000 to 1000, got 'much'"),
    turned("a dial that is nan", "nan", "must be `run` or a number", "'nan'"),
    turned("a dial turned too far", "-1001", "from −1000 to 1000", "'-1001'"),
    turned("a dial turned to nothing", "''", "must be `run` or a number", "''"),
    measured(
        "a dial that is no number, evaluated", "run --popularity-dial high", "must be `run` or a number", "'high'"
    ),
    spoiled(
        "a stored dial that is no number",
        {"kappa": "high", "suggested": 0.5},
        "the run's popularity dial is damaged (it stands at 'high')",
        "--dial-objective ndcg",
    ),
    Mistake(
        "a stored dial that is no curve",
        "dpaa evaluate run",
        ("curve of the popularity dial is damaged", "choose it again"),
        spoil=lambda: edit_json(Path("run/manifest.json"), dial={"kappa": 3}),
    ),
    Mistake(
        "the dial of lists in a file",
        "dpaa evaluate --recs lists.csv --dataset data --popularity-dial 1",
        ("need the scores of a run, not --recs", "leave them out"),
        {"lists.csv": "user_id,item_id,rank\nu0001,i0001,1\n"},
    ),
]

CHOICES = [
    measured("an objective that does not exist", "run --dial-objective gini", "ndcg, recall or niche:X", "'gini'"),
    measured("niche without its price", "run --dial-objective niche", "niche:X (X% of NDCG may be lost)", "'niche'"),
    measured(
        "niche at a price above 100%",
        "run --dial-objective niche:101",
        "niche:X (X% of NDCG may be lost)",
        "'niche:101'",
    ),
    measured(
        "a choice with a wrong overlap", "run --dial-objective recall --overlap some", "drop, mask, keep", "'some'"
    ),
    measured(
        "a choice on another dataset", "run --dial-objective recall --dataset numbers", "trained on another dataset"
    ),
]

SECTIONS = {"The popularity dial": [*SETTINGS, *CHOICES]}

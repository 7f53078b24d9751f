"""Pages: what they are made of and where they go."""

from __future__ import annotations

import json
from pathlib import Path

from tests.errors.mistake import Mistake
from tests.errors.workshop import edit_json


def other_users() -> None:
    """A run that claims to be of a dataset that has other users."""
    about = json.loads(Path("data/dataset.json").read_text())
    edit_json(
        Path("numbers-run/manifest.json"), dataset={"name": "x", "fingerprint": about["fingerprint"], "path": None}
    )


SECTIONS = {
    "Pages": [
        Mistake("a page of something that is not there", "dpaa report gone --out page.html", ("there is no gone",)),
        Mistake(
            "a page of a folder that is neither dataset nor run",
            "dpaa report diary --out page.html",
            ("diary is neither a prepared dataset nor a run", "dpaa train"),
        ),
        Mistake(
            "a page of an unfinished run", "dpaa report unfinished --out page.html", ("unfinished run", "--resume")
        ),
        Mistake(
            "a page of a file that is not JSON",
            "dpaa report log.csv --out page.html",
            ("log.csv is not readable JSON",),
        ),
        Mistake(
            "a page of JSON that is no comparison or audit",
            "dpaa report other.json --out page.html",
            ("other.json is neither a comparison nor an audit nor a frontier", "dpaa compare"),
            {"other.json": '{"kind": "shopping list"}'},
        ),
        Mistake(
            "a page of an audit that is damaged",
            "dpaa report audit.json --out page.html",
            ("audit.json is damaged or of another version (source: Field required)",),
            {"audit.json": '{"kind": "audit", "numbers": {"log_gini": 0.9}}'},
        ),
        Mistake(
            "a page of a run with spoiled metrics",
            "dpaa report run --out page.html",
            ("run/metrics.json is damaged", "dpaa evaluate run"),
            {"run/metrics.json": '{"metrics": 3}'},
        ),
        Mistake(
            "a page of a run with other users than its dataset",
            "dpaa report data numbers-run --out page.html",
            ("numbers-run has other users or items than its dataset demo",),
            spoil=other_users,
        ),
        Mistake(
            "a page that is not named .html", "dpaa report data --out page.txt", ("page.txt has the ending '.txt'",)
        ),
        Mistake(
            "a page where a folder is",
            "dpaa report data --out page.html",
            ("page.html is a folder",),
            spoil=lambda: Path("page.html").mkdir(),
        ),
        Mistake(
            "a page inside a file", "dpaa report data --out log.csv/page.html", ("cannot write log.csv/page.html",)
        ),
        Mistake(
            "figures of a page in a format that does not exist",
            "dpaa report data --out page.html --figures figures --figure-format gif",
            ("figure.gif has the ending",),
        ),
        Mistake(
            "figures of a page into a file",
            "dpaa report data --out page.html --figures log.csv",
            ("log.csv is a file",),
        ),
    ]
}

"""Make the log that ships with the package: a small bookshop, simulated.

Readers have two or three favourite genres, books a genre and a quality; but what is shown is mostly what the shop
promotes, which has little to do with either.  Nobody's data: everything is drawn.

python scripts/example_log.py
"""

from __future__ import annotations

import gzip
import io
from datetime import date, timedelta
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "src" / "dpaa" / "data" / "example"
READERS, BOOKS, DAYS, SHOWN, SEED = 600, 320, 120, 80, 7
BEGIN = date(2026, 1, 5)
GENRES = ("crime", "travel", "cooking", "science", "poetry", "history", "gardening", "fantasy")
FIRST = (
    *("Salt", "Quiet", "Northern", "Paper", "Hidden", "Winter", "Copper", "Borrowed", "Last", "Second"),
    *("Hollow", "Bright", "Distant", "Broken", "Silver", "Open", "Slow", "Midnight", "Lost", "Green"),
)
SECOND = (
    *("Harbour", "Garden", "Letter", "Orchard", "Lighthouse", "Kitchen", "River", "Atlas", "Season", "Island"),
    *("Clock", "Bridge", "Library", "Field", "Window", "Mountain", "Market", "Map", "Road", "Song"),
)


def titles(rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """A title and a genre per book."""
    places = rng.choice(len(FIRST) * len(SECOND), BOOKS, replace=False)
    names = [f"The {FIRST[place // len(SECOND)]} {SECOND[place % len(SECOND)]}" for place in places]
    return names, rng.integers(0, len(GENRES), BOOKS)


def clicks(genre: np.ndarray, rng: np.random.Generator) -> list[tuple[str, str, str]]:
    """Who clicked what when, in the order of time."""
    favours = rng.gamma(0.35, 1.0, (READERS, len(GENRES)))
    favours /= favours.sum(axis=1, keepdims=True)
    quality = rng.standard_normal(BOOKS)
    promotion = np.exp(1.9 * (0.4 * quality + 0.9 * rng.standard_normal(BOOKS)))
    chance = 1 / (1 + np.exp(2.6 - 7.0 * favours[:, genre] - 0.7 * quality))
    noisy = np.log(promotion) + rng.gumbel(size=(READERS, BOOKS))
    shown = np.zeros((READERS, BOOKS), dtype=bool)
    np.put_along_axis(shown, np.argpartition(-noisy, SHOWN, axis=1)[:, :SHOWN], values=True, axis=1)
    reader, book = np.nonzero(shown & (rng.random(shown.shape) < chance))
    day = np.sort(rng.integers(0, DAYS, len(reader)))
    order = rng.permutation(len(reader))
    return [
        (f"r{one + 1:03d}", f"b{other + 1:03d}", (BEGIN + timedelta(days=int(when))).isoformat())
        for one, other, when in zip(reader[order], book[order], day, strict=True)
    ]


def main() -> None:
    """Write `clicks.csv.gz` and `titles.csv`, the same bytes every time."""
    rng = np.random.default_rng(SEED)
    names, genre = titles(rng)
    log = io.StringIO()
    log.write("user_id,item_id,timestamp\n")
    rows = clicks(genre, rng)
    log.writelines(",".join(row) + "\n" for row in rows)
    sold = {book for _, book, _ in rows}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "clicks.csv.gz").write_bytes(gzip.compress(log.getvalue().encode(), 9, mtime=0))
    books = [(f"b{place + 1:03d}", f"{name} ({GENRES[genre[place]]})") for place, name in enumerate(names)]
    lines = [f"{book},{title}\n" for book, title in books if book in sold]
    (FOLDER / "titles.csv").write_text("item_id,title\n" + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()

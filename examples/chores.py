"""Thirty chores of a recommender's daily life, each one command or three lines of Python.

python examples/chores.py [FOLDER] [--coat RAW]      # runs them all in FOLDER (default: a temporary one)

The log is made here, in the shape of MovieLens: ratings with times, films with titles and genres, arriving in days, in
several formats, and not all of it clean.  With --coat (the folder of Coat's two matrices) those that need no such log
run on Coat as well.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
from sklearn.model_selection import ParameterGrid

import dpaa
from dpaa.cli import main as dpaa_main

GENRES = ("Comedy", "Drama", "Action", "Horror", "Documentary")
USERS, FILMS, DAYS = 90, 70, 3
Check = Callable[[str], bool]


@dataclass(frozen=True)
class Chore:
    """What somebody wants, and what is typed for it."""

    part: int
    """Of daily life: 1 input, 2 titles, 3 tomorrow, 4 unknown ids, 5 ways out, 6 notebooks, 7 pipelines,
    8 experiments, 9 terminal."""
    wish: str
    command: str = ""
    """One command line, or …"""
    python: str = ""
    """… at most three lines of Python; `data` and `model` are there."""
    shows: Check = lambda _said: True
    """Whether what it said, or left in the folder, is what was wanted."""
    code: int = 0
    needs_log: bool = False
    """Whether it is about files of a log, which Coat has not."""


def there(*files: str) -> Check:
    """Whether these files are there, and not empty."""
    return lambda _said: all(Path(file).is_dir() or Path(file).stat().st_size > 0 for file in files)


def says(*parts: str) -> Check:
    """Whether all of this was said."""
    return lambda said: all(part in said for part in parts)


def rows(file: str, least: int, *columns: str) -> Check:
    """Whether a table has so many rows, and these columns."""

    def shown(_said: str) -> bool:
        found = pl.read_csv(file) if file.endswith(".csv") else pl.read_parquet(file)
        return len(found) >= least and set(columns) <= set(found.columns)

    return shown


def holds(file: str, text: str) -> Check:
    """Whether a file has this text in it."""
    return lambda _said: text in Path(file).read_text(encoding="utf-8")


CHORES = [
    Chore(
        1,
        "a log and its titles become a dataset",
        'dpaa data log ratings.csv --items movies.csv --positive "rating>=3" --out data/shop',
        shows=there("data/shop/train.parquet"),
        needs_log=True,
    ),
    Chore(
        1,
        "a folder of daily files becomes one dataset",
        "dpaa data log days --out data/days",
        shows=there("data/days/train.parquet"),
        needs_log=True,
    ),
    Chore(
        1,
        "a log in JSON lines",
        "dpaa data log clicks.jsonl --out data/jsonl",
        shows=there("data/jsonl/train.parquet"),
        needs_log=True,
    ),
    Chore(
        1,
        "semicolons, as a spreadsheet leaves them",
        'dpaa data log semicolons.csv --positive "rating>=3.5" --out data/semicolons',
        shows=there("data/semicolons/train.parquet"),
        needs_log=True,
    ),
    Chore(
        1,
        "a messy log: broken rows are dropped, counted and kept",
        "dpaa data log messy.csv --invalid invalid.csv --out data/messy",
        shows=there("invalid.csv", "data/messy/train.parquet"),
        needs_log=True,
    ),
    Chore(
        1,
        "without that it is refused, all kinds of faults at once",
        "dpaa data log messy.csv --out data/refused",
        shows=says("error:"),
        code=2,
        needs_log=True,
    ),
    Chore(
        9,
        "train; the line tells how far it is and when it may end",
        "dpaa train data/shop --config quick.toml --out runs/plain",
        shows=says("epoch 1  loss", " left"),
    ),
    Chore(
        9,
        "train in two parts, and see which is running",
        "dpaa train data/shop --method dpaa --config quick.toml --out runs/dpaa",
        shows=says("LightGCN is trained first", "training dpaa on"),
    ),
    Chore(
        2,
        "measure by genre",
        "dpaa evaluate runs/dpaa --group-by genres",
        shows=says("Drama"),
        needs_log=True,
    ),
    Chore(
        2,
        "lists with titles, in Python",
        python="lists = model.recommend(k=5)\nassert 'title' in lists.columns\nprint(lists.head(3))",
        shows=says("Film"),
        needs_log=True,
    ),
    Chore(
        3,
        "Tuesday's log is added to the dataset",
        "dpaa data log tuesday.csv --append data/shop --out data/tuesday",
        shows=there("data/tuesday/train.parquet"),
        needs_log=True,
    ),
    Chore(
        3,
        "tomorrow's model starts from today's",
        "dpaa train data/tuesday --warm-start runs/plain --out runs/tuesday",
        shows=there("runs/tuesday/manifest.json"),
        needs_log=True,
    ),
    Chore(
        3,
        "a finished run is trained further",
        "dpaa train data/shop --config quick.toml --out runs/plain --resume --set epochs=6",
        shows=there("runs/plain/manifest.json"),
    ),
    Chore(
        4,
        "lists for known and unknown users at once",
        "dpaa recommend runs/plain --users @users.txt --k 5 --out some.csv",
        shows=rows("some.csv", 10, "source"),
    ),
    Chore(
        4,
        "newcomers with a history",
        "dpaa recommend runs/plain --history newcomers.csv --k 5 --out new.csv",
        shows=rows("new.csv", 5),
    ),
    Chore(
        4,
        "only what is in stock, and not what somebody bought elsewhere",
        "dpaa recommend runs/plain --items @stock.txt --exclude-pairs bought.csv --k 5 --out stock.parquet",
        shows=rows("stock.parquet", 50),
    ),
    Chore(
        4,
        "at most two films of a genre in a list",
        "dpaa recommend runs/plain --at-most genres=2 --k 5 --out diverse.csv",
        shows=rows("diverse.csv", 50),
        needs_log=True,
    ),
    Chore(
        5,
        "items like an item",
        "dpaa similar runs/plain 1 --k 3",
        shows=says("Similar items"),
    ),
    Chore(
        5,
        "lists for a spreadsheet, less popular",
        "dpaa recommend runs/plain --k 5 --popularity-dial -0.5 --out lists.tsv",
        shows=holds("lists.tsv", "user_id"),
    ),
    Chore(
        5,
        "vectors for NumPy, the dial left free",
        "dpaa export runs/plain --to npz --out vectors",
        shows=there("vectors/vectors.npz", "vectors/query.py"),
    ),
    Chore(
        5,
        "tables for PostgreSQL with pgvector",
        "dpaa export runs/plain --to pgvector --out tables",
        shows=there("tables/load.sql", "tables/items.csv"),
    ),
    Chore(
        5,
        "a table for the paper",
        "dpaa compare runs/plain runs/dpaa --metric ndcg --metric recall/niche --out table.tex",
        shows=holds("table.tex", "\\toprule"),
    ),
    Chore(
        5,
        "many methods, tuned equally",
        "dpaa benchmark data/shop --methods most-popular,item-knn,ease --trials 2 --seeds 1 --out bench",
        shows=there("bench/table.md", "bench/table.csv"),
    ),
    Chore(
        6,
        "two models side by side in a notebook",
        python="popular = dpaa.fit(data, 'most-popular')\n"
        "found = dpaa.compare(data, {'popular': popular, 'ours': model}, resamples=200)\n"
        "print(found.markdown())",
        shows=says("ndcg@20"),
    ),
    Chore(
        6,
        "metrics as a pandas frame",
        python="frame = dpaa.to_pandas(dpaa.evaluate(model, data))\n"
        "assert 'ndcg@20' in set(frame['metric'])\n"
        "print(type(frame))",
        shows=says("pandas"),
    ),
    Chore(
        6,
        "a search over scikit-learn's grid, judged on validation",
        python="tried = [dpaa.ItemKNN(**one).fit(data) for one in ParameterGrid({'neighbours': [5, "
        "20]})]\n"
        "best = max(tried, key=lambda one: dpaa.evaluate(one, data, "
        "split='valid').metrics['ndcg@20'])\n"
        "print(best.method)",
        shows=says("neighbours="),
    ),
    Chore(
        7,
        "a pipeline that stops where lists are too popular",
        'dpaa audit data/shop --recs stock.parquet --fail-if "head_share@5>0.01" --json',
        shows=says('"failed": true'),
        code=1,
    ),
    Chore(
        7,
        "what has drifted since yesterday, for the monitoring system",
        "dpaa audit tuesday.csv --against ratings.csv --out dpaa.prom",
        shows=holds("dpaa.prom", "dpaa_audit_drift_distance{"),
        needs_log=True,
    ),
    Chore(
        8,
        "folds of users for an experiment",
        "dpaa data log ratings.csv --split user-folds,parts=3 --out data/folds",
        shows=there("data/folds/part-1/test.parquet", "data/folds/part-3/test.parquet"),
        needs_log=True,
    ),
    Chore(
        8,
        "hyperparameters for niche recall that lose little accuracy",
        "dpaa tune data/shop --method item-knn --trials 3 --seeds 1 --metric recall@20/niche "
        "--max-loss ndcg@20=5% --out study",
        shows=there("study/best.toml"),
    ),
]


def make_log(folder: Path) -> None:
    """Films, ratings of several days, and the same in the shapes that logs come in."""
    rng = np.random.default_rng(5)
    titles = [f"Film {number} ({1980 + number % 40})" for number in range(1, FILMS + 1)]
    genres = ["|".join(rng.choice(GENRES, size=1 + number % 2, replace=False)) for number in range(FILMS)]
    pl.DataFrame({"movieId": range(1, FILMS + 1), "title": titles, "genres": genres}).write_csv(folder / "movies.csv")
    popularity = 1 / np.arange(1, FILMS + 1) ** 0.7
    parts = []
    for user in range(1, USERS + 1):
        films = 1 + rng.choice(FILMS, size=12 + user % 9, replace=False, p=popularity / popularity.sum())
        parts.append(pl.DataFrame({"userId": [user] * len(films), "movieId": films}))
    every = pl.concat(parts).sample(fraction=1.0, shuffle=True, seed=5)
    times = 1_700_000_000 + np.sort(rng.integers(0, 86_400 * (DAYS + 1), len(every)))
    every = every.with_columns(
        pl.Series("rating", rng.choice([2.0, 3.0, 3.5, 4.0, 5.0], len(every))), pl.Series("timestamp", times)
    )
    tuesday = pl.col("timestamp") >= 1_700_000_000 + 86_400 * DAYS
    known = every.filter(~tuesday)
    known.write_csv(folder / "ratings.csv")
    every.filter(tuesday).write_csv(folder / "tuesday.csv")
    known.write_ndjson(folder / "clicks.jsonl")
    (folder / "days").mkdir()
    for day in range(DAYS):
        of_day = (pl.col("timestamp") - 1_700_000_000) // 86_400 == day
        known.filter(of_day).write_csv(folder / "days" / f"day-{day + 1}.csv")
    known.write_csv(folder / "semicolons.csv", separator=";")
    lines = known.write_csv().splitlines()
    lines[5], lines[9], lines[12] = "7,,4.0,1700000000", "8,3,4.0,not a time", "9,4,5.0,1700000001,too,many"
    (folder / "messy.csv").write_text("\n".join(lines) + "\n")


def make_ids(folder: Path, users: list[int], items: list[int]) -> None:
    """Ids in files, some of them unknown."""
    quick = "epochs = 4\nembedding_size = 8\nlayers = 2\nthreads = 1\n"
    (folder / "quick.toml").write_text(quick)
    (folder / "users.txt").write_text("\n".join(map(str, [*users[:3], 987_654])) + "\n")
    (folder / "stock.txt").write_text("\n".join(map(str, [*items[: len(items) // 2], 987_654])) + "\n")
    pairs = {"user_id": [555_001, 555_001, 555_002], "item_id": [items[0], items[3], items[1]]}
    pl.DataFrame(pairs).write_csv(folder / "newcomers.csv")
    pl.DataFrame({"user_id": users[:2], "item_id": items[:2]}).write_csv(folder / "bought.csv")


def prepare(folder: Path, coat: Path | None = None) -> list[Chore]:
    """Fill a folder with what the chores need; those that can be done there."""
    if coat is None:
        make_log(folder)
        make_ids(folder, list(range(1, USERS + 1)), list(range(1, FILMS + 1)))
        return CHORES
    make_ids(folder, list(range(290)), list(range(300)))
    with contextlib.chdir(folder):
        said, code = run(Chore(1, "Coat", f"dpaa data coat {shlex.quote(str(coat))} --out data/shop"))
    assert code == 0, said
    return [chore for chore in CHORES if not chore.needs_log]


def run(chore: Chore) -> tuple[str, int]:
    """What was said, on both streams, and the exit code; in this process, for thirty starts would take longer."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        if chore.python:
            names = {"dpaa": dpaa, "ParameterGrid": ParameterGrid}
            names |= {"data": dpaa.read_dataset("data/shop"), "model": dpaa.load("runs/plain")}
            exec(compile(chore.python, chore.wish, "exec"), names)
            return said.getvalue(), 0
        try:
            with patch.object(sys, "argv", shlex.split(chore.command)):
                dpaa_main()
        except SystemExit as end:
            return said.getvalue(), end.code if isinstance(end.code, int) else int(end.code is not None)
    return said.getvalue(), 0


def done(chore: Chore) -> str | None:
    """Do it; None if it came out as wished, else what was said."""
    said, code = run(chore)
    return None if code == chore.code and chore.shows(said) else f"exit code {code}\n{said}"


def main() -> None:
    """All of them, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--coat", type=Path, help="Folder of train.ascii and test.ascii.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for coat in (None, asked.coat.resolve()) if asked.coat else (None,):
            folder = (asked.folder or Path(temporary)) / ("log" if coat is None else "coat")
            folder.mkdir(parents=True)
            chores = prepare(folder, coat)
            with contextlib.chdir(folder):
                for number, chore in enumerate(chores, start=1):
                    print(f"{number:2}. {chore.wish}", *(chore.command or chore.python).splitlines(), sep="\n    ")
                    wrong = done(chore)
                    if wrong is not None:
                        sys.exit(f"    did not come out as wished: {wrong}")


if __name__ == "__main__":
    main()

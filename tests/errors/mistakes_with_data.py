"""Logs, items, splits and prepared datasets: what can be wrong with them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import polars as pl

from dpaa.data.sources.published import TEST_FILE
from tests.errors.workshop import LOG, Mistake, cut, drop_column, edit_json, edit_table

GOOD = "user_id,item_id,rating,timestamp\nu1,i1,5,100\nu1,i2,4,200\nu2,i1,3,300\n"
TRAIN = Path("data/train.parquet")


def log(kind: str, content: str | bytes, options: str = "") -> Mistake:
    """`dpaa data log` on a file with this content."""
    return Mistake(kind, f"dpaa data log bad.csv {options} --out made".replace("  ", " "), {"bad.csv": content})


def dataset(kind: str, spoil: Callable[[], object]) -> Mistake:
    """A prepared dataset was spoiled; every command reads it the same way."""
    return Mistake(kind, "dpaa data describe data", spoil=spoil)


def repeat_pair() -> None:
    frame = pl.read_parquet(TRAIN)
    pl.concat([frame, frame.head(1)]).write_parquet(TRAIN)


SECTIONS: dict[str, list[Mistake]] = {
    "Columns of a log": [
        log("no column for the users", "who,item_id\na,b\n"),
        log("a named column that is not there", LOG, "--user-column who"),
        log("users and items in the same column", LOG, "--user-column item_id"),
        log("two columns of the same name", "user_id,user_id,item_id\na,b,c\n"),
    ],
    "Rows of a log": [
        log("an empty user id", GOOD + ",i9,5,400\n"),
        log("a row with too many fields", GOOD + "u3,i3,5,400,9\n"),
        log("a quote that never ends", GOOD + 'u3,"i3,5,400\n'),
        log("text in the ratings", GOOD + "u3,i3,good,400\n"),
        log("a time that cannot be read", GOOD + "u3,i3,5,soon\n", "--split temporal"),
        log("dates that are not ISO", "user_id,item_id,date\na,b,31.12.2024\na,c,30.12.2024\n", "--split temporal"),
    ],
    "Files": [
        log("a file that is not UTF-8", b"user_id,item_id,rating,timestamp\nu1,caf\xe9,5,100\n"),
        log("an empty file", ""),
        log("a header without rows", "user_id,item_id,rating,timestamp\n"),
        Mistake(
            "a text file with commas and no tabs", "dpaa data log bad.txt --out made", {"bad.txt": "user,item\na,b\n"}
        ),
        log("a format that does not exist", LOG, "--format xml"),
        Mistake(
            "a gzip file that breaks off",
            "dpaa data log bad.csv.gz --out made",
            {"bad.csv.gz": gzip.compress(LOG.encode())[:60]},
        ),
        Mistake("Parquet that is text", "dpaa data log bad.parquet --out made", {"bad.parquet": LOG}),
        Mistake("a file that is not there", "dpaa data log clicks.csv --out made"),
        Mistake("a folder instead of a file", "dpaa data log diary --out made"),
    ],
    "Parquet": [
        Mistake(
            "decimal ids in Parquet",
            "dpaa data log bad.parquet --out made",
            spoil=lambda: pl.DataFrame({"user_id": [1.5, 2.0], "item_id": [1, 2]}).write_parquet("bad.parquet"),
        ),
        Mistake(
            "truth values as ratings in Parquet",
            "dpaa data log bad.parquet --out made",
            spoil=lambda: pl.DataFrame({"user_id": [1], "item_id": [1], "rating": [True]}).write_parquet("bad.parquet"),
        ),
    ],
    "Rules for positives": [
        log("a rule that is none", LOG, "--positive good"),
        Mistake(
            "a rule on a column that is not there",
            "dpaa data log bad.csv --positive 'stars>=3' --out made",
            {"bad.csv": LOG},
        ),
        Mistake(
            "a rule that leaves nothing", "dpaa data log bad.csv --positive 'rating>5' --out made", {"bad.csv": LOG}
        ),
    ],
    "Splits and candidates": [
        log("a split rule that does not exist", LOG, "--split fair"),
        log("shares that leave nothing", LOG, "--valid .5 --test .5"),
        log("a split by time without times", "user_id,item_id\na,b\nb,c\n", "--split temporal"),
        log("one part", LOG, "--split user-folds --parts 1"),
        Mistake("parts in the place of a dataset", "dpaa data log log.csv --split user-folds --out data"),
        Mistake("a rule beside the dataset's own", "dpaa data log log.csv --append untested --valid .3"),
        Mistake("appending to nothing", "dpaa data log log.csv --append nowhere"),
        Mistake("appending to what was not one log", "dpaa data log log.csv --append data"),
        Mistake("appending ids of another type", "dpaa data log log.csv --append numbers"),
        Mistake(
            "appending rows without times",
            "dpaa data log bad.csv --append untested",
            {"bad.csv": "user_id,item_id\nu1,i99\n"},
        ),
        log("a demand that no user meets", LOG, "--min-user 99"),
        log(
            "a split that leaves nothing to train on",
            "user_id,item_id\na,b\n",
            "--split random-global --valid 0 --test .9",
        ),
        Mistake("no training file", "dpaa data splits --test log.csv --out made"),
    ],
    "Logs as they come": [
        log(
            "rows with faults of several kinds", "user_id,item_id,rating\nu1,i1,5\nu1,i2,good\n,i3,4\nu2\nu3,i4,fine\n"
        ),
        Mistake(
            "a file for invalid rows that nobody leaves out",
            "dpaa data log log.csv --invalid-out invalid.csv --out made",
        ),
        Mistake("a log named twice", "dpaa data log log.csv log.csv --out made"),
        Mistake("a pattern that nothing matches", "dpaa data log logs-*.csv --out made"),
        Mistake("a dataset instead of a log", "dpaa data log data --out made"),
        Mistake("a run instead of a log", "dpaa data log run --out made"),
        Mistake(
            "a line that is no JSON",
            "dpaa data log bad.jsonl --out made",
            {"bad.jsonl": '{"user_id": 1, "item_id": 2}\n{"user_id": 1,\n'},
        ),
        Mistake(
            "JSON that is no lines of objects", "dpaa data log bad.jsonl --out made", {"bad.jsonl": "[\n1,\n2\n]\n"}
        ),
        Mistake("an encoding that does not exist", "dpaa data log log.csv --encoding klingon --out made"),
        Mistake("a separator that is none", "dpaa data log log.csv --separator and --out made"),
        Mistake("a separator for a Parquet file", "dpaa data log log.parquet --separator tab --out made"),
        Mistake("a URL whose ending tells nothing", "dpaa data log s3://bucket/clicks --out made"),
    ],
    "Items": [
        Mistake(
            "an item twice",
            "dpaa data log log.csv --items items.csv --out made",
            {"items.csv": "item_id,title\ni1,a\ni2,b\ni1,c\n"},
        ),
        Mistake(
            "items of another log",
            "dpaa data log log.csv --items items.csv --out made",
            {"items.csv": "item_id,title\nx,a\n"},
        ),
        Mistake("a column to group by, and nothing known of the items", "dpaa evaluate run --group-by genre"),
        Mistake("an audit with items of a prepared dataset", "dpaa audit data --items log.csv"),
        dataset("attributes that were changed", lambda: Path("data/attributes.parquet").write_text(LOG)),
    ],
    "Published datasets": [
        Mistake("Coat: no such folder", "dpaa data coat nowhere --out made"),
        Mistake("Coat: other counts than the published ones", "dpaa data coat raw-coat --out made"),
        Mistake(
            "Coat: a ragged matrix",
            "dpaa data coat raw-coat --no-check --out made",
            {"raw-coat/train.ascii": "0 3 5\n1 0\n"},
        ),
        Mistake(
            "Yahoo! R3: only the training file",
            "dpaa data yahoo-r3 raw-yahoo --no-check --out made",
            spoil=lambda: Path("raw-yahoo", TEST_FILE).unlink(),
        ),
        Mistake(
            "Yahoo! R3: text instead of ids",
            "dpaa data yahoo-r3 raw-yahoo --no-check --out made",
            {"raw-yahoo/ydata-ymusic-rating-study-v1_0-train.txt": "1\t1\t5\nann\t2\t4\n"},
        ),
    ],
    "Simulated worlds": [
        Mistake("a world with one user", "dpaa data demo --users 1 --out made"),
        Mistake("a world in which nobody clicks", "dpaa data demo --users 2 --items 2 --seed 1 --out made"),
        Mistake("no share for randomised pairs", "dpaa data randomised data --share 1 --out made"),
        Mistake("a negative severity", "dpaa data demo --severity -1 --out made"),
        Mistake("a number that is none", "dpaa data demo --users many --out made"),
    ],
    "Where a dataset is written": [
        Mistake("the output is there already", "dpaa data log log.csv --out data"),
        Mistake("the output is a file", "dpaa data log log.csv --out numbers.csv"),
        Mistake("the output is another folder, to be overwritten", "dpaa data log log.csv --out diary --overwrite"),
    ],
    "Prepared datasets": [
        Mistake("a folder that is no dataset", "dpaa train diary --out made"),
        dataset("a dataset without one of its files", lambda: Path("data/test.parquet").unlink()),
        dataset("a dataset edited by hand", lambda: pl.read_parquet(TRAIN)[1:].write_parquet(TRAIN)),
        dataset("a dataset with a column missing", lambda: drop_column(TRAIN, "item_id")),
        dataset("a dataset with an empty id", lambda: edit_table(TRAIN, pl.lit(None, pl.String).alias("user_id"))),
        dataset("a dataset with a repeated pair", repeat_pair),
        dataset("a dataset with counts that are text", lambda: edit_table(TRAIN, pl.lit("x").alias("count"))),
        dataset("a dataset.json that breaks off", lambda: cut(Path("data/dataset.json"))),
        dataset("a dataset.json without a fingerprint", lambda: edit_json(Path("data/dataset.json"), fingerprint=None)),
    ],
}

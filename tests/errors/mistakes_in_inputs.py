"""Logs as they come, and what is known of items."""

from __future__ import annotations

from pathlib import Path

from tests.errors.mistake import Mistake
from tests.errors.workshop import LOG

TO = "--out made"
MESSY = "user_id,item_id,rating\nu1,i1,5\nu1,i2,good\n,i3,4\nu2\nu3,i4,fine\n"


def items(kind: str, content: str, *says: str) -> Mistake:
    """`dpaa data log` with this table of items."""
    return Mistake(kind, f"dpaa data log log.csv --items items.csv {TO}", says, {"items.csv": content})


LOGS = [
    Mistake(
        "rows with faults of several kinds",
        f"dpaa data log bad.csv {TO}",
        (
            "bad.csv has 4 invalid rows",
            "no number in column 'rating' (2 rows, first 'good' in line 3)",
            "--drop-invalid",
        ),
        {"bad.csv": MESSY},
    ),
    Mistake(
        "nothing but rows with faults",
        f"dpaa data log bad.csv --drop-invalid {TO}",
        "bad.csv has only 1 invalid row",
        {"bad.csv": "user_id,item_id,rating\nu1,i1,good\n"},
    ),
    Mistake(
        "a file for invalid rows that nobody leaves out",
        f"dpaa data log log.csv --invalid-out invalid.csv {TO}",
        ("--invalid-out takes the rows that --drop-invalid leaves out", "add it"),
    ),
    Mistake(
        "a file for invalid rows of an unknown kind",
        f"dpaa data log log.csv --drop-invalid --invalid-out invalid.xls {TO}",
        ("invalid.xls has the ending '.xls'", ".csv or .jsonl or .parquet"),
    ),
    Mistake("a log named twice", f"dpaa data log log.csv log.csv {TO}", ("log.csv is named twice", "name it once")),
    Mistake("a pattern that nothing matches", f"dpaa data log logs-*.csv {TO}", "no file is named like logs-*.csv"),
    Mistake("a dataset instead of a log", f"dpaa data log data {TO}", "data is a prepared dataset already"),
    Mistake("a run instead of a log", f"dpaa data log run {TO}", ("run is a run", "name files of interactions")),
    Mistake(
        "a line that is no JSON",
        f"dpaa data log bad.jsonl {TO}",
        ("no JSON object (1 row, first line 2)", "correct them"),
        {"bad.jsonl": '{"user_id": 1, "item_id": 2}\n{"user_id": 1,\n'},
    ),
    Mistake(
        "JSON that is no lines of objects",
        f"dpaa data log bad.jsonl {TO}",
        "bad.jsonl has no JSON object in its first 1,000 lines",
        {"bad.jsonl": "[\n1,\n2\n]\n"},
    ),
    Mistake(
        "an encoding that does not exist",
        f"dpaa data log log.csv --encoding klingon {TO}",
        ("there is no encoding 'klingon'", "latin-1"),
    ),
    Mistake(
        "a separator that is none",
        f"dpaa data log log.csv --separator and {TO}",
        ("there is no separator 'and'", "choose one of"),
    ),
    Mistake(
        "a column named twice in the call",
        f"dpaa data log log.csv --columns user_id,item_id,item_id,x {TO}",
        "--columns needs a name for every column, each once",
    ),
    Mistake(
        "a separator for a Parquet file",
        f"dpaa data log log.parquet --separator tab {TO}",
        ("log.parquet is read as parquet", "leave them out"),
    ),
    Mistake(
        "a URL whose ending tells nothing",
        f"dpaa data log s3://bucket/clicks {TO}",
        ("s3://bucket/clicks is a URL", "copy the file here first"),
    ),
]
ITEMS = [
    items(
        "an item twice", "item_id,title\ni1,a\ni2,b\ni1,c\n", "items.csv has item 'i1' again in line 4", "remove one"
    ),
    items(
        "items of another log", "item_id,title\nx,a\n", "no item of items.csv is in the log", "use the ids of the log"
    ),
    items("items without anything about them", "item_id\ni1\n", "no column besides 'item_id'", "at least a title"),
    items("items without ids", "what,title\ni1,a\n", "items.csv has no column that is known as item_id"),
    Mistake("items that are not there", f"dpaa data log log.csv --items none.csv {TO}", "there is no file none.csv"),
    Mistake(
        "a column to group by, and nothing known of the items",
        "dpaa evaluate run --group-by genre",
        ("has no column 'genre' of its items", "--items FILE"),
    ),
    Mistake(
        "an audit with items of a prepared dataset",
        "dpaa audit data --items log.csv",
        ("data is prepared already", "--items go with a log; leave them out"),
    ),
    Mistake(
        "attributes that were changed",
        "dpaa data describe data",
        ("attributes.parquet is not the file that was written there", "make it again with `dpaa data`"),
        spoil=lambda: Path("data/attributes.parquet").write_text(LOG),
    ),
]
SECTIONS = {"Logs as they come": LOGS, "Items": ITEMS}

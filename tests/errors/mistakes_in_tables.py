"""Logs and splits: what is wrong inside a file, or with the way it is to be read."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl

from tests.errors.mistake import Mistake
from tests.errors.workshop import LOG, cut

HEADER = "user_id,item_id,rating,timestamp\n"
TIMED = "--split temporal "
GOOD = "u1,i1,5,100\nu1,i2,4,200\nu2,i1,3,300\n"


def log(kind: str, content: str | bytes, *says: str, options: str = "", name: str = "bad.csv") -> Mistake:
    """`dpaa data log` on a file with this content."""
    return Mistake(kind, f"dpaa data log {name} {options}--out made", says, {name: content})


def parquet(kind: str, columns: dict[str, Any], *says: str, options: str = "") -> Mistake:
    """`dpaa data log` on a Parquet file with these columns."""
    command = f"dpaa data log bad.parquet {options}--out made"
    return Mistake(kind, command, says, spoil=lambda: pl.DataFrame(columns).write_parquet("bad.parquet"))


def truncated() -> None:
    Path("bad.parquet").write_bytes(Path("log.parquet").read_bytes())
    cut(Path("bad.parquet"))


COLUMNS = [
    log("no column for the users", "who,item_id\na,b\n", "bad.csv has no column", "'who', 'item_id'", "--user-column"),
    log("no column for the items", "user_id,what\na,b\n", "known as item_id", "--item-column"),
    log("no header line", "u1,i1,5\nu2,i2,4\n", "name its columns with --columns"),
    log("a named column that is not there", LOG, "has no column 'who'", options="--user-column who "),
    log("a named rating column that is not there", LOG, "has no column 'stars'", options="--rating-column stars "),
    log("a named time column that is not there", LOG, "has no column 'when'", options="--timestamp-column when "),
    log(
        "users and items in the same column",
        LOG,
        "column 'item_id' of bad.csv cannot hold both users and items",
        options="--user-column item_id ",
    ),
    log("two columns of the same name", "user_id,user_id,item_id\na,b,c\n", "two columns named 'user_id'; rename one"),
    log(
        "two .inter columns that differ in type only",
        "user_id:token\tuser_id:float\titem_id:token\na\t1\tc\n",
        "two columns named 'user_id'",
        name="bad.inter",
    ),
]

ROWS = [
    log(
        "an empty user id",
        HEADER + GOOD + ",i9,5,400\n",
        "nothing in column 'user_id' (1 row, first line 5)",
        "correct",
    ),
    log("an empty item id", HEADER + GOOD + "u9,,5,400\n", "nothing in column 'item_id' (1 row, first line 5)"),
    log("an empty user id after blank lines", HEADER + "\n\n" + GOOD + "\n,i9,5,400\n", "first line 8"),
    log(
        "a row with too many fields",
        HEADER + GOOD + "u3,i3,5,400,9\n",
        "another number of fields than 4 (1 row, first line 5)",
    ),
    log("a row with too few fields", HEADER + GOOD + "u3,i3\n", "another number of fields than 4"),
    log("a row of commas", HEADER + GOOD + ",,,\n", "nothing in column 'user_id' (1 row, first line 5)"),
    log("a quote that never ends", HEADER + GOOD + 'u3,"i3,5,400\n', "bad.csv", "quote"),
    log(
        "text in the ratings",
        HEADER + GOOD + "u3,i3,good,400\n",
        "no number in column 'rating' (1 row, first 'good' in line 5)",
    ),
    log("an infinite rating", HEADER + GOOD + "u3,i3,inf,400\n", "first 'inf' in line 5"),
    log("a rating that is nan", HEADER + GOOD + "u3,i3,NaN,400\n", "first 'NaN' in line 5"),
    log(
        "an empty rating where the rule needs one",
        HEADER + GOOD + "u3,i3,,400\n",
        "nothing in column 'rating' (1 row, first line 5)",
        options="--positive 'rating>=3' ",
    ),
    log(
        "a time that cannot be read",
        HEADER + GOOD + "u3,i3,5,soon\n",
        "no time in column 'timestamp' (1 row, first 'soon' in line 5)",
        options=TIMED,
    ),
    log(
        "dates that are not ISO",
        "user_id,item_id,date\na,b,31.12.2024\na,c,30.12.2024\n",
        "first '31.12.2024' in line 2",
        options=TIMED,
    ),
    log(
        "an empty time",
        HEADER + GOOD + "u3,i3,5,\n",
        "nothing in column 'timestamp' (1 row, first line 5)",
        options=TIMED,
    ),
    log(
        "a date that does not exist",
        "user_id,item_id,date\na,b,2024-02-30\n",
        "'2024-02-30' in line 2",
        options=TIMED,
    ),
]

FILES = [
    log(
        "a file that is not UTF-8",
        HEADER.encode() + b"u1,caf\xe9,5,100\n",
        "no UTF-8 text (or name the --encoding) (1 row, first line 2)",
    ),
    log("a file in UTF-16", (HEADER + GOOD).encode("utf-16"), "line 1 of bad.csv is not UTF-8"),
    log("an empty file", "", "bad.csv is empty"),
    log("a file of blank lines", "\n\n\n", "bad.csv is empty"),
    log("a header without rows", HEADER, "bad.csv has no rows"),
    log("a list-form file whose users have no items", "u1\nu2\n", "bad.txt has no rows", name="bad.txt"),
    log("a text file with commas and no tabs", "user,item\na,b\n", "pass --format", name="bad.txt"),
    log(
        "an ending that tells no format",
        LOG,
        "the format of bad.dat is not clear",
        "--format",
        name="bad.dat",
    ),
    log("a file without ending", LOG, "the format of bad is not clear", name="bad"),
    log("a format that does not exist", LOG, "there is no format 'xml'", "csv, tsv", options="--format xml "),
    log("the wrong separator", LOG, "bad.csv has no column", options="--format tsv "),
    log(
        "a gzip file that breaks off", gzip.compress(LOG.encode())[:60], "bad.csv.gz cannot be read", name="bad.csv.gz"
    ),
    log("a gzip file that is damaged", b"\x1f\x8b" + b"x" * 50, "bad.csv.gz cannot be read", name="bad.csv.gz"),
    log("Parquet that is text", LOG, "bad.parquet is not a readable Parquet file", name="bad.parquet"),
    log("text that is Parquet", b"PAR1\x15\x04\x15\xff\xfe\x00", "line 1 of bad.csv is not UTF-8"),
    Mistake(
        "a Parquet file that breaks off",
        "dpaa data log bad.parquet --out made",
        "not a readable Parquet file",
        spoil=truncated,
    ),
    Mistake("a file that is not there", "dpaa data log clicks.csv --out made", "there is no file clicks.csv"),
    Mistake("a folder instead of a file", "dpaa data log diary --out made", "diary has no file that ends in"),
    Mistake("a file under a file", "dpaa data log log.csv/x.csv --out made", "there is no file log.csv/x.csv"),
    Mistake(
        "a file that may not be read",
        "dpaa data log /proc/self/mem --format csv --out made",
        "/proc/self/mem cannot be read",
    ),
    Mistake("a path with a null character", "dpaa data log 'a\0b.csv' --out made", "a\\x00b.csv"),
]

PARQUET = [
    parquet("decimal ids in Parquet", {"user_id": [1.5, 2.0], "item_id": [1, 2]}, "'user_id' of bad.parquet", "DOUBLE"),
    parquet("list-typed ids in Parquet", {"user_id": [[1], [2]], "item_id": [1, 2]}, "BIGINT[]", "cast it"),
    parquet("dates as ids in Parquet", {"user_id": [1], "item_id": pl.Series(["2024-01-01"]).str.to_date()}, "DATE"),
    parquet(
        "an empty id in Parquet",
        {"user_id": [1, None], "item_id": [1, 2]},
        "nothing in column 'user_id' (1 row, first row 2)",
    ),
    parquet("truth values as ratings in Parquet", {"user_id": [1], "item_id": [1], "rating": [True]}, "BOOLEAN"),
    parquet(
        "times of the day in Parquet",
        {"user_id": [1], "item_id": [1], "time": pl.Series(["10:00:00"]).str.to_time()},
        "'time' of bad.parquet cannot be TIME",
    ),
    parquet("no rows in Parquet", {"user_id": [], "item_id": []}, "bad.parquet has no rows"),
]

RULES = [
    log("a rule that is none", LOG, "'good' is not COLUMN OP NUMBER", "rating>=3", options="--positive good "),
    log("a rule with text instead of a number", LOG, "'rating>=high' is not", options="--positive 'rating>=high' "),
    log("an empty rule", LOG, "the rule for positives ''", options="--positive '' "),
    log(
        "a rule on a column that is not there",
        LOG,
        "no column 'stars' for the rule 'stars >= 3'",
        options="--positive 'stars>=3' ",
    ),
    log("a rule on a column of text", LOG, "first 'i0' in line 2", options="--positive 'item_id>3' "),
    log(
        "a rule that leaves nothing",
        LOG,
        "no row of bad.csv is positive",
        "from 1 to 5",
        options="--positive 'rating>5' ",
    ),
    Mistake(
        "a rule that leaves nothing in one split",
        "dpaa data splits --train log.csv --test bad.csv --positive 'rating>=3' --out made",
        "no row of bad.csv is positive",
        {"bad.csv": HEADER + "u1,i1,1,100\n"},
    ),
]

SPLITS = [
    log("a split rule that does not exist", LOG, "there is no split 'fair'", "temporal", options="--split fair "),
    log("shares that leave nothing", LOG, "validation (0.5) and test (0.5)", options="--valid .5 --test .5 "),
    log("a negative share", LOG, "validation (-0.1)", options="--valid -0.1 "),
    log("a share that is no number", LOG, "validation (nan)", options="--valid nan "),
    log(
        "a split by time without times",
        "user_id,item_id\na,b\nb,c\n",
        "the split 'temporal' needs times",
        "--timestamp-column",
        options="--split temporal ",
    ),
    log(
        "leave-last without times",
        "user_id,item_id\na,b\nb,c\n",
        "the split 'leave-last' needs times",
        options="--split leave-last ",
    ),
    log("windows that leave nothing", LOG, "test (0.3) × 5", options="--split time-windows --test .3 "),
    log("one part", LOG, "parts are at least 2", options="--split user-folds --parts 1 "),
    Mistake(
        "parts in the place of a dataset",
        "dpaa data log log.csv --split user-folds --out data",
        ("data is a file or a dataset", "several parts need a folder"),
    ),
    Mistake("no place to write to", "dpaa data log log.csv", ("--out", "--append")),
    Mistake(
        "a rule beside the dataset's own",
        "dpaa data log log.csv --append untested --valid .3",
        ("--append keeps the rules that the dataset was made with", "leave --split, --positive and their like out"),
    ),
    Mistake("appending to nothing", "dpaa data log log.csv --append nowhere", "there is no folder nowhere"),
    Mistake(
        "appending to what was not one log",
        "dpaa data log log.csv --append data",
        ("does not say by which rules it was made", "dpaa data log"),
    ),
    Mistake(
        "appending ids of another type",
        "dpaa data log log.csv --append numbers",
        ("column 'user_id' is text in log.csv and integers in dataset numbers", "cast it"),
    ),
    Mistake(
        "appending rows without times",
        "dpaa data log bad.csv --append untested",
        "times are numbers in dataset log and missing in bad.csv",
        {"bad.csv": "user_id,item_id\nu1,i99\n"},
    ),
    log("leave-last with nothing to leave", LOG, "at least 1, got 0", options="--split leave-last --last-k 0 "),
    log(
        "a demand that no user meets",
        LOG,
        "no pair is left",
        "--min-user",
        options="--min-user 99 ",
    ),
    log("a demand below 1", LOG, "'--min-item'", "got '0'", options="--min-item 0 "),
    log(
        "a split that leaves nothing to train on",
        "user_id,item_id\na,b\n",
        "the training split of bad is empty",
        options="--split random-global --valid 0 --test .9 ",
    ),
    Mistake(
        "a split file that is not there",
        "dpaa data splits --train log.csv --test no.csv --out made",
        "there is no file no.csv",
    ),
    Mistake("no training file", "dpaa data splits --test log.csv --out made", "missing option '--train'"),
    Mistake(
        "an empty candidates file",
        "dpaa data splits --train log.csv --candidates bad.csv --out made",
        "bad.csv has no rows",
        {"bad.csv": "item_id\n"},
    ),
    Mistake(
        "candidates without an item column",
        "dpaa data splits --train log.csv --candidates bad.csv --out made",
        "bad.csv has no column",
        {"bad.csv": "thing\ni1\n"},
    ),
]

SECTIONS = {
    "Columns of a log": COLUMNS,
    "Rows of a log": ROWS,
    "Files": FILES,
    "Parquet": PARQUET,
    "Rules for positives": RULES,
    "Splits and candidates": SPLITS,
}

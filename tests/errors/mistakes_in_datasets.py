"""Published datasets, simulated worlds, prepared datasets, and places to write to."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dpaa.data.sources.published import TEST_FILE, TRAIN_FILE
from tests.errors.mistake import Mistake
from tests.errors.workshop import cut, drop_column, edit_json, edit_table

KUAIREC = "user_id,video_id,timestamp,watch_ratio\n"


def coat(kind: str, *says: str, options: str = "--no-check ", **files: str) -> Mistake:
    named = {f"raw-coat/{name}.ascii": content for name, content in files.items()}
    return Mistake(kind, f"dpaa data coat raw-coat {options}--out made", says, named)


def yahoo(kind: str, train: str, *says: str, options: str = "--no-check ") -> Mistake:
    files = {f"raw-yahoo/{TRAIN_FILE}": train}
    return Mistake(kind, f"dpaa data yahoo-r3 raw-yahoo {options}--out made", says, files)


def kuairec(kind: str, big: str, *says: str, options: str = "--no-check ") -> Mistake:
    return Mistake(
        kind, f"dpaa data kuairec raw-kuairec {options}--out made", says, {"raw-kuairec/big_matrix.csv": big}
    )


PUBLISHED = [
    Mistake("Coat: no such folder", "dpaa data coat nowhere --out made", "nowhere has no file train.ascii"),
    Mistake("Coat: a folder without its files", "dpaa data coat diary --out made", "diary has no file train.ascii"),
    coat(
        "Coat: other counts than the published ones",
        "2 users",
        "where the published file has 290 users",
        "--no-check",
        options="",
    ),
    coat("Coat: a ragged matrix", "raw-coat/train.ascii is no matrix of ratings", train="0 3 5\n1 0\n"),
    coat("Coat: a rating above 5", "is no matrix of ratings from 1 to 5", train="0 3 5\n1 0 7\n"),
    coat("Coat: text in the matrix", "is no matrix of ratings", train="0 3 5\n1 0 x\n"),
    coat("Coat: an empty matrix", "raw-coat/train.ascii", train=""),
    coat("Coat: no positive rating", "the training split of coat is empty", train="0 1 1\n1 0 2\n"),
    Mistake(
        "Yahoo! R3: only the training file",
        "dpaa data yahoo-r3 raw-yahoo --no-check --out made",
        f"has no file {TEST_FILE}",
        spoil=lambda: Path("raw-yahoo", TEST_FILE).unlink(),
    ),
    yahoo(
        "Yahoo! R3: other counts than the published ones",
        "1\t1\t5\n",
        "where the published file has 15,400",
        options="",
    ),
    yahoo("Yahoo! R3: a row of two fields", "1\t1\t5\n1\t2\n", "number of fields than 3 (1 row, first line 2)"),
    yahoo("Yahoo! R3: text instead of ids", "1\t1\t5\nann\t2\t4\n", "has ids that are no whole numbers"),
    Mistake("KuaiRec: a folder without its files", "dpaa data kuairec diary --out made", "has no file big_matrix.csv"),
    kuairec(
        "KuaiRec: other counts than the published ones",
        KUAIREC + "1,1,1,3\n",
        "where the published file has 7,176 users",
        options="",
    ),
    kuairec(
        "KuaiRec: a column missing", "user_id,video_id,timestamp\n1,1,1\n", "has no column that is known as rating"
    ),
    kuairec("KuaiRec: text instead of a number", KUAIREC + "1,1,1,3\n1,2,2,long\n", "first 'long' in line 3"),
    kuairec("KuaiRec: an empty id", KUAIREC + "1,1,1,3\n,2,2,4\n", "nothing in column 'user_id' (1 row, first line 3)"),
    kuairec("KuaiRec: a header without rows", KUAIREC, "raw-kuairec/big_matrix.csv"),
]

WORLDS = [
    Mistake("a world with one user", "dpaa data demo --users 1 --out made", "at least 2 users and 2 items"),
    Mistake("a world with no items", "dpaa data demo --items 0 --out made", "at least 2 users and 2 items"),
    Mistake(
        "a world that does not fit into memory",
        "dpaa data demo --users 1000000 --out made",
        ("1,000,000 users × 1,500 items", "at most 50,000,000"),
    ),
    Mistake(
        "a world in which nobody clicks",
        "dpaa data demo --users 2 --items 2 --seed 1 --out made",
        "the training split of demo is empty",
    ),
    Mistake(
        "no share for randomised pairs", "dpaa data randomised data --share 1 --out made", "between 0 and 1, got 1"
    ),
    Mistake("a negative severity", "dpaa data demo --severity -1 --out made", "severity must be between 0"),
    Mistake("a severity that is no number", "dpaa data demo --severity nan --out made", "got nan"),
    Mistake(
        "a negative seed", "dpaa data demo --seed -1 --out made", ("'--seed'", "greater than or equal to 0", "'-1'")
    ),
    Mistake("a number that is none", "dpaa data demo --users many --out made", ("'--users'", "'many'")),
    Mistake("the demo in a folder that is there", "dpaa demo --out data", "data already exists"),
]

PLACES = [
    Mistake("the output is there already", "dpaa data log log.csv --out data", ("data already exists", "--overwrite")),
    Mistake("no memory", "dpaa data log log.csv --memory 0 --out made", "'--memory'"),
    Mistake("the output is a file", "dpaa data log log.csv --out numbers.csv", "numbers.csv is a file"),
    Mistake(
        "the output is a file, to be overwritten",
        "dpaa data log log.csv --out numbers.csv --overwrite",
        "numbers.csv is a file",
    ),
    Mistake(
        "the output is another folder, to be overwritten",
        "dpaa data log log.csv --out diary --overwrite",
        "diary is a file or no dataset, and is not overwritten",
    ),
    Mistake("the output lies under a file", "dpaa data log log.csv --out log.csv/made", "cannot write log.csv/made"),
    Mistake(
        "the output lies where nobody may write", "dpaa data log log.csv --out /proc/made", "cannot write /proc/made"
    ),
    Mistake("no output", "dpaa data log log.csv", "name one with --out, or a dataset with --append"),
]


def dataset(kind: str, spoil: object, *says: str) -> Mistake:
    """A prepared dataset was spoiled; `dpaa data describe` and `dpaa train` read it the same way."""
    return Mistake(kind, "dpaa data describe data", says, spoil=spoil)  # type: ignore[arg-type]


def forge(**changes: object) -> None:
    edit_json(Path("data/dataset.json"), **changes)


def swap_splits() -> None:
    Path("data/valid.parquet").rename("data/other.parquet")
    Path("data/test.parquet").rename("data/valid.parquet")
    Path("data/other.parquet").rename("data/test.parquet")


def repeat_pair() -> None:
    frame = pl.read_parquet("data/train.parquet")
    pl.concat([frame, frame.head(1)]).write_parquet("data/train.parquet")


def text_file(name: str, content: str) -> object:
    return lambda: Path(name).write_text(content)


TRAIN = Path("data/train.parquet")
DATASETS = [
    Mistake("a dataset that is not there", "dpaa train nowhere --out made", "there is no folder nowhere"),
    Mistake("a folder that is no dataset", "dpaa train diary --out made", "diary is not a prepared dataset"),
    Mistake("a log instead of a dataset", "dpaa train log.csv --out made", ("log.csv", "dpaa data log")),
    Mistake("a run instead of a dataset", "dpaa train run --out made", "run is not a prepared dataset"),
    dataset(
        "a dataset without one of its files",
        lambda: Path("data/test.parquet").unlink(),
        "data/test.parquet is missing",
    ),
    dataset(
        "a dataset edited by hand",
        lambda: pl.read_parquet(TRAIN)[1:].write_parquet(TRAIN),
        "data was changed after it was written",
    ),
    dataset("a dataset whose splits were swapped", swap_splits, "data was changed after it was written"),
    dataset("a dataset with a column missing", lambda: drop_column(TRAIN, "item_id"), "data/train.parquet", "item_id"),
    dataset(
        "a dataset with an empty id",
        lambda: edit_table(TRAIN, pl.lit(None, pl.String).alias("user_id")),
        "'user_id' of data/train.parquet has empty values",
    ),
    dataset("a dataset with decimal ids", lambda: edit_table(TRAIN, pl.lit(1.5).alias("user_id")), "Float64"),
    dataset("a dataset with a repeated pair", repeat_pair, "the train split has repeated pairs"),
    dataset(
        "a dataset without training pairs",
        lambda: pl.read_parquet(TRAIN).clear().write_parquet(TRAIN),
        "data is damaged",
        "training split",
    ),
    dataset(
        "a dataset with ids of two types", lambda: edit_table(TRAIN, pl.lit(7).alias("user_id")), "data is damaged"
    ),
    dataset(
        "a dataset with counts that are text",
        lambda: edit_table(TRAIN, pl.lit("x").alias("count")),
        "data/train.parquet",
        "'count'",
    ),
    dataset("a dataset with counts below 1", lambda: edit_table(TRAIN, pl.lit(0).alias("count")), "'count'"),
    dataset(
        "a dataset file that breaks off", lambda: cut(TRAIN), "data/train.parquet is missing, no readable Parquet file"
    ),
    dataset(
        "a dataset.json that breaks off",
        text_file("data/dataset.json", '{"name": "demo",'),
        "data/dataset.json is not readable JSON",
    ),
    dataset(
        "a dataset.json that is no object",
        text_file("data/dataset.json", "[1]"),
        "data/dataset.json does not hold a JSON object",
    ),
    dataset(
        "a dataset.json that is not UTF-8",
        lambda: Path("data/dataset.json").write_bytes(b'{"\xff"}'),
        "data/dataset.json is not readable JSON",
    ),
    dataset("a dataset.json without a fingerprint", lambda: forge(fingerprint=None), "lacks name or fingerprint"),
    dataset(
        "a dataset.json with another fingerprint", lambda: forge(fingerprint="0" * 64), "fingerprint does not match"
    ),
    dataset("a dataset.json with notes that are no text", lambda: forge(notes=[1, {}]), "data/dataset.json"),
    dataset("a dataset.json nested without end", text_file("data/dataset.json", "[" * 100_000), "data/dataset.json"),
]

SECTIONS = {
    "Published datasets": PUBLISHED,
    "Simulated worlds": WORLDS,
    "Where a dataset is written": PLACES,
    "Prepared datasets": DATASETS,
}

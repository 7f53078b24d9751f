"""Recommendation files, and the ways to evaluate them."""

from __future__ import annotations

import polars as pl

from tests.errors.mistake import Mistake

HEADER = "user_id,item_id,score,rank\n"
GOOD = "u0002,i0001,0.9,1\nu0002,i0002,0.5,2\n"


def recs(kind: str, content: str | bytes, *says: str, name: str = "recs.csv", data: str = "data") -> Mistake:
    """`dpaa evaluate --recs` on a file with this content."""
    return Mistake(kind, f"dpaa evaluate --recs {name} --dataset {data}", says, {name: content})


def float_ids() -> None:
    pl.DataFrame({"user_id": [1.5], "item_id": ["i0001"]}).write_parquet("recs.parquet")


RECOMMENDATIONS = [
    Mistake("neither a run nor recommendations", "dpaa evaluate", ("name a run folder", "--recs")),
    Mistake("a run and recommendations", "dpaa evaluate run --recs log.csv", ("name a run folder", "one of them")),
    Mistake("recommendations without a dataset", "dpaa evaluate --recs log.csv", ("log.csv", "--dataset")),
    Mistake(
        "recommendations that are not there",
        "dpaa evaluate --recs no.csv --dataset data",
        "there is no file no.csv; check the path",
    ),
    recs("an empty recommendation file", "", "recs.csv is empty"),
    recs("a recommendation file without rows", HEADER, "recs.csv has no rows"),
    recs("recommendations without users", "who,item_id\nu0002,i0001\n", "no column 'user_id'", "'who', 'item_id'"),
    recs("recommendations without items", "user_id,what\nu0002,i0001\n", "no column 'item_id'", "'user_id', 'what'"),
    recs(
        "a recommendation without its user",
        HEADER + GOOD + ",i0003,0.1,3\n",
        "nothing in column 'user_id' (1 row, first line 4)",
    ),
    recs(
        "a recommendation without its rank",
        HEADER + GOOD + "u0002,i0003,0.1,\n",
        "nothing in column 'rank' (1 row, first line 4)",
    ),
    recs("a rank that is text", HEADER + GOOD + "u0002,i0003,0.1,third\n", "first 'third' in line 4"),
    recs(
        "a rank given twice",
        HEADER + GOOD + "u0002,i0003,0.1,2\n",
        "line 4 of recs.csv has rank 2 of user 'u0002' a second",
    ),
    recs(
        "a score that is infinite",
        "user_id,item_id,score\nu0002,i0001,inf\n",
        "first 'inf' in line 2",
    ),
    recs(
        "the same item recommended twice",
        HEADER + GOOD + "u0002,i0001,0.1,3\n",
        "line 4 of recs.csv has item 'i0001' of user 'u0002' a second time",
    ),
    recs(
        "recommendations for nobody known",
        "user_id,item_id\nbob,i0001\n",
        "no user in recs.csv is in the dataset",
        "'bob'",
    ),
    recs(
        "recommendations of nothing known",
        "user_id,item_id\nu0002,hat\n",
        "no item in recs.csv is in the dataset",
        "'hat'",
    ),
    recs(
        "recommendations with ids of another type",
        "user_id,item_id\nu0002,i0001\n",
        "the users in recs.csv are text",
        "those of the dataset are integers",
        data="numbers",
    ),
    Mistake(
        "recommendations with decimal ids",
        "dpaa evaluate --recs recs.parquet --dataset data",
        "column 'user_id' of recs.parquet cannot be DOUBLE",
        spoil=float_ids,
    ),
]

SECTIONS = {"Recommendation files": RECOMMENDATIONS}

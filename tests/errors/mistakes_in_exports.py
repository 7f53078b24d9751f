"""Ways out of a run: forms of lists, similar items, vectors for other systems."""

from __future__ import annotations

from pathlib import Path

from dpaa.ranking.rerankers.pc import PC
from tests.errors.mistake import Mistake
from tests.errors.workshop import edit_json


def keep_reranker() -> None:
    edit_json(Path("run/manifest.json"), rerank=PC(strength=0.2).as_json())


EXPORTS = [
    Mistake(
        "a form of lists that there is not",
        "dpaa recommend run --format xml --out a.xml",
        "a.xml has the ending '.xml'",
    ),
    Mistake(
        "a shard without a folder", "dpaa recommend run --shard 1/4", ("--shard needs a folder with --out", "--out")
    ),
    Mistake("a shard that is none", "dpaa recommend run --shard 5/4 --out lists", "'5/4' is no shard; write 3/16"),
    Mistake("shards in another folder's place", "dpaa recommend run --shard 1/4 --out data", "holds no shards"),
    Mistake(
        "items like one that is unknown", "dpaa similar run --item hat", ("1 item is not known to the model", "'hat'")
    ),
    Mistake("items like none", "dpaa similar run", "'--item'"),
    Mistake(
        "similar items of a method without vectors",
        "dpaa similar untested-run --item i1",
        "most-popular has no item vectors to compare",
    ),
    Mistake(
        "a system that vectors cannot be exported to",
        "dpaa export run --to oracle --out e",
        "there is no export to 'oracle'; choose one of faiss, hnswlib, pgvector, npz",
    ),
    Mistake(
        "an export of a method that has no vectors",
        "dpaa export untested-run --to npz --out e",
        "most-popular does not rank by an inner product",
    ),
    Mistake(
        "an export of a run that re-ranks its lists",
        "dpaa export run --to npz --out e",
        ("run re-ranks its lists by pc,", "dpaa recommend run", "--without-reranker"),
        spoil=keep_reranker,
    ),
    Mistake("an export over something else", "dpaa export run --to npz --out diary --overwrite", "something else"),
    Mistake("an export into a file", "dpaa export run --to npz --out log.csv", "log.csv is a file; name a folder"),
    Mistake("vectors of an unknown user", "dpaa export run --to npz --users bob --out e", "'bob'"),
    Mistake(
        "a benchmark of one method",
        "dpaa benchmark data --methods ease",
        "name at least two methods, the baseline among them",
    ),
    Mistake("a benchmark of an unknown method", "dpaa benchmark data --methods ease,magic", "'magic'"),
    Mistake(
        "a benchmark without a test split",
        "dpaa benchmark untested --methods ease,most-popular",
        "no valid pair is left to evaluate",
    ),
    Mistake(
        "a benchmark over something else",
        "dpaa benchmark data --methods ease,most-popular --out diary",
        "diary holds something else",
    ),
    Mistake(
        "drift that nothing is older than",
        'dpaa audit log.csv --fail-if "drift_gini>0"',
        "is measured only with --against",
    ),
    Mistake("drift against a log that is not there", "dpaa audit log.csv --against no.csv", "there is no file no.csv"),
    Mistake(
        "drift at a time when nothing was",
        "dpaa audit log.csv --against 0",
        "log log.csv has nothing before 0 or nothing from then on; choose another time",
    ),
    Mistake(
        "metrics under another ending",
        "dpaa audit log.csv --metrics-out m.json",
        "a metrics file is written to .prom or .txt or .om",
    ),
]
SECTIONS = {"Other forms and systems": EXPORTS}

"""What is prepared before a mistake of docs/errors.md is made: files of a user's, and things that were spoiled."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import torch

from dpaa.data.sources.published import TEST_FILE, TRAIN_FILE
from dpaa.ranking.rerankers.pc import PC
from tests.command import dpaa_ok
from tests.errors.workshop import LOG, RECS, cut, drop_column, edit_json, edit_table, edit_tensor

GOOD = "user_id,item_id,rating,timestamp\nu1,i1,5,100\nu1,i2,4,200\nu2,i1,3,300\n"
TRAIN, ABOUT = Path("data/train.parquet"), Path("data/dataset.json")
RUN, MANIFEST = Path("run"), Path("run/manifest.json")


def write(file: str, **columns: list[object]) -> None:
    pl.DataFrame(columns).write_parquet(file)


def repeat_pair() -> None:
    frame = pl.read_parquet(TRAIN)
    pl.concat([frame, frame.head(1)]).write_parquet(TRAIN)


def spoil_unfinished_checkpoint() -> None:
    Path("unfinished/checkpoint").mkdir()
    Path("unfinished/checkpoint/state.safetensors").write_bytes(b"x" * 100)


def one_user() -> None:
    Path("small.csv").write_text("user_id,item_id\nu1,a\nu1,b\n")
    dpaa_ok("data", "log", "small.csv", "--valid", "0", "--test", "0", "--out", "made")


def other_users() -> None:
    """A run that claims to be of a dataset that has other users."""
    trained_on = {"name": "x", "fingerprint": json.loads(ABOUT.read_text())["fingerprint"], "path": None}
    edit_json(Path("numbers-run/manifest.json"), dataset=trained_on)


def link_run() -> None:
    Path("trade").mkdir()
    Path("trade/run").symlink_to(RUN.resolve())


def begun() -> None:
    """A study of item-knn, done."""
    dpaa_ok("tune", "data", "--method", "item-knn", "--trials", 1, "--seeds", 0, "--out", "study")


def spoiled_storage() -> None:
    begun()
    Path("study/study.sqlite").write_bytes(b"nothing of the kind" * 100)


def half_a_result() -> None:
    """Every file a result could be in is cut short."""
    dpaa_ok("reproduce", "overall", "--data", "coat=.", "--seeds", 1, "--method", "most-popular")
    for file in Path("results/overall").iterdir():
        cut(file)


LOGS: dict[str, str | bytes] = {
    "no column for the users": "who,item_id\na,b\n",
    "two columns of the same name": "user_id,User_ID,item_id\na,b,c\n",
    "an empty user id": GOOD + ",i9,5,400\n",
    "a row with too many fields": GOOD + "u3,i3,5,400,9\n",
    "a quote that never ends": GOOD + 'u3,"i3,5,400\n',
    "text in the ratings": GOOD + "u3,i3,good,400\n",
    "a time that cannot be read": GOOD + "u3,i3,5,soon\n",
    "dates that are not ISO": "user_id,item_id,date\na,b,31.12.2024\na,c,30.12.2024\n",
    "a file that is not UTF-8": b"user_id,item_id,rating,timestamp\nu1,caf\xe9,5,100\n",
    "an empty file": "",
    "a header without rows": "user_id,item_id,rating,timestamp\n",
    "a split by time without times": "user_id,item_id\na,b\nb,c\n",
    "appending rows without times": "user_id,item_id\nu1,i99\n",
    "a split that leaves nothing to train on": "user_id,item_id\na,b\n",
    "rows with faults of several kinds": "user_id,item_id,rating\nu1,i1,5\nu1,i2,good\n,i3,4\nu2\nu3,i4,fine\n",
}
"""What `bad.csv` holds then; otherwise it is a copy of `log.csv`."""

RECOMMENDATIONS = {
    "recommendations without users": "who,item_id\nu0002,i0001\n",
    "a rank given twice": RECS + "u0002,i0003,0.1,2\n",
    "the same item recommended twice": RECS + "u0002,i0001,0.1,3\n",
    "recommendations for nobody known": "user_id,item_id\nbob,i0001\n",
    "recommendations of nothing known": "user_id,item_id\nu0002,hat\n",
}
"""What `recs.csv` holds then."""

OTHERS: dict[str, tuple[str, str | bytes]] = {
    "a text file with commas and no tabs": ("bad.txt", "user,item\na,b\n"),
    "a gzip file that breaks off": ("bad.csv.gz", gzip.compress(LOG.encode())[:60]),
    "Parquet that is text": ("bad.parquet", LOG),
    "a line that is no JSON": ("bad.jsonl", '{"user_id": 1, "item_id": 2}\n{"user_id": 1,\n'),
    "JSON that is no lines of objects": ("bad.jsonl", "[\n1,\n2\n]\n"),
    "an item twice": ("items.csv", "item_id,title\ni1,a\ni2,b\ni1,c\n"),
    "items of another log": ("items.csv", "item_id,title\nx,a\n"),
    "attributes that were changed": ("data/attributes.parquet", LOG),
    "Coat: a ragged matrix": ("raw-coat/train.ascii", "0 3 5\n1 0\n"),
    "Yahoo! R3: text instead of ids": (f"raw-yahoo/{TRAIN_FILE}", "1\t1\t5\nann\t2\t4\n"),
    "a configuration file that is not TOML": ("settings.toml", "layers: 2\n"),
    "a configuration file with a table": ("settings.toml", "[train]\nlayers = 2\n"),
    "vectors in production that are none": ("vectors.npz", "0.1 0.2\n"),
    "an empty file of ids": ("who.csv", "\n"),
    "lists whose known users have unknown items only": (
        "lists.csv",
        "user_id,item_id,rank\nu0,elsewhere,1\nsomebody,i0,1\n",
    ),
    "a page of JSON that is no comparison or audit": ("other.json", '{"kind": "shopping list"}'),
    "a page of an audit that is damaged": ("audit.json", '{"kind": "audit", "numbers": {"log_gini": 0.9}}'),
    "a page of a run with spoiled metrics": ("run/metrics.json", '{"metrics": 3}'),
    "a service with a short token": ("token", "secret\n"),
    "a service with an empty token": ("token", "\n"),
}

FILES = (
    {kind: ("bad.csv", content) for kind, content in LOGS.items()}
    | {kind: ("recs.csv", content) for kind, content in RECOMMENDATIONS.items()}
    | OTHERS
)
"""The file that is made or replaced first."""

SPOILED: dict[str, Callable[[], object]] = {
    "decimal ids in Parquet": lambda: write("bad.parquet", user_id=[1.5, 2.0], item_id=[1, 2]),
    "truth values as ratings in Parquet": lambda: write("bad.parquet", user_id=[1], item_id=[1], rating=[True]),
    "Yahoo! R3: only the training file": lambda: Path("raw-yahoo", TEST_FILE).unlink(),
    "a dataset without one of its files": lambda: Path("data/test.parquet").unlink(),
    "a dataset edited by hand": lambda: pl.read_parquet(TRAIN)[1:].write_parquet(TRAIN),
    "a dataset with a column missing": lambda: drop_column(TRAIN, "item_id"),
    "a dataset with an empty id": lambda: edit_table(TRAIN, pl.lit(None, pl.String).alias("user_id")),
    "a dataset with a repeated pair": repeat_pair,
    "a dataset with counts that are text": lambda: edit_table(TRAIN, pl.lit("x").alias("count")),
    "a dataset.json that breaks off": lambda: cut(ABOUT),
    "a dataset.json without a fingerprint": lambda: edit_json(ABOUT, fingerprint=None),
    "a dataset with one user who took everything": one_user,
    "a checkpoint that cannot be read": spoil_unfinished_checkpoint,
    "tensors that break off": lambda: cut(RUN / "model.safetensors"),
    "a table with a column missing": lambda: drop_column(RUN / "edges.parquet", "user_id"),
    "a table with empty ids": lambda: edit_table(RUN / "items.parquet", pl.lit(None, pl.String).alias("item_id")),
    "edges of users that are not in the run": lambda: edit_table(RUN / "edges.parquet", pl.lit("bob").alias("user_id")),
    "a run of fewer users": lambda: pl.read_parquet(RUN / "users.parquet")[1:].write_parquet(RUN / "users.parquet"),
    "tensors with values that are no numbers": lambda: edit_tensor(RUN, "item_embedding", lambda one: one * torch.nan),
    "hyperparameters edited into nonsense": lambda: edit_json(RUN / "config.json", layers="many"),
    "hyperparameters that break off": lambda: cut(RUN / "config.json"),
    "a manifest of another format": lambda: edit_json(MANIFEST, format=99),
    "a manifest whose dataset is no object": lambda: edit_json(MANIFEST, dataset=[]),
    "a dataset that has moved": lambda: edit_json(
        MANIFEST, dataset={"name": "demo", "fingerprint": "y", "path": "/gone/data"}
    ),
    "pairs to exclude with ids of another type": lambda: write("new.parquet", user_id=["new"], item_id=[7]),
    "a history with ids of another type": lambda: write("new.parquet", user_id=["new"], item_id=[7]),
    "a page of a run with other users than its dataset": other_users,
    "a stored dial that is no number": lambda: edit_json(MANIFEST, dial={"kappa": "high", "suggested": 0.5}),
    "a stored dial that is no curve": lambda: edit_json(MANIFEST, dial={"kappa": 3}),
    "a frontier whose run is a link": link_run,
    "an export of a run that re-ranks its lists": lambda: edit_json(MANIFEST, rerank=PC(strength=0.2).as_json()),
    "another study in the folder": begun,
    "a study whose storage is spoiled": spoiled_storage,
    "a result that is cut short": half_a_result,
}
"""What is done first otherwise; the current directory is the folder of `workshop.build`."""

LATE = {
    "a learning rate that makes the loss explode",
    "a learning rate that makes the loss rise and rise",
    "a place where nobody may write",
}
"""Mistakes that show only after lines of progress."""

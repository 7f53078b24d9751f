"""What users do something wrong with (a small log, a dataset, two runs), and tools to spoil it."""

import json
from pathlib import Path
from typing import Any

import polars as pl
from safetensors.torch import load_file, save_file

from dpaa.data.sources.published import TEST_FILE, TRAIN_FILE
from tests.command import dpaa_ok

LOG = "user_id,item_id,rating,timestamp\n" + "".join(
    f"u{user},i{item},{1 + (user + item) % 5},{100 * user + item}\n"
    for user in range(6)
    for item in range(user, user + 5)
)
LISTS = "user_id,item_id,rank\nu0002,i0001,1\nu0002,i0002,2\n"
RECS = "user_id,item_id,score,rank\nu0002,i0001,0.9,1\nu0002,i0002,0.5,2\n"
FILES = {
    "bad.csv": LOG,
    "recs.csv": RECS,
    "token": "0123456789abcdef0123456789abcdef\n",
    "numbers.csv": "user_id,item_id\n" + "".join(f"{u},{i}\n" for u in range(5) for i in range(u, 9)),
    "a.csv": LISTS,
    "b.csv": LISTS.replace("i0002", "i0003"),
    "train.txt": "1 10 11\n2 11 12\n",
    "val.txt": "1 12\n",
    "test.txt": "2 10\n",
}


def build(folder: Path) -> None:
    """Everything a case may need, in one folder; the current directory must be that folder."""
    (folder / "log.csv").write_text(LOG)
    frame = pl.read_csv(folder / "log.csv")
    frame.write_parquet(folder / "log.parquet")
    dpaa_ok("data", "demo", "--size", "60x50", "--out", "data")
    for name, content in FILES.items():
        (folder / name).write_text(content)
    dpaa_ok("data", "log", "numbers.csv", "--out", "numbers")
    dpaa_ok("data", "log", "log.csv", "--valid", "0", "--test", "0", "--out", "untested")
    small = ["--set", "epochs=1", "--set", "embedding_size=4", "--set", "layers=1", "--set", "threads=1"]
    dpaa_ok("train", "data", *small, "--out", "run")
    dpaa_ok("train", "numbers", *small, "--out", "numbers-run")
    dpaa_ok("train", "untested", "--method", "most-popular", "--out", "untested-run")
    for name in ("raw-coat", "raw-yahoo", "diary", "unfinished"):
        (folder / name).mkdir()
    (folder / "diary" / "monday.txt").write_text("dear diary\n")
    (folder / "unfinished" / "config.json").write_bytes((folder / "run" / "config.json").read_bytes())
    for name in ("train.ascii", "test.ascii"):
        (folder / "raw-coat" / name).write_text("0 3 5\n1 0 4\n")
    for name in (TRAIN_FILE, TEST_FILE):
        (folder / "raw-yahoo" / name).write_text("1\t1\t5\n1\t2\t4\n2\t1\t4\n")


def edit_json(file: Path, **changes: Any) -> None:
    """Change some keys; None removes one."""
    content = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def edit_table(file: Path, *columns: Any) -> None:
    """Change or add columns of a Parquet file."""
    pl.read_parquet(file).with_columns(*columns).write_parquet(file)


def drop_column(file: Path, column: str) -> None:
    pl.read_parquet(file).drop(column).write_parquet(file)


def cut(file: Path, share: float = 0.5) -> None:
    """Keep the first part of a file."""
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])


def edit_tensor(run: Path, name: str, change: Any) -> None:
    tensors = load_file(run / "model.safetensors")
    tensors[name] = change(tensors[name])
    save_file(tensors, run / "model.safetensors")


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every file with its content and every folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}

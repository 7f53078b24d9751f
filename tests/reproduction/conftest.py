from __future__ import annotations

from pathlib import Path

import pytest

from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.sources.world import simulate

TINY = ("--set", "embedding_size=4", "--set", "layers=1", "--set", "epochs=2", "--no-figures")
"""A training that takes a moment."""


@pytest.fixture(scope="session")
def tiny_world() -> Dataset:
    return simulate(users=80, items=60, seed=3)


@pytest.fixture(scope="session")
def files(tiny_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`coat/`: a split in list form of which some test pairs are training pairs; `kuairec/`: its two exposed parts."""
    folder = tmp_path_factory.mktemp("files")
    train = tiny_world.frame("train")
    exposed = tiny_world.frame("test")
    for place in ("coat", "kuairec"):
        (folder / place).mkdir()
    shared = train.head(25)
    write_lists(folder / "coat" / "train.txt", train)
    write_lists(folder / "coat" / "val.txt", tiny_world.frame("valid"))
    write_lists(
        folder / "coat" / "test.txt",
        exposed.select(Column.USER, Column.ITEM).vstack(shared.select(Column.USER, Column.ITEM)),
    )
    write_lists(folder / "kuairec" / "valid.txt", train)
    write_lists(folder / "kuairec" / "test.txt", exposed)
    return folder


def write_lists(file: Path, frame: object) -> None:
    """One line per user: `user item item …`."""
    import polars as pl

    assert isinstance(frame, pl.DataFrame)
    rows = frame.group_by(Column.USER, maintain_order=True).agg(Column.ITEM)
    lines = (" ".join([str(user), *map(str, items)]) for user, items in rows.iter_rows())
    file.write_text("\n".join(lines) + "\n")

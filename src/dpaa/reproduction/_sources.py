"""The datasets of the paper: official files, or ready-made splits in list form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from dpaa._io import LARGE_JSON, read_text
from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset, from_files
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.sources.published import TEST_FILE, TRAIN_FILE, coat, kuairec, yahoo_r3
from dpaa.data.sources.severity import read_pairs
from dpaa.errors import InputError

TITLES = {"coat": "Coat", "kuairec": "KuaiRec", "yahoo-r3": "Yahoo! R3"}
LAYERS = {"coat": 2, "kuairec": 4, "yahoo-r3": 2}
"""The paper's."""
OFFICIAL: dict[str, tuple[tuple[str, str], Callable[..., Dataset]]] = {
    "coat": (("train.ascii", "test.ascii"), coat),
    "kuairec": (("small_matrix.csv", "big_matrix.csv"), kuairec),
    "yahoo-r3": ((TRAIN_FILE, TEST_FILE), yahoo_r3),
}
"""Official files, and the function that reads them."""
LIST_NAMES = {"train": ("train.txt",), "valid": ("valid.txt", "val.txt"), "test": ("test.txt", "test_ood.txt")}


def real_dataset(name: str, folder: Path) -> Dataset | None:
    """Read the official files, or a split in list form.

    Parameters
    ----------
    name : one of `TITLES`
    folder : with the files

    Returns
    -------
    the dataset; None for KuaiRec without its training part.  Candidates of KuaiRec in list form are all items but those
    of `not_candidate.txt`, else the items of validation and test
    """
    if _is_official(name, folder):
        return OFFICIAL[name][1](folder)
    if name == "kuairec" and not (folder / "train.txt").exists():
        _listed(folder, "valid", name)
        return None
    data = from_files(*(_listed(folder, split, name) for split in LIST_NAMES), name=name)
    if name != "kuairec":
        return data
    allowed = pl.concat([data.frame("valid")[Column.ITEM], data.frame("test")[Column.ITEM]]).unique()
    allowed = data.item_ids.filter(data.item_ids.is_in(allowed.implode()))
    if (barred := folder / "not_candidate.txt").exists():
        ids = pl.Series(read_text(barred, LARGE_JSON).split(), dtype=pl.String)
        allowed = data.item_ids.filter(~data.item_ids.cast(pl.String).is_in(ids.implode()))
    frames = {split: data.frame(split) for split in ("train", "valid", "test")}
    about = {key: value for key, value in data.about.items() if key != "counts"} | {VALIDATION_EXPOSURE: "unbiased"}
    return Dataset.of(frames, name="kuairec", candidates=allowed, about=about, notes=data.notes)  # type: ignore[arg-type]


def exposed_pairs(folder: Path) -> pl.DataFrame:
    """Read the positives of KuaiRec's small matrix, where every user saw every video.

    Parameters
    ----------
    folder : with the official files, or with `valid.txt` and `test.txt`

    Returns
    -------
    pairs of user and item
    """
    if _is_official("kuairec", folder):
        data = kuairec(folder)
        frames = [data.frame(split).select(Column.USER, Column.ITEM) for split in ("valid", "test")]
        return pl.concat(frames).unique().sort(Column.USER, Column.ITEM)
    return read_pairs([str(_listed(folder, split, "kuairec")) for split in ("valid", "test")])[0]


def _is_official(name: str, folder: Path) -> bool:
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; name the folder that holds the dataset's files")
    folders = (folder, folder / "data") if name == "kuairec" else (folder,)
    return any((one / OFFICIAL[name][0][0]).exists() for one in folders)


def _listed(folder: Path, split: str, name: str) -> Path:
    """The file of a split in list form."""
    found = [folder / file for file in LIST_NAMES[split] if (folder / file).exists()]
    if not found:
        wanted = f"neither {' and '.join(OFFICIAL[name][0])} nor {' or '.join(LIST_NAMES[split])}"
        raise InputError(f"{folder} has {wanted}; give the official files, or train.txt, valid.txt and test.txt")
    return found[0]

"""The datasets of the paper: official files, or ready-made splits in list form; what a user has, and lacks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dpaa._io import LARGE_JSON, read_text
from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.sources.files import from_files
from dpaa.data.sources.published import TEST_FILE, TRAIN_FILE, coat, kuairec, yahoo_r3
from dpaa.data.sources.severity import read_pairs, with_severity
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
SMALL_MATRIX = "the folder given has the small matrix only, which is enough for severity data; add big_matrix.csv"


@dataclass(frozen=True)
class Sources:
    """Folders of data that the user has.

    Parameters
    ----------
    coat, yahoo_r3, kuairec : each with the official files, or with a split in list form
    check : whether official files must have the published counts
    """

    coat: Path | None = None
    yahoo_r3: Path | None = None
    kuairec: Path | None = None
    check: bool = True

    def folder(self, name: str) -> Path | None:
        """The folder of a dataset."""
        return {"coat": self.coat, "yahoo-r3": self.yahoo_r3, "kuairec": self.kuairec}[name]

    def real(self) -> dict[str, Dataset]:
        """The real datasets that can be prepared from them, in the paper's order."""
        folders = {name: folder for name in TITLES if (folder := self.folder(name)) is not None}
        datasets = {name: real_dataset(name, folder, self.check) for name, folder in folders.items()}
        return {name: data for name, data in datasets.items() if data is not None}

    def missing(self, real: Collection[str]) -> list[str]:
        """Datasets of the paper that could not be prepared, and what it takes."""
        needed = {name: SMALL_MATRIX if self.folder(name) else f"name its folder with --{name} DIR" for name in TITLES}
        return [f"{title} is not shown: {needed[name]}" for name, title in TITLES.items() if name not in real]

    def severity(self, severities: Sequence[float], seed: int) -> Iterator[tuple[float, Dataset]]:
        """KuaiRec's full exposure biased with each severity; validation and test are the same for all."""
        pairs = self.exposed()
        for severity in severities:
            yield severity, with_severity(pairs, severity, seed, name=f"kuairec-s{severity:g}-seed{seed}")

    def exposed(self) -> pl.DataFrame:
        """The positives of KuaiRec's small matrix, where every user saw every video."""
        if self.kuairec is None:
            raise InputError("severity data are made from KuaiRec's small matrix; name its folder with --kuairec DIR")
        if _is_official("kuairec", self.kuairec):
            data = kuairec(self.kuairec, check=self.check)
            frames = [data.frame(split).select(Column.USER, Column.ITEM) for split in ("valid", "test")]
            return pl.concat(frames).unique().sort(Column.USER, Column.ITEM)
        return read_pairs([str(_listed(self.kuairec, split)) for split in ("valid", "test")])[0]


def real_dataset(name: str, folder: Path, check: bool = True) -> Dataset | None:
    """The official files, or a split in list form; None for KuaiRec without its training part.

    Candidates of KuaiRec in list form: all items but those of `not_candidate.txt`, else the items of validation and
    test.
    """
    names, read = OFFICIAL[name]
    if _is_official(name, folder):
        return read(folder, check=check)
    official = " and ".join(names)
    if name == "kuairec":
        _listed(folder, "valid", official)
        _listed(folder, "test")
        if not (folder / "train.txt").exists():
            return None
    data = from_files(*(_listed(folder, split, official) for split in LIST_NAMES), name=name)
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


def _is_official(name: str, folder: Path) -> bool:
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; name the folder that holds the dataset's files")
    folders = (folder, folder / "data") if name == "kuairec" else (folder,)
    return any((one / OFFICIAL[name][0][0]).exists() for one in folders)


def _listed(folder: Path, split: str, official: str | None = None) -> Path:
    """The file of a split in list form."""
    for name in LIST_NAMES[split]:
        if (folder / name).exists():
            return folder / name
    wanted = " or ".join(LIST_NAMES[split])
    neither = f"neither {official} nor {wanted}" if official else f"no {wanted}"
    raise InputError(f"{folder} has {neither}; give the official files, or train.txt, valid.txt and test.txt")

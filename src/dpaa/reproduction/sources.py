"""The real datasets of the paper: official files, or ready-made splits in list form; what a user has, and lacks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dpaa._io import LARGE_JSON, read_text
from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.sources.coat import coat
from dpaa.data.sources.files import from_files
from dpaa.data.sources.kuairec import kuairec
from dpaa.data.sources.severity import read_pairs, with_severity
from dpaa.data.sources.yahoo_r3 import TEST_FILE, TRAIN_FILE, yahoo_r3
from dpaa.errors import InputError

TITLES = {"coat": "Coat", "kuairec": "KuaiRec", "yahoo-r3": "Yahoo! R3"}
LAYERS = {"coat": 2, "kuairec": 4, "yahoo-r3": 2}
"""The paper's."""
OFFICIAL: dict[str, tuple[tuple[str, str], Callable[..., Dataset]]] = {
    "coat": (("train.ascii", "test.ascii"), coat),
    "kuairec": (("small_matrix.csv", "big_matrix.csv"), kuairec),
    "yahoo-r3": ((TRAIN_FILE, TEST_FILE), yahoo_r3),
}
"""Official files, and who reads them."""
LIST_NAMES = {"train": ("train.txt",), "valid": ("valid.txt", "val.txt"), "test": ("test.txt", "test_ood.txt")}
NOT_CANDIDATE = "not_candidate.txt"


@dataclass(frozen=True)
class Sources:
    """Folders the user has named."""

    coat: Path | None = None
    yahoo_r3: Path | None = None
    kuairec: Path | None = None
    check: bool = True
    """Whether published files must have the published counts."""

    def folder(self, name: str) -> Path | None:
        """Of a dataset."""
        found: Path | None = getattr(self, name.replace("-", "_"))
        return found

    def real(self) -> dict[str, Dataset]:
        """The real datasets that can be made from them, in the paper's order."""
        folders = {name: folder for name in TITLES if (folder := self.folder(name)) is not None}
        made = {name: real_dataset(name, folder, self.check) for name, folder in folders.items()}
        return {name: data for name, data in made.items() if data is not None}

    def missing(self, real: Collection[str]) -> list[str]:
        """What the paper has and we could not make, and what it takes."""
        told = []
        for name in TITLES:
            if name not in real and self.folder(name) is None:
                told.append(f"{TITLES[name]} is not shown: name its folder with --{name} DIR")
            elif name not in real:  # only KuaiRec may be given without its training part
                told.append(
                    f"{TITLES[name]} is not shown: the folder given has the small matrix only, which is enough "
                    "for severity data; add big_matrix.csv (or train.txt)"
                )
        return told

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
    if _is_official(name, folder):
        return OFFICIAL[name][1](folder, check=check)
    official = " and ".join(OFFICIAL[name][0])
    if name == "kuairec":
        _listed(folder, "valid", official)
        _listed(folder, "test")
        if not (folder / "train.txt").exists():
            return None
    data = from_files(*(_listed(folder, split, official) for split in LIST_NAMES), name=name)
    if name != "kuairec":
        return data
    seen = pl.concat([data.frame("valid")[Column.ITEM], data.frame("test")[Column.ITEM]]).unique()
    allowed = data.item_ids.filter(data.item_ids.is_in(seen.implode()))
    if (folder / NOT_CANDIDATE).exists():
        barred = pl.Series(read_text(folder / NOT_CANDIDATE, LARGE_JSON).split(), dtype=pl.String)
        allowed = data.item_ids.filter(~data.item_ids.cast(pl.String).is_in(barred.implode()))
    frames = {split: data.frame(split) for split in ("train", "valid", "test")}
    about = {key: value for key, value in data.about.items() if key != "counts"} | {VALIDATION_EXPOSURE: "unbiased"}
    return Dataset.of(frames, name="kuairec", candidates=allowed, about=about, notes=data.notes)  # type: ignore[arg-type]


def _is_official(name: str, folder: Path) -> bool:
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; name the folder that holds the dataset's files")
    places = (folder, folder / "data") if name == "kuairec" else (folder,)
    return any((place / OFFICIAL[name][0][0]).exists() for place in places)


def _listed(folder: Path, split: str, official: str | None = None) -> Path:
    """The file of a split in list form."""
    for name in LIST_NAMES[split]:
        if (folder / name).exists():
            return folder / name
    wanted = " or ".join(LIST_NAMES[split])
    neither = f"neither {official} nor {wanted}" if official else f"no {wanted}"
    raise InputError(f"{folder} has {neither}; give the official files, or train.txt, valid.txt and test.txt")

"""The real datasets of the paper: official files, or ready-made splits in list form; what a user has, and lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.sources import coat as official_coat
from dpaa.data.sources import kuairec as official_kuairec
from dpaa.data.sources import yahoo_r3 as official_yahoo
from dpaa.data.sources.severity import read_pairs, with_severity
from dpaa.data.sources.splits import from_files
from dpaa.errors import InputError
from dpaa.files import LARGE_JSON, read_text

TITLES = {"coat": "Coat", "kuairec": "KuaiRec", "yahoo-r3": "Yahoo! R3"}
LAYERS = {"coat": 2, "kuairec": 4, "yahoo-r3": 2}
"""The paper's."""
LIST_NAMES = {"train": ("train.txt",), "valid": ("valid.txt", "val.txt"), "test": ("test.txt", "test_ood.txt")}
NOT_CANDIDATE = "not_candidate.txt"


@dataclass(frozen=True)
class Sources:
    """Folders the user has named."""

    coat: Path | None = None
    yahoo_r3: Path | None = None
    kuairec: Path | None = None

    def real(self) -> dict[str, Dataset]:
        """The real datasets that can be made from them, in the paper's order."""
        makers: dict[str, tuple[Path | None, Callable[[Path], Dataset | None]]] = {
            "coat": (self.coat, coat),
            "kuairec": (self.kuairec, kuairec),
            "yahoo-r3": (self.yahoo_r3, yahoo_r3),
        }
        made = {name: make(folder) for name, (folder, make) in makers.items() if folder is not None}
        return {name: data for name, data in made.items() if data is not None}

    def missing(self, real: dict[str, Dataset]) -> list[str]:
        """What the paper has and we could not make, and what it takes."""
        told = []
        for name in TITLES:
            folder = getattr(self, name.replace("-", "_"))
            if name in real:
                continue
            if folder is None:
                told.append(f"{TITLES[name]} is not shown: name its folder with --{name} DIR")
            else:  # only KuaiRec may be given without its training part
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
        folder = _folder(self.kuairec)
        if _official(folder):
            data = official_kuairec.kuairec(folder)
            frames = [data.frame(split).select(Column.USER, Column.ITEM) for split in ("valid", "test")]
            return pl.concat(frames).unique().sort(Column.USER, Column.ITEM)
        return read_pairs([str(_listed(folder, split)) for split in ("valid", "test")])


def coat(folder: Path) -> Dataset:
    """Coat: the official matrices, or a split in list form."""
    if (_folder(folder) / "train.ascii").exists():
        return official_coat.coat(folder)
    return _lists(folder, "coat", "train.ascii and test.ascii")


def yahoo_r3(folder: Path) -> Dataset:
    """Yahoo! R3: the official ratings, or a split in list form."""
    if (_folder(folder) / official_yahoo.TRAIN_FILE).exists():
        return official_yahoo.yahoo_r3(folder)
    return _lists(folder, "yahoo-r3", f"{official_yahoo.TRAIN_FILE} and {official_yahoo.TEST_FILE}")


def kuairec(folder: Path) -> Dataset | None:
    """KuaiRec: the official matrices, or a split in list form; None where there is no training part.

    Candidates of a split in list form: all items but those of `not_candidate.txt`, else the items of validation and
    test.
    """
    if _official(_folder(folder)):
        return official_kuairec.kuairec(folder)
    _listed(folder, "valid", "small_matrix.csv and big_matrix.csv")
    _listed(folder, "test")
    if not (folder / "train.txt").exists():
        return None
    data = _lists(folder, "kuairec", "small_matrix.csv and big_matrix.csv")
    seen = pl.concat([data.frame("valid")[Column.ITEM], data.frame("test")[Column.ITEM]]).unique()
    allowed = data.item_ids.filter(data.item_ids.is_in(seen.implode()))
    if (folder / NOT_CANDIDATE).exists():
        words = read_text(folder / NOT_CANDIDATE, LARGE_JSON).split()
        barred = pl.Series(words, dtype=pl.String)
        allowed = data.item_ids.filter(~data.item_ids.cast(pl.String).is_in(barred.implode()))
    frames = {split: data.frame(split) for split in ("train", "valid", "test")}
    about = {key: value for key, value in data.about.items() if key != "counts"} | {VALIDATION_EXPOSURE: "unbiased"}
    return Dataset.of(frames, name="kuairec", candidates=allowed, about=about, notes=data.notes)  # type: ignore[arg-type]


def _folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; name the folder that holds the dataset's files")
    return folder


def _official(folder: Path) -> bool:
    return any((place / "small_matrix.csv").exists() for place in (folder, folder / "data"))


def _lists(folder: Path, name: str, official: str) -> Dataset:
    train, valid, test = (_listed(folder, split, official) for split in ("train", "valid", "test"))
    return from_files(train, valid, test, name=name)


def _listed(folder: Path, split: str, official: str | None = None) -> Path:
    """The file of a split in list form."""
    for name in LIST_NAMES[split]:
        if (folder / name).exists():
            return folder / name
    wanted = " or ".join(LIST_NAMES[split])
    neither = f"neither {official} nor {wanted}" if official else f"no {wanted}"
    raise InputError(f"{folder} has {neither}; give the official files, or train.txt, valid.txt and test.txt")

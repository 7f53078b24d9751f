"""The log that ships with the package: clicks of a simulated bookshop, and the books' titles.

`scripts/example_log.py` made it.  What is shown there is mostly what the shop promotes, so the log is skewed, while
readers have genres that they like: something can be won.
"""

from __future__ import annotations

import gzip
from importlib import resources
from pathlib import Path

from dpaa._io import own_folder, settled, write_files
from dpaa.errors import InputError

CLICKS, TITLES = "clicks.csv", "titles.csv"
REMEDY = "make room or choose another folder with --out"


def example_files() -> dict[str, bytes]:
    """Both files, by name."""
    folder = resources.files("dpaa.data").joinpath("example")
    packed = folder.joinpath(f"{CLICKS}.gz").read_bytes()
    return {CLICKS: gzip.decompress(packed), TITLES: folder.joinpath(TITLES).read_bytes()}


def write_example(folder: str | Path, overwrite: bool = False) -> list[Path]:
    """Write both files into a folder, made if need be.  Returns where they are."""
    target = settled(folder)
    if target.exists() and not target.is_dir():
        raise InputError(f"{folder} is a file; choose another folder with --out")
    files = example_files()
    there = [name for name in files if (target / name).exists()]
    if there and not overwrite:
        raise InputError(
            f"{Path(folder) / there[0]} already exists; pass --overwrite or choose another folder with --out"
        )
    write_files(own_folder(target, REMEDY), files, REMEDY)
    return [Path(folder) / name for name in files]

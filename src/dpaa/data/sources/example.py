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
REMEDY = "choose another folder with --out"


def example_files() -> dict[str, bytes]:
    """Read both files, by name."""
    folder = resources.files("dpaa.data").joinpath("example")
    packed = folder.joinpath(f"{CLICKS}.gz").read_bytes()
    return {CLICKS: gzip.decompress(packed), TITLES: folder.joinpath(TITLES).read_bytes()}


def write_example(folder: str | Path, overwrite: bool = False) -> list[Path]:
    """Write both files into a folder.

    Parameters
    ----------
    folder : made if need be
    overwrite : replace files that are there

    Returns
    -------
    paths of the files
    """
    target, files = settled(folder), example_files()
    if target.is_file() or (not overwrite and any((target / name).exists() for name in files)):
        raise InputError(f"{folder} is a file, or its {CLICKS} already exists; pass --overwrite or {REMEDY}")
    write_files(own_folder(target, REMEDY), files, REMEDY)
    return [Path(folder) / name for name in files]

"""Garbage for every reader: it works or it is an InputError, never anything else."""

import contextlib
import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpaa import InputError, load, read_dataset
from dpaa.data.inputs import FORMATS, open_table
from dpaa.data.log import PositiveRule, read_candidates, read_log
from dpaa.runs.folder import RunFolder
from dpaa.training._checkpoint import Checkpoint, CheckpointFolder
from tests.errors.workshop import LOG

pytestmark = pytest.mark.filterwarnings("ignore")  # what numpy or torch warn of on garbage is not our subject
many = settings(
    max_examples=25,
    derandomize=True,  # one damaged Parquet file in thousands makes polars ask for exabytes, which ends the process
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PAIRS = pl.DataFrame({"user_id": ["a", "b", "b"], "item_id": [1, 2, 3], "rating": [1.0, 2.5, 3.0], "time": [1, 2, 3]})
WORDS = st.sampled_from([*',\t\n\r"-é\0', "user_id", "item_id", "rating", "timestamp", ":token", "1", "2.5", "nan"])


def valid(fmt: str) -> bytes:
    """A file of this format as it should be."""
    if fmt == "parquet":
        file = Path("valid.parquet")
        PAIRS.write_parquet(file)
        content = file.read_bytes()
        file.unlink()
        return content
    if fmt == "list":
        return b"u1 i1 i2\nu2 i1\n"
    text = LOG if fmt == "csv" else LOG.replace(",", "\t")
    return (text.replace("user_id", "user_id:token") if fmt == "inter" else text).encode()


@st.composite
def mutated(draw: st.DrawFn, content: bytes) -> bytes:
    """The content with a few bytes changed, cut out, doubled or put in."""
    spoiled = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        if not spoiled:
            break
        start = draw(st.integers(0, len(spoiled) - 1))
        end = draw(st.integers(start, min(len(spoiled), start + 40)))
        edit = draw(st.sampled_from(["flip", "cut", "end", "double", "insert"]))
        if edit == "flip":
            spoiled[start] ^= draw(st.integers(1, 255))
        elif edit == "cut":
            del spoiled[start:end]
        elif edit == "end":
            del spoiled[start:]
        elif edit == "double":
            spoiled[end:end] = spoiled[start:end]
        else:
            spoiled[start:start] = draw(st.binary(max_size=8))
    return bytes(spoiled)


def garbage(content: bytes) -> st.SearchStrategy[bytes]:
    """Random bytes, random words of the format, or a spoiled valid file."""
    words = st.lists(WORDS | st.text(max_size=4), max_size=30).map(lambda parts: "".join(parts).encode())
    return st.one_of(st.binary(max_size=200), words, mutated(content))


@pytest.mark.parametrize(("fmt", "zipped"), [*((fmt, False) for fmt in FORMATS), ("csv", True)])
@many
@given(data=st.data())
def test_tables(fmt: str, zipped: bool, data: st.DataObject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = data.draw(garbage(valid(fmt)))
    file = tmp_path / "table.txt"
    file.write_bytes(gzip.compress(content) if zipped else content)
    rule = data.draw(st.sampled_from([None, PositiveRule("rating", ">=", 3.0)]))
    with contextlib.suppress(InputError):
        read_log(open_table(file, fmt), positive=rule)
    with contextlib.suppress(InputError):
        read_candidates(open_table(file, data.draw(st.sampled_from([fmt, None]))))


def read_run(folder: Path) -> None:
    with contextlib.suppress(InputError):
        RunFolder(folder).history()
    load(folder).recommend(k=3)


READERS: dict[str, Callable[[Path], object]] = {"data": lambda folder: read_dataset(folder).describe(), "run": read_run}


@pytest.mark.parametrize("kind", READERS)
@settings(many, max_examples=40)
@given(data=st.data())
def test_folders(kind: str, data: st.DataObject, built: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(built / kind, tmp_path / kind, dirs_exist_ok=True))
    file = folder / data.draw(st.sampled_from(sorted(path.name for path in folder.iterdir())))
    file.write_bytes(data.draw(garbage(file.read_bytes())))
    with contextlib.suppress(InputError):
        READERS[kind](folder)


@many
@given(data=st.data())
def test_checkpoints(data: st.DataObject, built: Path, tmp_path: Path) -> None:
    checkpoints = CheckpointFolder(tmp_path / "checkpoint")
    checkpoints.save(Checkpoint({}, {"at": {"epoch": 3}, "identity": {"dataset": "x"}}))
    checkpoints.file.write_bytes(data.draw(garbage(checkpoints.file.read_bytes())))
    with contextlib.suppress(InputError):
        checkpoints.load()

"""Files: whole or not at all, never through a planted link, never more than allowed; locks and staging folders."""

import ast
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpaa import _io as files
from dpaa.errors import InputError


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


# ---------------------------------------------------------------------- reading


def test_what_is_no_regular_file_of_the_right_size_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # is not waited for
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "long").write_bytes(b"x" * 11)
    refused: dict[str | Path, str] = {
        tmp_path / "pipe": "pipe is a pipe or device; write its content to a file",
        "/dev/zero": "is a pipe or device",
        tmp_path / "link": "is a pipe or device",
        tmp_path: "is a folder",
        tmp_path / "none": "there is no file",
        "a\0b": "cannot be read",
        tmp_path / "long": "is larger than",
    }
    for name, sentence in refused.items():
        with pytest.raises(InputError, match=sentence):
            files.read_bytes(name, 10)
    assert len(files.read_bytes(tmp_path / "long", 11)) == 11


@pytest.mark.parametrize("text", ["1" + 400 * "0", "1e400", '{"a": [1e999]}', 100_000 * "[", "{", "\x80"])
def test_json_that_no_float_holds_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(f'{{"a": {text}}}')
    with pytest.raises(InputError, match=r"a\.json is not readable JSON .*; mend it"):
        files.read_json(tmp_path / "a.json", 1_000_000, "mend it")


def test_other_json_and_other_encodings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1]")
    with pytest.raises(InputError, match="does not hold a JSON object; mend it"):
        files.read_json(tmp_path / "a.json", 100, "mend it")
    (tmp_path / "a").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        files.read_text(tmp_path / "a", 10)


# ---------------------------------------------------------------------- names


def test_folders_that_cannot_be_replaced_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    for name in (".", "..", "/", str(tmp_path), "../in"):
        with pytest.raises(InputError, match="name a folder of its own"):
            files.check_folder_name(name)
    with pytest.raises(InputError, match="is no usable path"):
        files.check_folder_name("")
    assert files.check_folder_name("x") == tmp_path / "in" / "x"


def test_a_link_out_of_an_untrusted_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "parts").symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match="leads out of"):
        files.check_within(tmp_path / "run" / "parts" / "plain", tmp_path / "run")
    assert files.check_within(tmp_path / "run" / "else", tmp_path / "run") == tmp_path / "run" / "else"
    with pytest.raises(InputError, match="is a link to somewhere else"):
        files.own_folder(tmp_path / "run" / "parts", "")


# ---------------------------------------------------------------------- writing


@pytest.mark.parametrize("name", ["metrics.json.new", "metrics.json", ".dpaa-0123456789ab"])
def test_a_planted_link_is_never_written_through(tmp_path: Path, name: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "outside").write_text("mine")
    (tmp_path / "run" / name).symlink_to(tmp_path / "outside")
    (tmp_path / "run" / "history.jsonl").symlink_to(tmp_path / "outside")
    files.write_file(tmp_path / "run" / "metrics.json", "new", "")
    with pytest.raises(InputError, match="cannot write"):
        files.append_line(tmp_path / "run" / "history.jsonl", "{}", "remove the link")
    assert (tmp_path / "outside").read_text() == "mine"
    assert (tmp_path / "run" / "metrics.json").read_text() == "new"
    assert not (tmp_path / "run" / "metrics.json").is_symlink()


def test_a_link_to_a_folder_on_the_way_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.write_file(tmp_path / "link" / "new" / "a", "content", "", make_folders=True)
    assert (tmp_path / "real" / "new" / "a").read_text() == "content"
    assert (tmp_path / "link").is_symlink()


def test_what_cannot_be_written_leaves_the_old_and_nothing_else(tmp_path: Path) -> None:
    def full(file: Path) -> None:
        file.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_text("old")
    with pytest.raises(InputError, match=r"cannot write .*a, b.*No space left on device.*; make room"):
        files.write_files(tmp_path, {"a": "new", "b": full}, "make room")
    with pytest.raises(InputError, match="No space left"):
        files.write_file(tmp_path / "x" / "y" / "z", full, "make room", make_folders=True)
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_files_are_as_readable_as_the_user_wants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.write_file(tmp_path / "a", "new", "")
        with files.whole_folder(tmp_path / "b", "") as fresh:
            files.write_into(fresh, "c", "new")
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "b", "b/c")] == [0o640, 0o750, 0o640]


@pytest.mark.parametrize("exchanging", [True, False])
def test_a_folder_is_replaced_or_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanging: bool) -> None:
    """On systems that can exchange two names, and on those that cannot."""
    if not exchanging:
        monkeypatch.setattr("dpaa._io._exchange", lambda *_: False)
    for content in ("old", "new"):
        with files.whole_folder(tmp_path / "data", "") as fresh:
            (fresh / content).write_text(content)
        assert names(tmp_path / "data") == [content]

    def interrupted(target: Path) -> None:
        with files.whole_folder(target, "") as fresh:
            (fresh / "newer").touch()
            raise KeyboardInterrupt

    for target in (tmp_path / "data", tmp_path / "x" / "y"):
        with pytest.raises(KeyboardInterrupt):
            interrupted(target)
    assert names(tmp_path) == ["data"]
    assert names(tmp_path / "data") == ["new"]


# ---------------------------------------------------------------------- staging folders

HOLDS = """
import sys, tempfile
from pathlib import Path
from dpaa._io import staging, temporary_folder
tempfile.tempdir = sys.argv[1]
temporary = temporary_folder("dpaa-here-")
with staging(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("half")
    print(folder, temporary.name, flush=True)
    sys.stdin.read()
"""


@contextmanager
def holding(home: Path) -> Iterator[tuple[subprocess.Popen[str], list[Path]]]:
    """A process, and its staging folders here."""
    call = [sys.executable, "-c", HOLDS, str(home)]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process, [Path(name) for name in process.stdout.readline().split()]


def test_what_a_killed_process_left_is_swept_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with holding(tmp_path) as (killed, left):
        with files.staging(tmp_path) as own, files.temporary_folder("dpaa-here-"):
            assert all(folder.exists() for folder in left), "its process lives"
            assert own not in left
        killed.kill()
    assert names(tmp_path) == sorted(folder.name for folder in left)
    files._swept.clear()
    files.write_file(tmp_path / "a", "new", "")
    with holding(tmp_path) as (living, kept):
        assert names(tmp_path) == sorted(["a", *(folder.name for folder in kept)])
        living.communicate("")
    assert names(tmp_path) == ["a"]


def test_a_folder_that_is_swept_cannot_be_taken_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new, refused = tmp_path / f"{files.STAGING}abcd1234", list[str]()
    new.mkdir()  # another process has made it, and is about to lock it

    def remove(folder: Path, **_: object) -> None:
        with pytest.raises(InputError, match="in use"):
            files._acquired(folder / files.HOLD, wait=False)
        refused.append(folder.name)

    monkeypatch.setattr(files.shutil, "rmtree", remove)
    files.sweep(tmp_path)
    assert refused == [new.name]


def test_a_folder_that_was_swept_before_it_was_locked_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    acquired, made = files._acquired, list[Path]()

    def swept_at_first(file: Path, wait: bool) -> int:
        made.append(file.parent)
        if len(made) == 1:
            raise FileNotFoundError
        return acquired(file, wait)

    monkeypatch.setattr(files, "_acquired", swept_at_first)
    with files.temporary_folder("dpaa-here-") as kept:  # no ResourceWarning, which would be an error here
        assert [folder.exists() for folder in made] == [False, True]
        assert Path(kept) == made[1]


# ---------------------------------------------------------------------- locks


def test_a_lock_file_is_there_only_while_it_is_held(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()  # of a process that was killed
    lock = tmp_path / ".lock"
    with files.locked(lock), pytest.raises(InputError, match="is in use by another process"), files.locked(lock):
        pass
    assert names(tmp_path) == []


def test_who_waits_for_a_lock_file_gets_the_one_that_is_there(tmp_path: Path) -> None:
    order: list[int] = []

    def work(number: int) -> None:
        with files.locked(tmp_path / ".lock", wait=True):
            order.append(number)
            assert (tmp_path / ".lock").exists()
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one == two for one, two in zip(order[::2], order[1::2], strict=True)), "two held it at a time"
    assert names(tmp_path) == []


def test_nobody_else_writes_files() -> None:
    """Content reaches the disk through one module; libraries write where it tells them to."""
    direct = {"write_text", "write_bytes", "touch", "mkdtemp", "mkstemp", "NamedTemporaryFile", "TemporaryDirectory"}
    elsewhere = set()
    for file in Path(files.__file__).parent.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        named = any(word in text for word in (*direct, "open("))
        for node in ast.walk(ast.parse(text)) if named else ():
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            opens = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
            if file != Path(files.__file__) and (name in direct or opens):
                elsewhere.add(f"{file.name}: {name or 'open'}")
    # What a service and copies of input write is private, and gone when the process ends.
    private = {"_engine.py: TemporaryDirectory", "inputs.py: TemporaryDirectory"}
    assert elsewhere <= private


def test_an_empty_folder_that_was_not_locked_yet_is_swept(tmp_path: Path) -> None:
    (tmp_path / ".dpaa-new-0123456789ab").mkdir()
    files.write_file(tmp_path / "a", "new", "")
    assert names(tmp_path) == ["a"]

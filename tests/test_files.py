"""Files: whole or not at all, never through a planted link, never more than allowed."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dpaa import files
from dpaa.errors import InputError
from dpaa.files import (
    append_line,
    check_folder_name,
    check_within,
    held,
    locked,
    open_regular,
    own_folder,
    put_in_place,
    read_bytes,
    read_json,
    read_text,
    settled,
    staging,
    whole_folder,
    write_file,
    write_files,
)

# ---------------------------------------------------------------------- reading


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is a pipe or device; write its content to a file"):
        open_regular(tmp_path / "pipe")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_a_device_is_refused(device: str) -> None:
    with pytest.raises(InputError, match=r"is a pipe or device|cannot be read"):
        read_bytes(device, 10)


def test_a_link_to_a_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.csv").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="is a pipe or device"):
        read_bytes(tmp_path / "log.csv", 10)


def test_no_more_is_read_than_allowed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 11)
    assert len(read_bytes(tmp_path / "a", 11)) == 11
    with pytest.raises(InputError, match="is larger than"):
        read_bytes(tmp_path / "a", 10)


def test_a_directory_or_nothing_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        read_bytes(tmp_path, 10)
    with pytest.raises(InputError, match="there is no file"):
        read_bytes(tmp_path / "none", 10)
    with pytest.raises(InputError, match="cannot be read"):
        read_bytes("a\0b", 10)


@pytest.mark.parametrize("text", ["1" + 400 * "0", "1e400", "-1e400", '{"a": [1e999]}', 100_000 * "[", "{", "\x80"])
def test_json_that_no_float_holds_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(f'{{"a": {text}}}')
    with pytest.raises(InputError, match=r"a\.json is not readable JSON .*; mend it"):
        read_json(tmp_path / "a.json", 1_000_000, "mend it")


def test_json_that_is_no_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1]")
    with pytest.raises(InputError, match="does not hold a JSON object; mend it"):
        read_json(tmp_path / "a.json", 100, "mend it")


def test_text_of_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_text(tmp_path / "a", 10)


# ---------------------------------------------------------------------- names


def test_folders_that_cannot_be_replaced_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    for name in (".", "..", "/", str(tmp_path), "../in"):
        with pytest.raises(InputError, match="name a folder of its own"):
            check_folder_name(name)
    with pytest.raises(InputError, match="an empty path names nothing"):
        check_folder_name("")
    assert check_folder_name("x") == tmp_path / "in" / "x"


def test_a_link_out_of_a_strangers_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "parts").symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match="leads out of"):
        check_within(tmp_path / "run" / "parts" / "plain", tmp_path / "run")
    assert check_within(tmp_path / "run" / "else", tmp_path / "run") == tmp_path / "run" / "else"
    with pytest.raises(InputError, match="is a link to somewhere else"):
        own_folder(tmp_path / "run" / "parts", "")


# ---------------------------------------------------------------------- writing


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("name", ["metrics.json.new", ".metrics.json.new", "metrics.json", ".dpaa-0123456789ab"])
def test_a_planted_link_is_never_written_through(tmp_path: Path, name: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "outside").write_text("mine")
    (tmp_path / "run" / name).symlink_to(tmp_path / "outside")
    write_file(tmp_path / "run" / "metrics.json", "new", "")
    assert (tmp_path / "outside").read_text() == "mine"
    assert (tmp_path / "run" / "metrics.json").read_text() == "new"
    assert not (tmp_path / "run" / "metrics.json").is_symlink()


def test_a_link_to_a_folder_on_the_way_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_file(tmp_path / "link" / "new" / "a", "content", "", make_folders=True)
    assert (tmp_path / "real" / "new" / "a").read_text() == "content"
    assert (tmp_path / "link").is_symlink()


def test_lines_are_not_added_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("mine")
    (tmp_path / "history.jsonl").symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match="cannot write"):
        append_line(tmp_path / "history.jsonl", "{}", "remove the link")
    assert (tmp_path / "outside").read_text() == "mine"


def test_what_cannot_be_written_leaves_the_old_and_nothing_else(tmp_path: Path) -> None:
    def full(file: Path) -> None:
        file.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_text("old")
    with pytest.raises(InputError, match=r"cannot write .*a, b.*No space left on device.*; make room"):
        write_files(tmp_path, {"a": "new", "b": full}, "make room")
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]
    with pytest.raises(InputError, match="No space left"):
        write_file(tmp_path / "x" / "y" / "z", full, "make room", make_folders=True)
    assert names(tmp_path) == ["a"]


def test_files_are_as_readable_as_the_user_wants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "a", "new", "")
        with whole_folder(tmp_path / "b", "") as fresh:
            files.write_into(fresh, "c", "new")
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "b", "b/c")] == [0o640, 0o750, 0o640]


@pytest.fixture(params=["in one step", "in two"])
def exchanging(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Systems that can exchange two names, and those that cannot."""
    if request.param == "in two":
        monkeypatch.setattr("dpaa.files._exchange", lambda *_: False)
    return str(request.param)


def test_a_folder_takes_the_place_of_another(tmp_path: Path, exchanging: str) -> None:
    for content in ("old", "new"):
        with whole_folder(tmp_path / "data", "") as fresh:
            (fresh / content).write_text(content)
        assert names(tmp_path / "data") == [content]
    assert names(tmp_path) == ["data"]


def test_a_folder_that_fails_leaves_the_old(tmp_path: Path, exchanging: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "old").touch()

    def interrupted() -> None:
        with whole_folder(tmp_path / "data", "") as fresh:
            (fresh / "new").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == ["data"]
    assert names(tmp_path / "data") == ["old"]
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "x" / "y", ""):
        raise KeyboardInterrupt
    assert names(tmp_path) == ["data"]


def test_a_replacement_cut_off_half_way_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def killed(self: Path, target: Path) -> Path:
        if self.name == "fresh":
            raise SystemExit
        return rename(self, target)

    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "old").touch()
    (tmp_path / "fresh").mkdir()
    monkeypatch.setattr("dpaa.files._exchange", lambda *_: False)
    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(SystemExit):
        put_in_place(tmp_path / "fresh", tmp_path / "data")
    assert not (tmp_path / "data").exists()
    assert names(settled(tmp_path / "data")) == ["old"]


KILLED = """
import os, signal, sys
from pathlib import Path
from dpaa.files import staging
with staging(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("half")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_left_is_swept_by_the_next_writer(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout
    assert child.stdin
    left = Path(child.stdout.readline().strip())
    with staging(tmp_path) as own:
        assert left.exists(), "its process lives"
        assert own != left
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    child.stdin.close()
    files._swept.clear()
    write_file(tmp_path / "a", "new", "")
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        (".dpaa-notes", "notes.txt"),
        (".dpaa-new-ideas", "notes.txt"),
        (".dpaa-0123456789ab", "notes.txt"),
        (".dpaa-new-0123456789ab", "notes.txt"),
        (".dpaa-0123456789ab", ".lock"),
        (".dpaa-0123456789abc", ".lock"),
    ],
)
def test_folders_of_the_user_s_are_not_taken_for_staging_folders(tmp_path: Path, name: str, inside: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / inside).write_text("mine")
    write_file(tmp_path / "a", "new", "")
    assert (tmp_path / name / inside).read_text() == "mine"


def test_a_folder_of_the_user_s_is_not_taken_for_one_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / ".data.replaced"
    own.mkdir()
    (own / "notes.txt").write_text("mine")
    assert not settled(tmp_path / "data").exists()
    for name in ("data", "fresh"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    monkeypatch.setattr("dpaa.files._exchange", lambda *_: False)
    with pytest.raises(OSError, match="is in the way"):
        put_in_place(tmp_path / "fresh", tmp_path / "data")
    assert names(tmp_path / "data") == ["data"]
    assert names(tmp_path / "fresh") == ["fresh"]
    assert (own / "notes.txt").read_text() == "mine"


def test_an_empty_folder_that_was_not_locked_yet_is_swept(tmp_path: Path) -> None:
    (tmp_path / ".dpaa-new-0123456789ab").mkdir()
    write_file(tmp_path / "a", "new", "")
    assert names(tmp_path) == ["a"]


INTERRUPTED = """
import shutil, sys
from pathlib import Path
from dpaa import files

def interrupt(then):
    def late(*words, **more):
        then(*words, **more)
        raise KeyboardInterrupt
    return late

where = Path(sys.argv[1])
if sys.argv[2] == "made":
    Path.mkdir = interrupt(Path.mkdir)
with files.staging(where) as folder:
    (folder / "half").write_text("half")
    remove = shutil.rmtree
    def once(*words, **more):
        shutil.rmtree = remove
        raise KeyboardInterrupt
    shutil.rmtree = once
"""


@pytest.mark.parametrize("moment", ["made", "removed"])
def test_an_interrupt_while_a_staging_folder_is_made_or_removed_leaves_nothing(tmp_path: Path, moment: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, tmp_path, moment], capture_output=True, text=True, check=False
    )
    assert "KeyboardInterrupt" in said.stderr
    assert names(tmp_path) == []


def test_a_forked_process_leaves_its_parent_s_staging_folder_alone(tmp_path: Path) -> None:
    with staging(tmp_path) as own:
        child = os.fork()
        if child == 0:
            files._unstage_all()
            os._exit(0)
        os.waitpid(child, 0)
        assert own.exists()


# ---------------------------------------------------------------------- locks


def test_a_lock_file_is_there_only_while_it_is_held(tmp_path: Path) -> None:
    with locked(tmp_path / ".lock"):
        assert held(tmp_path / ".lock")
        with pytest.raises(InputError, match="is in use by another process"), locked(tmp_path / ".lock"):
            pass
    assert names(tmp_path) == []


@pytest.mark.parametrize("content", ["", "1234\n"])
def test_a_file_of_the_user_s_with_the_name_of_a_lock_stays(tmp_path: Path, content: str) -> None:
    file = tmp_path / ".run.lock"
    file.write_text(content)
    with locked(file):
        assert held(file)
    assert file.read_text() == content


def test_the_lock_file_of_a_killed_process_goes_with_the_next_holder(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_bytes(files.MARK)
    with locked(tmp_path / ".lock"):
        pass
    assert names(tmp_path) == []


def test_who_waits_for_a_lock_file_gets_the_one_that_is_there(tmp_path: Path) -> None:
    order: list[int] = []

    def work(number: int) -> None:
        with locked(tmp_path / ".lock", wait=True):
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
    """Content reaches the disk through `dpaa.files` alone; libraries write where it tells them to."""
    direct = {"write_text", "write_bytes", "touch", "mkdtemp", "mkstemp", "NamedTemporaryFile", "TemporaryDirectory"}
    found = []
    for file in Path(files.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            opens = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
            found += [f"{file.name}: {name or 'open'}"] if name in direct or opens else []
    # What a service and copies of input write is private, and gone when the process ends.
    of_a_service = ["snapshot.py: write_text", "state.py: write_text"]
    folders = ["scratch.py: TemporaryDirectory", "temporary.py: TemporaryDirectory"] * 2
    assert sorted(found) == ["files.py: write_bytes", *sorted([*folders, *of_a_service])]

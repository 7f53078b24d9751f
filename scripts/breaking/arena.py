"""Where attacks take place: one folder, made anew for each, always under the same name.

    arena/work/     where the command is called: its input and its output
    arena/outside/  what no command has any business with
    arena/tmp/      TMPDIR
    arena/home/     HOME

The name is always the same since runs remember the whole path of their dataset.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from .judge import Tree, tree
from .server import Call, Kill, Limits, Outcome, Server

SECRET = "nobody may touch this\n"
SECRETS = ("outside/secret", "outside/folder/secret")


class Arena:
    """The folder and the tool that is called in it."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server = folder, server
        self.work, self.outside = folder / "work", folder / "outside"

    def clear(self) -> None:
        """Empty but for what lies outside."""
        if self.folder.exists():
            remove(self.folder)
        for name in ("work", "outside/folder", "tmp", "home"):
            (self.folder / name).mkdir(parents=True)
        for name in SECRETS:
            (self.folder / name).write_text(SECRET)

    def put(self, source: Path, name: str) -> None:
        """Copy a thing that was made before into the working folder."""
        target = self.work / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copyfile(source, target)

    def tree(self) -> Tree:
        """Everything that is there; what is in the working folder without its name in front."""
        found = tree(self.folder)
        return {path.removeprefix("work/") if path != "work" else ".": kind for path, kind in found.items()}

    def call(
        self,
        words: Iterable[object],
        kill: Kill | None = None,
        limits: Limits | None = None,
        control: Path | None = None,
        file_size: int | None = None,
    ) -> Outcome:
        """Call the tool in the working folder."""
        home = str(self.folder / "home")
        places = {"TMPDIR": str(self.folder / "tmp"), "HOME": home, "XDG_CACHE_HOME": home}
        return self.server.run(
            Call(
                words=[str(word) for word in words],
                folder=str(self.work),
                environment=places,
                kill=kill,
                limits=limits or Limits(),
                control=str(control) if control else None,
                file_size=file_size,
            )
        )


def remove(path: Path) -> None:
    """A file, link or whole folder, whatever is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

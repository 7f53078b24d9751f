"""Prepare a snapshot in a process of its own: `python -m dpaa.serving.prepare STATE NAME`.

Loading a stranger's run, checking it and building an index takes seconds and memory; here it takes neither from the
workers.  What is wrong with the run is said in one sentence on standard output, with exit code 2.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import torch

from dpaa.errors import InputError
from dpaa.methods import METHODS
from dpaa.plugins import add_plugin
from dpaa.ranking.registry import RERANKERS
from dpaa.runs.model import load
from dpaa.serving.settings import ServeSettings
from dpaa.serving.snapshot import write_snapshot
from dpaa.serving.state import State
from dpaa.serving.titles import read_titles
from dpaa.temporary import enough_room


def prepare(settings: ServeSettings, folder: Path) -> None:
    """Load, check and write; nothing half-written stays."""
    model = load(settings.run)
    titles = None if settings.titles is None else read_titles(settings.titles, model.item_ids)
    try:
        with enough_room(folder.parent, "the run"):
            write_snapshot(model, folder, settings.index, titles)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def main() -> None:
    """Called by the supervisor, or by a worker that was told to reload."""
    state, name = State(Path(sys.argv[1])), sys.argv[2]
    settings = state.settings()
    if state.begun:
        with suppress(OSError):
            os.nice(5)  # whoever is being served goes first
    torch.set_num_threads(1)
    for place in settings.plugins:
        add_plugin(place, METHODS, RERANKERS)
    try:
        prepare(settings, state.snapshot(name))
    except (InputError, OSError) as error:
        sys.stdout.write(" ".join(str(error).split()))
        sys.exit(2)


if __name__ == "__main__":
    main()

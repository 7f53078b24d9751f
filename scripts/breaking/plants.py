"""Links planted where a writer may put its files: what they point to must not be written.

Names of temporary files are not known here; every name that a file of this name could have meanwhile is tried.  A link
to a folder under the very name that a call gives is the caller's own and may be followed.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path

from .arena import remove
from .world import interrupted, reproduce, train, tune

PATTERNS = ("{0}.new", ".{0}.new", "{0}.tmp", ".{0}.tmp", "{0}.part", "{0}~", ".{0}", "{0}.lock", ".{0}.lock",
            ".{0}-replaced", ".{0}-old", "{0}.old")  # fmt: skip
TARGETS = {"existing": "secret", "new": "not-there", "folder": "folder"}


@dataclass(frozen=True)
class Plant:
    """A call that writes, and where."""

    name: str
    needs: tuple[str, ...]
    words: tuple[str, ...]
    folder: str
    """Where the links are planted."""
    finals: tuple[str, ...]
    """Names of the files and folders that it writes there."""
    writes: tuple[str, ...]
    keeps: tuple[str, ...] = ()
    share: float = 0.6

    def kinds(self) -> list[str]:
        """What may be planted: the name the temporary one is made of, and what it points to."""
        names = (*self.finals, *PATTERNS)
        return [f"{name} to {target}" for name in names for target in TARGETS]

    def plant(self, work: Path, outside: Path, kind: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
        """Plant one.  Returns what was done, and what may be written: the path, or where a caller's own link leads."""
        name, _, target = kind.partition(" to ")
        final = name if name in self.finals else rng.choice(self.finals)
        parent, _, last = final.rpartition("/")
        place = work / self.folder / parent / (last if name in self.finals else name.format(last))
        place.parent.mkdir(parents=True, exist_ok=True)
        remove(place)
        place.symlink_to(outside / TARGETS[target])
        shown = os.path.relpath(place, work)
        followed = (f"outside/{TARGETS[target]}/",) if target == "folder" and shown in self.words else ()
        return f"{shown}: a link to outside/{TARGETS[target]}", (shown, *followed)


RUN_FILES = ("config.json", "manifest.json", "history.jsonl", "model.safetensors", "users.parquet", "items.parquet",
             "edges.parquet")  # fmt: skip


def plants() -> list[Plant]:
    """All of them."""
    measured = ("metrics.json", "per_user.parquet")
    run = ("data", "run-lightgcn")
    wholly = ("out/",)
    return [
        Plant("planted: evaluate", run, ("evaluate", "run-lightgcn"), "run-lightgcn", measured,
              ("run-lightgcn/metrics.json", "run-lightgcn/per_user.parquet"), share=1.0),
        Plant("planted: evaluate --dial-objective", run, ("evaluate", "run-lightgcn", "--dial-objective", "recall"),
              "run-lightgcn", ("manifest.json", *measured), ("run-lightgcn/",)),
        Plant("planted: train --resume", ("data", "unfinished"), (*interrupted("unfinished"), "--resume"), "unfinished",
              (*RUN_FILES, "checkpoint", "checkpoint/state.safetensors", "checkpoint/state", "parts"),
              ("unfinished/",), ("unfinished/",), share=1.0),
        Plant("planted: train --overwrite", ("data", "run-lightgcn:out"), (*train("lightgcn", "out"), "--overwrite"),
              ".", ("out",), wholly),
        Plant("planted: train", ("data",), tuple(train("dpaa", "out")), ".", ("out", "pretrained-lightgcn"),
              (*wholly, "pretrained-*/")),
        Plant("planted: data log --overwrite", ("log.csv", "data:out"),
              ("data", "log", "log.csv", "--overwrite", "--out", "out"), ".", ("out",), wholly),
        Plant("planted: recommend", run, ("recommend", "run-lightgcn", "--out", "out.csv", "--overwrite"), ".",
              ("out.csv",), ("out.csv",)),
        Plant("planted: compare", (*run, "run-dpaa"),
              ("compare", "run-lightgcn", "run-dpaa", "--resamples", "100", "--out", "out.json", "--overwrite"), ".",
              ("out.json",), ("out.json",)),
        Plant("planted: report", ("comparison.json",),
              ("report", "comparison.json", "--out", "out.html", "--overwrite"), ".", ("out.html",), ("out.html",),
              share=0.3),
        Plant("planted: audit", ("data", "recs.csv"),
              ("audit", "data", "--recs", "recs.csv", "--html", "out.html", "--per-user", "out.csv", "--figure",
               "out.svg", "--overwrite"), ".", ("out.html", "out.csv", "out.svg"), ("out.html", "out.csv", "out.svg"),
              share=0.3),
        Plant("planted: tune", ("data", "study"), tuple(tune("study", trials=3)), "study",
              ("study.json", "trials.jsonl", "best.toml", "runs", "lock", "locks", "study.sqlite"), ("study/",),
              ("study/",)),
        Plant("planted: reproduce", ("coat", "reproduced/kept:kept"), tuple(reproduce()), ".",
              ("pages/overall-quick.csv", "pages/overall-quick.html", "results/overall", "kept/coat", "pages"),
              ("results/", "pages/", "kept/"), ("results/", "kept/", "pages/")),
    ]  # fmt: skip

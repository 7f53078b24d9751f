"""Whether two results are the same, times of day and durations aside."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from .judge import Tree, tree

TIMES = {"started", "finished", "seconds"}
"""Keys of JSON that tell when and how long."""
DATE = re.compile(rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d( UTC|\+00:00)?")
SECONDS = re.compile(rb'<td data-by="[^"]*" class="number">[^<]*</td>\s*(<td[^>]*>\(then\))')
"""How long a run took, beside when it was made, on a page."""
TRIAL = re.compile(r"\btrial-\d+")
"""Killed trials are numbered too."""
PLAIN = {".html", ".md", ".tex", ".svg"}


def settled(folder: Path) -> Tree:
    """Every path below a folder with a digest of what does not depend on the time; links as they are."""
    found: Tree = {}
    for path, kind in tree(folder).items():
        file = folder / path
        steady = None if file.is_symlink() or not file.is_file() else without_times(file)
        found[TRIAL.sub("trial-N", path)] = kind if steady is None else hashlib.sha256(steady).hexdigest()
    return found


def without_times(file: Path) -> bytes | None:
    """The content without times; None where the file is compared byte for byte."""
    content = file.read_bytes()
    try:
        if file.name == "study.sqlite":
            return b"compared through trials.jsonl"
        if file.name == "trials.jsonl":
            return _trials(content)
        if file.name == "best.toml":
            return re.sub(rb"trial \d+", b"trial", content)
        if file.suffix == ".jsonl":
            return b"\n".join(_timeless(json.loads(line)) for line in content.splitlines())
        if file.suffix == ".json":
            return _timeless(json.loads(_with_settled_digests(file, content)))
    except ValueError:
        return None  # not whole: as it is
    return SECONDS.sub(rb"\1", DATE.sub(b"(then)", content)) if file.suffix in PLAIN else None


def _timeless(value: Any) -> bytes:
    return json.dumps(_without(value), sort_keys=True).encode()


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(one) for key, one in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [_without(one) for one in value]
    return TRIAL.sub("trial-N", value) if isinstance(value, str) else value


def _trials(content: bytes) -> bytes:
    """What was tried and came out, in whatever order; trials whose process was killed are tried again."""
    trials = [json.loads(line) for line in content.splitlines()]
    kept = {
        json.dumps([trial["settings"], trial["state"], trial["value"], trial["best_epoch"]], sort_keys=True)
        for trial in trials
        if trial["state"] != "lost"
    }
    return "\n".join(sorted(kept)).encode()


def _with_settled_digests(file: Path, content: bytes) -> bytes:
    """Where a file names the digests of files beside it that tell times, those of what does not depend on the time.

    Lines do not name digests, and a manifest only those of other files than a manifest.
    """
    if not re.search(rb"[0-9a-f]{32}", content):
        return content
    beside = [
        *file.parent.glob("*.jsonl"),
        *(file.parent.glob("manifest.json") if file.name != "manifest.json" else ()),
    ]
    for other in beside:
        steady = None if other.is_symlink() or not other.is_file() else without_times(other)
        if steady is not None:
            raw = hashlib.sha256(other.read_bytes()).hexdigest().encode()
            content = content.replace(raw, hashlib.sha256(steady).hexdigest().encode())
    return content

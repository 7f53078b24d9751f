"""The numbers of an audit for a monitoring system: OpenMetrics text, which Prometheus's collectors read too."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from dpaa._io import check_file_target, write_file
from dpaa._text import printable

PREFIX = "dpaa_audit_"
ENDINGS = (".prom", ".txt", ".om")


def check_metrics_file(file: Path) -> None:
    """Refuse, before any work, a file that could not be written; one that is there is replaced, as collectors want."""
    check_file_target(file, ENDINGS, "a metrics file")


def exposition(numbers: Mapping[str, float], meanings: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """One gauge per number, `head_share@20` as `dpaa_audit_head_share{k="20"}`; what has no value is left out."""
    lines = []
    for name, value in numbers.items():
        if not math.isfinite(value):
            continue
        base, _, k = name.partition("@")
        metric = PREFIX + re.sub(r"[^a-z0-9_]", "_", base)
        own = {**labels, **({"k": k} if k else {})}
        shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in own.items())
        lines += [
            f"# TYPE {metric} gauge",
            f"# HELP {metric} {_escaped(meanings.get(name, base))}",
            f"{metric}{{{shown}}} {float(value)!r}",
        ]
    return "\n".join([*lines, "# EOF", ""])


def write_metrics(text: str, file: Path) -> None:
    """In one rename, so that a collector never reads half of it."""
    write_file(file, text, "make room or choose another place")


def _escaped(text: str) -> str:
    return printable(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

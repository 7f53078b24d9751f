"""The notes of a release, from CHANGELOG.md: `python scripts/release_notes.py v0.2.0 > notes.md`.

A tag that is not the package's version, or that the changelog does not know, ends with exit code 2 and a sentence:
nothing is released by mistake.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def version_of(source: str) -> str:
    """`__version__` as the package's source has it."""
    found = re.search(r'^__version__ = "([^"]+)"$', source, re.MULTILINE)
    if found is None:
        raise ValueError("src/dpaa/__init__.py has no __version__")
    return found[1]


def notes(changelog: str, version: str) -> str:
    """What stands under `## [version]`, up to the next heading of its kind or the links at the end."""
    heading = re.compile(rf"^## \[{re.escape(version)}\](?: - (\d{{4}}-\d\d-\d\d))?$", re.MULTILINE)
    found = heading.search(changelog)
    if found is None:
        raise ValueError(f"CHANGELOG.md has no heading '## [{version}] - YYYY-MM-DD': name the release there first")
    if found[1] is None:
        raise ValueError(f"the heading of {version} in CHANGELOG.md has no date: '## [{version}] - YYYY-MM-DD'")
    rest = changelog[found.end() :]
    end = re.search(r"^(## |\[[^\]]+\]: )", rest, re.MULTILINE)
    text = rest[: end.start() if end else None].strip()
    if not text:
        raise ValueError(f"CHANGELOG.md says nothing under {version}")
    return text


def main(tag: str) -> str:
    """The notes for a tag `vX.Y.Z` of this working copy."""
    version = version_of((ROOT / "src" / "dpaa" / "__init__.py").read_text(encoding="utf-8"))
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, the package says {version}: the tag must be v{version}")
    return notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python scripts/release_notes.py vX.Y.Z")
    try:
        print(main(sys.argv[1]))
    except ValueError as error:
        print(error, file=sys.stderr)
        sys.exit(2)

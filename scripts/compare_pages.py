"""Are the committed tables and figures what the stored results give?  Every page names the command that made it.

    python scripts/compare_pages.py --coat DIR --kuairec DIR

Runs each of those commands into a folder of its own and compares all files byte by byte: of a page of HTML without
its date, and without the PNG figures, whose fonts are the machine's (the same figures as SVG are compared).  The
folders are those that the results were made with: of KuaiRec `valid.txt` and `test.txt`, of Coat `train.txt`,
`val.txt` and `test.txt`.  Nothing is trained as long as `results/` has what the pages need; it is read, never
written.  Exits with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = re.compile(r"^    (dpaa reproduce (?!import ).*)$", re.MULTILINE)
DATE = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")


def main() -> int:
    """Regenerate, compare, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coat", type=Path, required=True)
    parser.add_argument("--kuairec", type=Path, required=True)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--pages", type=Path, default=Path("docs/results"), help="What is compared with.")
    parser.add_argument("--out", type=Path, help="Where the pages are made; else a folder that is removed.")
    parser.add_argument("--work", type=Path, help="Where datasets are kept meanwhile; else a folder that is removed.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        out, work = given.out or Path(place) / "out", given.work or Path(place) / "work"
        results = shutil.copytree(given.results, Path(place) / "results")
        for command in commands(given.pages):
            words = shlex.split(command)[1:]
            for option, folder in (("--coat", given.coat), ("--kuairec", given.kuairec)):
                if option in words:
                    words[words.index(option) + 1] = str(folder)
            places = ["--results", str(results), "--work", str(work), "--out", str(out)]
            call = [sys.executable, "-c", "from dpaa.cli import main; main()", *words, *places]
            done = subprocess.run(call, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{command}\n{done.stderr.strip()}")
            print(f"{command}\n    {done.stderr.splitlines()[-1]}", flush=True)
        return compare(out, given.pages)


def commands(pages: Path) -> list[str]:
    """Those that the pages name, each once; a page without figures was made without them."""
    found: dict[str, None] = {}
    for page in sorted(pages.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        drawn = (pages / f"{page.stem}.html").exists()
        found |= {one if drawn else f"{one} --no-figures": None for one in COMMAND.findall(text)}
    return list(found)


def compare(made: Path, pages: Path) -> int:
    """Print which files differ; 1 where any does."""
    files = sorted(file for file in made.iterdir() if (pages / file.name).exists() and file.suffix != ".png")
    differing = [file.name for file in files if content(file) != content(pages / file.name)]
    for name in differing:
        print(f"differs: {name}")
    print(f"{len(files)} files compared with {pages}, differences: {len(differing)}")
    return 1 if differing or not files else 0


def content(file: Path) -> bytes:
    """What is compared of a file."""
    return DATE.sub(b"DATE", file.read_bytes()) if file.suffix == ".html" else file.read_bytes()


if __name__ == "__main__":
    sys.exit(main())

"""Each package imports only from those to its left; a short look at the source keeps the rule."""

from __future__ import annotations

import ast
from pathlib import Path

import dpaa

ORDER = [
    *("errors", "words", "text", "files", "plugins"),
    *("kernels", "data", "graph", "methods", "reranking", "training", "evaluation", "auditing"),
    *("runs", "comparison", "trace", "tuning", "report", "reproduction", "cli"),
]
ROOT = Path(dpaa.__file__).parent


def imported_packages(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names = [node.module or ""]
        found |= {name.split(".")[1] for name in names if name.startswith("dpaa.")}
    return found


def test_imports_point_left() -> None:
    wrong = []
    for file in ROOT.rglob("*.py"):
        home = file.relative_to(ROOT).parts[0].removesuffix(".py")
        if home == "__init__":
            continue  # the public names come from everywhere
        assert home in ORDER, f"{home} has no place in the import rule"
        wrong += [
            f"{file.relative_to(ROOT)} imports {package}"
            for package in imported_packages(file)
            if ORDER.index(package) > ORDER.index(home)
        ]
    assert not wrong


def test_the_trainer_knows_no_method_by_name() -> None:
    from dpaa.methods import METHODS

    for file in (ROOT / "training").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert not [name for name in METHODS if f'"{name}"' in text], file

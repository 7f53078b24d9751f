"""Each room imports only from those to its left, nothing imports in a circle, and imports stand at the top."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import dpaa

ORDER = [
    *("errors", "_text", "_html", "_frames", "_io", "plugins"),
    *("kernels", "data", "graph", "methods", "reranking", "training", "evaluation", "auditing"),
    *("runs", "comparison", "trace", "serving", "exporting", "tuning", "frontier", "report", "reproduction", "cli"),
    "__main__",
]
ROOT = Path(dpaa.__file__).parent
LATE = {"cli", "__init__", "methods/__init__", "methods/registry", "methods/catalogue"}
LATE |= {"reranking/__init__", "reranking/registry"}
"""Start without torch: rooms and modules that import where they use, or for types alone."""


def name_of(file: Path) -> str:
    return ".".join(["dpaa", *file.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


MODULES = {name_of(file): file for file in sorted(ROOT.rglob("*.py"))}


def imported(tree: ast.AST) -> set[str]:
    """Modules of ours that are imported anywhere below: at the top, in functions, for types."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import of {node.module}"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in MODULES else node.module or "" for name in names}
    return {name for name in found if name in MODULES and name != "dpaa"}


def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def starts_light(file: Path) -> bool:
    place = file.relative_to(ROOT).with_suffix("")
    return place.parts[0] in LATE or place.as_posix() in LATE


@pytest.mark.parametrize("name", [name for name in MODULES if name != "dpaa"])
def test_imports_point_left(name: str) -> None:
    home = name.split(".")[1]
    assert home in ORDER, f"{home} has no place in the import rule"
    rooms = {found.split(".")[1] for found in imported(parsed(MODULES[name]))}
    assert not [room for room in rooms if ORDER.index(room) > ORDER.index(home)]


def test_nothing_imports_in_a_circle() -> None:
    graph = {name: imported(parsed(file)) - {name} for name, file in MODULES.items() if name != "dpaa"}
    for room in ("methods", "reranking"):
        graph[f"dpaa.{room}"] = {f"dpaa.{room}.registry"}  # it offers the base classes, and imports them when asked
    list(TopologicalSorter(graph).static_order())  # a CycleError names the circle


def test_imports_of_ours_stand_at_the_top() -> None:
    late = []
    for name, file in MODULES.items():
        if starts_light(file):
            continue
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.FunctionDef | ast.If):
                late += [f"{name} imports {found}" for found in imported(node)]
    assert sorted(late) == [  # Optuna is an extra
        "dpaa.reproduction._plan imports dpaa.tuning.tune",
    ]


@pytest.mark.parametrize("room", ["training", "runs", "evaluation", "reranking", "serving"])
def test_these_rooms_know_no_method_by_name(room: str) -> None:
    from dpaa.methods import METHODS

    classes = {place.partition(":")[2] for place in METHODS.built_in.values()}
    modules = {place.partition(":")[0] for place in METHODS.built_in.values()}
    for file in (ROOT / room).rglob("*.py"):
        tree = parsed(file)
        words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        defaults = {"dpaa", *(["lightgcn"] if file.name == "fit.py" else [])}  # our package; what `dpaa.fit` falls to
        assert not words & set(METHODS.built_in) - defaults, file
        assert not names & classes, file
        assert not imported(tree) & modules, file

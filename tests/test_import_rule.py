"""Each package imports only from those before it, modules but for `Method.fit` import in no circle, and at the top."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import dpaa

ORDER = [
    *("errors", "_text", "_io", "_machine", "plugins"),
    *("data", "graph", "methods", "ranking", "training", "evaluation", "auditing"),
    *("runs", "comparison", "trace", "serving", "exporting", "tuning", "debiasing"),
    *("simulation", "report", "reproduction", "cli", "__main__"),
]
ROOT = Path(dpaa.__file__).parent
LATE = {"cli", "__init__", "methods/__init__", "methods/registry", "ranking/__init__", "ranking/registry"}
"""Start without torch: packages and modules that import where they use, or for types alone."""
UPWARDS = {("dpaa.methods.base", "runs")}
"""`Method.fit`, the one late import of a later package."""


def name_of(file: Path) -> str:
    return ".".join(["dpaa", *file.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


MODULES = {name_of(file): file for file in sorted(ROOT.rglob("*.py"))}


def imported(tree: ast.AST, root: bool = False) -> set[str]:
    """Modules of ours that are imported anywhere below: at the top, in functions, for types; `dpaa` with `root`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import of {node.module}"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in MODULES else node.module or "" for name in names}
    return {name for name in found if name in MODULES and (root or name != "dpaa")}


def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def without_types(tree: ast.Module) -> ast.Module:
    """The module without what it imports for types alone."""
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    ]
    return tree


def test_packages_import_only_earlier_ones() -> None:
    upwards = set()
    for name, file in MODULES.items():
        if name != "dpaa":
            home = ORDER.index(name.split(".")[1])
            packages = {module.split(".")[1] for module in imported(parsed(file))}
            upwards |= {(name, package) for package in packages if ORDER.index(package) > home}
    assert upwards == UPWARDS


def test_nothing_imports_in_a_circle() -> None:
    graph = {name: imported(without_types(parsed(file))) - {name} for name, file in MODULES.items() if name != "dpaa"}
    graph["dpaa.methods.base"] = {name for name in graph["dpaa.methods.base"] if not name.startswith("dpaa.runs")}
    for package in ("methods", "ranking"):
        graph[f"dpaa.{package}"] = {
            f"dpaa.{package}.registry"
        }  # it offers the base classes, and imports them when asked
    list(TopologicalSorter(graph).static_order())  # a CycleError names the circle


def test_imports_of_ours_stand_at_the_top() -> None:
    late = []
    for name, file in MODULES.items():
        place = file.relative_to(ROOT).with_suffix("")
        if place.parts[0] in LATE or place.as_posix() in LATE:
            continue
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.FunctionDef | ast.If):
                late += [f"{name} imports {found}" for found in imported(node)]
    assert not [
        one
        for one in late
        if not one.startswith(("dpaa.methods", "dpaa.reproduction", "dpaa.tuning", "dpaa.serving._server"))
    ]


@pytest.mark.parametrize("package", ["training", "runs", "evaluation", "ranking", "serving"])
def test_these_packages_know_no_method_by_name(package: str) -> None:
    from dpaa.methods import METHODS

    classes = {place.partition(":")[2] for place in METHODS.built_in.values()}
    modules = {place.partition(":")[0] for place in METHODS.built_in.values()}
    for file in (ROOT / package).rglob("*.py"):
        tree = parsed(file)
        words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        defaults = {"dpaa", *(["lightgcn"] if file.name == "fit.py" else [])}  # our package; what `dpaa.fit` falls to
        assert not words & set(METHODS.built_in) - defaults, file
        assert not names & classes, file
        assert not imported(tree) & modules, file

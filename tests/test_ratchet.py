"""The size and shape of the package may only shrink, or grow with a reason written beside the number.

`tests/ratchet.json` has, for every quantity, the highest value allowed and, where it was raised, why.
"""

import ast
import importlib
import inspect
import io
import json
import pkgutil
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import dpaa
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Method, attach
from dpaa.methods.graph_method import GraphMethod
from dpaa.training.trainer import Trainer

ROOT = Path(dpaa.__file__).parent
LIMITS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("ratchet.json").read_text(encoding="utf-8"))
FILES = sorted(ROOT.rglob("*.py"))
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def code_lines(text: str) -> int:
    """Lines that hold code: no docstring, comment or blank line."""
    doc: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        for child in body if isinstance(body := getattr(node, "body", None), list) else []:
            if (
                isinstance(child, ast.Expr)
                and isinstance(child.value, ast.Constant)
                and isinstance(child.value.value, str)
            ):
                doc.update(range(child.lineno, (child.end_lineno or child.lineno) + 1))
    skipped = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - doc)


def public_definitions(file: Path) -> Iterator[Definition]:
    """Public functions and classes of a public module."""
    place = file.relative_to(ROOT).with_suffix("").as_posix()
    private = re.search(r"\b_(?!_init__)", place)
    for node in [] if private else ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield node


def members(*kinds: type) -> int:
    """Public functions and properties of classes; hyperparameters and metadata are not counted."""
    described = (property, classmethod, staticmethod)
    names = {
        name for kind in kinds for name, value in vars(kind).items() if callable(value) or isinstance(value, described)
    }
    return len({name for name in names if not name.startswith("_") and name != "hyperparameters"})


@cache
def measured() -> dict[str, int]:
    stems = Counter(file.stem for file in FILES if file.stem != "__init__")
    return {
        "code_lines": sum(code_lines(file.read_text(encoding="utf-8")) for file in FILES),
        "lines": sum(len(file.read_text(encoding="utf-8").splitlines()) for file in FILES),
        "files": len(FILES),
        "public_names": sum(1 for file in FILES for _ in public_definitions(file)),
        "members_of_method_and_graph_method": members(
            *(kind for kind in GraphMethod.__mro__ if issubclass(kind, Method))
        ),
        "longest_method_file": max(
            len(file.read_text(encoding="utf-8").splitlines()) for file in ROOT.glob("methods/*.py")
        ),
        "file_names_used_twice": sum(1 for n in stems.values() if n > 1),
    }  # import cycles: tests/test_import_rule.py allows none but `Method.fit`


def test_every_quantity_has_a_limit() -> None:
    assert set(LIMITS) == set(measured())


@pytest.mark.parametrize("quantity", sorted(LIMITS))
def test_the_package_stays_small(quantity: str) -> None:
    limit, found = LIMITS[quantity], measured()[quantity]
    assert found <= limit["at_most"], (
        f"{quantity} is {found:,}, at most {limit['at_most']:,} are allowed; shorten, or raise the number "
        "in tests/ratchet.json with a `reason` beside it"
    )


def test_a_raised_limit_has_a_reason() -> None:
    raised = [name for name, limit in LIMITS.items() if limit["at_most"] > limit["target"] and not limit.get("reason")]
    assert not raised, f"above their target without a reason: {raised}"


def public_functions() -> Iterator[tuple[str, Any]]:
    """Functions that the packages list in `__all__`, and public methods of classes there that override none."""
    packages = [module.name for module in pkgutil.iter_modules(dpaa.__path__, "dpaa.") if module.ispkg]
    for module in map(importlib.import_module, ["dpaa", *packages]):
        for name, value in ((name, getattr(module, name)) for name in getattr(module, "__all__", ())):
            if inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value
            for own, member in vars(value).items() if inspect.isclass(value) else ():
                function = getattr(member, "__func__", member)
                overrides = any(own in vars(base) for base in value.__mro__[1:])
                if inspect.isfunction(function) and function.__name__ == own and own[0] != "_" and not overrides:
                    yield f"{module.__name__}.{name}.{own}", function


def test_public_names_have_numpydoc_sections() -> None:
    missing = set()
    for name, function in public_functions():
        signature, doc = inspect.signature(function), inspect.getdoc(function) or ""
        needed = ["Parameters"] if set(signature.parameters) - {"self", "cls"} else []
        needed += ["Returns"] if signature.return_annotation not in ("None", None, inspect.Signature.empty) else []
        missing |= {f"{name}: {section}" for section in needed if f"{section}\n-----" not in doc}
    assert not missing, "\n".join(sorted(missing))


@pytest.mark.slow
def test_one_training_step_runs_through_few_files(monkeypatch: pytest.MonkeyPatch, toy_graph: BipartiteGraph) -> None:
    files: set[Path] = set()
    step = Trainer._step

    def traced(*arguments: Any) -> Any:
        sys.setprofile(lambda frame, *_: files.add(Path(frame.f_code.co_filename)))
        try:
            return step(*arguments)
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(Trainer, "_step", traced)
    Trainer(attach(dpaa.LightGCN(epochs=1, embedding_size=8), toy_graph)).run()
    lines = {file.stem: len(file.read_text(encoding="utf-8").splitlines()) for file in files if file in FILES}
    assert {"trainer", "graph_method", "propagation"} <= set(lines)
    assert len(lines) <= 8, lines
    assert sum(lines.values()) <= 1500, lines


TOP = ("topk", "argpartition")
PLACES = {"graph/kernels.py", "data/sources/world.py"}
"""The kernel that `ranking` calls, and the simulated world's draws, which are no scores of a model."""


def test_scores_become_lists_in_one_place() -> None:
    elsewhere = []
    for file in FILES:
        place = file.relative_to(ROOT).as_posix()
        if place.startswith("ranking/") or place in PLACES:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                sorts_scores = node.func.attr == "argsort" and "score" in ast.unparse(node)
                if node.func.attr in TOP or sorts_scores:
                    elsewhere.append(f"{place}:{node.lineno}: {ast.unparse(node)}")
    assert not elsewhere, "call dpaa.ranking instead:\n" + "\n".join(elsewhere)

"""Help, messages, docstrings and documents use the words of the field, not those that they replaced."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REPLACED = {
    r"\bin force\b": "active, applied",
    r"\bmade? anew\b": "recomputed",
    r"\bsettings?\b(?! :|\.toml)": "hyperparameter (of a method), option (of a command)",
    r"\bstrangers?'": "untrusted",
    r"\b[Tt]rades?\b(?![- ]off|/|`|\")": "trade-off",
    r"\bhad no part in\b": "held-out",
    r"\b(go|goes|gone|went) on\b": "resume, continue",
    r"\breadings? of the paper\b": "interpretation",
    r"\btenths? of the items\b": "decile",
    r"\b(bears|leans on|leaning on)\b": "tolerates, relies on",
    r"\bwho (hears|speaks)\b": "receiver, sender",
    r"\d %": "46%, without a space",
    r"(?<![\w.\d/`])[−+-]?\.\d{3,4}\b(?!\w)": "0.1497, with the zero",
}
PAGES = (*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "SECURITY.md")
DOCUMENTS = sorted(page for page in PAGES if "results" not in page.parts and page.name != "errors.md")
MODULES = sorted(ROOT.glob("src/dpaa/**/*.py"))


def texts(file: Path) -> list[tuple[int, str]]:
    """Line and text of what a reader sees: a document's lines, or the strings of a module."""
    content = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return list(enumerate(content.splitlines(), 1))
    strings = (node for node in ast.walk(ast.parse(content)) if isinstance(node, ast.Constant))
    return [
        (node.lineno, node.value) for node in strings if isinstance(node.value, str) and re.search(r"\w \w", node.value)
    ]


@pytest.mark.parametrize("files", [DOCUMENTS, MODULES], ids=["documents", "modules"])
def test_replaced_words_do_not_come_back(files: list[Path]) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {match[0]!r}; write: {instead}"
        for file in files
        for line, text in texts(file)
        for pattern, instead in REPLACED.items()
        for match in re.finditer(pattern, text)
    ]
    assert not found, "\n".join(found)

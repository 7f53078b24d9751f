"""The documentation: the site builds without a warning, its links lead somewhere, and what can be pasted works."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from scripts import notebooks
from scripts.docs_site import BrokenLinkError, relinked
from scripts.help_pages import COMMANDS

from tests.command import run_dpaa

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


YOURS = pytest.param(
    "how-to/your-recommender",
    marks=pytest.mark.skipif(find_spec("implicit") is None, reason="the extra `references` is not installed"),
)


@dataclass(frozen=True)
class Block:
    """A block of code that a reader pastes."""

    language: str
    title: str | None
    text: str


def blocks(file: str) -> list[Block]:
    return [Block(*found) for found in FENCE.findall((ROOT / file).read_text(encoding="utf-8"))]


def paste(found: list[Block]) -> list[str]:
    """In order: files by their title, commands, Python.  Returns what every command said."""
    said, names = [], {"__name__": "pasted"}
    for block in found:
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "bash":
            for line in block.text.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if not words:
                    continue
                assert words[0] == "dpaa", line
                done = run_dpaa(*words[1:])
                assert done.code == 0, (line, done.err)
                said.append(done.out)
        elif block.language == "python":
            exec(compile(block.text, "pasted", "exec"), names)
    return said


PASTED = ("tutorials/engineer", "tutorials/researcher", "reference/python", "how-to/backtest", YOURS)


@pytest.mark.slow
@pytest.mark.parametrize("page", PASTED)
@pytest.mark.usefixtures("short_trainings")
def test_what_can_be_pasted_works(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    paste(blocks(f"docs/{page}.md"))


@pytest.mark.slow
@pytest.mark.usefixtures("short_trainings")
def test_the_walk_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = paste(blocks("README.md"))
    assert "niche-recall" in said[3], "what debias says of its choice"
    assert (tmp_path / "recs.csv").read_text(encoding="utf-8").startswith("user_id,item_id,")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<p class="verdict">' in page
    titles = (tmp_path / "shop" / "titles.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert any(title.partition(",")[2] in page for title in titles), "titles stand on the page"


def kinds(cells: list[dict[str, Any]]) -> list[list[str]]:
    """Of the outputs of every code cell."""
    outputs = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
    return [[kind for one in some for kind in one.get("data", {"stdout": ""})] for some in outputs]


@pytest.mark.slow
@pytest.mark.usefixtures("short_trainings")
@pytest.mark.parametrize("name", ["engineer", "researcher"])
def test_notebooks_run_and_show_what_is_committed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("altair", reason="the extra `report` is not installed")
    monkeypatch.chdir(tmp_path)
    text = (notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert len(text) < 150_000
    committed = json.loads(text)["cells"]
    cells = json.loads(text.replace(r"\"epochs\": 60", r"\"epochs\": 3"))["cells"]
    for cell in cells:
        cell["outputs"] = []
    notebooks.run(cells)
    assert kinds(cells) == kinds(committed)
    assert {"image/png", "text/html", "stdout"} <= {kind for some in kinds(committed) for kind in some}
    counts = [cell["execution_count"] for cell in committed if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))


def test_the_words_stay_few() -> None:
    """A README of one screen, and pages of 35,000 words without those that tests generate."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 700
    pages = [page.read_text(encoding="utf-8") for page in ROOT.glob("docs/**/*.md") if page.name != "errors.md"]
    generated = re.compile(r"<!-- (metrics: \w+|spaces|field) -->.*?<!-- end -->", re.DOTALL)
    assert sum(len(generated.sub("", text).split()) for text in pages) <= 35_000


def test_the_readmes_numbers_are_committed_results() -> None:
    rows = [json.loads(line) for line in (ROOT / "results" / "field.jsonl").read_text(encoding="utf-8").splitlines()]
    ours = {(row["row"], row["data"]): row["metrics"]["recall@20"] for row in rows}
    table = tomllib.loads((ROOT / "src/dpaa/reproduction/field.toml").read_text(encoding="utf-8"))
    published = {(row["row"], data): row.get("published", {}).get("recall@20") for data in table for row in table[data]}
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split()).replace("Amazon ", "")
    claims = re.findall(r"([\w+-]+) on (\w+) (0\.\d{4}) / (0\.\d{4})", text)
    assert len(claims) == 4
    for row, data, one, other in claims:
        key = (row, data.lower())
        assert (f"{ours[key]:.4f}", f"{published[key]:.4f}") == (one, other), key


def test_links_out_of_the_site_lead_to_its_pages_or_to_the_repository() -> None:
    home = "https://example.org/dpaa"
    assert relinked("[a](../CONTRIBUTING.md#habits)", "architecture.md", home) == "[a](project/CONTRIBUTING.md#habits)"
    assert relinked("[a](../benchmarks/RERANK.md)", "reranking.md", home) == "[a](project/benchmarks/RERANK.md)"
    assert relinked("[a](../../results)", "results/README.md", home) == f"[a]({home}/tree/main/results)"
    assert relinked("[a](metrics.md#ties)", "index.md", home) == "[a](metrics.md#ties)"
    assert relinked("[dial.md](dial.md#x)", "index.md", home) == "[The popularity dial](dial.md#x)"
    code = "```\n[a](nowhere.md)\n```\n"
    assert relinked(code, "index.md", home) == code
    with pytest.raises(BrokenLinkError, match=r"docs/index.md links to nowhere.md"):
        relinked("[a](nowhere.md)", "index.md", home)


@pytest.mark.slow
@pytest.mark.skipif(
    not (find_spec("material") and find_spec("mkdocstrings")), reason="the site needs: pip install 'dpaa[docs]'"
)
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # the theme's news about another program's next version
    said = subprocess.run(call, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert "WARNING" not in said.stderr
    made = {file.relative_to(tmp_path / "site").as_posix() for file in (tmp_path / "site").rglob("*.html")}
    assert {"index.html", "tutorials/engineer.html", "reference/python.html", "results/index.html"} <= made
    assert {"help.html", "reference/methods.html", "notebooks/engineer.html"} <= made, (
        "generated while the site is built"
    )
    helps = (tmp_path / "site" / "help.html").read_text(encoding="utf-8")
    assert all(f"<code>{f'dpaa {name}'.strip()}</code>" in helps for name in COMMANDS)
    assert 'id="dpaa.fit"' in (tmp_path / "site" / "reference" / "python.html").read_text(encoding="utf-8")

"""The page without a browser: what is on it, that it is well formed and loads nothing, and that ids stay text."""

import json
import re
import shutil
from collections import Counter
from importlib import resources
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from dpaa import Dataset, audit, evaluate
from dpaa._text import printable
from dpaa.report import audit_page, write_page
from dpaa.report._html import ENVIRONMENT, render
from dpaa.report._inputs import Audited, Comparison, Frontier, gather
from dpaa.runs import RunFolder, fit_into, make_method
from tests.command import dpaa_ok
from tests.conftest import TINY
from tests.report.made import runs_of
from tests.report.reader import Reader

HOSTILE = (
    '<script>alert("x")</script>',
    "'\"><img src=x onerror=alert(1)>",
    "</style></svg><b onclick=a>&amp;",
    "{{7*7}}",
)
FOLDED = ["dial", "training", "provenance"]
CHAPTERS = ["summary", "trade", "exposure", "metrics", "comparison", "data", "items", *FOLDED]
DRAWN = {
    *("long-tail", "accuracy-against-bias", "differences", "frontier"),
    *("exposure-by-popularity", "training-accuracy", "training-loss"),
    *("dial-curve", "dial-curve-2", "dial-curve-3", "dial-curve-4"),
}


def check_harmless(page: Reader) -> None:
    """Nothing of the page but its own script can run, and nothing is loaded."""
    own = resources.files("dpaa.report").joinpath("assets", "page.js").read_text(encoding="utf-8")
    assert [found.text for found in page.named("script")] == [own]
    for found in page.tags:
        assert found.name not in ("img", "iframe", "object", "embed", "base", "form", "image", "use", "foreignobject")
        for name, value in found.attributes.items():
            assert not name.startswith("on"), found
            if name in ("href", "src", "xlink:href", "action"):
                assert value.startswith("#") or value == "data:,", found
            assert "javascript:" not in value


def test_chapters_and_figures(page: Reader) -> None:
    assert [found.attributes["id"] for found in page.named("section")] == CHAPTERS
    assert {found.attributes["id"] for found in page.named("figure")} == DRAWN
    links = [found.attributes["href"] for found in page.named("a") if "nav" in found.inside]
    assert links == [f"#{chapter}" for chapter in CHAPTERS]
    folded = [found for found in page.named("h2") if "details" in found.inside]
    assert [found.attributes["id"] for found in folded] == [f"{chapter}-title" for chapter in FOLDED]


def test_nothing_is_loaded(page: Reader, html: str) -> None:
    check_harmless(page)
    assert set(re.findall(r"https?://[^\s\"'<)]+", html)) <= {"http://www.w3.org/2000/svg"}
    (policy,) = page.named("meta", http_equiv="Content-Security-Policy")
    assert policy.attributes["content"].startswith("default-src 'none'")
    assert len(html) < 1_000_000


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset and runs whose names and ids try to be more than text."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((30, 25)) < 0.4)
    names = [f"{HOSTILE[index % len(HOSTILE)]}{index}" for index in range(30)]
    frame = pl.DataFrame({"user_id": [names[u] for u in user], "item_id": [names[i] for i in item]})
    data = Dataset.from_frame(frame, split="random", name=HOSTILE[0])
    data.write(folder / "data")
    for name, method in (("a", "lightgcn"), ("<b onclick=x>", "dpaa")):
        chosen = TINY | {"epochs": 1}
        model = fit_into(folder / name, data, make_method(data, method, chosen))
        RunFolder(folder / name).write_evaluation(evaluate(model, data), model)
    return folder


def test_ids_stay_text(hostile: Path, tmp_path: Path) -> None:
    recs = tmp_path / "recs.csv"
    dpaa_ok("recommend", hostile / "a", "--k", 5, "--out", recs)
    dpaa_ok("compare", recs, hostile / "<b onclick=x>", "--dataset", hostile / "data", "--out", tmp_path / "c.json")
    (tmp_path / "a.json").write_text(json.dumps(audit(hostile / "data", recs).as_json()))
    paths = [hostile / "data", hostile / "a", hostile / "<b onclick=x>", tmp_path / "c.json", tmp_path / "a.json"]
    write_page(paths, tmp_path / "page.html", k=5, title="</title><script>alert(1)</script>")
    content = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = Reader(content)
    check_harmless(page)
    assert not page.named("b")
    shown = " ".join(found.text for found in page.named("span", class_="id"))
    assert any(name in shown for name in HOSTILE)
    assert page.named("title")[0].text == "</title><script>alert(1)</script>"
    audit_page(audit(hostile / "data", recs), tmp_path / "audit.html")
    check_harmless(Reader((tmp_path / "audit.html").read_text(encoding="utf-8")))


def test_a_run_alone_its_dataset_gone(demo_folder: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(demo_folder / "runs" / "dpaa", tmp_path / "run"))
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["dataset"]["path"] = str(tmp_path / "gone")
    (run / "manifest.json").write_text(json.dumps(manifest))
    (run / "metrics.json").unlink()
    said = dpaa_ok("report", run, "--out", tmp_path / "page.html")
    assert f"run `dpaa evaluate {run}`" in said.err
    found = [tag.attributes["id"] for tag in Reader((tmp_path / "page.html").read_text()).named("section")]
    assert found == ["summary", "exposure", "data", "items", *FOLDED]


def test_exposure_is_that_of_recommend(demo_folder: Path) -> None:
    (run,) = gather([demo_folder / "runs" / "lightgcn"]).runs
    known = run.model.user_ids.gather(run.family.users)
    counts = Counter(run.model.recommend(known, k=20)["item_id"])
    assert run.exposure.tolist() == [counts[item] for item in run.model.item_ids]


def test_a_choice_comes_after_what_it_is_compared_with(demo_folder: Path, tmp_path: Path) -> None:
    """Labelled by what it is; by its folder where it is the baseline."""
    chosen = shutil.copytree(demo_folder / "debiased", tmp_path / "chosen")
    frontier = json.loads((chosen / "frontier.json").read_text())
    frontier["chosen"]["name"] = "ease + fa-ir 0.4"
    (chosen / "frontier.json").write_text(json.dumps(frontier))
    found = gather([chosen, demo_folder / "debiased", *runs_of(demo_folder)])
    assert [run.name for run in found.runs] == [
        "most-popular",
        "lightgcn",
        "dpaa",
        "chosen (ease + fa-ir 0.4)",
        "debiased",
    ]


def test_what_is_named_twice_is_there_once(demo_folder: Path) -> None:
    run = demo_folder / "runs" / "lightgcn"
    found = gather([run, demo_folder / "data", str(run), demo_folder / "comparison.json"])
    assert [(family.name, len(family.runs)) for family in found.families] == [("demo", 1)]
    assert (len(found.of(Comparison)), found.of(Audited), found.of(Frontier)) == (1, [], [])
    assert found.notes == []


PRINTABLE = st.text().filter(lambda content: printable(content) == content)


@given(PRINTABLE)
def test_text_stays_text(content: str) -> None:
    made = ENVIRONMENT.from_string('<p title="{{ content }}">{{ content }}</p>').render(content=content)
    (found,) = Reader(made).tags
    assert (found.name, found.text, found.attributes) == ("p", content, {"title": content})


def test_no_template_lets_text_through() -> None:
    """Autoescape is on, and nothing switches it off; what is not given is an error and not empty."""
    assert ENVIRONMENT.autoescape is True
    for file in resources.files("dpaa.report").joinpath("templates").iterdir():
        assert not re.search(r"\|\s*safe|autoescape|Markup", file.read_text(encoding="utf-8")), file.name
    with pytest.raises(UndefinedError):
        render("table.html", rows=[])

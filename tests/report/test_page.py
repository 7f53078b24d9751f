"""The page without a browser: what is on it, that it is well formed and loads nothing, and that ids stay text."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dpaa.auditing.audit import audit
from dpaa.data.dataset import Dataset
from dpaa.report.inputs import Family, gather
from dpaa.report.page import audit_page, write_page
from dpaa.report.sections import exposure, provenance, training, users
from dpaa.runs.fit import evaluate, fit_into, make_method
from dpaa.runs.folder import RunFolder
from tests.command import Said, dpaa_ok, run_dpaa
from tests.report.conftest import TINY
from tests.report.reader import Reader

HOSTILE = (
    '<script>alert("x")</script>',
    "'\"><img src=x onerror=alert(1)>",
    "</style></svg><b onclick=a>&amp;",
    "{{7*7}}",
)
CHAPTERS = [
    "summary",
    "data",
    "metrics",
    "comparison",
    "exposure",
    "items",
    "users",
    "training",
    "trace",
    "dial",
    "provenance",
]
DRAWN = {
    *("long-tail", "concentration", "accuracy-against-bias", "popular-against-niche", "differences"),
    *("exposure-by-popularity", "training-accuracy", "training-loss", "pretrained-share", "message-weights"),
    "dial-curve",
    "dial-curve-2",
    "dial-curve-3",
}


@pytest.fixture(scope="session")
def html(demo_folder: Path) -> str:
    return (demo_folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def page(html: str) -> Reader:
    return Reader(html)


def runs_of(folder: Path) -> list[Path]:
    return [folder / "runs" / name for name in ("most-popular", "lightgcn", "dpaa")]


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


def test_the_demo_ends_with_the_page(demo_said: tuple[Path, Said]) -> None:
    folder, said = demo_said
    assert said.out.splitlines()[-1].endswith(f"browser: {(folder / 'report.html').resolve()}")


def test_chapters_and_figures(page: Reader) -> None:
    assert [found.attributes["id"] for found in page.named("section")] == CHAPTERS
    assert {found.attributes["id"] for found in page.named("figure")} == DRAWN
    links = [found.attributes["href"] for found in page.named("a") if "nav" in found.inside]
    assert links == [f"#{chapter}" for chapter in CHAPTERS]


def test_accessible(page: Reader) -> None:
    assert [found.attributes["lang"] for found in page.named("html")] == ["en"]
    assert len(page.named("h1")) == 1
    ids = [found.attributes["id"] for found in page.tags if "id" in found.attributes]
    assert len(ids) == len(set(ids))
    named = {name for found in page.tags for name in found.attributes.get("aria-labelledby", "").split()}
    targets = {found.attributes["href"][1:] for found in page.named("a")}
    assert named | targets <= set(ids)
    assert len(page.named("caption")) == len(page.named("table"))
    assert all(found.text.strip() for found in page.named("caption"))
    drawn = page.named("svg")
    assert len(drawn) == 2 * len(DRAWN)
    assert all(len(found.attributes["aria-label"]) > 30 and found.attributes["role"] == "img" for found in drawn)
    assert all(found.text.strip() or "aria-label" in found.attributes for found in page.named("button"))
    assert len(page.named("p", class_="reading")) >= len(DRAWN)


def test_nothing_is_loaded(page: Reader, html: str) -> None:
    check_harmless(page)
    assert set(re.findall(r"https?://[^\s\"'<)]+", html)) <= {"http://www.w3.org/2000/svg"}
    (policy,) = page.named("meta", http_equiv="Content-Security-Policy")
    assert policy.attributes["content"].startswith("default-src 'none'")
    assert len(html) < 1_000_000


def test_colours_follow_the_page(html: str) -> None:
    charts = "".join(re.findall(r"<svg.*?</svg>", html, re.DOTALL))
    css = resources.files("dpaa.report").joinpath("assets", "page.css").read_text(encoding="utf-8")
    used = set(re.findall(r"var\((--\w+)\)", charts))
    assert {"--ink", "--c0", "--c1"} <= used
    for name in used:
        assert css.count(f"{name}: ") == 3, "light, dark by the system's wish, dark by the button"


def test_the_table_holds_the_metrics(page: Reader, demo_folder: Path) -> None:
    values = {}
    for run in runs_of(demo_folder):
        values[run.name] = json.loads((run / "metrics.json").read_text())["metrics"]["ndcg@20"]
    cells = {found.attributes["data-by"]: found for found in page.named("td") if "data-by" in found.attributes}
    best = max(values.values())
    for value in values.values():
        found = cells[str(value)]
        assert f"{value:.4f}" in found.text
        assert ("best" in found.attributes["class"].split()) == (round(value, 4) == round(best, 4))
    assert "overlap convention “drop”" in page.named("caption")[0].text


def test_exposure_adds_up(demo_folder: Path) -> None:
    (family,) = gather(runs_of(demo_folder)).families
    before = exposure.shares(family, family.counts)
    assert sum(before) == pytest.approx(1)
    assert before == sorted(before)
    popular, lightgcn, _ = (exposure.shares(family, run.exposure) for run in family.runs)
    assert sum(popular[7:]) > sum(before[7:])
    assert sum(lightgcn) <= 1
    assert family.runs[0].exposure.sum() == 20 * len(family.users)


def test_shares_by_hand() -> None:
    data = Dataset.from_frame({"user_id": [*range(10), *range(5)], "item_id": [*range(10), *[9] * 4, 8]})
    family = Family("hand", "", data, 20)
    assert family.counts.tolist() == [1] * 8 + [2, 5]
    assert exposure.shares(family, family.counts) == pytest.approx([1 / 15] * 8 + [2 / 15, 5 / 15])


def test_lists_are_those_of_recommend(demo_folder: Path) -> None:
    (family,) = gather([demo_folder / "runs" / "lightgcn"]).families
    (run,) = family.runs
    expected = (
        run.model.recommend(run.model.user_ids.gather(family.users), k=20)
        .group_by("user_id", maintain_order=True)
        .agg("item_id")
    )
    found = [run.model.item_ids.gather(row).to_list() for row in run.lists]
    assert found == expected["item_id"].to_list()


def test_hits_are_the_test_items(demo_folder: Path) -> None:
    (family,) = gather([demo_folder / "data", demo_folder / "runs" / "lightgcn"]).families
    assert family.dataset is not None
    run = family.runs[0]
    hits = users.hits(family, run)
    liked = set(zip(family.dataset.test.user.tolist(), family.dataset.test.item.tolist(), strict=True))
    for place, user in enumerate(family.users[:20].tolist()):
        assert hits[place].tolist() == [(user, item) in liked for item in run.lists[place].tolist()]
        assert users.hits(family, run, slice(place, place + 1)).tolist() == [hits[place].tolist()]


def test_commands_make_the_run_again(demo_folder: Path, tmp_path: Path) -> None:
    (family,) = gather([demo_folder / "runs" / "lightgcn"]).families
    train = provenance.train_command(family.runs[0])
    assert provenance.evaluate_command(family.runs[0]) == (
        f"dpaa evaluate {demo_folder / 'runs' / 'lightgcn'} --k 20 --overlap drop"
    )
    again = train.replace(str(demo_folder / "runs" / "lightgcn"), str(tmp_path / "again"))
    dpaa_ok(*again.split()[1:])
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (demo_folder / "runs" / "lightgcn" / name).read_bytes()


# ---------------------------------------------------------------------- ids from a stranger


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset and runs whose names and ids try to be more than text."""
    folder = tmp_path_factory.mktemp("stranger")
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((30, 25)) < 0.4)
    names = [f"{HOSTILE[place % len(HOSTILE)]}{place}" for place in range(30)]
    frame = pl.DataFrame({"user_id": [names[u] for u in user], "item_id": [names[i] for i in item]})
    data = Dataset.from_frame(frame, split="random", name=HOSTILE[0])
    data.write(folder / "data")
    for name, method in (("a", "lightgcn"), ("<b onclick=x>", "dpaa")):
        chosen = TINY | {"epochs": 1}
        model = fit_into(folder / name, data, make_method(data, method, chosen))
        RunFolder(folder / name).write_evaluation(evaluate(model, data))
    return folder


def test_ids_stay_text(stranger: Path, tmp_path: Path) -> None:
    recs = tmp_path / "recs.csv"
    dpaa_ok("recommend", stranger / "a", "--k", 5, "--out", recs)
    dpaa_ok("compare", recs, stranger / "<b onclick=x>", "--dataset", stranger / "data", "--out", tmp_path / "c.json")
    (tmp_path / "a.json").write_text(json.dumps(audit(stranger / "data", recs).as_json()))
    paths = [stranger / "data", stranger / "a", stranger / "<b onclick=x>", tmp_path / "c.json", tmp_path / "a.json"]
    write_page(paths, tmp_path / "page.html", title="</title><script>alert(1)</script>")
    content = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = Reader(content)
    check_harmless(page)
    assert not page.named("b")
    shown = " ".join(found.text for found in page.named("span", class_="id"))
    assert all(name in shown for name in HOSTILE)
    assert page.named("title")[0].text == "</title><script>alert(1)</script>"
    audit_page(audit(stranger / "data", recs), tmp_path / "audit.html")
    check_harmless(Reader((tmp_path / "audit.html").read_text(encoding="utf-8")))


# ---------------------------------------------------------------------- what may be missing, and what may be much


def copy_of(run: Path, place: Path) -> Path:
    return Path(shutil.copytree(run, place))


def test_a_run_alone_its_dataset_gone(demo_folder: Path, tmp_path: Path) -> None:
    run = copy_of(demo_folder / "runs" / "dpaa", tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["dataset"]["path"] = str(tmp_path / "gone")
    (run / "manifest.json").write_text(json.dumps(manifest))
    (run / "metrics.json").unlink()
    said = dpaa_ok("report", run, "--out", tmp_path / "page.html")
    assert "the dataset of" in said.err
    assert f"run `dpaa evaluate {run}`" in said.err
    found = [tag.attributes["id"] for tag in Reader((tmp_path / "page.html").read_text()).named("section")]
    assert found == ["summary", "data", "exposure", "items", "users", "training", "trace", "dial", "provenance"]


def test_a_dataset_alone(demo_folder: Path, tmp_path: Path) -> None:
    dpaa_ok("report", demo_folder / "data", "--out", tmp_path / "new" / "page.html")
    page = Reader((tmp_path / "new" / "page.html").read_text())
    assert [tag.attributes["id"] for tag in page.named("section")] == ["data", "provenance"]


def test_an_audit_alone(demo_folder: Path, tmp_path: Path) -> None:
    recs = tmp_path / "recs.parquet"
    dpaa_ok("recommend", demo_folder / "runs" / "dpaa", "--out", recs)
    found = audit(demo_folder / "data", recs, fail_if=["head_share@20>0.01"])
    audit_page(found, tmp_path / "audit.html")
    page = Reader((tmp_path / "audit.html").read_text())
    (chapter,) = page.named("section")
    for sentence in found.in_words():
        assert sentence in chapter.text
    assert "failed: head_share@20" in chapter.text
    assert {tag.attributes["id"] for tag in page.named("figure")} == {"audit-concentration", "audit-exposure"}


def test_the_dial_of_a_run(demo_folder: Path, tmp_path: Path) -> None:
    run = copy_of(demo_folder / "runs" / "lightgcn", tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    points = [{"kappa": k, "ndcg@20": 0.2 - k * k / 10, "recall@20/niche": 0.1 - k / 20} for k in (1.0, -1.0, 0.0)]
    manifest["dial"] = {"kappa": 0.0, "curve": points}
    (run / "manifest.json").write_text(json.dumps(manifest))
    dpaa_ok("report", run, "--out", tmp_path / "page.html")
    page = Reader((tmp_path / "page.html").read_text())
    (chapter,) = page.named("section", id="dial")
    assert "0 (in force)" in chapter.text
    assert "0.1500" in chapter.text


@pytest.fixture(scope="module")
def auto_run(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dpaa-auto beside the LightGCN of the demo, at other learning rates."""
    run = tmp_path_factory.mktemp("auto") / "auto"
    settings = [f"--set={one}" for one in ("embedding_size=8", "layers=2", "epochs=30", "threads=1")]
    dpaa_ok("train", demo_folder / "data", "--method", "dpaa-auto", *settings, "--out", run)
    dpaa_ok("evaluate", run)
    return run


@pytest.mark.parametrize("kept", ["the winner", "plain"])
def test_the_loss_chart_leaves_discarded_parts_out(auto_run: Path, tmp_path: Path, kept: str) -> None:
    run = copy_of(auto_run, tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    parts = {part["part"]: part for part in manifest["auto"]["parts"]}
    if kept == "plain":
        manifest["auto"]["chosen"]["part"] = "plain"
        (run / "manifest.json").write_text(json.dumps(manifest))
    way, part = [], manifest["auto"]["chosen"]["part"]
    while part is not None:
        way.append(part)
        part = parts[part]["from"]
    assert way[-1] == "plain"
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    expected = [line["loss"] for line in lines if line["part"] in way]
    assert len(expected) < len(lines), "something was given up"
    (loaded,) = gather([run]).runs
    shown = training.kept_lines(loaded)
    assert [line["loss"] for line in shown] == expected
    assert [line["epoch"] for line in shown] == list(range(1, len(expected) + 1))
    write_page([run], tmp_path / "page.html")
    (chapter,) = Reader((tmp_path / "page.html").read_text()).named("section", id="training")
    assert f"run: {len(expected)} of {len(lines)} epochs led to the model that is kept" in chapter.text
    assert "Training loss over the epochs." in (tmp_path / "page.html").read_text()


def test_a_run_of_before_shows_all_its_epochs(auto_run: Path, tmp_path: Path) -> None:
    run = copy_of(auto_run, tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    for part in manifest["auto"]["parts"]:
        del part["from"], part["learning_rate"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    (loaded,) = gather([run]).runs
    assert training.kept_lines(loaded) == loaded.history


def test_unequal_chances_stand_beside_what_is_compared(demo_folder: Path, auto_run: Path, tmp_path: Path) -> None:
    write_page([demo_folder / "runs" / "lightgcn", auto_run], tmp_path / "page.html")
    page = Reader((tmp_path / "page.html").read_text())
    for chapter in ("summary", "metrics"):
        (found,) = page.named("section", id=chapter)
        assert (
            "Unequal training budgets: lightgcn trained 3 of 3 epochs at learning rate 0.001; auto trained"
            in found.text
        )
        assert "at learning rate 0.001 to 0.005; train them alike before comparing." in found.text
    write_page([demo_folder / "runs" / "lightgcn", demo_folder / "runs" / "dpaa"], tmp_path / "alike.html")
    assert "Unequal training budgets" not in (tmp_path / "alike.html").read_text()


def test_many_runs_with_long_histories_stay_small(demo_folder: Path, tmp_path: Path) -> None:
    line = json.loads((demo_folder / "runs" / "dpaa" / "history.jsonl").read_text().splitlines()[0])
    history = "".join(json.dumps(line | {"epoch": epoch + 1}) + "\n" for epoch in range(5_000))
    runs = []
    for seed in range(8):
        runs.append(copy_of(demo_folder / "runs" / "dpaa", tmp_path / f"dpaa-with-a-long-name-{seed}"))
        (runs[-1] / "history.jsonl").write_text(history)
        manifest = json.loads((runs[-1] / "manifest.json").read_text())
        manifest["files"]["history.jsonl"] = hashlib.sha256(history.encode()).hexdigest()
        (runs[-1] / "manifest.json").write_text(json.dumps(manifest))
    write_page(runs, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 3_000_000


def test_runs_of_one_name_are_told_apart(demo_folder: Path, tmp_path: Path) -> None:
    one = copy_of(demo_folder / "runs" / "lightgcn", tmp_path / "one" / "run")
    other = copy_of(demo_folder / "runs" / "dpaa", tmp_path / "other" / "run")
    assert [run.name for run in gather([one, other]).runs] == ["one/run", "other/run"]


def test_runs_measured_differently_do_not_share_a_table(demo_folder: Path, tmp_path: Path) -> None:
    other = copy_of(demo_folder / "runs" / "dpaa", tmp_path / "masked")
    dpaa_ok("evaluate", other, "--overlap", "mask")
    dpaa_ok("report", demo_folder / "runs" / "lightgcn", other, "--out", tmp_path / "page.html")
    captions = [tag.text for tag in Reader((tmp_path / "page.html").read_text()).named("caption")]
    assert sum(text.startswith("Accuracy on") and "“drop”" in text for text in captions) == 1
    assert sum(text.startswith("Accuracy on") and "“mask”" in text for text in captions) == 1


@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_figures_for_papers(demo_folder: Path, tmp_path: Path, ending: str) -> None:
    paths = [*runs_of(demo_folder), demo_folder / "comparison.json"]
    write_page(paths, tmp_path / "page.html", figures=tmp_path / "figures", figure_format=ending)
    files = {file.stem: file for file in (tmp_path / "figures").iterdir()}
    assert set(files) == DRAWN
    for file in files.values():
        assert b"var(--" not in file.read_bytes()


def test_without_the_extra(demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    said = run_dpaa("report", demo_folder / "data", "--out", tmp_path / "page.html")
    assert said.code == 2
    assert "pip install 'dpaa[report]'" in said.err
    assert not (tmp_path / "page.html").exists()

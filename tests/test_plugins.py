"""Methods and re-rankers from outside: installed as a plug-in, or named in the call; never because a file says so."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpaa
from dpaa import Dataset, InputError
from dpaa.methods import METHODS, find_method
from dpaa.ranking import Reranker
from dpaa.runs.fit import fit_into, make_method
from tests.command import dpaa_ok, run_dpaa

PLUGIN = Path(__file__).parent / "plugin"
SIDES = ("direct-au", "ease", "ease-slots")
QUICK = ("--set", "epochs=3", "--set", "embedding_size=8", "--set", "layers=2", "--set", "threads=1")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package as pip would install it: its code, and what it says of itself."""
    place = tmp_path_factory.mktemp("site")
    (place / "dpaa_example").symlink_to(PLUGIN / "dpaa_example")
    about = place / "dpaa_example-0.3.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: dpaa-example\nVersion: 0.3.0\n")
    (about / "RECORD").write_text("dpaa_example/__init__.py,,\n")
    (about / "top_level.txt").write_text("dpaa_example\n")
    lines: list[str] = []
    for line in (PLUGIN / "pyproject.toml").read_text().splitlines():
        if line.startswith("[project.entry-points."):
            lines.append(f"[{line.split(chr(34))[1]}]")
        elif lines and ":" in line and "=" in line:
            lines.append(line.replace('"', ""))
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return place


@pytest.fixture(scope="module")
def told(site: Path, small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Runs of the package's methods, and what calls said of them."""
    place = tmp_path_factory.mktemp("runs")
    small_world.write(place / "data")
    begin = ("train", place / "data", "--method")
    sides = [place / name for name in SIDES]
    slots = "niche-slots,share=0.8"
    calls: dict[str, Sequence[object]] = {
        "train": (*begin, "direct-au", *QUICK, "--out", place / "direct-au"),
        "train slots": (*begin, "ease", "--rerank", slots, "--out", place / "ease-slots"),
        "train ease": (*begin, "ease", "--out", place / "ease"),
        "methods": ("methods", "--json"),
        "measured": ("evaluate", place / "direct-au", "--json"),
        "compared": ("compare", *sides, "--json"),
        "page": ("report", *sides, "--out", place / "page.html"),
        "with slots": ("evaluate", place / "ease-slots", "--json"),
        "without slots": ("evaluate", place / "ease-slots", "--rerank", "none", "--json"),
        "plain": ("evaluate", place / "ease", "--json"),
        "lists": ("recommend", place / "ease-slots", "--k", 10, "--out", place / "slots.parquet"),
        "same lists": ("recommend", place / "ease", "--k", 10, "--rerank", slots, "--out", place / "same.parquet"),
    }
    with pytest.MonkeyPatch.context() as installed:
        installed.syspath_prepend(site)
        return place, {name: dpaa_ok(*words).out for name, words in calls.items()}


@pytest.fixture(scope="module")
def runs(told: tuple[Path, dict[str, str]]) -> Path:
    return told[0]


def test_a_package_brings_methods_and_a_reranker(told: tuple[Path, dict[str, str]]) -> None:
    runs, said = told
    manifest = json.loads((runs / "direct-au" / "manifest.json").read_text())
    assert manifest["method_origin"] == {
        "package": "dpaa-example", "version": "0.3.0", "class": "dpaa_example.direct_au:DirectAU"
    }  # fmt: skip
    known = json.loads(said["methods"])
    assert known["direct-au"]["settings"]["uniformity_weight"]["default"] == 1.0
    assert json.loads(said["measured"])["metrics"]["recall@20"] > 0
    assert all(f'"{name}"' in said["compared"] for name in SIDES)
    compared = json.loads(said["compared"])
    assert any("re-ranked by niche-slots,share=0.8, as stored in the run" in note for note in compared["notes"])
    niche = {one["name"]: one["metrics"]["aplt@20"] for one in compared["entries"]}
    assert niche["ease-slots"] > niche["ease"] + 0.1
    assert all(name in (runs / "page.html").read_text() for name in SIDES)


def test_a_run_keeps_its_reranker(told: tuple[Path, dict[str, str]]) -> None:
    runs, said = told
    slots, none, plain = (json.loads(said[name]) for name in ("with slots", "without slots", "plain"))
    compared = {one["name"]: one["metrics"] for one in json.loads(said["compared"])["entries"]}
    assert compared["ease-slots"] == pytest.approx(slots["metrics"], nan_ok=True)
    assert slots["protocol"]["rerank"] == "niche-slots,share=0.8"
    assert slots["metrics"]["aplt@20"] > plain["metrics"]["aplt@20"] + 0.1
    assert none["metrics"] == plain["metrics"]
    assert pl.read_parquet(runs / "slots.parquet").equals(pl.read_parquet(runs / "same.parquet"))


def test_a_broken_plugin_and_an_absent_one(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of the absent one need their class named; the broken one is told and hurts nobody else."""
    about = tmp_path / "broken-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[dpaa.methods]\nbroken = nowhere.to_be:Found\n")
    place, run = "dpaa_example.direct_au:DirectAU", tmp_path / "run"
    monkeypatch.chdir(PLUGIN)  # modules in the current folder count
    dpaa_ok("train", runs / "data", "--method", place, *QUICK, "--out", run)
    monkeypatch.setattr(METHODS, "_named", {})  # as in another process
    monkeypatch.syspath_prepend(tmp_path)
    broken, known, *refused, said = (
        run_dpaa(*words)
        for words in (
            ("methods", "broken"),
            ("methods", "--json"),
            ("evaluate", runs / "direct-au"),
            ("recommend", runs / "ease-slots"),
            ("recommend", run),
            ("--plugin", place, "recommend", run),
        )
    )
    sentence = "the plug-in nowhere.to_be:Found cannot be imported"
    assert broken.code == 2
    assert sentence in broken.err
    assert "lightgcn" in known.out
    assert sentence in known.out
    assert [one.code for one in refused] == [2, 2, 2]
    for one in refused[:2]:
        assert "of package dpaa-example, which is not installed as a plug-in here; install it, or name" in one.err
    assert said.code == 0
    assert "user_id" in said.out


def test_what_a_file_names_is_never_imported(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "trap.py").write_text("open('sprung', 'w').close()\nclass Trap: name = 'trap'\n")
    about = json.loads((runs / "ease" / "manifest.json").read_text()) | {"files": {}}
    for place, name, origin in (("one", "trap:Trap", {}), ("two", "trap", {"package": "trap", "class": "trap:Trap"})):
        (tmp_path / place).mkdir()
        (tmp_path / place / "manifest.json").write_text(json.dumps(about | {"method": name, "method_origin": origin}))
        (tmp_path / place / "config.json").write_text(json.dumps({"method": name}))
    (tmp_path / "settings.toml").write_text('method = "trap:Trap"\n')
    assert [run_dpaa("evaluate", run).code for run in ("one", "two")] == [2, 2]
    refused = run_dpaa("train", runs / "data", "--config", "settings.toml", "--out", "new")
    assert refused.code == 2
    assert "has a table or a class" in refused.err
    assert not (tmp_path / "sprung").exists()


def test_what_is_no_method_of_ones_own_is_refused() -> None:
    class Impostor(METHODS["ease"]):  # type: ignore[misc]
        name = "ease"

    with pytest.raises(InputError, match="calls itself 'ease', which is a built-in method; give it another name"):
        find_method(Impostor)
    with pytest.raises(InputError, match="json:JSONDecoder is no method: that is a class derived from"):
        METHODS.add("json:JSONDecoder")
    for wrong in ({"name": "Not_A_Name"}, {"title": None}):
        kind = type("Odd", (METHODS["ease"],), {"name": "odd", "title": "odd", "__module__": "elsewhere"} | wrong)
        with pytest.raises(InputError, match=r"with a title and a name \(lower-case letters, digits, hyphens\)"):
            METHODS.add(kind)


def test_methods_as_configured_objects(small_world: Dataset) -> None:
    configured = dpaa.DPAA(layers=1, embedding_size=8, epochs=2, layer_emphasis=2)
    assert repr(configured).startswith("DPAA(")
    model = configured.fit(small_world)
    same = dpaa.fit(small_world, "dpaa", layers=1, embedding_size=8, epochs=2, layer_emphasis=2)
    users = small_world.user_ids.head(5)
    assert model.recommend(users, k=5).equals(same.recommend(users, k=5))
    assert dpaa.fit(small_world, dpaa.EASE, ridge=5.0).method.ridge == 5.0  # type: ignore[attr-defined]
    assert dpaa.fit(small_world, configured, epochs=1).method.layers == 1  # type: ignore[attr-defined]
    assert {"DPAA", "LightGCN", "fit", "load", "evaluate"} <= set(dir(dpaa))


class Repeats(Reranker):
    name = "repeats"
    title = "the best item k times"

    def rerank(self, scores: Any, users: Any, k: int, candidates: Any) -> Any:
        best = scores.argmax(dim=1, keepdim=True).repeat(1, k)
        return scores.gather(1, best), best


class Beyond(Repeats):
    name = "beyond"

    def rerank(self, scores: Any, users: Any, k: int, candidates: Any) -> Any:
        values, columns = super().rerank(scores, users, k, candidates)
        return values, columns + scores.shape[1]


def test_a_reranker_is_checked(small_world: Dataset) -> None:
    model = dpaa.fit(small_world, "most-popular")
    with pytest.raises(InputError, match="re-ranker repeats gave an item twice in one list"):
        model.recommend(k=3, rerank=Repeats())
    with pytest.raises(InputError, match=r"re-ranker beyond gave lists .* of columns from -1 to 177"):
        model.recommend(k=3, rerank=Beyond())


def test_other_processes_find_what_only_this_call_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PLUGIN)
    monkeypatch.setattr(METHODS, "_named", {})
    place = "dpaa_example.direct_au:DirectAU"
    assert METHODS.address(METHODS.add(place).name) == place
    assert METHODS.address("ease") == "ease"
    with pytest.raises(InputError, match=r"cannot import direct-au .*; name it as package\.module:Class"):
        METHODS.add("direct-au")


def test_a_method_that_raises_leaves_no_run_behind(small_world: Dataset, tmp_path: Path) -> None:
    class Raises(METHODS["lightgcn"]):  # type: ignore[misc]
        name, title = "raises", "raises"

        def loss(self, batch: Any, rows: Any) -> Any:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fit_into(tmp_path / "new" / "run", small_world, make_method(small_world, Raises, {}))
    assert list(tmp_path.iterdir()) == []


MINE = '''
import dpaa
from pydantic import Field
from torch.nn.functional import softplus


class Mine(dpaa.LightGCN):
    """LightGCN that wants a margin between taken and other items."""

    margin: float = Field(default=0.5, ge=0, description="how far the taken item should be ahead")

    def loss(self, batch, rows):
        l2 = self.l2_term(batch, rows)
        ahead = rows.margins(len(batch))
        missing = self.margin - ahead
        return softplus(missing).mean() + l2
'''


@pytest.fixture(scope="module")
def place(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the file and a dataset."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "mine.py").write_text(MINE, encoding="utf-8")
    small_world.write(folder / "data")
    return folder


def test_from_python(place: Path, small_world: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(place)
    from mine import Mine  # type: ignore[import-not-found]

    size = {"embedding_size": 8, "layers": 2, "epochs": 3, "threads": 1}
    model = Mine(margin=2, **size).fit(small_world)
    plain = dpaa.fit(small_world, "lightgcn", **size)  # type: ignore[arg-type]
    assert repr(model.method).startswith("Mine(")
    assert (model.method.name, model.method.title) == (
        "mine",
        "LightGCN that wants a margin between taken and other items",
    )
    assert not model.recommend(k=5).equals(plain.recommend(k=5))
    assert dpaa.evaluate(model, small_world).metrics["recall@20"] > 0
    compared = dpaa.compare(small_world, {"mine": model, "lightgcn": plain})
    assert [entry.name for entry in compared.entries] == ["mine", "lightgcn"]
    model.save(place / "saved")
    assert dpaa.load(place / "saved", Mine).recommend(k=5).equals(model.recommend(k=5))
    with pytest.raises(dpaa.InputError, match="method mine has no hyperparameter 'margn'; did you mean margin"):
        Mine(margn=1)
    with pytest.raises(dpaa.InputError, match="hyperparameter margin: input should be greater than or equal to 0"):
        dpaa.fit(small_world, Mine, margin=-1)


def test_from_the_command_line(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "path", [*sys.path])
    dpaa_ok("train", "data", "--method", "mine:Mine", *QUICK, "--set", "margin=2", "--out", "run")
    dpaa_ok("train", "data", "--method", "most-popular", "--out", "plain")
    monkeypatch.setattr(METHODS, "_named", {})  # as in another process
    assert run_dpaa("evaluate", "run").code == 2
    plugin = ("--plugin", "mine:Mine")
    assert json.loads(dpaa_ok(*plugin, "evaluate", "run", "--json").out)["metrics"]["recall@20"] > 0
    compared = json.loads(dpaa_ok(*plugin, "compare", "run", "plain", "--json").out)
    assert [entry["name"] for entry in compared["entries"]] == ["run", "plain"]
    tuned = dpaa_ok(*plugin, "tune", "data", "--method", "mine", "--trials", 1, "--seeds", 1, *QUICK, "--out", "study")
    assert "trained with 1 seed:" in tuned.out
    following = tuned.out.splitlines()[-1].removeprefix("next: dpaa ").split()
    assert following[:3] == [*plugin, "evaluate"]
    assert "next: dpaa --plugin mine:Mine recommend" in dpaa_ok(*following).err.replace("\n", " ")
    known = json.loads(dpaa_ok(*plugin, "methods", "mine", "--json").out)
    assert known["mine"]["settings"]["margin"]["default"] == 0.5
    manifest = json.loads(Path("run/manifest.json").read_text(encoding="utf-8"))
    assert (manifest["method"], manifest["method_origin"]["class"]) == ("mine", "mine:Mine")

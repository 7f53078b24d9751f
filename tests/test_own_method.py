"""A method in a file of the user's own: five lines of `loss`, then everything that a built-in method can do."""

import json
import sys
from pathlib import Path

import pytest

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.methods import METHODS
from tests.command import dpaa_ok, run_dpaa
from tests.test_plugins import QUICK

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
    known = json.loads(dpaa_ok(*plugin, "methods", "mine", "--json").out)
    assert known["mine"]["settings"]["margin"]["default"] == 0.5
    manifest = json.loads(Path("run/manifest.json").read_text(encoding="utf-8"))
    assert (manifest["method"], manifest["method_origin"]["class"]) == ("mine", "mine:Mine")

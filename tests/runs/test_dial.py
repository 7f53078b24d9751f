"""The popularity dial of a model: in recommendations, and chosen again."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.runs.fit import evaluate, fit
from dpaa.runs.folder import RunFolder
from dpaa.runs.measure import choose_dial
from dpaa.runs.model import Model, load


def test_one_stored_choice_is_what_every_call_uses(model: Model, small_world: Dataset) -> None:
    """As trained, 0; chosen again, what was chosen; without a word or with `run` the same."""
    assert model.manifest["dial"]["kappa"] == 0.0
    chosen = choose_dial(model, small_world, "niche:50")
    assert chosen.kappa == chosen.suggested != 0
    other = replace(model, manifest=model.manifest | {"dial": chosen.as_json()})
    history = ["i0003", "i0009"]
    for one, kappa in ((model, 0.0), (other, chosen.kappa)):
        assert one.dial_curve.kappa == kappa
        for dial in (None, "run"):
            assert one.kappa(dial) == kappa  # type: ignore[arg-type]
            lists = one.recommend(k=5, popularity_dial=dial)  # type: ignore[arg-type]
            assert lists.equals(one.recommend(k=5, popularity_dial=kappa))
            new = one.recommend_for(history, k=5, popularity_dial=dial)  # type: ignore[arg-type]
            assert new.equals(one.recommend_for(history, k=5, popularity_dial=kappa))
            found = evaluate(one, small_world, popularity_dial=dial)  # type: ignore[arg-type]
            assert found.protocol.popularity_dial == kappa
            assert found.metrics == evaluate(one, small_world, popularity_dial=kappa).metrics


@pytest.mark.parametrize("wrong", ["much", "auto", "", float("nan"), float("inf"), 1000.1, -1001, [1.0], {}])
def test_what_the_dial_may_not_be(model: Model, wrong: object) -> None:
    with pytest.raises(InputError, match="must be `run` or a number from −1000 to 1000"):
        model.recommend(k=5, popularity_dial=wrong)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- chosen again


def test_a_choice_is_kept_in_the_run_and_nothing_else_is_touched(
    model: Model, small_world: Dataset, tmp_path: Path
) -> None:
    model.save(tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    before = {file.name: file.read_bytes() for file in folder.path.iterdir()}
    curve = choose_dial(model, small_world, "niche:20")
    folder.write_dial(curve, load(folder.path))
    after = {file.name: file.read_bytes() for file in folder.path.iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {"manifest.json"}
    old, new = (json.loads(files["manifest.json"]) for files in (before, after))
    assert old | {"dial": new["dial"]} == new
    again = load(folder.path)
    assert again.dial_curve == curve
    assert again.kappa() == curve.suggested


def test_a_choice_needs_validation() -> None:
    untested = Dataset.from_frame(pl.DataFrame({"user_id": [1, 2], "item_id": [1, 2]}), name="untested")
    plain = fit(untested, "most-popular")
    assert plain.manifest["dial"] == {"kappa": 0.0, "chosen_for": None, "suggested": None}
    assert plain.dial_curve is None
    with pytest.raises(InputError, match="no valid pair is left to evaluate"):
        choose_dial(plain, untested, "ndcg")

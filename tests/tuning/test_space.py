"""What a search may try."""

import math
import os
import tomllib
from pathlib import Path

import pytest

import dpaa
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import METRICS
from dpaa.methods import Method, find_method
from dpaa.methods.graph_method import PAPER_TRAINING
from dpaa.tuning.space import Range, Space, _stretched, first_point, in_words, points, search_space, size
from dpaa.tuning.trial import Trial, TuningGoal, best_toml, trials_behind

TUNABLE = [name for name in dpaa.METHODS if name != "most-popular"]
DPAA = find_method("dpaa")


def space(method: type[Method], name: str) -> Space:
    return search_space(method, name, {}, {})


def test_lists_become_ranges_a_step_beyond_within_the_bounds() -> None:
    fields = DPAA.hyperparameters.model_fields
    assert _stretched((0.0, 1.0, 2.0, 3.0), fields["layer_emphasis"]) == Range(0, 4)
    assert _stretched((0.0, 1e-4, 1e-2, 1.0), fields["half_trust_shift"]) == Range(3e-5, 3, log=True)
    assert _stretched(("layer", "readout"), fields["interaction_strength_from"]) == ("layer", "readout")
    knn = find_method("item-knn").hyperparameters.model_fields["neighbours"]
    assert _stretched((20, 50, 500), knn) == Range(7, 2000, log=True, whole=True)
    assert _stretched((1, 3), knn) == Range(1, 5, whole=True)
    apda = find_method("apda").hyperparameters.model_fields
    assert _stretched((0.0, 0.5), apda["dropout"]) == Range(0, 0.5)  # 1 itself is no share to drop
    assert _stretched((0.1, 0.5), apda["scale"]) == Range(0.1, 0.9)  # below 0 is no scale


def test_both_ends_of_every_dimension_are_hyperparameters_of_the_method() -> None:
    for name in TUNABLE:
        method = find_method(name)
        wide, paper, lists = (space(method, kind) for kind in ("wide", "paper", "lists"))
        assert paper
        assert lists.keys() == wide.keys() == first_point(method(), wide).keys(), "defaults can be tried"
        for setting, tried in [*wide.items(), *paper.items(), *lists.items()]:
            for value in (tried.neat(tried.low), tried.neat(tried.high)) if isinstance(tried, Range) else tried:
                assert getattr(method(**{setting: value}), setting) == value


def test_points_are_all_of_the_grid_with_the_defaults_first() -> None:
    grid = space(find_method("cvib"), "paper")
    first = first_point(find_method("cvib")(**PAPER_TRAINING), grid)
    drawn = points(grid, 0, first)
    assert drawn[0] == first == {"learning_rate": 1e-3, "agreement_weight": 0.1, "confidence_weight": 0.01}
    assert len({tuple(point.values()) for point in drawn}) == len(drawn) == math.prod(map(len, grid.values()))  # type: ignore[arg-type]
    assert drawn == points(grid, 0, first) != points(grid, 1, first)


def test_what_is_fixed_is_not_searched_and_lists_replace_ranges() -> None:
    grid = search_space(DPAA, "wide", {"layers": 2, "l2": 0.0}, {"learning_rate": ["1e-3", "1e-4", "0.001"]})
    assert not {"layers", "l2"} & grid.keys()
    assert grid["learning_rate"] == (1e-3, 1e-4)
    assert Range(1e-4, 1e-2, log=True).neat(0.00123456) == 0.00123, "few digits"
    assert in_words({"a": Range(1, 4, whole=True), "b": (1e-3, "x")}) == {"a": "1 … 4, whole", "b": "0.001 · x"}


def test_the_page_shows_the_spaces() -> None:
    lines = ["| method | wide space | points of the paper's grid |", "|---|---|---|"]
    for name in TUNABLE:
        wide = in_words(space(find_method(name), "wide")).items()
        shown = "; ".join(f"`{setting}` {tried}" for setting, tried in wide)
        lines.append(f"| `{name}` | {shown} | {size(space(find_method(name), 'paper'))} |")
    spaces = "\n".join(lines) + "\n"
    page = Path(__file__).parents[2] / "docs" / "tuning.md"
    before, rest = page.read_text(encoding="utf-8").split("<!-- spaces -->\n")
    table, after = rest.split("<!-- end -->")
    if os.environ.get("DPAA_WRITE_DOCS"):
        table = spaces
        page.write_text(f"{before}<!-- spaces -->\n{table}<!-- end -->{after}", encoding="utf-8")
    assert table == spaces, "run `DPAA_WRITE_DOCS=1 pytest tests/tuning`"


def test_the_best_hyperparameters_can_be_read_back_and_name_the_number_of_trials(tmp_path: Path) -> None:
    settings = {"l2": 1e-5, "neighbour_scaling": "none", "iiw": True}
    text = best_toml("dpaa", settings, Trial(7, "complete", {}, 0.5, metrics={"recall@20": 0.5}), 30)
    (tmp_path / "best.toml").write_text(text)
    assert tomllib.loads(text) == {"method": "dpaa"} | settings
    assert trials_behind(tmp_path / "best.toml") == 30
    (tmp_path / "other.toml").write_text('# trial of mine\nmethod = "dpaa"\n')
    assert trials_behind(tmp_path / "other.toml") == 0


def test_every_metric_of_the_table_can_be_searched_by(world: dpaa.Dataset) -> None:
    model = dpaa.fit(world, "most-popular")
    metrics = Evaluator(world, (5, 20), "valid", "drop").evaluate(model.method).metrics
    names = [name for name, one in METRICS.items() if one.kind != "exposure"]  # that is of a column's groups
    for key in [f"{name}@{k}" for name in names for k in (5, 20)] + ["recall@20/niche", "ndcg@5/popular"]:
        goal, value = TuningGoal(key), metrics[key]
        assert goal.measure(model.method, world) == {key: value}
        better = METRICS[key.partition("@")[0]].better
        assert goal.merit(metrics) == {"high": value, "low": -value, "zero": -abs(value)}[better]
    for key in ("gini@20/niche", "exposure@20"):
        with pytest.raises(dpaa.InputError, match=f"{key} has no value on the validation split"):
            TuningGoal(key).measure(model.method, world)


def test_the_best_comes_first_and_of_equals_the_earlier() -> None:
    values = [(0.1, 0.5), (0.3, 0.45), (0.2, 0.4901), (0.15, 0.495), (0.2, 0.4901)]
    trials = [
        Trial(number, "complete", {}, niche, metrics={"recall@20/niche": niche, "ndcg@20": ndcg})
        for number, (niche, ndcg) in enumerate(values)
    ]
    trials.append(Trial(9, "pruned", {}, 0.9))
    assert [trial.number for trial in TuningGoal("recall@20/niche").ranked(trials)] == [1, 2, 4, 3, 0]
    limited = TuningGoal("recall@20/niche", "ndcg@20=2%")
    assert [trial.number for trial in limited.ranked(trials)] == [2, 4, 3, 0, 1], "what loses too much comes last"
    low = TuningGoal("recall@20", "arp@20=0.1")
    assert low.merit({"recall@20": 0.5, "arp@20": 110.0}, [{"arp@20": 100.0}]) == 0.5
    assert low.merit({"recall@20": 0.5, "arp@20": 120.0}, [{"arp@20": 100.0}]) < -1e9

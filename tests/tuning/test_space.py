from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from dpaa.errors import InputError
from dpaa.methods import METHODS, find_method
from dpaa.methods.settings import PAPER_TRAINING, make_settings
from dpaa.tuning.space import (
    Range,
    first_point,
    in_words,
    lists_space,
    paper_space,
    points,
    search_space,
    size,
    stretched,
    wide_space,
)
from dpaa.tuning.tune import chooses_strengths

TUNABLE = [name for name in METHODS if name not in ("most-popular", "dpaa-auto")]
DPAA = find_method("dpaa")


def test_lists_become_ranges_a_step_beyond_within_the_bounds() -> None:
    fields = DPAA.settings_type.model_fields
    assert stretched((0.0, 1.0, 2.0, 3.0), fields["layer_emphasis"]) == Range(0, 4)
    assert stretched((0.0, 1e-4, 1e-2, 1.0), fields["half_trust_shift"]) == Range(3e-5, 3, log=True)
    assert stretched(("first", "all"), fields["weighted_layers"]) == ("first", "all")
    knn = find_method("item-knn").settings_type.model_fields["neighbours"]
    assert stretched((20, 50, 500), knn) == Range(7, 2000, log=True, whole=True)
    assert stretched((1, 3), knn) == Range(1, 5, whole=True)
    apda = find_method("apda").settings_type.model_fields
    assert stretched((0.0, 0.5), apda["dropout"]) == Range(0, 0.5)  # 1 itself is no share to drop
    assert stretched((0.1, 0.5), apda["scale"]) == Range(0.1, 0.9)  # below 0 is no scale
    ips = find_method("ips").settings_type.model_fields["cap_quantile"]
    assert stretched((0.5, 1.0), ips) == Range(0, 1)


@pytest.mark.parametrize("name", TUNABLE)
def test_both_ends_of_every_dimension_are_settings_of_the_method(name: str) -> None:
    method = find_method(name)
    for space in (wide_space(method), paper_space(method)):
        assert space
        for setting, tried in space.items():
            ends = (tried.neat(tried.low), tried.neat(tried.high)) if isinstance(tried, Range) else tried
            for value in ends:
                checked = make_settings(method.settings_type, {setting: value}, name)
                assert getattr(checked, setting) == value
        wide = wide_space(method)
        assert first_point(method.settings_type(), wide).keys() == wide.keys(), "the defaults can be tried"


def test_the_papers_grids_have_its_learning_rates() -> None:
    assert size(paper_space(DPAA)) == 3 * 6 * 4 * 6
    assert size(paper_space(find_method("lightgcn"))) == 3
    assert size(paper_space(find_method("ease"))) == 5
    assert size(wide_space(DPAA)) is None


def test_points_are_all_of_the_grid_with_the_defaults_first() -> None:
    space = paper_space(find_method("cvib"))
    first = first_point(make_settings(find_method("cvib").settings_type, PAPER_TRAINING, "cvib"), space)
    drawn = points(space, 0, first)
    assert drawn[0] == first == {"learning_rate": 1e-3, "agreement_weight": 0.1, "confidence_weight": 0.01}
    assert len({tuple(point.values()) for point in drawn}) == len(drawn) == math.prod(map(len, space.values()))  # type: ignore[arg-type]
    assert drawn == points(space, 0, first) != points(space, 1, first)


def test_what_is_fixed_is_not_searched_and_lists_take_the_place_of_ranges() -> None:
    space = search_space(DPAA, "wide", {"layers": 2, "l2": 0.0}, {"learning_rate": ["1e-3", "1e-4", "0.001"]})
    assert "layers" not in space
    assert "l2" not in space
    assert space["learning_rate"] == (1e-3, 1e-4)
    with pytest.raises(InputError, match="both fixed and searched"):
        search_space(DPAA, "wide", {"layers": 2}, {"layers": [1]})


def test_drawn_numbers_have_few_digits() -> None:
    assert Range(1e-4, 1e-2, log=True).neat(0.00123456) == 0.00123
    assert Range(1, 4, whole=True).neat(3.0) == 3
    assert in_words({"a": Range(1, 4, whole=True), "b": (1e-3, "x")}) == {"a": "1 … 4, whole", "b": "0.001 · x"}


def spaces_table() -> str:
    """Every method's wide space, and the size of its grid."""
    lines = ["| method | wide space | points of the paper's grid |", "|---|---|---|"]
    for name in TUNABLE:
        method = find_method(name)
        wide = "; ".join(f"`{setting}` {tried}" for setting, tried in in_words(wide_space(method)).items())
        lines.append(f"| `{name}` | {wide} | {size(paper_space(method))} |")
    return "\n".join(lines)


def test_the_page_shows_the_spaces() -> None:
    page = Path(__file__).parents[2] / "docs" / "tuning.md"
    before, rest = page.read_text(encoding="utf-8").split("<!-- spaces -->\n")
    table, after = rest.split("<!-- end -->")
    if os.environ.get("DPAA_WRITE_DOCS"):
        table = f"{spaces_table()}\n"
        page.write_text(f"{before}<!-- spaces -->\n{table}<!-- end -->{after}", encoding="utf-8")
    assert table == f"{spaces_table()}\n", "run `DPAA_WRITE_DOCS=1 pytest tests/tuning`"


@pytest.mark.parametrize("name", TUNABLE)
def test_every_listed_value_is_a_setting_of_the_method(name: str) -> None:
    kind = find_method(name)
    space = lists_space(kind)
    assert space.keys() == wide_space(kind).keys()
    for setting, values in space.items():
        assert isinstance(values, tuple)
        for value in values:
            make_settings(kind.settings_type, {setting: value}, name)


def test_lists_try_exact_zeros() -> None:
    space = lists_space(DPAA)
    assert space["layer_emphasis"] == (0.0, 1.0, 2.0, 3.0)
    assert all(0.0 in tuple(space[name]) for name in ("initial_residual", "half_trust_shift"))  # type: ignore[arg-type]


def test_who_chooses_strengths_after_training_is_never_pruned() -> None:
    assert {name for name in METHODS if chooses_strengths(METHODS[name])} == {"macr", "dap", "ppac"}

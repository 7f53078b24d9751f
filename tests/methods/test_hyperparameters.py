"""Hyperparameters are fields of the class: checked where they are written and where they are given."""

from typing import Any

import pytest
import torch
from pydantic import Field, ValidationError

from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods import METHODS, find_method
from dpaa.methods._options import with_earlier_defaults
from dpaa.methods.base import ClosedForm, attach, fitted, method
from dpaa.methods.graph_method import EARLIER_DEFAULTS


class Parent(ClosedForm):
    """A table of zeros.  The title is the first line."""

    saved = {"table": ("items", "width"), "bias": ("users",)}  # noqa: RUF012
    width: int = Field(default=4, ge=1, le=9, description="columns")
    table: torch.Tensor = fitted()
    bias: torch.Tensor = fitted()

    def learn(self) -> None:
        self.table = torch.zeros(self.graph.n_items, self.width)

    def scorer(self, items: Any = None, histories: Any = None) -> Any:
        return lambda index: torch.zeros(len(index), self.graph.n_items)


class Child(Parent):
    """Another default, another shape, one more number."""

    saved = {"bias": ("users", 2), "strength": ()}  # noqa: RUF012
    width: int = 7
    strength: float = fitted()


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("lightgcn", {"learning_rate": "nan"}, "learning_rate: input should be a finite number, got 'nan'"),
        ("lightgcn", {"batch_size": "many"}, "batch_size: input should be 'auto' or .* a valid integer.*got 'many'"),
        ("dap", {"clusters": 0}, "clusters: input should be 'tune' or input should be greater than or equal to"),
    ],
)
def test_wrong_values_get_one_sentence(name: str, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        METHODS[name](**values)


def test_a_subclass_with_another_default_keeps_bounds_and_description() -> None:
    assert (Child().width, Child(width=9).width) == (7, 9)
    assert Child.hyperparameters.model_fields["width"].description == "columns"
    with pytest.raises(InputError, match="hyperparameter width: input should be less than or equal to 9, got 10"):
        Child(width=10)


def test_a_default_out_of_bounds_is_an_error_where_it_is_written() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 9"):

        class Wrong(Parent):
            width: int = 12


def test_fitted_attributes_are_no_hyperparameters_and_missing_before_fitting() -> None:
    assert set(Child().get_params()) == {"seed", "width"}
    with pytest.raises(AttributeError, match="'Child' object has no attribute 'table' before it is fitted"):
        _ = Child().table
    with pytest.raises(InputError, match="method child has no hyperparameter 'table'"):
        Child(table=torch.zeros(1))  # type: ignore[call-arg]


def test_names_and_titles_come_from_the_class_or_the_decorator() -> None:
    assert (Parent.name, Parent.title, Parent.grid) == ("parent", "A table of zeros.  The title is the first line", {})

    @method("other", title="something", grid={"width": (1, 2)}, seeded=False)
    class Named(Parent):
        """Not the title."""

    assert (Named.name, Named.title, Named.grid, Named.seeded) == ("other", "something", {"width": (1, 2)}, False)
    assert (Parent.seeded, Parent.grid) == (True, {}), "the parent is left alone"


def test_shapes_are_inherited_and_may_be_redeclared(toy_graph: BipartiteGraph) -> None:
    configured = Child()
    assert attach(configured, toy_graph).get_params() == configured.get_params()
    assert not hasattr(configured, "graph"), "a copy was attached"
    assert attach(Parent(), toy_graph).state_shapes() == {"table": (3, 4), "bias": (2,)}
    assert attach(Child(), toy_graph).state_shapes() == {"table": (3, 7), "bias": (2, 2), "strength": ()}


def test_every_method_describes_itself() -> None:
    """It is found by name, class and object; hyperparameters have a meaning."""
    for name, kind in METHODS.items():
        assert kind.name == name
        assert kind.title
        assert all(find_method(wanted) is kind for wanted in (name, kind, kind()))
        assert all(field.description for field in kind.hyperparameters.model_fields.values())


def test_what_is_no_method_is_refused_with_those_that_are() -> None:
    with pytest.raises(InputError, match="is neither the name nor the class of a method; known methods: lightgcn"):
        find_method(int)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "stored", "kept"),
    [
        ("ssm", {"temperature": 0.2, "known_negatives": "keep", "ranking": "inner-product"}, {"temperature": 0.2}),
        ("ssm", {"ranking": "cosine"}, {"ranking": "cosine"}),
        ("simgcl", {"message_weights": "lightgcn", "layer_emphasis": 3.0, "noise": 0.3}, {"noise": 0.3}),
        ("dice", {"negatives": "uniform"}, {"negatives": "uniform"}),
        ("lightgcn", {"layer": 2}, {"layer": 2}),
        ("dpaa", {"weighted_layers": "first", "layers": 2}, {"first_layer_only": 1.0, "layers": 2}),
        ("dpaa-as-printed", {"weighted_layers": "all"}, {"first_layer_only": 0.0}),
        ("dpaa", {"weighted_layers": "middle"}, {"weighted_layers": "middle"}),
        ("ease", {"ridge": 2.0}, {"ridge": 2.0}),
    ],
)
def test_removed_hyperparameters_of_a_run_are_dropped_where_they_had_no_effect(
    name: str, stored: dict[str, Any], kept: dict[str, Any]
) -> None:
    found = with_earlier_defaults(METHODS[name], stored)
    assert found == ({} if name == "ease" else EARLIER_DEFAULTS) | kept

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dpaa.errors import InputError
from dpaa.methods import METHODS
from dpaa.methods.settings import TrainedSettings, make_settings


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"layer": 2}, "method lightgcn has no setting 'layer'; did you mean layers?"),
        ({"quux": 2}, "method lightgcn has no setting 'quux'; it has: seed, embedding_size"),
        ({"layers": "two"}, "setting layers: input should be a valid integer.*got 'two'"),
        ({"layers": -1}, "setting layers: input should be greater than or equal to 0, got -1"),
        ({"learning_rate": 0}, "setting learning_rate: input should be greater than 0, got 0"),
        ({"learning_rate": "nan"}, "setting learning_rate: input should be a finite number, got 'nan'"),
        (
            {"batch_size": 0},
            "setting batch_size: input should be 'auto' or input should be greater than or equal to 1, got 0",
        ),
        (
            {"batch_size": "many"},
            "setting batch_size: input should be 'auto' or input should be a valid integer.*got 'many'",
        ),
        ({"sampler": "popular"}, "setting sampler: input should be 'user-uniform' or 'interaction', got 'popular'"),
        ({"seed": -1}, "setting seed: input should be greater than or equal to 0, got -1"),
        (
            {"threads": 0},
            "setting threads: input should be 'auto' or input should be greater than or equal to 1, got 0",
        ),
        ({"epochs": 0}, "setting epochs: input should be greater than or equal to 1, got 0"),
        ({"l2": -0.1}, "setting l2: input should be greater than or equal to 0, got -0.1"),
    ],
)
def test_wrong_settings_get_one_sentence(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make_settings(TrainedSettings, values, "lightgcn")


def test_text_is_read_as_the_type_of_the_field() -> None:
    found = make_settings(TrainedSettings, {"layers": "2", "learning_rate": "1e-2", "batch_size": "auto"}, "lightgcn")
    assert (found.layers, found.learning_rate, found.batch_size) == (2, 0.01, "auto")
    assert make_settings(TrainedSettings, {"batch_size": "512"}, "lightgcn").batch_size == 512


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        TrainedSettings().layers = 5  # type: ignore[misc]


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_says_what_it_means(name: str) -> None:
    for field, info in METHODS[name].settings_type.model_fields.items():
        assert info.description, f"{name}: {field} has no meaning written under it"


@pytest.mark.parametrize(
    ("setting", "value", "rule"),
    [
        ("learning_rate_schedule", "cosine", "'inverse-sqrt' or 'constant'"),
        ("warmup_steps", -1, "greater than or equal to 0"),
        ("patience_steps", "soon", "'auto'"),
        ("minimum_steps", -1, "greater than or equal to 0"),
        ("validation_steps", 0, "greater than or equal to 1"),
        ("validation_smoothing", 1, "less than 1"),
    ],
)
def test_what_says_how_training_goes_is_checked(setting: str, value: object, rule: str) -> None:
    with pytest.raises(InputError, match=f"setting {setting}: .*{rule}"):
        make_settings(TrainedSettings, {setting: value}, "lightgcn")

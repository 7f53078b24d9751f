"""Every setting of every method refuses what it cannot be: another type, a value out of its range."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import annotated_types
import pytest
from pydantic.fields import FieldInfo

from dpaa.methods import METHODS
from tests.command import run_dpaa


def wrong_values(field: FieldInfo) -> Iterator[str]:
    """Text for a number or a choice, and what lies just outside each bound."""
    if field.annotation is not str:
        yield "nonsense"
        yield ""
    if field.annotation in (int, float):
        yield "nan"
        yield "1e999"
    for bound in [*field.metadata, *(inner for part in get_args(field.annotation) for inner in metadata_of(part))]:
        if isinstance(bound, annotated_types.Ge):
            yield str(bound.ge - 1)  # type: ignore[operator]
        elif isinstance(bound, annotated_types.Le):
            yield str(bound.le + 1)  # type: ignore[operator]
        elif isinstance(bound, annotated_types.Gt):
            yield str(bound.gt)
        elif isinstance(bound, annotated_types.Lt):
            yield str(bound.lt)


def metadata_of(part: Any) -> list[object]:
    """The bounds in `Annotated[int, Field(ge=1)]`, one choice of a union."""
    return [bound for inner in getattr(part, "__metadata__", ()) for bound in getattr(inner, "metadata", [inner])]


def every_setting() -> list[tuple[str, str]]:
    """Method and setting; what methods share is met once."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for method, method_type in METHODS.items():
        for setting, field in method_type.hyperparameters.model_fields.items():
            found.setdefault((setting, f"{field.annotation} {field.metadata}"), (method, setting))
    return list(found.values())


@pytest.mark.parametrize(("method", "setting"), every_setting())
def test_wrong_values(method: str, setting: str, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    field = METHODS[method].hyperparameters.model_fields[setting]
    values = list(wrong_values(field))
    assert values or field.annotation is str
    for value in values:
        said = run_dpaa("train", built / "data", "--method", method, "--set", f"{setting}={value}", "--out", "run")
        assert said.code == 2, said
        assert said.out == ""
        assert said.err.startswith(f"error: hyperparameter {setting}: "), said.err
        assert said.err.endswith(f", got {value!r}\n"), said.err
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("setting", ["layers=1_0", "batch_size=2_048", "layers=2.0", "learning_rate=1_0.5", "layers=٣"])
def test_numbers_are_written_in_digits(setting: str, built: Path, tmp_path: Path) -> None:
    said = run_dpaa("train", built / "data", "--set", setting, "--out", tmp_path / "run")
    name, _, value = setting.partition("=")
    assert said.code == 2
    assert said.err.startswith(f"error: hyperparameter {name}: ")
    assert said.err.endswith(f", got {value!r}\n")

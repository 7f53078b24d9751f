"""Re-rankers as they are read from words and manifests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.errors import InputError
from dpaa.ranking.reranker import Dial, parse_reranker, stored_reranker, told_reranker


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_words_and_manifest_come_back(kappa: float) -> None:
    dial = Dial(kappa=kappa)
    assert parse_reranker(dial.in_words()) == dial
    assert stored_reranker(dial.as_json(), "the run") == dial
    assert told_reranker(dial.in_words(), "the run") == dial


def test_what_is_typed() -> None:
    assert parse_reranker("dial, kappa = -0.5 ") == Dial(kappa=-0.5)
    assert parse_reranker("Dial") == Dial()
    assert parse_reranker(" None ") is None
    assert stored_reranker(None, "the run") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dail", "there is no re-ranker 'dail'; did you mean dial"),
        ("dial,0.5", "cannot read '0.5' of the re-ranker 'dial,0.5'; write NAME,SETTING=VALUE"),
        ("dial,kapa=1", "re-ranker dial has no hyperparameter 'kapa'; did you mean kappa"),
        ("dial,kappa=much", "hyperparameter kappa: input should be a valid number.*got 'much'"),
        ("dial,kappa=nan", "hyperparameter kappa: input should be a finite number"),
    ],
)
def test_words_that_are_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_reranker(text)


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        ("dial", "the run does not say which re-ranker it uses"),
        ({"settings": {}}, "the run does not say which re-ranker it uses"),
        ({"name": "slots", "origin": {"package": "other"}}, "the run was made with the re-ranker 'slots' of package"),
        ({"name": "slots", "origin": {"package": "dpaa"}}, "there is no re-ranker 'slots'"),
        ({"name": "dial", "settings": {"kappa": []}}, "hyperparameter kappa"),
    ],
)
def test_manifests_that_are_refused(stored: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        stored_reranker(stored, "the run")


def test_words_of_a_file_import_nothing() -> None:
    with pytest.raises(InputError, match=r"there is no re-ranker 'dpaa\.ranking\.reranker Dial'"):
        told_reranker("dpaa.ranking.reranker:Dial,kappa=1", "the run")

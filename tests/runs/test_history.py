from __future__ import annotations

import json
from typing import Any

import pytest

from dpaa.runs.history import history_line

LINE: dict[str, Any] = {"epoch": 3, "loss": 0.5, "valid": {"recall@20": 0.25, "ndcg@20": None}}


@pytest.mark.parametrize(
    "more",
    [{}, {"loss": None}, {"loss": 1}, {"part": "plain", "pretrained_share": 1.0, "embedding_shift": 0.0},
     {"iiw_by_decile": [None, -0.01, 2.01, *[1.0] * 7]}, {"seconds": [1], "anything": {"else": True}}],
)  # fmt: skip
def test_a_line_comes_back_as_it_was_written(more: dict[str, Any]) -> None:
    assert history_line(json.dumps(LINE | more)) == LINE | more


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"epoch": "3"}, "epoch: input should be a valid integer"),
        ({"epoch": -1}, "epoch: input should be greater than or equal to 0"),
        ({"epoch": 2**31}, "epoch: input should be less than"),
        ({"loss": "small"}, "loss: input should be a valid number"),
        ({"valid": [1]}, "valid: input should be a valid dictionary"),
        ({"pretrained_share": 1.5}, "pretrained_share: input should be less than or equal to 1"),
        ({"embedding_shift": -0.5}, "embedding_shift: input should be greater than or equal to 0"),
        ({"iiw_by_decile": [1.0] * 9}, "iiw_by_decile: list should have at least 10 items"),
        ({"iiw_by_decile": [1.0] * 9 + [1e300]}, "iiw_by_decile.9: input should be less than or equal to 2.01"),
    ],
)
def test_a_number_of_another_kind_or_far_outside_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        history_line(json.dumps(LINE | wrong))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Expecting value"),
        ("[1]", "no JSON object"),
        ("7", "no JSON object"),
        ('{"epoch": 1, "torn', "Unterminated string"),
        ('{"epoch": 1}', "loss: field required"),
        ('{"epoch": 1, "loss": 1e999, "valid": {}}', "a number that is none, or too large"),
    ],
)
def test_what_is_no_line_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        history_line(text)


@pytest.mark.parametrize("text", ["[1]", "3", '"epoch"', "null"])
def test_a_line_that_is_no_object_is_told_in_plain_words(text: str) -> None:
    with pytest.raises(ValueError, match="a line is no JSON object"):
        history_line(text)

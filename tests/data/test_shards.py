"""Which rows a shard has, and which folders it may join."""

from __future__ import annotations

import polars as pl
import pytest

from dpaa.data.shards import Shard, digest_of


@pytest.mark.parametrize("n", [0, 1, 5, 16, 1_000_003])
@pytest.mark.parametrize("of", [1, 3, 16])
def test_shards_are_all_rows_once_and_alike_in_size(n: int, of: int) -> None:
    parts = [Shard(number, of).rows(n) for number in range(1, of + 1)]
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == n
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_a_digest_tells_choices_apart() -> None:
    asked = {"users": pl.Series([1, 2]), "exclude": (), "items": None, "pairs": pl.DataFrame({"a": [1]})}
    assert digest_of(asked) == digest_of(dict(reversed(asked.items())))
    for name, other in {"users": pl.Series([2, 1]), "exclude": ("a",), "pairs": pl.DataFrame({"a": [2]})}.items():
        assert digest_of(asked | {name: other}) != digest_of(asked)

"""Which rows a shard has, and which folders it may join."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dpaa.data.shards import OF, Shard, check_complete, digest_of, join_folder
from dpaa.errors import InputError


@pytest.mark.parametrize("n", [0, 1, 5, 16, 1_000_003])
@pytest.mark.parametrize("of", [1, 3, 16])
def test_shards_are_all_rows_once_and_alike_in_size(n: int, of: int) -> None:
    parts = [Shard(number, of).rows(n) for number in range(1, of + 1)]
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == n
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_shards_of_another_call_do_not_mix(tmp_path: Path) -> None:
    join_folder(tmp_path / "lists", {"k": 20, OF: 2})
    join_folder(tmp_path / "lists", {"k": 20, OF: 2})
    with pytest.raises(InputError, match="holds shards with another k; choose another folder"):
        join_folder(tmp_path / "lists", {"k": 10, OF: 2})
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "notes.txt").touch()
    with pytest.raises(InputError, match="holds no shards"):
        join_folder(tmp_path / "else", {"k": 20})
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        join_folder(tmp_path / "file", {"k": 20})


def test_missing_shards_are_named(tmp_path: Path) -> None:
    join_folder(tmp_path, {OF: 3})
    Shard(2, 3).file(tmp_path, ".csv").touch()
    with pytest.raises(InputError, match=r"lacks 2 of 3 shards \(1, 3\)"):
        check_complete(tmp_path)
    for number in (1, 3):
        Shard(number, 3).file(tmp_path, ".csv").touch()
    check_complete(tmp_path)


def test_a_digest_tells_choices_apart() -> None:
    asked = {"users": pl.Series([1, 2]), "exclude": (), "items": None, "pairs": pl.DataFrame({"a": [1]})}
    assert digest_of(asked) == digest_of(dict(reversed(asked.items())))
    for name, other in {"users": pl.Series([2, 1]), "exclude": ("a",), "pairs": pl.DataFrame({"a": [2]})}.items():
        assert digest_of(asked | {name: other}) != digest_of(asked)

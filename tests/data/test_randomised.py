from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dpaa.data.dataset import Dataset, read_dataset
from dpaa.data.sources.severity import with_randomised
from dpaa.errors import InputError


def unbiased(share: float = 0.5, **how: int) -> tuple[Dataset, Dataset]:
    rng = np.random.default_rng(0)
    pairs = pl.DataFrame({"user_id": rng.integers(0, 40, 600), "item_id": rng.integers(0, 30, 600)}).unique()
    pairs = pairs.sort("user_id", "item_id").with_columns(rating=pl.lit(4.0)).sample(fraction=1.0, shuffle=True, seed=1)
    data = Dataset.from_frame(pairs[:250], valid=pairs[250:320], test=pairs[320:], candidates=list(range(25)))
    return data, with_randomised(data, share, **how)


def test_a_part_of_validation_becomes_the_sample_and_the_rest_stays(tmp_path: Path) -> None:
    data, shared = unbiased(0.4)
    assert len(shared.randomised) == 28
    assert "28 of the 70 validation pairs are set aside for training" in shared.notes
    keys = [data.valid.keys(data.n_items), shared.valid.keys(data.n_items), shared.randomised.keys(data.n_items)]
    assert sorted(np.concatenate(keys[1:])) == list(keys[0])
    assert np.array_equal(shared.train.keys(data.n_items), data.train.keys(data.n_items))
    assert np.array_equal(shared.test.keys(data.n_items), data.test.keys(data.n_items))
    assert np.array_equal(shared.candidates, data.candidates)
    assert shared.frame("valid").columns == ["user_id", "item_id", "rating"]
    shared.write(tmp_path / "shared")
    again = read_dataset(tmp_path / "shared")
    assert np.array_equal(again.randomised.keys(data.n_items), shared.randomised.keys(data.n_items))
    assert again.fingerprint == shared.fingerprint
    assert replace(shared, randomised=None).fingerprint != shared.fingerprint
    assert again.describe()["randomised"] == "40% of validation, seed 0"
    other = unbiased(0.4, seed=1)[1].randomised
    assert not np.array_equal(other.keys(data.n_items), shared.randomised.keys(data.n_items))


def test_what_cannot_be_a_randomised_sample(tmp_path: Path) -> None:
    data, shared = unbiased()
    biased = replace(data, about=data.about | {"validation_exposure": "biased"})
    few = Dataset.from_frame(pl.DataFrame({"user_id": [1], "item_id": [1]}))
    for wrong, share, sentence in (
        (data, 0.0, "share must be between 0 and 1, got 0"),
        (shared, 0.5, "carries randomised pairs already"),
        (biased, 0.5, "comes from the log's own exposure, which is not random"),
        (few, 0.5, "has 0 validation pairs, too few to share"),
    ):
        with pytest.raises(InputError, match=sentence):
            with_randomised(wrong, share)
    shared.write(tmp_path / "shared")
    (tmp_path / "shared" / "randomised.parquet").write_bytes(b"no table")
    with pytest.raises(InputError, match=r"randomised\.parquet is missing, no readable Parquet file"):
        read_dataset(tmp_path / "shared")
    (tmp_path / "shared" / "randomised.parquet").unlink()
    with pytest.raises(InputError, match="was changed after it was written"):
        read_dataset(tmp_path / "shared")


def test_appended_rows_leave_the_sample_as_it_is() -> None:
    log = pl.DataFrame({"user_id": np.repeat(np.arange(6), 10), "item_id": np.tile(np.arange(10), 6)})
    data = Dataset.from_frame(log, split="random")
    shared = replace(data, randomised=data.valid)
    more = shared.append(pl.DataFrame({"user_id": [-1, 7], "item_id": [-1, 18]}))
    assert more.item_ids.gather(more.randomised.item).equals(data.item_ids.gather(data.valid.item))
    assert more.user_ids.gather(more.randomised.user).equals(data.user_ids.gather(data.valid.user))

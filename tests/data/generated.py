"""Files of the official shape and counts, made up: the real ones may not be passed on, or are too large to keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dpaa.data.sources.published import TEST_FILE, TRAIN_FILE

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt


def write_yahoo_r3(folder: Path) -> None:
    """Yahoo! R3 with the official histogram; users above 14,382 have no training positive."""
    liked_user, liked_item = _spread(125_077, first_user=1, n_users=14_382, shift=0)
    other_user, other_item = _spread(311_704 - 125_077, first_user=1, n_users=15_400, shift=100)
    train = pl.DataFrame(
        {
            "user": np.concatenate([liked_user, other_user]),
            "song": np.concatenate([liked_item, other_item]),
            "rating": np.repeat([4, 5, 1, 2, 3], [48_480, 76_597, 97_844, 39_652, 49_131]),
        }
    )
    # Ten random songs of 5,400 users; 40 of them have no training positive and 78 of the positives.
    users = np.concatenate([np.arange(1, 5_361), np.arange(15_361, 15_401)])
    user = np.repeat(users, 10)
    positive = np.zeros(54_000, dtype=bool)
    positive[:4_671] = True
    positive[-78:] = True
    rating = np.empty(54_000, dtype=np.int64)
    rating[positive] = np.repeat([4, 5], [3_371, 1_378])
    rating[~positive] = np.repeat([1, 2, 3], [28_417, 13_064, 7_770])
    test = pl.DataFrame(
        {"user": user, "song": (user * 7 + 500 + np.tile(np.arange(10), 5_400)) % 1000 + 1, "rating": rating}
    )
    folder.mkdir(exist_ok=True)
    train.write_csv(folder / TRAIN_FILE, separator="\t", include_header=False)
    test.write_csv(folder / TEST_FILE, separator="\t", include_header=False)


def write_kuairec(folder: Path, negatives: int = 20_000) -> None:
    """KuaiRec with the official numbers of users, videos and positive rows, and few of the other rows.

    1,000 of the positive rows of the big matrix repeat a pair; in the small one every seventh time is missing.
    """
    folder.mkdir(exist_ok=True)
    user, video = _scattered(936_390 - 1_000 + negatives, 7_176, 10_728)
    order = np.concatenate([np.arange(len(user)), np.arange(1_000)])
    positive = np.ones(len(order), dtype=bool)
    positive[936_390 - 1_000 : len(user)] = False
    _matrix(user[order], video[order], positive).write_csv(folder / "big_matrix.csv")
    user, video = _scattered(217_175 + negatives, 1_411, 3_327)
    positive = np.arange(len(user)) < 217_175
    small = _matrix(user * 5, video * 3, positive)
    missing = pl.int_range(pl.len()) % 7 == 0
    small.with_columns(pl.when(~missing).then(pl.col("timestamp")), pl.when(~missing).then(pl.col("time"))).write_csv(
        folder / "small_matrix.csv"
    )


def _spread(
    pairs: int, first_user: int, n_users: int, shift: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """So many distinct pairs, spread evenly over users; the songs of a user follow one another."""
    number = np.arange(pairs)
    user = number % n_users + first_user
    return user, (user * 7 + shift + number // n_users) % 1000 + 1


def _scattered(pairs: int, n_users: int, n_items: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """So many distinct pairs, scattered over the matrix: steps of a prime number of cells."""
    cell = np.arange(pairs) * 32_452_843 % (n_users * n_items)
    return cell // n_items, cell % n_items


def _matrix(user: npt.NDArray[np.int64], video: npt.NDArray[np.int64], positive: npt.NDArray[np.bool_]) -> pl.DataFrame:
    number = np.arange(len(user))
    return pl.DataFrame(
        {
            "user_id": user,
            "video_id": video,
            "play_duration": 1000 + number % 9000,
            "video_duration": 5000,
            "time": "2020-07-05 00:08:23.438",
            "date": 20200705,
            "timestamp": 1_593_878_903.438 + number,
            "watch_ratio": np.where(positive, 2.001 + number % 50 / 10, number % 21 / 10),
        }
    )

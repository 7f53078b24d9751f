"""The names of the columns and of the splits, in one place."""

from __future__ import annotations

from typing import Final, Literal

ABOUT_FILE: Final = "dataset.json"
"""What a prepared dataset says of itself."""
SplitName = Literal["train", "valid", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "valid", "test")


class Column:
    """Column names in every table the package writes."""

    USER: Final = "user_id"
    ITEM: Final = "item_id"
    RATING: Final = "rating"
    TIMESTAMP: Final = "timestamp"
    COUNT: Final = "count"


IDS = (Column.USER, Column.ITEM)

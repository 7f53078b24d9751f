"""From the ids of requests to indices: by bisection in the mapped table, so that opening a snapshot is quick."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.data.ids import WHOLE_NUMBER, is_text

Id = int | str


@dataclass(frozen=True, eq=False)
class IdTable:
    """Ascending ids, row i = index i."""

    ids: pl.Series
    titles: pl.Series | None = None
    """What people call them; null where there is none."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def text(self) -> bool:
        """Whether the ids are text; otherwise they are integers."""
        return is_text(self.ids)

    @cached_property
    def _numbers(self) -> NDArray[Any]:
        return self.ids.to_numpy()

    def find(self, given: Id) -> int:
        """The index of an id, −1 where there is none; text that spells an integer is that integer."""
        if self.text:
            if not isinstance(given, str):
                return -1
            place = bisect_left(self.ids, given)
            return place if place < len(self.ids) and self.ids[place] == given else -1
        if isinstance(given, str):
            if len(given) > 20 or not re.fullmatch(WHOLE_NUMBER, given):
                return -1
            given = int(given)
        known = self._numbers
        if not int(known[0]) <= given <= int(known[-1]):
            return -1
        place = int(np.searchsorted(known, known.dtype.type(given)))
        return place if int(known[place]) == given else -1

    def id(self, index: int) -> Id:
        """The user's own id."""
        found: Id = self.ids[index]
        return found

    def title(self, index: int) -> str | None:
        """None where nobody gave one."""
        return None if self.titles is None else self.titles[index]

    def shown(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Id, and title where there are titles, as answers have them."""
        rows: list[int] = list(indices)
        ids = self.ids.gather(rows).to_list()
        if self.titles is None:
            return [{"id": one} for one in ids]
        return [{"id": one, "title": title} for one, title in zip(ids, self.titles.gather(rows).to_list(), strict=True)]

    def search(self, words: str, most: int) -> list[int]:
        """Indices whose id begins with these words, then those whose title has them; ascending each."""
        found = self._beginning_with(words, most)
        if self.titles is not None and words and len(found) < most:
            folded = words.casefold()
            hits = self.titles.str.to_lowercase().str.contains(folded, literal=True).fill_null(value=False).arg_true()
            found += [place for place in hits.head(most).to_list() if place not in found]
        return found[:most]

    def _beginning_with(self, words: str, most: int) -> list[int]:
        if self.text:
            first = bisect_left(self.ids, words)
            near = self.ids.slice(first, most).to_list()
            return [first + place for place, one in enumerate(near) if one.startswith(words)]
        if not words:
            return list(range(min(most, len(self.ids))))
        if not re.fullmatch(WHOLE_NUMBER, words) or len(words) > 20:
            return []
        found: list[int] = []
        known, number, step = self._numbers, int(words), 1
        smallest, largest = int(known[0]), int(known[-1])
        while step <= 10**19 and len(found) < most:  # 12 → 12, 120 … 129, 1200 … 1299
            ends = (number * step, (number + 1) * step - 1) if number >= 0 else ((number - 1) * step + 1, number * step)
            if ends[0] <= largest and ends[1] >= smallest:
                low, high = (known.dtype.type(end) for end in (max(ends[0], smallest), min(ends[1], largest)))
                first, last = int(np.searchsorted(known, low)), int(np.searchsorted(known, high, "right"))
                found += range(first, min(last, first + most))
            step = step * 10 if number else 10**20
        return found[:most]

"""Is this (user, item) pair one of the known ones?  Many questions at once."""

from __future__ import annotations

import torch
from torch import Tensor

LARGEST_BITMAP = 256 * 1024 * 1024
"""Bytes."""


class KnownPairs:
    """Looks keys `user · n_items + item` up: in a bitmap of all pairs where it is small, else among the sorted keys."""

    def __init__(self, keys: Tensor, n_pairs: int, largest_bitmap: int = LARGEST_BITMAP) -> None:
        self._keys = keys
        """(known,) int64, ascending, distinct."""
        self._bits: Tensor | None = None
        if n_pairs // 8 < largest_bitmap:
            bit = (1 << (keys & 7)).to(torch.uint8)  # distinct keys: adding bits is setting them
            self._bits = torch.zeros(n_pairs // 8 + 1, dtype=torch.uint8, device=keys.device)
            self._bits.index_add_(0, keys >> 3, bit)

    def contain(self, wanted: Tensor) -> Tensor:
        """Which of these keys are known; a negative one never is.  Same shape, bool."""
        if self._bits is None:
            place = torch.searchsorted(self._keys, wanted).clamp_(max=len(self._keys) - 1)
            return self._keys[place] == wanted
        flat = wanted.clamp(min=0).flatten()
        found = self._bits.index_select(0, flat >> 3).bitwise_right_shift((flat & 7).to(torch.uint8)) & 1
        return found.view(wanted.shape).bool() & (wanted >= 0)

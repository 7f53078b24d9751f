"""Top-k per row with one rule for ties: the lower column wins, whatever the block size, thread count or device."""

from __future__ import annotations

import torch
from torch import Tensor


def top_k(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest scores per row, best first, ties by lower column.

    −inf marks what must not be taken; where fewer than k are left, the row ends in column −1 and score −inf.
    Returns scores (rows, k) and columns (rows, k), int64.
    """
    n = scores.shape[1]
    wanted = min(k, n)
    # One more than asked for shows whether the cut runs through a tie; only then does the choice need care.
    values, columns = torch.topk(scores, min(wanted + 1, n), dim=1)
    if wanted < n:
        tied = values[:, wanted - 1] == values[:, wanted]
        values, columns = values[:, :wanted], columns[:, :wanted]
        rows = tied.nonzero().squeeze(1)
        if len(rows):
            columns[rows] = _lowest_columns_at_the_cut(scores[rows], values[rows, -1:], wanted)
            values[rows] = torch.gather(scores[rows], 1, columns[rows])
    # Equal scores inside the list: order by column first, then stably by score.
    columns, by_column = torch.sort(columns, dim=1)
    values, by_score = torch.sort(torch.gather(values, 1, by_column), dim=1, descending=True, stable=True)
    columns = torch.gather(columns, 1, by_score)
    columns[values == -torch.inf] = -1
    if wanted < k:
        values = torch.nn.functional.pad(values, (0, k - wanted), value=-torch.inf)
        columns = torch.nn.functional.pad(columns, (0, k - wanted), value=-1)
    return values, columns


def _lowest_columns_at_the_cut(scores: Tensor, cut: Tensor, k: int) -> Tensor:
    """Everything above the cut, and of what equals it the lowest columns, k in all.  Returns (rows, k) in any order."""
    above, equal = scores > cut, scores == cut
    room = k - above.sum(dim=1, keepdim=True)
    taken = above | (equal & (equal.cumsum(dim=1) <= room))
    return taken.nonzero()[:, 1].view(len(scores), k)

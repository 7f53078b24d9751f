from __future__ import annotations

import torch

from dpaa.graph.kernels import add_rows_


def test_rows_are_added_one_by_one() -> None:
    generator = torch.Generator().manual_seed(0)
    table, rows = torch.randn(5, 33, generator=generator), torch.randn(40, 33, generator=generator)
    index = torch.randint(0, 4, (40,), generator=generator)
    expected = table.clone()
    for place, row in zip(index.tolist(), rows, strict=True):
        expected[place] += row
    found = add_rows_(table, index, rows)
    assert found is table
    torch.testing.assert_close(found, expected)
    assert torch.equal(found[4], expected[4]), "rows that are not named stay"

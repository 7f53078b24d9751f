from __future__ import annotations

import torch

from dpaa.graph.edges import edge_dots
from tests.methods.tools import some_graph


def test_edge_dots_equal_the_products_row_by_row() -> None:
    graph = some_graph()
    generator = torch.Generator().manual_seed(0)
    users = torch.randn(graph.n_users, 70, generator=generator)
    items = torch.randn(graph.n_items, 70, generator=generator)
    expected = torch.sum(users[graph.edge_user] * items[graph.edge_item], dim=1)
    torch.testing.assert_close(edge_dots(graph, users, items), expected)
    whole = torch.cat([users, items])
    parts = edge_dots(graph, whole[: graph.n_users], whole[graph.n_users :])
    torch.testing.assert_close(parts, expected)
    in_item_order = edge_dots(graph, users, items, item_order=True)
    torch.testing.assert_close(in_item_order, expected[graph.by_item])

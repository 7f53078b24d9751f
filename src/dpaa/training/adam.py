"""Adam over the tiles of the ego table, each updated right after its gradient while it is still in cache."""

from __future__ import annotations

from dpaa.kernels.adam import Adam
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.rows import Rows


class TiledAdam(Adam):
    """One call per tile; extra parameters of a method come last."""

    def __init__(self, method: GraphMethod) -> None:
        super().__init__([*method.ego.tiles, *method.parameters.values()])
        self._method = method

    def step(self, rows: Rows, learning_rate: float) -> None:
        """Update everything after `loss.backward()`."""
        method, n_tiles = self._method, len(self._method.ego.tiles)
        method.propagation.workers.map(
            lambda tile: self.update(tile, method.tile_gradient(rows, tile), learning_rate), n_tiles
        )
        for place, parameter in enumerate(method.parameters.values(), start=n_tiles):
            if parameter.grad is not None:
                self.update(place, parameter.grad, learning_rate)
                parameter.grad = None

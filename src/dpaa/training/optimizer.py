"""Adam over the tiles of the ego table, each updated right after its gradient while it is still in cache."""

from __future__ import annotations

import torch
from torch import Tensor

from dpaa.graph.kernels import Adam
from dpaa.methods.tables import Rows, Tables

MOMENTS = ("mean", "square")


class TiledAdam(Adam):
    """One call per tile; extra parameters of a method come last."""

    def __init__(self, tables: Tables) -> None:
        super().__init__([*tables.ego.tiles, *tables.parameters.values()])
        self._tables = tables

    def step(self, rows: Rows, learning_rate: float) -> None:
        """Update everything after `loss.backward()`."""
        tables, n_tiles = self._tables, len(self._tables.ego.tiles)
        tables.propagation.workers.map(
            lambda tile: self.update(tile, tables.tile_gradient(rows, tile), learning_rate), n_tiles
        )
        for place, parameter in enumerate(tables.parameters.values(), start=n_tiles):
            if parameter.grad is not None:
                self.update(place, parameter.grad, learning_rate)
                parameter.grad = None

    # ------------------------------------------------------------------ where other processes hold other parts

    @property
    def _tiles_of_all(self) -> list[slice]:
        """The columns of each tile of a table that one process holds: the places of a checkpoint."""
        size, width = self._tables.columns.size, self._tables.method.compute.tile_columns
        return [slice(first, min(first + width, size)) for first in range(0, size, width)]

    def whole_state(self) -> dict[str, Tensor]:
        """What `state` gives where one process holds all columns; in the process that leads, of no use elsewhere."""
        tables, n_tiles = self._tables, len(self._tables.ego.tiles)
        own, places = self.state(), self._tiles_of_all
        if tables.columns.alone:
            return own
        found = {f"steps.{place}": own["steps.0"].clone() for place in range(len(places))}  # files share nothing
        for part in MOMENTS:
            table = tables.columns.to_leader(torch.cat([own[f"{part}.{tile}"] for tile in range(n_tiles)], dim=1))
            if tables.columns.leads:
                found |= {f"{part}.{place}": table[:, tile] for place, tile in enumerate(places)}
        for place in range(len(tables.parameters)):
            moved = {part: own[f"{part}.{n_tiles + place}"] for part in (*MOMENTS, "steps")}
            found |= {f"{part}.{len(places) + place}": tensor for part, tensor in moved.items()}
        return found

    def own_part(self, name: str, tensor: Tensor) -> Tensor:
        """What this process needs of a part of `whole_state`."""
        part, place = name.rsplit(".", 1)
        if part not in MOMENTS or int(place) >= len(self._tiles_of_all):
            return tensor
        tile, own = self._tiles_of_all[int(place)], self._tables.columns.own
        return tensor[:, max(own.start - tile.start, 0) : max(own.stop - tile.start, 0)]

    def load_own_parts(self, state: dict[str, Tensor]) -> None:
        """Take back what `whole_state` gave, of which `own_part` was taken."""
        if self._tables.columns.alone:
            self.load_state(state)
            return
        places, tiles = len(self._tiles_of_all), self._tables.ego.columns
        found = {f"steps.{tile}": state["steps.0"] for tile in range(len(tiles))}
        for part in MOMENTS:
            table = torch.cat([state[f"{part}.{place}"] for place in range(places)], dim=1)
            found |= {f"{part}.{number}": table[:, tile] for number, tile in enumerate(tiles)}
        for place in range(len(self._tables.parameters)):
            moved = {part: state[f"{part}.{places + place}"] for part in (*MOMENTS, "steps")}
            found |= {f"{part}.{len(tiles) + place}": tensor for part, tensor in moved.items()}
        self.load_state(found)

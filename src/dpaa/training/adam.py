"""Adam over the tiles of the ego table, each updated right after its gradient while it is still in cache."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.optim.adam import adam

from dpaa.methods.backbone import GraphMethod
from dpaa.methods.rows import Rows


class TiledAdam:
    """torch's fused Adam (β 0.9, 0.999, ε 1e-8), one call per tile; extra parameters of a method come last."""

    def __init__(self, method: GraphMethod) -> None:
        self._method = method
        self._tensors = [*method.ego.tiles, *method.parameters.values()]
        self._mean = [torch.zeros_like(tensor) for tensor in self._tensors]
        self._square = [torch.zeros_like(tensor) for tensor in self._tensors]
        self._steps = [torch.zeros((), device=tensor.device) for tensor in self._tensors]
        self._learning_rate = method.settings.learning_rate

    def step(self, rows: Rows, learning_rate: float) -> None:
        """Update everything after `loss.backward()`."""
        method, n_tiles = self._method, len(self._method.ego.tiles)
        self._learning_rate = learning_rate
        method.propagation.workers.map(lambda tile: self._update(tile, method.tile_gradient(rows, tile)), n_tiles)
        for place, parameter in enumerate(method.parameters.values(), start=n_tiles):
            if parameter.grad is not None:
                self._update(place, parameter.grad)
                parameter.grad = None

    @torch.no_grad()
    def _update(self, place: int, gradient: Tensor) -> None:
        adam(
            [self._tensors[place]],
            [gradient],
            [self._mean[place]],
            [self._square[place]],
            [],
            [self._steps[place]],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self._learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """The moments and step counts, by place."""
        parts = {"mean": self._mean, "square": self._square, "steps": self._steps}
        return {f"{part}.{place}": tensor for part, tensors in parts.items() for place, tensor in enumerate(tensors)}

    @torch.no_grad()
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Take back what `state` gave."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])

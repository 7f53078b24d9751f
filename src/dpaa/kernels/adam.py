"""Adam over a few tensors by torch's fused kernel; its optimiser would load torch's compiler at the first step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """β 0.9, 0.999, ε 1e-8; each tensor has moments and a step count of its own."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = list(tensors)
        self._mean = [torch.zeros_like(tensor) for tensor in self.tensors]
        self._square = [torch.zeros_like(tensor) for tensor in self.tensors]
        self._steps = [torch.zeros((), device=tensor.device) for tensor in self.tensors]

    @torch.no_grad()
    def update(self, place: int, gradient: Tensor, learning_rate: float) -> None:
        """One step of the tensor at this place."""
        adam(
            [self.tensors[place]],
            [gradient],
            [self._mean[place]],
            [self._square[place]],
            [],
            [self._steps[place]],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=learning_rate,
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

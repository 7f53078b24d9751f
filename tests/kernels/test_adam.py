from __future__ import annotations

import torch

from dpaa.graph.kernels import Adam


def test_it_steps_as_torchs_own_optimiser_does() -> None:
    generator = torch.Generator().manual_seed(0)
    ours = [torch.randn(5, 3, generator=generator), torch.randn(4, generator=generator)]
    theirs = [tensor.clone().requires_grad_() for tensor in ours]
    adam, reference = Adam(ours), torch.optim.Adam(theirs, lr=0.05)
    for _ in range(20):
        for place, tensor in enumerate(theirs):
            tensor.grad = torch.randn(tensor.shape, generator=generator)
            adam.update(place, tensor.grad, 0.05)
        reference.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other.detach())


def test_a_state_taken_back_goes_on_with_the_same_bits() -> None:
    gradients = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
    whole, half = torch.zeros(4), torch.zeros(4)
    adam, first = Adam([whole]), Adam([half])
    for gradient in gradients:
        adam.update(0, gradient, 0.1)
    for gradient in gradients[:3]:
        first.update(0, gradient, 0.1)
    second = Adam([half])
    second.load_state({name: tensor.clone() for name, tensor in first.state().items()})
    for gradient in gradients[3:]:
        second.update(0, gradient, 0.1)
    assert torch.equal(whole, half)

"""A CUDA device that is none: real values in main memory, labelled `cuda:0`, and what a real one refuses is refused.

Refused are operations on tensors of two devices, `.numpy()`, generators of the other device, and operations for which
torch has no CUDA kernel (by torch's own table of operations).  Counted are operations, and the moments at which a
program would wait for the device.  Speed, atomics and rounding of a real device cannot be seen here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo  # a dispatch mode imports it, and must not find the device that is none
import torchgen  # type: ignore[import-untyped]
import yaml
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

CUDA, CPU = torch.device("cuda:0"), torch.device("cpu")
WAITING = {
    "aten::_local_scalar_dense": "item",
    "aten::nonzero": "nonzero",
    "aten::masked_select": "masked_select",
    "aten::_unique2": "unique",
    "aten::unique_dim": "unique",
    "aten::unique_consecutive": "unique",
    "aten::bincount": "bincount",
    "aten::equal": "equal",
    "aten::is_nonzero": "bool",
}
"""Operations whose result has a size, or is a number, that only the device knows."""
COPIES = {"aten::copy_", "aten::_to_copy"}
FREE = {"aten::detach", "aten::view", "aten::_unsafe_view", "aten::slice", "aten::select", "aten::t", "aten::transpose"}
FREE |= {"aten::expand", "aten::unsqueeze", "aten::squeeze", "aten::alias", "aten::as_strided", "aten::permute"}
FREE |= {"aten::split", "aten::split_with_sizes", "aten::unbind", "aten::lift_fresh", "aten::_reshape_alias"}
FREE |= {
    "aten::values",
    "aten::crow_indices",
    "aten::col_indices",
    "aten::empty",
    "aten::new_empty",
    "aten::empty_like",
}
"""Views and fresh memory: nothing is computed."""


@cache
def without_cuda() -> frozenset[str]:
    """Operations that have a kernel for the CPU and none for CUDA, by torch's own table."""
    table = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    found = set()
    for entry in yaml.safe_load(table.read_text()):
        keys = {key.strip() for several in entry.get("dispatch", {}) for key in several.split(",")}
        elsewhere = "structured_delegate" in entry or any(key.startswith("Composite") for key in keys)
        if "CPU" in keys and "CUDA" not in keys and not elsewhere:
            found.add("aten::" + entry["func"].partition("(")[0])
    return frozenset(found)


class Labels:
    """Which memory lies on the device."""

    def __init__(self) -> None:
        self._of: dict[int, StorageWeakRef] = {}

    @staticmethod
    def _storage(tensor: Tensor) -> Any:
        with torch._C.DisableTorchFunction():
            part = tensor.values() if tensor.layout == torch.sparse_csr else tensor
            return part.untyped_storage()

    def put(self, tensor: Tensor) -> Tensor:
        with torch.utils._python_dispatch._disable_current_modes():
            storage = self._storage(tensor)
            if len(self._of) % 4096 == 4095:
                self._of = {key: one for key, one in self._of.items() if not one.expired()}
            self._of[storage._cdata] = StorageWeakRef(storage)
        return tensor

    def has(self, tensor: Tensor) -> bool:
        with torch.utils._python_dispatch._disable_current_modes():
            found = self._of.get(self._storage(tensor)._cdata)
        return found is not None and not found.expired()


class Operations(TorchDispatchMode):
    """What reaches the device, the way back included."""

    def __init__(self, labels: Labels, counts: Counter[str]) -> None:
        super().__init__()
        self._labels, self._counts = labels, counts
        self.inside = 0
        """How deep in calls on the device: what those make on their way lies there too."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name, variant = func._schema.name, func._schema.overload_name
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        there = [self._labels.has(tensor) for tensor in given]
        if any(there):
            self._check(name, f"{name}.{variant}" if variant else name, given, there, args, kwargs)
        found = func(*args, **kwargs)
        if (any(there) and not (name in COPIES and not there[0])) or (self.inside and not given):
            tree_map(lambda leaf: self._labels.put(leaf) if isinstance(leaf, Tensor) else leaf, found)
        return found

    def _check(
        self, name: str, full: str, given: list[Tensor], there: list[bool], args: Any, kwargs: dict[str, Any]
    ) -> None:
        mixed = [tensor for tensor, on in zip(given, there, strict=True) if not on and tensor.ndim > 0]
        if mixed and name not in COPIES:
            raise RuntimeError(f"{name}: expected all tensors to be on the same device, found cuda:0 and cpu")
        if full in without_cuda():
            raise NotImplementedError(f"{full} has no CUDA kernel")
        if name in COPIES and mixed:
            self._counts["wait: copy from the device" if there[-1] else "copy to the device"] += 1
        if name not in FREE:
            self._counts["operations"] += 1
        if name in WAITING:
            self._counts[f"wait: {WAITING[name]}"] += 1
        masks = name in ("aten::index", "aten::index_put_") and any(
            one is not None and one.dtype in (torch.bool, torch.uint8) for one in args[1]
        )
        unknown = full == "aten::repeat_interleave.Tensor" and kwargs.get("output_size") is None
        if masks or unknown:
            self._counts["wait: mask" if masks else "wait: repeat_interleave"] += 1


class Calls(TorchFunctionMode):
    """What Python asks for: where a tensor lies, to bring it there, to read it here."""

    def __init__(self, operations: Operations, labels: Labels, counts: Counter[str], generators: set[int]) -> None:
        super().__init__()
        self._operations, self._labels, self._counts, self._generators = operations, labels, counts, generators

    @contextmanager
    def _on_the_device(self, on: bool) -> Iterator[None]:
        self._operations.inside += on
        try:
            yield
        finally:
            self._operations.inside -= on

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        first = args[0] if args and isinstance(args[0], Tensor) else None
        on = first is not None and self._labels.has(first)
        if func == Tensor.device.__get__:  # type: ignore[attr-defined]
            return CUDA if on else CPU
        if func == Tensor.is_cuda.__get__:  # type: ignore[attr-defined]
            return on
        if on and func in (Tensor.numpy, Tensor.__array__):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        if on and func is Tensor.tolist:
            self._counts["wait: tolist"] += 1
            return func(*args)
        if func is Tensor.backward:
            with self, self._on_the_device(on):
                torch.autograd.backward(args[0])
            return None
        if func in (Tensor.to, Tensor.cpu, Tensor.cuda):
            return self._moved(func, first, on, args, kwargs)
        return self._made(func, on, args, kwargs)

    def _moved(self, func: Any, tensor: Tensor | None, on: bool, args: Any, kwargs: Any) -> Tensor:
        assert tensor is not None
        places = [torch.device(one) for one in (*args[1:], kwargs.get("device")) if isinstance(one, str | torch.device)]
        target = places[0] if places else {Tensor.cpu: CPU, Tensor.cuda: CUDA}.get(func, CUDA if on else CPU)
        rest = [one for one in args[1:] if not isinstance(one, str | torch.device)]
        kwargs.pop("device", None)
        found = tensor.to(*rest, **kwargs) if rest or kwargs else tensor
        if (target.type == "cuda") == on:
            return self._labels.put(found) if on else found
        self._counts["wait: copy from the device" if on else "copy to the device"] += 1
        with torch.utils._python_dispatch._disable_current_modes():
            found = found.clone()
        return found if on else self._labels.put(found)

    def _made(self, func: Any, on: bool, args: Any, kwargs: Any) -> Any:
        device = kwargs.pop("device", None)
        there = device is not None and torch.device(device).type == "cuda"
        generator = kwargs.get("generator")
        if generator is not None and (id(generator) in self._generators) != (there or on):
            raise RuntimeError("expected a generator of the tensor's device")
        if device is not None and not there:
            kwargs["device"] = device
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        with self._on_the_device(any(map(self._labels.has, given))):
            found = func(*args, **kwargs)
        if there:
            tree_map(lambda leaf: self._labels.put(leaf) if isinstance(leaf, Tensor) else leaf, found)
        return found


@contextmanager
def pretend_cuda() -> Iterator[Counter[str]]:
    """While it is entered there is a device `cuda:0`; what was counted."""
    labels, counts, generators = Labels(), Counter[str](), set[int]()
    real = torch.Generator
    kept: list[torch.Generator] = []

    def generator(device: str | torch.device = "cpu") -> torch.Generator:
        made = real()
        kept.append(made)
        if torch.device(device).type == "cuda":
            generators.add(id(made))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "Generator", generator)
        patch.setattr(torch.cuda, "is_available", lambda: True)
        operations = Operations(labels, counts)
        with operations, Calls(operations, labels, counts, generators):
            yield counts


def waits(counts: Counter[str]) -> int:
    """Moments at which the program waits for the device."""
    return sum(n for name, n in counts.items() if name.startswith("wait"))

"""Tensors of torch as a SparseLinear takes, remembers and shows them."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from tessera._core import InvalidArgument
from tessera._options import DTYPES, dtype_text

_IN_PLACE = re.compile(  # the names of functions that write their first argument
    r"[^_].*_|__(set|setitem|i(add|sub|mul|truediv|floordiv|div|mod|pow|and|or|xor|lshift|rshift|matmul))__"
)
# The types of operands that the kernels have. double is computed by torch itself.
FLOATS = tuple(getattr(torch, name) for name in DTYPES)
_NoTorchFunction = getattr(torch._C, "DisableTorchFunctionSubclass", torch._C.DisableTorchFunction)


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name that NumPy gives a type: "float32"."""
    return str(dtype).rpartition(".")[2]


def operand_dtype(dtype: Any) -> torch.dtype:
    """Return a type of operands that is given as a dtype of torch or NumPy, or by its name; None is torch's default."""
    if dtype is None:
        dtype = torch.get_default_dtype()
    name = dtype_name(dtype) if isinstance(dtype, torch.dtype) else dtype_text(dtype)
    if name not in (*DTYPES, "float64"):
        raise InvalidArgument(
            f"dtype is {name}; SparseLinear(dtype=...) is torch.float32, float16, bfloat16 or float64: pass one of these"
        )
    kind: torch.dtype = getattr(torch, name)
    return kind


def autocast_dtype() -> torch.dtype | None:
    """Return the type to which autocast converts the operands of a linear layer; None outside it."""
    if hasattr(torch, "get_autocast_dtype"):  # torch 2.4 and later
        return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
    return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None


def require_plain(name: str, parameter: Tensor) -> None:
    """Raise TypeError for a parameter whose memory is not its float32 numbers one after the other."""
    if parameter.dtype != torch.float32 or not parameter.is_cpu or not parameter.is_contiguous() or parameter.is_neg():
        raise TypeError(
            f"{name} of a SparseLinear is {parameter.dtype} on {parameter.device}; it stays contiguous float32 on the "
            f"CPU, for any SparseLinear(dtype=...): pass {name}.float().cpu().resolve_neg().contiguous()"
        )


class Seen:
    """A tensor's content as it was looked at, to tell later whether it was written or replaced.

    Versions count the writes to a memory. The memory is kept, so no other tensor can get its address.
    """

    __slots__ = ("_memory", "_version")

    def __init__(self, tensor: Tensor) -> None:
        # A tensor made in inference mode has no version: its numbers are compared.
        self._version = None if tensor.is_inference() else tensor._version
        self._memory = tensor.clone() if self._version is None else tensor.detach()

    def is_written(self) -> bool:
        """Return True if the memory was written since."""
        return self._version is not None and self._memory._version != self._version

    def is_content_of(self, tensor: Tensor) -> bool:
        """Return True if the tensor still has this content."""
        if tensor.is_inference() or self._version is None:
            return torch.equal(tensor, self._memory)
        return (
            tensor._version == self._version
            and tensor.data_ptr() == self._memory.data_ptr()
            and tensor.shape == self._memory.shape
        )


class Weight(Tensor):
    """The dense weight of a SparseLinear, for torch's own blocks that read `weight`.

    It is made at each look, so a write to it would be lost: it is refused. As tensors with functions of their own
    do, it keeps those blocks from their fused paths, which would not call the layer.
    """

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        target = args[0] if args else next(iter(kwargs.values()), None)
        name = getattr(func, "__name__", "")
        if isinstance(target, cls) and _IN_PLACE.fullmatch(name):
            raise InvalidArgument(
                f"{name}: the weight of a SparseLinear is made from its values at each look, so a write would be lost; "
                "write layer.values"
            )
        with _NoTorchFunction():
            made = func(*args, **kwargs)
            if isinstance(target, cls) and isinstance(made, Tensor) and _is_inside(made, target):
                return made.as_subclass(cls)
            return made


def _is_inside(view: Tensor, tensor: Tensor) -> bool:
    """Return True if both are dense and one begins in the memory of the other."""
    if view.layout != torch.strided or not view.is_cpu or view.numel() == 0:
        return False
    return 0 <= view.data_ptr() - tensor.data_ptr() < tensor.numel() * tensor.element_size()

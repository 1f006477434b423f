"""Rows of the weight of a SparseLinear: a sparse embedding, alone or tied to the layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tessera._core import InvalidArgument
from tessera.torch import _patterns as patterns
from tessera.torch._operator import is_traced
from tessera.torch._tensors import Seen

_WHOLE = (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)


def look_up(layer: Any, ids: Tensor) -> Tensor:
    """Return the rows at ids [...] of the weight of a layer: what SparseLinear.rows says."""
    flat = _checked(layer, ids)
    taken = patterns.chosen_rows(layer.values, layer.indptr, layer.indices, layer.in_features, layer.block, flat)
    if taken.requires_grad:
        seen = layer._changes, Seen(layer.indptr), Seen(layer.indices)
        taken.register_hook(lambda gradient: _see(layer, seen, flat, gradient))
    return taken.reshape(*ids.shape, layer.in_features).to(layer.dtype)


def _checked(layer: Any, ids: Tensor) -> Tensor:
    """Return ids as a list."""
    if is_traced():
        raise RuntimeError("rows() has as many numbers as the rows store, which no graph can hold: call it outside of graphs")
    if not isinstance(ids, Tensor) or ids.dtype not in _WHOLE:
        kind = f"a tensor of {ids.dtype}" if isinstance(ids, Tensor) else f"a {type(ids).__name__}"
        raise TypeError(f"ids are {kind}; pass a tensor of whole numbers, as torch.int64")
    flat = ids.detach().reshape(-1).to("cpu", torch.int64, copy=True)
    outside = torch.nonzero((flat < 0) | (flat >= layer.out_features))
    if len(outside):
        raise InvalidArgument(
            f"ids have {int(flat[outside[0]])}; the layer has rows 0 .. {layer.out_features - 1}, one for each output"
        )
    return flat


def _see(layer: Any, seen: tuple[int, Seen, Seen], ids: Tensor, gradient: Tensor) -> None:
    """Keep the gradient of rows for a method that asked for the operands of the weight gradient of this step.

    It is the product of ones, where a row of the weight was looked up, and the sums of its gradients.
    """
    if layer._changes != seen[0] or seen[1].is_written() or seen[2].is_written():
        raise InvalidArgument("the pattern changed after rows(); call backward() before a rewire or load_state_dict()")
    if not layer._watched:
        return
    rows, places = torch.unique(ids, return_inverse=True)
    sums = torch.zeros(len(rows), layer.in_features, dtype=torch.float32).index_add_(0, places, gradient.detach().float())
    ones = torch.zeros(layer.out_features, len(rows), dtype=torch.float32)
    ones[rows, torch.arange(len(rows))] = 1
    layer._operands.append((ones, sums.t()))

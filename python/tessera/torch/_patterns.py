"""Patterns of a SparseLinear: drawn, cut out of a dense weight, and written as one."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tessera import _core
from tessera._core import BadInput, InvalidArgument
from tessera._options import number
from tessera._weights import array_of

_SEEDS = 2**62
PRUNED = 0.5  # a dense weight with at most this share of blocks that are not zero counts as pruned


def share_of(density: Any, sparsity: Any, default: float | None = None) -> float | None:
    """Return the density that is given as such or as sparsity, 1 - density; the default if neither is."""
    if density is not None and sparsity is not None:
        raise InvalidArgument("give density or sparsity, which is 1 - density, not both")
    if density is None and sparsity is None:
        return default
    name, given = ("density", density) if sparsity is None else ("sparsity", sparsity)
    share = number(name, given)
    if not 0 <= share <= 1:
        raise InvalidArgument(f"{name} is {share}; it must be in 0..1")
    return share if sparsity is None else 1 - share


def drawn(rows: int, cols: int, block: tuple[int, int], density: float, least: int = 0, even: bool = False) -> tuple[Tensor, Tensor, int]:
    """Return a random pattern (indptr, indices) by torch's generator, and its number of values.

    Each row and column of blocks has `least` blocks or more; each row has as many as the others if it is `even`.
    """
    seed = int(torch.randint(_SEEDS, ()))
    indptr, indices, data = _core._random_pattern(rows, cols, *block, density, seed, least, even)
    return torch.from_numpy(indptr), torch.from_numpy(indices), data.size


def first_values(indptr: Tensor, count: int, block: tuple[int, int]) -> Tensor:
    """Return values of He's deviation, by the inputs that each row really has."""
    stored = indptr.diff()
    inputs = torch.repeat_interleave(stored, stored) * block[1]
    deviations = torch.sqrt(2 / inputs).repeat_interleave(block[0] * block[1])
    return torch.randn(count, dtype=torch.float32) * deviations


def in_blocks(matrix: Tensor, block: tuple[int, int]) -> Tensor:
    """Return a matrix as [block rows, block columns, rows, columns]."""
    height, width = block
    if matrix.shape[0] % height or matrix.shape[1] % width:
        raise InvalidArgument(f"the weight is {list(matrix.shape)}, which is not cut into blocks of {height} x {width}")
    return matrix.reshape(matrix.shape[0] // height, height, -1, width).transpose(1, 2)


def not_zero(weight: Tensor, block: tuple[int, int]) -> Tensor:
    """Return which blocks of a dense weight have a number that is not 0."""
    return (in_blocks(weight, block) != 0).flatten(2).any(2)


def largest(weight: Tensor, block: tuple[int, int], count: int) -> Tensor:
    """Return which blocks are the `count` ones of largest sum of |weight|."""
    sums = in_blocks(weight, block).abs().sum((2, 3))
    chosen = torch.topk(sums.reshape(-1), count).indices
    return torch.zeros(sums.numel(), dtype=torch.bool).index_fill(0, chosen, True).reshape(sums.shape)


def not_zero_or_largest(weight: Tensor, block: tuple[int, int], stored: int) -> Tensor:
    """Return which blocks are not zero if the weight is pruned, or has no more than are stored; else the largest."""
    keep = not_zero(weight, block)
    count = int(keep.sum())
    if count <= max(stored, PRUNED * keep.numel()):
        return keep
    warnings.warn(f"a dense weight has {count} blocks that are not zero; the {stored} largest are kept", stacklevel=4)
    return largest(weight, block, stored)


def masked(weight: Tensor, block: tuple[int, int], mask: Any) -> Tensor:
    """Return which blocks contain a place that is set in a mask of the weight's shape."""
    flags = array_of(mask, "mask")
    if flags.shape != weight.shape:
        raise InvalidArgument(f"mask is {list(flags.shape)}; it has the shape of the weight: {list(weight.shape)}")
    return not_zero(torch.from_numpy(flags != 0), block)


def cut(weight: Tensor, block: tuple[int, int], keep: Tensor) -> tuple[tuple[NDArray[Any], NDArray[Any]], Tensor]:
    """Return ((indptr, indices), values) of the blocks of a dense weight that are kept."""
    rows, cols = torch.nonzero(keep, as_tuple=True)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(keep)))]).astype(np.int32)
    return (indptr, cols.numpy().astype(np.int32)), in_blocks(weight, block)[rows, cols].reshape(-1).clone()


def require_inside(indptr: Tensor, indices: Tensor, columns: int) -> None:
    """Raise ts.BadInput for a pattern that was written and names blocks outside the weight."""
    outside = torch.nonzero((indices < 0) | (indices >= columns))
    if len(outside):
        at = int(outside[0])
        raise BadInput(f"indices[{at}] names block column {int(indices[at])}; the weight has {columns}, counted from 0")
    if int(indptr[0]) != 0 or int(indptr[-1]) != len(indices) or bool((indptr.diff() < 0).any()):
        raise BadInput(f"indptr must rise from 0 to {len(indices)}, the number of blocks")


def spread(values: Tensor, indptr: Tensor, indices: Tensor, shape: tuple[int, int], block: tuple[int, int]) -> Tensor:
    """Return the dense weight, connected to the values by autograd."""
    height, width = block
    heads = torch.repeat_interleave(torch.arange(indptr.shape[0] - 1), indptr.diff().to(torch.int64))
    rows = heads[:, None, None] * height + torch.arange(height)[:, None]
    cols = indices.to(torch.int64)[:, None, None] * width + torch.arange(width)
    places = (rows * shape[1] + cols).reshape(-1)
    dense = values.new_zeros(math.prod(shape))
    return dense.index_put((places,), values, accumulate=True).reshape(shape)


def chosen_rows(
    values: Tensor, indptr: Tensor, indices: Tensor, columns: int, block: tuple[int, int], ids: Tensor
) -> Tensor:
    """Return the rows [ids, columns] of the dense weight, connected to the values by autograd.

    Raises ts.BadInput if a pattern that was written has others there than it can.
    """
    height, width = block
    heads = torch.div(ids, height, rounding_mode="floor")
    begins = indptr[heads].to(torch.int64)
    counts = indptr[heads + 1].to(torch.int64) - begins
    ends = counts.cumsum(0)
    if bool((begins < 0).any()) or bool((counts < 0).any()) or bool((begins + counts > len(indices)).any()):
        raise BadInput(f"indptr must rise from 0 to {len(indices)}, the number of blocks")
    blocks = torch.repeat_interleave(begins - ends + counts, counts) + torch.arange(int(counts.sum()))
    lines = blocks * height + torch.repeat_interleave(ids - heads * height, counts)
    # In one dimension, where the gradients of equal places are added in their order by any number of threads.
    taken = values.index_select(0, (lines[:, None] * width + torch.arange(width)).reshape(-1))
    indptr_of_rows, places = torch.cat([ends.new_zeros(1), ends]), indices[blocks]
    require_inside(indptr_of_rows, places, columns // width)
    return spread(taken, indptr_of_rows, places, (len(ids), columns), (1, width))


def carried(slot: Tensor, origin: NDArray[np.int64], area: int) -> Tensor:
    """Return the numbers of an optimiser after a rewire; those of new blocks are 0."""
    if slot.dtype == torch.float32:
        return torch.from_numpy(_core._carried(origin, slot, slot.numel(), area))
    blocks = torch.from_numpy(origin)
    if not slot.numel():
        return slot.new_zeros(blocks.numel() * area)
    moved = slot.reshape(-1, area)[blocks.clamp(min=0)]
    return torch.where(blocks[:, None] < 0, torch.zeros((), dtype=slot.dtype), moved).reshape(-1)


def dense_weight_of(linear: Any) -> Tensor:
    """Return the weight of a dense layer as it computes with it, on the CPU."""
    given = getattr(linear, "weight", None)
    if not isinstance(linear, nn.Module) or not isinstance(given, Tensor) or given.dim() != 2:
        raise TypeError(f"from_dense: a {type(linear).__name__} is no dense layer; pass a torch.nn.Linear or an nn.Embedding")
    for option in ("padding_idx", "max_norm", "scale_grad_by_freq", "sparse"):
        if getattr(linear, option, None) not in (None, False):
            raise InvalidArgument(f"from_dense: the {type(linear).__name__} has {option}, which rows() does not have; make it without")
    if hasattr(linear, "weight_orig") and hasattr(linear, "weight_mask"):  # torch.nn.utils.prune
        given = linear.weight_orig * linear.weight_mask
    return given.detach().cpu().resolve_neg()

"""Gradients of products of sparse matrices: ts.spmm, ts.sddmm and ts.matmul on tensors of torch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tessera import _core
from tessera._core import InvalidArgument
from tessera._weights import Matrix


def differentiable_once(backward: Callable[..., Any]) -> Any:
    """Return the backward function of an autograd function whose gradients have none themselves.

    It is refused at once where gradients of gradients are asked for. torch.autograd.function.once_differentiable
    refuses only those of a graph that goes through the incoming gradient, and leaves out all others without a word.
    """

    @functools.wraps(backward)
    def checked(ctx: Any, *gradients: Tensor) -> Any:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "create_graph=True asks to differentiate twice, and products of sparse matrices are differentiated once: leave "
                "it out, or convert a SparseLinear by double(), whose products are those of torch"
            )
        return backward(ctx, *gradients)

    return checked


class _Turns:
    """Which of the operands and the result of a product are stored transposed, and its other options."""

    def __init__(self, matrix: bool, dense: bool, result: bool, alpha: float, threads: int) -> None:
        self.matrix, self.dense, self.result, self.alpha, self.threads = matrix, dense, result, alpha, threads


class _Spmm(torch.autograd.Function):
    """alpha * matrix @ dense. `carrier` is the tensor that gets the gradient of the values: sparse, or the values."""

    @staticmethod
    def forward(ctx: Any, carrier: Any, dense: Tensor, matrix: Matrix, turns: _Turns) -> Tensor:  # type: ignore[override]
        # Saved, so that torch refuses a backward pass after the values were written.
        ctx.save_for_backward(dense, carrier)
        ctx.matrix, ctx.turns = matrix, turns
        return _spmm(matrix, turns.matrix, dense, turns.dense, turns.result, turns.alpha, turns.threads)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (dense, carrier), matrix, turns = ctx.saved_tensors, ctx.matrix, ctx.turns
        for_values = for_dense = None
        if ctx.needs_input_grad[1]:
            for_dense = _spmm(matrix, not turns.matrix, gradient, turns.result, turns.dense, turns.alpha, turns.threads)
        if ctx.needs_input_grad[0]:
            left, right = _rows(gradient, dense.dim(), turns.result), _rows(dense, dense.dim(), turns.dense)
            if turns.matrix:
                left, right = right, left
            for_values = _like(carrier.detach(), _sddmm(matrix, left, right, turns.alpha, turns.threads))
        return for_values, for_dense, None, None


class _Sddmm(torch.autograd.Function):
    """alpha * (a @ b) at the places of a pattern."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, pattern: Matrix, alpha: float, threads: int) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(a, b)
        ctx.pattern, ctx.alpha, ctx.threads = pattern, alpha, threads
        return torch.from_numpy(_core._sddmm(pattern, _plain(a), _plain(b), None, alpha, 0.0, threads))

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, gradient: Tensor) -> Any:
        a, b = ctx.saved_tensors
        matrix = ctx.pattern._replace(data=gradient.resolve_neg().contiguous().numpy())
        for_a = _spmm(matrix, False, b, True, False, ctx.alpha, ctx.threads) if ctx.needs_input_grad[0] else None
        for_b = _spmm(matrix, True, a, False, True, ctx.alpha, ctx.threads) if ctx.needs_input_grad[1] else None
        return for_a, for_b, None, None, None


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().resolve_conj().resolve_neg()


def _rows(tensor: Tensor, dimensions: int, turned: bool) -> list[Tensor]:
    """Return each operand of a batch as the rows that the matrix multiplies; a vector is one column."""
    tensor = _plain(tensor)
    if dimensions == 1:
        return [tensor[:, None]]
    tensor = tensor.transpose(-2, -1) if turned else tensor
    return [tensor] if dimensions == 2 else [part for batch in tensor for part in _rows(batch, dimensions - 1, False)]


def _spmm(matrix: Matrix, matrix_turned: bool, dense: Tensor, turned: bool, result: bool, alpha: float, threads: int) -> Tensor:
    """Return a product of the matrix, or of each of a batch."""
    dense = _plain(dense)
    if dense.dim() <= 2:
        made = _core._spmm(matrix, matrix_turned, dense, turned, None, result, alpha, 0.0, None, "none", threads)
        return torch.from_numpy(made)
    parts = [_spmm(matrix, matrix_turned, part, turned, result, alpha, threads) for part in dense]
    if parts:
        return torch.stack(parts)
    rows, columns = matrix.shape[1] if matrix_turned else matrix.shape[0], dense.shape[-2] if turned else dense.shape[-1]
    return dense.new_zeros(*dense.shape[:-2], *((columns, rows) if result else (rows, columns)))


def _sddmm(matrix: Matrix, left: list[Tensor], right: list[Tensor], alpha: float, threads: int) -> Tensor:
    """Return the sum of the products at the places of the matrix."""
    values = np.zeros(matrix.data.shape, np.float32)
    for a, b in zip(left, right):
        _core._sddmm(matrix, a, b.t(), values, alpha, 1.0, threads)
    return torch.from_numpy(values)


def _like(carrier: Tensor, values: Tensor) -> Tensor:
    """Return the gradient of a carrier, of its layout."""
    if carrier.layout == torch.strided:
        return values.reshape(carrier.shape)
    if carrier.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(carrier._indices(), values, carrier.shape)
    if carrier.layout == torch.sparse_csc:
        return torch.sparse_csc_tensor(carrier.ccol_indices(), carrier.row_indices(), values, carrier.shape)
    make = torch.sparse_bsr_tensor if carrier.layout == torch.sparse_bsr else torch.sparse_csr_tensor
    return make(carrier.crow_indices(), carrier.col_indices(), values, carrier.shape)


def carrier_of(matrix: Any) -> Any:
    """Return the tensor that has the values of an operand, None if there is none; it gets their gradient."""
    if isinstance(matrix, tuple) and len(matrix) == 2 and isinstance(matrix[0], Tensor) and matrix[0].requires_grad:
        raise TypeError("the data of (data, (rows, columns)) require a gradient; pass (indptr, indices, data) or a sparse tensor")
    carrier = matrix[-1] if isinstance(matrix, tuple) else matrix
    if not isinstance(carrier, Tensor):
        return None
    if carrier is matrix and carrier.layout == torch.strided:
        if carrier.requires_grad:
            raise TypeError("the dense tensor that stands for a sparse matrix requires a gradient; pass it as .to_sparse_csr()")
        return None
    return carrier


def needs_gradient(*operands: Any) -> bool:
    """Return True if torch records gradients and one of the operands, or the values of one, has one."""
    if not torch.is_grad_enabled():
        return False
    parts = (part for operand in operands for part in (operand if isinstance(operand, tuple) else (operand,)))
    return any(isinstance(part, Tensor) and part.requires_grad for part in parts)


def spmm(
    carrier: Any, dense: Any, matrix: Matrix, matrix_turned: bool, turned: bool, result: bool, alpha: float, bias: Any,
    activation: str, threads: int,
) -> Tensor:
    """Return a product with gradients; bias and activation are those of torch."""
    dense = torch.as_tensor(dense)
    q = _Spmm.apply(carrier, dense, matrix, _Turns(matrix_turned, turned, result, alpha, threads))
    if bias is not None:
        added = torch.as_tensor(bias)
        q = q + (added if q.dim() == 1 else added[:, None])
    if activation == "gelu":
        return functional.gelu(q, approximate="tanh")
    return q.relu() if activation == "relu" else q


def sddmm(pattern: Matrix, a: Any, b: Any, alpha: float, threads: int) -> Tensor:
    """Return a product at the places of a pattern, with gradients."""
    values: Tensor = _Sddmm.apply(torch.as_tensor(a), torch.as_tensor(b), pattern, alpha, threads)
    return values


def require_no_out(out: Any, beta: float) -> None:
    """Refuse an out for a product with gradients."""
    if out is not None or beta != 0:
        raise InvalidArgument("out and beta have no gradients: leave them out, or pass detached operands")

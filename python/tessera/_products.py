"""Products on the arrays of SciPy and torch as they are: nothing is converted or encoded."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessera import _core
from tessera._core import InvalidArgument
from tessera._options import number, text, thread_count
from tessera._weights import Arrays, is_sparse, read_matrix


def spmm(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: Any = None,
    activation: str = "none",
    threads: int = 0,
) -> Any:
    """Return alpha * a @ b + beta * out, then the bias and the activation.

    a    [x, y], float32: a csr, bsr, csc or coo matrix of scipy.sparse, or a sparse torch tensor of these
         layouts, read where it is, with 32- or 64-bit indices. Anything else that ts.Layer takes is
         converted first.
    b    [y, z], float32 with any strides: a NumPy array, or anything with __dlpack__ on the CPU. For
         [batch, features] pass b.T.
    out  [x, z], receives the result and is returned; None: a new NumPy array. It may not overlap b.
    bias [x], contiguous float32: added to each row. activation: "none", "relu" or "gelu".
    threads  0: one for each core. Calls of several Python threads take turns.
    Raises TypeError for another dtype, ts.InvalidArgument for another shape, ts.BadInput with the place
    for indices outside the matrix. A matrix that is multiplied often is faster as a ts.Layer.
    """
    return _core._spmm(
        read_matrix(a, name="a"), False, b, False, out, False, number("alpha", alpha), number("beta", beta), bias,
        text("activation", activation), thread_count(threads),
    )


def sddmm(
    pattern: Any, a: Any, b: Any, out: Any = None, *, alpha: float = 1.0, beta: float = 0.0, threads: int = 0
) -> Any:
    """Return alpha * (a @ b) where the pattern has places, + beta * out: one number for each of pattern.data.

    pattern  as the matrix of spmm(); its values are not read.
    a, b     [x, k] and [k, y], float32 with any strides, as b of spmm(). With dq and s.T it is the gradient
             of the values of a sparse matrix w, where q = w @ s.
    out      contiguous float32 of the shape of pattern.data, returned; None: a new NumPy array.
    Raises as spmm().
    """
    return _core._sddmm(
        read_matrix(pattern, name="pattern"), a, b, out, number("alpha", alpha), number("beta", beta),
        thread_count(threads),
    )


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    transpose_lhs: bool = False,
    transpose_rhs: bool = False,
    threads: int = 0,
) -> Any:
    """Return the product of a sparse and a dense matrix, a @ b, in either order, in groups.

    a, b  one of them sparse and one dense, as a and b of spmm(): [m, k] and [k, n], or as they are stored,
          [k, m] with transpose_lhs and [n, k] with transpose_rhs. A list of sparse matrices, with a pattern
          for each, makes groups; the dense operand and out then have a first axis with one entry for each.
    out   [m, n], or [groups, m, n]: receives the result and is returned; None: a new NumPy array.
    The same products on a modelled machine: tessera matmul. Raises as spmm(), and TypeError unless exactly
    one operand is sparse.
    """
    if _is_group(a) or _is_group(b):
        return _multiply_groups(a, b, out, transpose_lhs=transpose_lhs, transpose_rhs=transpose_rhs, threads=threads)
    if is_sparse(a) == is_sparse(b):
        raise TypeError("pass one operand as a sparse matrix of SciPy or torch, and the other one as a dense array")
    if is_sparse(a):
        matrix, dense, turned = read_matrix(a, name="a"), b, False
        flags = transpose_lhs, transpose_rhs
    else:  # A @ B is the transpose of B^T @ A^T
        matrix, dense, turned = read_matrix(b, name="b"), a, True
        flags = not transpose_rhs, not transpose_lhs
    return _core._spmm(
        matrix, bool(flags[0]), dense, bool(flags[1]), out, turned, 1.0, 0.0, None, "none", thread_count(threads)
    )


def _is_group(operand: Any) -> bool:
    return isinstance(operand, (list, tuple)) and not isinstance(operand, Arrays)


def _multiply_groups(a: Any, b: Any, out: Any, **options: Any) -> Any:
    sparse, dense = (a, b) if _is_group(a) else (b, a)
    name = "a" if sparse is a else "b"
    if not sparse or not all(map(is_sparse, sparse)):
        raise TypeError(f"{name} is no list of sparse matrices; pass those, one for each group, or np.array({name}, np.float32)")
    for given, what in ((dense, "the dense operand"), (out, "out")):
        shape = tuple(getattr(given, "shape", ()))
        if given is not None and (len(shape) != 3 or shape[0] != len(sparse)):
            raise InvalidArgument(f"there are {len(sparse)} sparse matrices; {what} is {list(shape)}, not [{len(sparse)}, ..., ...]")
    parts = [
        matmul(a[g], b[g], None if out is None else out[g], **options) for g in range(len(sparse))
    ]
    return np.stack(parts) if out is None else out

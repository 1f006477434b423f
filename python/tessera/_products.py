"""Products on the arrays of SciPy and torch as they are: nothing is converted or encoded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessera import _core
from tessera._weights import index_array, read_weights

_FORMATS = ("csr", "bsr", "csc", "coo")


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
    kind, arrays, (rows, cols) = _arrays(a)
    if out is None:
        if beta != 0:
            raise _core.InvalidArgument("beta is not 0, but there is no out whose old values it multiplies")
        out = np.empty((rows, b.shape[1]), np.float32)
    _core._spmm(kind, arrays, rows, cols, b, out, alpha, beta, bias, activation, threads)
    return out


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
    kind, arrays, (rows, cols) = _arrays(pattern)
    if out is None:
        if beta != 0:
            raise _core.InvalidArgument("beta is not 0, but there is no out whose old values it multiplies")
        out = np.empty(arrays[2].shape, np.float32)
    _core._sddmm(kind, arrays, rows, cols, a, b, out, alpha, beta, threads)
    return out


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
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        sparse_left = isinstance(a, (list, tuple))
        count = len(a if sparse_left else b)
        dense = b if sparse_left else a
        if len(dense) != count or (out is not None and len(out) != count):
            raise _core.InvalidArgument(f"there are {count} sparse matrices; dense and out must have as many groups")
        parts = [
            matmul(
                a[g],
                b[g],
                None if out is None else out[g],
                transpose_lhs=transpose_lhs,
                transpose_rhs=transpose_rhs,
                threads=threads,
            )
            for g in range(count)
        ]
        return np.stack(parts) if out is None else out
    if _is_sparse(a) == _is_sparse(b):
        raise TypeError("one operand must be a sparse matrix of SciPy or torch, and the other one a dense array")
    if _is_sparse(a):
        return _multiply(a, transpose_lhs, b.T if transpose_rhs else b, out, threads)
    # A @ B is the transpose of B^T @ A^T, whose operands are views.
    left = a if transpose_lhs else a.T
    return _multiply(b, not transpose_rhs, left, None if out is None else out.T, threads, turned=True)


def _is_sparse(matrix: Any) -> bool:
    if getattr(matrix, "format", None) in _FORMATS and hasattr(matrix, "tocsr"):
        return True
    return type(matrix).__module__.partition(".")[0] == "torch" and "sparse" in str(matrix.layout)


def _multiply(sparse: Any, transposed: bool, dense: Any, out: Any, threads: int, turned: bool = False) -> Any:
    """Return the product with the sparse matrix or its transpose; `turned`: the transpose of that."""
    kind, arrays, (rows, cols) = _arrays(sparse)
    if transposed:
        kind, arrays = _transposed(kind, arrays, cols)
        rows, cols = cols, rows
    if out is None:
        out = np.empty((dense.shape[1], rows) if turned else (rows, dense.shape[1]), np.float32)
        out = out.T if turned else out
    _core._spmm(kind, arrays, rows, cols, dense, out, 1.0, 0.0, None, "none", threads)
    return out.T if turned else out


def _transposed(kind: str, arrays: _Arrays, cols: int) -> tuple[str, _Arrays]:
    """Return the format and arrays of the transpose; only blocks are copied."""
    first, second, data = arrays
    if kind == "coo":
        return kind, (second, first, data)
    if kind != "bsr":  # the arrays of compressed rows are those of compressed columns of the transpose
        return ("csc" if kind == "csr" else "csr"), arrays
    order = np.argsort(second, kind="stable")
    block_rows = np.repeat(np.arange(len(first) - 1, dtype=second.dtype), np.diff(first))
    begin = np.zeros(cols // data.shape[2] + 1, first.dtype)
    np.cumsum(np.bincount(second, minlength=len(begin) - 1), out=begin[1:])
    return kind, (begin, block_rows[order], np.ascontiguousarray(data[order].transpose(0, 2, 1)))


_Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]


def _arrays(matrix: Any) -> tuple[str, _Arrays, tuple[int, int]]:
    """Return the format of a matrix, its arrays and its shape."""
    kind = getattr(matrix, "format", None)
    if kind in _FORMATS and hasattr(matrix, "tocsr"):
        index = (matrix.row, matrix.col) if kind == "coo" else (matrix.indptr, matrix.indices)
        return kind, _alike(*index, matrix.data), matrix.shape
    if type(matrix).__module__.partition(".")[0] == "torch" and matrix.device.type == "cpu":
        layout = str(matrix.layout).rpartition("sparse_")[2]
        if layout in _FORMATS:
            rows, cols = matrix.shape
            return layout, _alike(*_torch_arrays(matrix.detach(), layout)), (rows, cols)
    csr = read_weights(matrix)
    return ("csr" if csr.data.ndim == 1 else "bsr"), _alike(csr.indptr, csr.indices, csr.data), csr.shape


def _torch_arrays(tensor: Any, layout: str) -> tuple[Any, Any, Any]:
    if layout == "coo":
        rows, cols = tensor._indices().numpy()
        return rows, cols, tensor._values().numpy()
    if layout == "csc":
        return tensor.ccol_indices().numpy(), tensor.row_indices().numpy(), tensor.values().numpy()
    return tensor.crow_indices().numpy(), tensor.col_indices().numpy(), tensor.values().numpy()


def _alike(first: Any, second: Any, data: Any) -> _Arrays:
    """Return contiguous arrays, copied only if they are not, with indices of one type."""
    first, second = index_array(first, "indptr"), index_array(second, "indices")
    if first.dtype != second.dtype:
        first, second = first.astype(np.int64), second.astype(np.int64)
    data = np.asarray(data)
    if data.dtype != np.float32:
        raise TypeError(f"the values are {data.dtype}; products are of float32: pass a.astype(np.float32)")
    return first, second, np.ascontiguousarray(data)

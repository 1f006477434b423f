"""Reads sparse matrices of other libraries into the arrays of a CSR or BSR matrix.

No library is imported here: an object of SciPy, torch or pydata/sparse brings its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tessera._core import InvalidArgument


class Arrays(NamedTuple):
    """A matrix as SciPy stores it: data is [nnz], or [blocks, rows, columns] for BSR."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[np.float32]
    shape: tuple[int, int]


def read_weights(weights: Any, shape: tuple[int, int] | None = None) -> Arrays:
    """Return the arrays of a matrix; `shape` is for bare arrays only, which do not know theirs.

    Raises TypeError for values that are not float32 and for objects that are no matrix.
    """
    if is_bare(weights):
        return _from_tuple(weights, shape)
    if shape is not None:
        raise InvalidArgument("shape is for (indptr, indices, data) only; this matrix has its own")
    if isinstance(weights, Arrays):
        return _checked(*weights)
    dimensions = len(getattr(weights, "shape", (0, 0)))
    if dimensions != 2:
        raise InvalidArgument(f"weights have {dimensions} dimensions; they have 2")
    if isinstance(weights, np.ndarray):
        return _from_dense(np.asarray(weights))  # a np.matrix would stay two-dimensional in all its parts
    if type(weights).__module__.partition(".")[0] == "torch":
        return _from_torch(weights)
    if hasattr(weights, "to_scipy_sparse"):  # pydata/sparse: COO, GCXS
        weights = weights.to_scipy_sparse()
    if hasattr(weights, "tocsr") and hasattr(weights, "format"):
        return _from_scipy(weights)
    remedy = (
        "np.array(weights, np.float32)"
        if isinstance(weights, list)
        else "a matrix of scipy.sparse, a sparse torch tensor, a NumPy array, or (indptr, indices, data)"
    )
    raise TypeError(f"weights are of type {type(weights).__name__}; pass {remedy}")


def is_bare(weights: Any) -> bool:
    """Return True for a tuple such as (indptr, indices, data), which does not know its shape."""
    return isinstance(weights, tuple) and not isinstance(weights, Arrays)


def index_array(indices: Any, name: str) -> NDArray[Any]:
    """Return indices as a contiguous array of int32 or int64, copied only if they are not that."""
    array = np.asarray(indices)
    if array.size == 0 and array.dtype.kind == "f":  # np.asarray([])
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} is {array.dtype}; indices are whole numbers: {name}.astype(np.int64)")
    if array.ndim != 1:
        raise InvalidArgument(f"{name} has {array.ndim} dimensions; it has 1")
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InvalidArgument(f"{name} has {array.max()}, which does not fit in 64 bits with a sign")
    if array.dtype not in (np.int32, np.int64):
        array = array.astype(np.int64)
    return np.ascontiguousarray(array)


def _from_tuple(weights: tuple[Any, ...], shape: tuple[int, int] | None) -> Arrays:
    if len(weights) != 3:
        raise InvalidArgument(f"weights are a tuple of {len(weights)}; pass (indptr, indices, data)")
    indptr, indices = index_array(weights[0], "indptr"), index_array(weights[1], "indices")
    data = np.asarray(weights[2])
    rows, cols = data.shape[1:] if data.ndim == 3 else (1, 1)
    if shape is None:  # as SciPy: columns up to the last one that is used
        shape = ((len(indptr) - 1) * rows, (int(indices.max()) + 1 if len(indices) else 0) * cols)
    return _checked(indptr, indices, data, shape, "data")


def _checked(indptr: Any, indices: Any, data: Any, shape: Any, name: str = "weights") -> Arrays:
    if not isinstance(data, np.ndarray) or data.dtype != np.float32:
        raise TypeError(
            f"weights are {getattr(data, 'dtype', type(data).__name__)}; weights are float32: pass "
            f"{name}.astype(np.float32)"
        )
    return Arrays(
        index_array(indptr, "indptr"),
        index_array(indices, "indices"),
        np.ascontiguousarray(data),
        (int(shape[0]), int(shape[1])),
    )


def _from_scipy(matrix: Any) -> Arrays:
    if matrix.format not in ("csr", "bsr"):
        if matrix.dtype != np.float32:
            _checked(None, None, matrix, matrix.shape)  # raises
        matrix = matrix.tocsr()
    return _checked(matrix.indptr, matrix.indices, matrix.data, matrix.shape)


def _from_dense(matrix: NDArray[Any]) -> Arrays:
    rows, cols = np.nonzero(matrix)
    return _from_sorted(rows, cols, matrix[rows, cols], matrix.shape)


def _from_sorted(rows: Any, cols: Any, data: Any, shape: Any) -> Arrays:
    indptr = np.zeros(shape[0] + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=indptr[1:])
    return _checked(indptr, cols, data, shape)


def _from_torch(tensor: Any) -> Arrays:
    if tensor.device.type != "cpu":
        raise TypeError(f"weights are on {tensor.device}; this layer runs on the CPU: pass weights.cpu()")
    tensor = tensor.detach()
    if str(tensor.dtype) != "torch.float32":
        raise TypeError(f"weights are {tensor.dtype}; weights are float32: pass weights.to(torch.float32)")
    layout = str(tensor.layout).rpartition(".")[2]
    if layout == "strided":
        return _from_dense(tensor.numpy())
    if layout in ("sparse_csr", "sparse_bsr"):
        values = tensor.values().contiguous().numpy()
        return _checked(tensor.crow_indices().numpy(), tensor.col_indices().numpy(), values, tensor.shape)
    if layout == "sparse_csc":
        rows = tensor.row_indices().numpy()
        cols = np.repeat(np.arange(tensor.shape[1]), np.diff(tensor.ccol_indices().numpy()))
        order = np.argsort(rows, kind="stable")
        return _from_sorted(rows[order], cols[order], tensor.values().numpy()[order], tensor.shape)
    if layout == "sparse_coo":
        tensor = tensor.coalesce()
        rows, cols = tensor.indices().numpy()
        return _from_sorted(rows, cols, tensor.values().numpy(), tensor.shape)
    raise TypeError(f"weights have torch's layout {layout}; pass weights.to_sparse_csr()")

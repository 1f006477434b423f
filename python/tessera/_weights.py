"""Reads what callers give: the one place that looks at matrices and arrays of other libraries.

No library is imported here: an object of SciPy, torch or pydata/sparse brings its own. Nothing here follows an
index, and no library converts a matrix: the module in C++ (src/csr.hpp) checks all indices before it does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tessera import _core
from tessera._core import BadInput, InvalidArgument, LimitExceeded
from tessera._options import whole_number

# The rows and columns that a matrix may have whatever it stores, and for each byte that it stores.
_LEAST_CLAIM, _CLAIM_PER_BYTE = 2**20, 16


class Arrays(NamedTuple):
    """A matrix as SciPy stores it: data is [nnz], or [blocks, rows, columns] for BSR."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[np.float32]
    shape: tuple[int, int]


class Matrix(NamedTuple):
    """A matrix in the arrays of its library, for the module in C++, which checks them."""

    format: str  # "csr" (with or without blocks), "csc" or "coo"
    first: NDArray[Any]  # indptr; the rows of coo
    second: NDArray[Any]  # indices, the columns of coo: of the same type
    data: NDArray[Any]  # float32, as read_matrix returns it
    shape: tuple[int, int]


def read_matrix(
    matrix: Any, shape: tuple[int, int] | None = None, name: str = "weights", casts: bool = False
) -> Matrix:
    """Return the arrays of a matrix; `shape` is for bare arrays only, which do not know theirs.

    Raises TypeError for values that are not float32, unless the caller casts them, and for objects that are no
    matrix. `name` is that of the argument.
    """
    # The conversions below take longer than a product of few values.
    ready: Matrix | None = _core._ready_matrix(Matrix, matrix) if shape is None else None
    if ready is not None:
        return ready
    made = _read(matrix, shape, name, casts)
    if made.data.dtype == np.float32:
        return made
    return made._replace(data=as_float32(made.data, "data" if is_bare(matrix) else name, casts))


def _read(matrix: Any, shape: tuple[int, int] | None, name: str, casts: bool) -> Matrix:
    """Return the arrays of a matrix with values of any type that NumPy has."""
    if is_bare(matrix):
        return _from_tuple(matrix, shape)
    if shape is not None:
        raise InvalidArgument("shape is for (indptr, indices, data) only; this matrix has its own")
    if isinstance(matrix, Arrays):
        return _matrix("csr", *matrix, name)
    dimensions = len(getattr(matrix, "shape", (0, 0)))
    if dimensions != 2:
        raise InvalidArgument(f"{name}: {dimensions} dimensions; a matrix has 2: reshape it to [rows, columns]")
    if is_torch(matrix):
        return _from_torch(matrix, name, casts)
    if isinstance(matrix, np.ndarray):
        return _from_dense(array_of(matrix, name), name)
    # pydata/sparse: COO, GCXS. The class is asked, because a matrix of SciPy takes long to say that it has no such name.
    if hasattr(type(matrix), "to_scipy_sparse"):
        return _from_pydata(matrix, name)
    if hasattr(matrix, "tocsr") and getattr(matrix, "format", None) in _FROM_SCIPY:
        return _FROM_SCIPY[matrix.format](matrix, name)
    remedy = (
        f"np.array({name}, np.float32)"
        if isinstance(matrix, list)
        else "a matrix of scipy.sparse, a sparse torch tensor, a NumPy array, or (indptr, indices, data)"
    )
    raise TypeError(f"{name}: a {type(matrix).__name__} is no matrix; pass {remedy}")


def is_bare(weights: Any) -> bool:
    """Return True for a tuple such as (indptr, indices, data), which does not know its shape."""
    return isinstance(weights, tuple) and not isinstance(weights, Arrays)


def is_torch(given: Any) -> bool:
    """Return True for a tensor of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, torch.Tensor)


def is_sparse(given: Any) -> bool:
    """Return True for a sparse matrix of any library."""
    if type(given) is np.ndarray:  # most are, and have none of the names below
        return False
    if is_torch(given):
        return "sparse" in str(given.layout)
    return isinstance(given, Arrays) or hasattr(given, "tocsr") or hasattr(given, "to_scipy_sparse")


def as_float32(array: NDArray[Any], name: str, casts: bool = True) -> NDArray[np.float32]:
    """Return real numbers as float32, themselves if they are. Finite ones beyond float32 are BadInput."""
    if array.dtype == np.float32:
        return array
    if not casts or array.dtype.kind not in "fiub":
        remedy = f'pass {name}.astype(np.float32), or dtype="float32" to a call that has it'
        raise TypeError(f"{name}: the values are {array.dtype}; they must be float32: {remedy}")
    # NumPy calls a NaN that signals invalid; it stays a NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        made = array.astype(np.float32)
    if array.dtype.kind == "f" and not np.array_equal(np.isinf(made), np.isinf(array)):
        raise BadInput(f"{name} has finite numbers beyond those of float32, about 3.4e38")
    return made


def check_claim(shape: Sequence[int], stored: int, place: str) -> None:
    """Refuse far more rows and columns than a matrix has bytes, as readers of matrix files do: rows take memory."""
    most = max(_LEAST_CLAIM, _CLAIM_PER_BYTE * stored)
    if max(shape) > most:
        raise LimitExceeded(
            f"{place} is {shape[0]} x {shape[1]}; with {stored} bytes of values and indices it may have at most {most} rows and "
            "columns: drop empty ones"
        )


@contextmanager
def within_memory(text: str) -> Iterator[None]:
    """Raise ts.LimitExceeded with a text if an array of NumPy that is made in this block does not fit into memory."""
    try:
        yield
    except (MemoryError, ValueError):  # NumPy's error for a size that no memory has
        raise LimitExceeded(text) from None


def array_of(given: Any, name: str) -> NDArray[Any]:
    """Return what is given as an array, without a copy if it has memory that says it all."""
    if isinstance(given, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; a mask would be lost: pass {name}.filled(0)")
    if is_torch(given):
        if not given.is_cpu:
            raise TypeError(f"{name} is on {given.device}; this library runs on the CPU: pass {name}.cpu()")
        if given.requires_grad or given.is_conj() or given.is_neg():
            given = given.detach().resolve_conj().resolve_neg()
    try:
        return given.numpy() if is_torch(given) else np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} is no array ({error}); pass a NumPy array") from None


def _whole(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array with its elements one after another and aligned, as C++ reads them; copied only if they are not."""
    return np.require(np.ascontiguousarray(array), requirements="A")


def index_array(indices: Any, name: str) -> NDArray[Any]:
    """Return indices as a contiguous array of int32 or int64, copied only if they are not that."""
    array = array_of(indices, name)
    if array.size == 0 and array.dtype.kind == "f":  # np.asarray([])
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} is {array.dtype}; indices are whole numbers: pass {name}.astype(np.int64)")
    if array.ndim != 1:
        raise InvalidArgument(f"{name} has {array.ndim} dimensions; it has 1")
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InvalidArgument(f"{name} has {array.max()}, which does not fit in 64 bits with a sign")
    if array.dtype not in (np.int32, np.int64):
        array = array.astype(np.int64)
    return _whole(array)


def _matrix(kind: str, first: Any, second: Any, data: Any, shape: Any, name: str) -> Matrix:
    ready: Matrix | None = _core._ready_arrays(Matrix, kind, first, second, data, shape)
    if ready is not None:
        return ready
    data = array_of(data, name)
    names = ("row", "col") if kind == "coo" else ("indptr", "indices")
    first, second = index_array(first, names[0]), index_array(second, names[1])
    if first.dtype != second.dtype:
        first, second = first.astype(np.int64), second.astype(np.int64)
    return Matrix(kind, first, second, _whole(data), _sides(shape))


def _sides(shape: Any) -> tuple[int, int]:
    try:
        rows, cols = shape
        return whole_number("rows", rows), whole_number("columns", cols)
    except (TypeError, ValueError):
        raise InvalidArgument(f"shape is {shape!r}; it is (rows, columns), two whole numbers") from None


def _from_tuple(weights: tuple[Any, ...], shape: tuple[int, int] | None) -> Matrix:
    if len(weights) == 2:
        return _from_triplets(weights, shape)
    if len(weights) != 3:
        raise InvalidArgument(
            f"weights are a tuple of {len(weights)}; pass (indptr, indices, data), or (data, (rows, columns))"
        )
    indptr, indices, data = weights
    made = _matrix("csr", indptr, indices, data, (0, 0) if shape is None else shape, "data")
    if shape is not None:
        return made
    # As SciPy: columns up to the last one that is used.
    rows, cols = made.data.shape[1:] if made.data.ndim == 3 else (1, 1)
    last = int(made.second.max(initial=-1))
    return made._replace(shape=((len(made.first) - 1) * rows, (last + 1) * cols))


def _from_triplets(weights: tuple[Any, ...], shape: tuple[int, int] | None) -> Matrix:
    """Return the matrix of (data, (rows, columns)), as SciPy's coo takes it."""
    data, places = weights
    try:
        rows, cols = places
    except (TypeError, ValueError):
        raise InvalidArgument("weights of two parts are (data, (rows, columns)); there is no pair of rows and columns") from None
    made = _matrix("coo", rows, cols, data, (0, 0) if shape is None else shape, "data")
    if shape is not None:
        return made
    return made._replace(shape=(int(made.first.max(initial=-1)) + 1, int(made.second.max(initial=-1)) + 1))


def _from_dense(matrix: NDArray[Any], name: str) -> Matrix:
    check_claim(matrix.shape, matrix.nbytes, name)
    rows, cols = np.nonzero(matrix)
    indptr = np.zeros(len(matrix) + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=len(matrix)), out=indptr[1:])
    return _matrix("csr", indptr, cols, matrix[rows, cols], matrix.shape, name)


def _from_torch(tensor: Any, name: str, casts: bool) -> Matrix:
    if not tensor.is_cpu:
        raise TypeError(f"{name}: on {tensor.device}; this library runs on the CPU: pass {name}.cpu()")
    if not casts and str(tensor.dtype) != "torch.float32":
        raise TypeError(f"{name}: the values are {tensor.dtype}; they must be float32: pass {name}.to(torch.float32), or dtype=\"float32\"")
    layout = str(tensor.layout).rpartition(".")[2]
    tensor = tensor.detach() if tensor.requires_grad else tensor

    def numbers(values: Any) -> Any:  # NumPy has no bfloat16
        return values.float() if str(values.dtype) == "torch.bfloat16" else values

    if layout == "strided":
        return _from_dense(array_of(numbers(tensor), name), name)
    if layout == "sparse_coo" and tensor.dense_dim() == 0:
        rows, cols = array_of(tensor._indices(), "indices")
        return _matrix("coo", rows, cols, array_of(numbers(tensor._values()), name), tuple(tensor.shape), name)
    if layout in ("sparse_csr", "sparse_bsr"):
        indptr, indices, kind = tensor.crow_indices(), tensor.col_indices(), "csr"
    elif layout == "sparse_csc":
        indptr, indices, kind = tensor.ccol_indices(), tensor.row_indices(), "csc"
    else:
        dense = " with dense dimensions" if layout == "sparse_coo" else ""
        raise TypeError(f"{name}: torch's {layout}{dense} is not read; pass {name}.to_dense().to_sparse_csr()")
    lists = array_of(indptr, "indptr"), array_of(indices, "indices")
    return _matrix(kind, *lists, array_of(numbers(tensor.values()), name), tuple(tensor.shape), name)


def _from_pydata(matrix: Any, name: str) -> Matrix:
    if matrix.fill_value != 0:
        raise InvalidArgument(f"{name}: the fill value is {matrix.fill_value}; it must be 0")
    if hasattr(matrix, "coords"):
        rows, cols = matrix.coords
        return _matrix("coo", rows, cols, matrix.data, matrix.shape, name)
    kind = "csr" if tuple(matrix.compressed_axes) == (0,) else "csc"
    return _matrix(kind, matrix.indptr, matrix.indices, matrix.data, matrix.shape, name)


def _from_compressed(matrix: Any, name: str) -> Matrix:
    kind = "csc" if matrix.format == "csc" else "csr"
    return _matrix(kind, matrix.indptr, matrix.indices, matrix.data, matrix.shape, name)


def _from_coo(matrix: Any, name: str) -> Matrix:
    return _matrix("coo", matrix.row, matrix.col, matrix.data, matrix.shape, name)


def _from_dok(matrix: Any, name: str) -> Matrix:
    places = index_array(list(chain.from_iterable(matrix.keys())), "the keys")
    return _matrix("coo", places[::2], places[1::2], _typed(list(matrix.values()), matrix), matrix.shape, name)


def _from_lil(matrix: Any, name: str) -> Matrix:
    lengths = [len(row) for row in matrix.rows]
    for i, (count, values) in enumerate(zip(lengths, matrix.data)):
        if count != len(values):
            raise BadInput(f"{name}: rows[{i}] has {count} places but data[{i}] has {len(values)} values")
    indptr, indices = np.cumsum([0, *lengths]), list(chain.from_iterable(matrix.rows))
    return _matrix("csr", indptr, indices, _typed(list(chain.from_iterable(matrix.data)), matrix), matrix.shape, name)


def _typed(values: list[Any], matrix: Any) -> NDArray[Any]:
    """Return the values of a matrix that keeps Python's numbers as an array of its type."""
    try:
        return np.array(values, matrix.dtype)
    except (TypeError, ValueError) as error:
        raise BadInput(f"the values are no numbers: {error}") from None


def _from_dia(matrix: Any, name: str) -> Matrix:
    rows, cols = matrix.shape
    data, offsets = array_of(matrix.data, name), index_array(matrix.offsets, "offsets")
    if data.ndim != 2 or len(data) != len(offsets):
        raise BadInput(f"{name}: there are {len(offsets)} offsets, but data is {list(data.shape)}; it has a row for each")
    for i, offset in enumerate(offsets):
        if not -rows < offset < cols:
            raise BadInput(f"{name}: offsets[{i}] is {offset}; the diagonals of {rows} x {cols} are {1 - rows} .. {cols - 1}")
    data = data[:, :cols]
    col = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    row = col - offsets[:, None]
    stored = (row >= 0) & (row < rows) & (data != 0)
    return _matrix("coo", row[stored], col[stored], data[stored], matrix.shape, name)


_FROM_SCIPY = {
    **dict.fromkeys(("csr", "bsr", "csc"), _from_compressed),
    "coo": _from_coo,
    "dok": _from_dok,
    "lil": _from_lil,
    "dia": _from_dia,
}

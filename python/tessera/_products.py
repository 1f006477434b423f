"""Products on the arrays of SciPy and torch as they are: nothing is converted or encoded."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tessera import _core
from tessera._core import InvalidArgument
from tessera._options import flag, number, operand_type, text, thread_count
from tessera._weights import Arrays, Matrix, array_of, as_float32, is_sparse, is_torch, read_matrix

_FLOAT32 = np.dtype(np.float32)


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
    dtype: Any = None,
) -> Any:
    """Return alpha * a @ b + beta * out, then the bias and the activation.

    a    [x, y], float32: a csr, bsr, csc or coo matrix of scipy.sparse, or a sparse torch tensor of these
         layouts, read where it is, with 32- or 64-bit indices. Anything else that ts.Layer takes is
         converted first.
    b    [y, z], float32 with any strides: a NumPy array, or anything with __dlpack__ on the CPU. For
         [batch, features] pass b.T. A vector [y] gives a vector [x], and [..., y, z] gives [..., x, z].
    out  [x, z], receives the result and is returned; None: a new NumPy array, or a tensor if b is one of
         torch or an operand requires a gradient. It may not overlap b.
    bias [x], contiguous float32: added to each row. activation: "none", "relu" or "gelu" (by tanh).
    threads  0: one for each core. Calls of several Python threads take turns.
    dtype    "float32" converts operands of other types; None: they are a TypeError.

    Tensors of torch that require gradients get them: b, bias, and a sparse a, or the data of (indptr, indices, data).
    Raises TypeError for another dtype, ts.InvalidArgument for another shape, ts.BadInput with the place
    for indices outside the matrix. A matrix that is multiplied often is faster as a ts.Layer.
    """
    casts = _casts(dtype)
    after = bias if bias is None else _operand(bias, "bias", casts), text("activation", activation)
    return _multiply(
        a, read_matrix(a, name="a", casts=casts), False, _operand(b, "b", casts), False, out, False, after,
        number("alpha", alpha), number("beta", beta), thread_count(threads),
    )


def sddmm(
    pattern: Any,
    a: Any,
    b: Any,
    out: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    threads: int = 0,
    dtype: Any = None,
) -> Any:
    """Return alpha * (a @ b) where the pattern has places, + beta * out: one number for each of pattern.data.

    pattern  as the matrix of spmm(); its values are not read.
    a, b     [x, k] and [k, y], float32 with any strides, as b of spmm(). With dq and s.T it is the gradient
             of the values of a sparse matrix w, where q = w @ s. Tensors that require gradients get them.
    out      contiguous float32 of the shape of pattern.data, returned; None: a new NumPy array, or a tensor if
             a or b is one of torch.
    dtype    as in spmm(). Raises as spmm().
    """
    casts = _casts(dtype)
    matrix = read_matrix(pattern, name="pattern", casts=casts)
    a, b = _operand(a, "a", casts), _operand(b, "b", casts)
    rest = number("alpha", alpha), number("beta", beta), thread_count(threads)
    if is_torch(a) or is_torch(b):
        from tessera.torch import _autograd as autograd

        if autograd.needs_gradient(a, b):
            autograd.require_no_out(out, beta)
            return autograd.sddmm(matrix, a, b, rest[0], rest[2])
    made = _core._sddmm(matrix, _detached(a), _detached(b), out, *rest)
    return _as_tensor(made) if out is None and (is_torch(a) or is_torch(b)) else made


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    transpose_lhs: bool = False,
    transpose_rhs: bool = False,
    threads: int = 0,
    dtype: Any = None,
) -> Any:
    """Return the product of a sparse and a dense matrix, a @ b, in either order, in groups.

    a, b  one of them sparse and one dense, as a and b of spmm(): [m, k] and [k, n], or as they are stored,
          [k, m] with transpose_lhs and [n, k] with transpose_rhs. A list of sparse matrices, with a pattern
          for each, makes groups; the dense operand and out then have a first axis with one entry for each.
    out   [m, n], or [groups, m, n]: receives the result and is returned; None: a new array or tensor.
    dtype as in spmm(), and so are gradients.
    The same products on a modelled machine: tessera matmul. Raises as spmm(), and TypeError unless exactly
    one operand is sparse.
    """
    transpose_lhs, transpose_rhs = flag("transpose_lhs", transpose_lhs), flag("transpose_rhs", transpose_rhs)
    if _is_group(a) or _is_group(b):
        return _multiply_groups(
            a, b, out, transpose_lhs=transpose_lhs, transpose_rhs=transpose_rhs, threads=threads, dtype=dtype
        )
    if is_sparse(a) == is_sparse(b):
        raise TypeError("pass one operand as a sparse matrix of SciPy or torch, and the other one as a dense array")
    if is_sparse(a):
        given, dense, name, turned = a, b, "a", False
        flags = transpose_lhs, transpose_rhs
    else:  # A @ B is the transpose of B^T @ A^T
        given, dense, name, turned = b, a, "b", True
        flags = not transpose_rhs, not transpose_lhs
    casts = _casts(dtype)
    matrix, dense = read_matrix(given, name=name, casts=casts), _operand(dense, "b" if name == "a" else "a", casts)
    try:
        return _multiply(
            given, matrix, flags[0], dense, flags[1], out, turned, (None, "none"), 1.0, 0.0, thread_count(threads)
        )
    except InvalidArgument as error:  # speaks of operands in the order of spmm()
        text_of_sizes = _unequal_sizes(a, b, transpose_lhs, transpose_rhs)
        if text_of_sizes is None:
            raise
        raise InvalidArgument(text_of_sizes) from error


def _unequal_sizes(a: Any, b: Any, transpose_lhs: bool, transpose_rhs: bool) -> str | None:
    """Return an error if the columns of a matrix are not the rows of the other one."""
    of_a, of_b = (tuple(getattr(given, "shape", ())) for given in (a, b))
    if not of_a or not of_b:
        return None
    columns = of_a[0] if len(of_a) == 1 else of_a[-2 if transpose_lhs else -1]
    rows = of_b[0] if len(of_b) == 1 else of_b[-1 if transpose_rhs else -2]
    if columns == rows:
        return None
    return (
        f"matmul: a is {list(of_a)}{' and transposed' if transpose_lhs else ''}, b {list(of_b)}"
        f"{' and transposed' if transpose_rhs else ''}: {columns} columns and {rows} rows, which must be equal; "
        "transpose_lhs and transpose_rhs turn an operand"
    )


def _multiply(
    given: Any, matrix: Matrix, matrix_turned: bool, dense: Any, turned: bool, out: Any, result: bool,
    after: tuple[Any, str], alpha: float, beta: float, threads: int,
) -> Any:
    """Return a product of a matrix as it was given, and as it was read, with a dense operand of any dimensions."""
    (bias, activation), is_tensor = after, False
    if _has_tensor(given, dense, bias):
        from tessera.torch import _autograd as autograd

        if autograd.needs_gradient(given, dense, bias):
            autograd.require_no_out(out, beta)
            carrier = autograd.carrier_of(given)
            return autograd.spmm(carrier, dense, matrix, matrix_turned, turned, result, alpha, *after, threads)
        dense, bias, is_tensor = _detached(dense), _detached(bias), is_torch(dense)
    shape: tuple[int, ...] = getattr(dense, "shape", ())
    if len(shape) <= 2:
        made = _core._spmm(matrix, matrix_turned, dense, turned, out, result, alpha, beta, bias, activation, threads)
        return _as_tensor(made) if is_tensor and out is None else made
    if out is None:
        rows, columns = matrix.shape[1] if matrix_turned else matrix.shape[0], shape[-2] if turned else shape[-1]
        out = np.zeros((*shape[:-2], *((columns, rows) if result else (rows, columns))), np.float32)
        out = _as_tensor(out) if is_tensor else out
    if tuple(getattr(out, "shape", ()))[:-2] != shape[:-2]:
        raise InvalidArgument(f"out is {list(getattr(out, 'shape', ()))}; it needs the leading dimensions {list(shape[:-2])}")
    for part, to in zip(dense, out):
        _multiply(None, matrix, matrix_turned, part, turned, to, result, after, alpha, beta, threads)
    return out


def _casts(dtype: Any) -> bool:
    """Return True if the operands are to be converted to float32."""
    if dtype is None:
        return False
    if operand_type(dtype) != "float32":
        raise InvalidArgument(f"dtype is {dtype}; products compute in float32: pass dtype=\"float32\" or leave it out")
    return True


def _operand(given: Any, name: str, casts: bool) -> Any:
    """Return a dense operand, converted to float32 if that was asked for. Another type is a TypeError otherwise."""
    if not casts:
        kind = getattr(given, "dtype", _FLOAT32)
        if kind is not _FLOAT32 and kind != np.float32 and str(kind) != "torch.float32":
            call = f"{name}.to(torch.float32)" if is_torch(given) else f"{name}.astype(np.float32)"
            raise TypeError(f'{name} is {kind}; products compute in float32: pass {call}, or dtype="float32" to this call')
        return given
    return given.float() if is_torch(given) else as_float32(array_of(given, name), name)


def _has_tensor(given: Any, dense: Any, bias: Any) -> bool:
    """Return True if an operand of a product, or a part of its matrix, is a tensor of torch."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    tensor = torch.Tensor
    if isinstance(given, tuple):
        return any(isinstance(part, tensor) for part in (*given, dense, bias))
    # The class of NumPy's arrays is asked first, because torch takes longer to say no.
    if type(dense) is not np.ndarray and isinstance(dense, tensor):
        return True
    return isinstance(given, tensor) or (bias is not None and isinstance(bias, tensor))


def _detached(given: Any) -> Any:
    return given.detach() if is_torch(given) and given.requires_grad else given


def _as_tensor(array: Any) -> Any:
    return sys.modules["torch"].from_numpy(array)


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
    if out is not None or not is_torch(parts[0]):
        return np.stack(parts) if out is None else out
    import torch

    return torch.stack(parts)

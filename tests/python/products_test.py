"""ts.spmm and ts.sddmm on every format of SciPy, beside NumPy in double precision."""

import numpy as np
import pytest
import scipy.sparse as sp
from model import random_array, random_weights

import tessera as ts

RANDOM = np.random.default_rng(3)
WEIGHTS = random_weights(5, 24, 36, (1, 1), 0.3)
BLOCKS = random_weights(6, 24, 36, (4, 3), 0.4)
B = random_array(RANDOM, (36, 7))
MATRICES = {
    **{kind: WEIGHTS.asformat(kind) for kind in ("csr", "csc", "coo", "lil")},
    "bsr": BLOCKS,
    "dense": WEIGHTS.toarray(),
    "wide indices": sp.csr_matrix(WEIGHTS),
}
MATRICES["wide indices"].indices = MATRICES["wide indices"].indices.astype(np.int64)


def dense(matrix):
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, np.float64)


@pytest.mark.parametrize("name", MATRICES)
def test_spmm_is_the_product(name):
    a = MATRICES[name]
    np.testing.assert_allclose(ts.spmm(a, B), dense(a) @ B, rtol=1e-4, atol=1e-5)
    out = random_array(RANDOM, (24, 7))
    expected = 2 * (dense(a) @ B) + 3 * out.astype(np.float64)
    assert ts.spmm(a, B, out, alpha=2, beta=3, threads=2) is out
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def test_spmm_takes_the_batch_first_a_bias_and_an_activation():
    batch, bias = np.ascontiguousarray(B.T), random_array(RANDOM, (24,))
    out = np.empty((7, 24), np.float32)
    ts.spmm(WEIGHTS, batch.T, out.T, bias=bias, activation="relu")
    expected = np.maximum(dense(WEIGHTS) @ B + bias[:, None], 0)
    np.testing.assert_allclose(out.T, expected, rtol=1e-4, atol=1e-5)
    gelu = ts.spmm(WEIGHTS, B, activation="gelu")
    v = dense(WEIGHTS) @ B
    np.testing.assert_allclose(
        gelu, v / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3))), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "bsr"])
def test_sddmm_has_the_order_of_the_values(name):
    pattern = MATRICES[name]
    a, b = random_array(RANDOM, (24, 5)), random_array(RANDOM, (5, 36))
    values = ts.sddmm(pattern, a, b)
    assert values.shape == pattern.data.shape
    ones = pattern.copy()
    ones.data = np.ones_like(ones.data)
    filled = pattern.copy()
    filled.data = values
    np.testing.assert_allclose(dense(filled), dense(ones) * (a.astype(float) @ b), rtol=1e-4, atol=1e-5)
    out = np.ones_like(values)
    ts.sddmm(pattern, a, b, out, alpha=-1, beta=2)
    np.testing.assert_allclose(out, 2 - values, rtol=1e-5, atol=1e-5)


def test_mistakes_are_told():
    with pytest.raises(ts.InvalidArgument, match="B 35 x 7"):
        ts.spmm(WEIGHTS, B[:35])
    with pytest.raises(ts.InvalidArgument, match="beta is not 0"):
        ts.spmm(WEIGHTS, B, beta=1)
    with pytest.raises(ts.InvalidArgument, match="none, relu or gelu"):
        ts.spmm(WEIGHTS, B, activation="tanh")
    with pytest.raises(TypeError, match="float64"):
        ts.spmm(WEIGHTS.astype(np.float64), B)
    for call in (lambda x: ts.spmm(WEIGHTS, x), lambda x: ts.spmm(WEIGHTS, x[:, 0]), lambda x: ts.matmul(x.T, WEIGHTS.T),
                 lambda x: ts.sddmm(WEIGHTS, B[:24], x.T), lambda x: ts.spmm(WEIGHTS, B, bias=x[:24, 0])):  # fmt: skip
        with pytest.raises(TypeError, match=r'is float64; .*astype\(np.float32\), or dtype="float32"'):
            call(B.astype(np.float64))
    broken = WEIGHTS.copy()
    broken.indices[3] = 36
    with pytest.raises(ts.BadInput, match=r"indices\[3\] in block row . names block column 36"):
        ts.spmm(broken, B)
    with pytest.raises(ts.InvalidArgument, match="overlap|share"):
        square = sp.identity(7, np.float32, "csr")
        both = random_array(RANDOM, (7, 7))
        ts.spmm(square, both, both)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize("lhs", [False, True])
@pytest.mark.parametrize("rhs", [False, True])
def test_matmul_is_the_product_in_either_order(kind, lhs, rhs):
    weights = sp.random(24, 36, 0.3, "csr", np.float32, np.random.default_rng(3))
    sparse = weights.tobsr((4, 6)) if kind == "bsr" else weights.asformat(kind)
    dense = np.random.default_rng(4).standard_normal((36, 7), np.float32)
    stored = sparse.T.tobsr() if kind == "bsr" else sparse.T.asformat(kind)
    got = ts.matmul(stored if lhs else sparse, dense.T if rhs else dense, transpose_lhs=lhs, transpose_rhs=rhs)
    np.testing.assert_allclose(got, weights.toarray() @ dense, rtol=1e-4, atol=1e-5)
    out = np.empty((7, 24), np.float32)
    turned = ts.matmul(
        dense if lhs else dense.T.copy(),
        sparse if rhs else stored,
        out,
        transpose_lhs=lhs,
        transpose_rhs=rhs,
    )
    np.testing.assert_allclose(turned, dense.T @ weights.toarray().T, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(turned, out)


def test_sizes_of_matmul_are_told_as_they_were_given():
    vector = np.ones(WEIGHTS.shape[1], np.float32)
    with pytest.raises(ts.InvalidArgument, match=r"a is \[36\], b \[24, 36\]: 36 columns and 24 rows.*transpose_rhs"):
        ts.matmul(vector, WEIGHTS)
    with pytest.raises(TypeError, match="transpose_lhs is 'no'; it is True or False"):
        ts.matmul(WEIGHTS, vector, transpose_lhs="no")


def test_matmul_takes_groups_with_a_pattern_each():
    random = np.random.default_rng(5)
    sparse = [sp.random(10, 12, d, "csr", np.float32, random) for d in (0.2, 0.0, 0.9)]
    dense = random.standard_normal((3, 12, 5), np.float32)
    wanted = np.stack([s.toarray() @ d for s, d in zip(sparse, dense)])
    np.testing.assert_allclose(ts.matmul(sparse, dense), wanted, rtol=1e-4, atol=1e-5)
    out = np.empty((3, 10, 5), np.float32)
    assert ts.matmul(sparse, dense, out) is out
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(ts.InvalidArgument, match="3 sparse matrices"):
        ts.matmul(sparse, dense[:2])
    with pytest.raises(TypeError, match="pass one operand as a sparse matrix"):
        ts.matmul(dense[0], dense[0].T)


def edited(**fields):
    """Returns WEIGHTS with other arrays, which SciPy would change if it were given them."""
    matrix = WEIGHTS.copy()
    for name, array in fields.items():
        matrix.__dict__[name] = array
    return matrix


def misaligned(array):
    room = np.empty(array.nbytes + 1, np.uint8)
    moved = room[1:].view(array.dtype)
    moved[:] = array
    return moved


ODD_ARRAYS = {
    "no two in a row": {"data": np.repeat(WEIGHTS.data, 2)[::2]},
    "misaligned indices": {"indices": misaligned(WEIGHTS.indices)},
    "misaligned values": {"data": misaligned(WEIGHTS.data)},
    "big-endian indices": {"indices": WEIGHTS.indices.astype(">i4")},
    "unsigned indices": {"indices": WEIGHTS.indices.astype(np.uint32)},
    "16-bit indices": {"indices": WEIGHTS.indices.astype(np.int16)},
    "indices of two types": {"indptr": WEIGHTS.indptr.astype(np.int64)},
    "a subclass": {"data": WEIGHTS.data.view(np.recarray)},
    "sides of NumPy": {"_shape": tuple(np.array(WEIGHTS.shape))},
}


@pytest.mark.parametrize("name", ODD_ARRAYS)
def test_arrays_that_need_a_conversion_get_it(name):
    expected = ts.spmm(WEIGHTS, B[:, 0])
    np.testing.assert_array_equal(ts.spmm(edited(**ODD_ARRAYS[name]), B[:, 0]), expected)


REFUSED_ARRAYS = {
    "a mask": ({"data": np.ma.masked_array(WEIGHTS.data)}, TypeError, r"masked array; .*filled\(0\)"),
    "a mask of indices": ({"indices": np.ma.masked_array(WEIGHTS.indices)}, TypeError, "masked array"),
    "real indices": ({"indices": WEIGHTS.indices.astype(float)}, TypeError, "whole numbers"),
    "double values": ({"data": WEIGHTS.data.astype(float)}, TypeError, "float32"),
    "big-endian values": ({"data": WEIGHTS.data.astype(">f4")}, TypeError, "float32"),
    "values in a table": ({"data": WEIGHTS.data[None]}, ts.InvalidArgument, "2 dimensions"),
    "a column outside": ({"indices": np.full_like(WEIGHTS.indices, 36)}, ts.BadInput, "36"),
    "a column below 0": ({"indices": np.full_like(WEIGHTS.indices, -1)}, ts.BadInput, "-1"),
    "positions that do not end": ({"indptr": WEIGHTS.indptr + 1}, ts.BadInput, "indptr"),
    "three sides": ({"_shape": (24, 36, 1)}, ts.InvalidArgument, "3 dimensions"),
    "a side below 0": ({"_shape": (-24, 36)}, ts.LimitExceeded, "-24"),
}


@pytest.mark.parametrize("name", REFUSED_ARRAYS)
def test_arrays_of_a_matrix_are_looked_at_before_a_product(name):
    fields, error, text = REFUSED_ARRAYS[name]
    with pytest.raises(error, match=text):
        ts.spmm(edited(**fields), B[:, 0])

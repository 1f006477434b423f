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
    with pytest.raises(TypeError, match="float64"):
        ts.spmm(WEIGHTS, B.astype(np.float64))
    broken = WEIGHTS.copy()
    broken.indices[3] = 36
    with pytest.raises(ts.BadInput, match="place 3 is in block column 36"):
        ts.spmm(broken, B)
    with pytest.raises(ts.InvalidArgument, match="overlap|share"):
        square = sp.identity(7, np.float32, "csr")
        both = random_array(RANDOM, (7, 7))
        ts.spmm(square, both, both)

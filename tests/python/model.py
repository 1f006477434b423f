"""The model that tests compare layers with: SciPy in double precision, and drawn shapes and arrays."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

NUMPY_TYPES = {"float32": np.float32, "float16": np.float16}
BLOCKS = st.tuples(st.integers(1, 5), st.integers(1, 5))
DENSITIES = st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.0])


def random_weights(seed, outputs, inputs, block, density, whole=False):
    """Returns a CSR (BSR for blocks) matrix in float32 whose sizes are cut to whole blocks."""
    rng = np.random.default_rng(seed)
    rows, cols = outputs // block[0], inputs // block[1]
    mask = rng.random((rows, cols)) < density
    indptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int32)
    indices = np.nonzero(mask)[1].astype(np.int32)
    data = random_array(rng, (len(indices), *block), whole)
    if block == (1, 1):
        return sp.csr_matrix((data.reshape(-1), indices, indptr), (rows, cols))
    return sp.bsr_matrix((data, indices, indptr), (rows * block[0], cols * block[1]), blocksize=block)


def random_array(rng, shape, whole=False):
    """Returns normal numbers, or +1 and -1, in float32."""
    if whole:
        return rng.choice(np.array([-1, 1], np.float32), shape)
    return rng.standard_normal(shape).astype(np.float32)


def strided(array, pattern):
    """Returns the same matrix with other strides; 'negative' ones run backwards."""
    if pattern == "fortran":
        return np.asfortranarray(array)
    if pattern == "steps":
        room = np.zeros((2 * array.shape[0] + 1, 3 * array.shape[1] + 1), array.dtype)
        room[1::2, 1::3] = array
        return room[1::2, 1::3]
    if pattern == "negative":
        return array[::-1, ::-1].copy()[::-1, ::-1]
    return array


def dense(weights, dtype="float32"):
    """Returns the weights in double, rounded to the layer's type first."""
    return weights.toarray().astype(NUMPY_TYPES[dtype]).astype(np.float64)


def expect_product(got, left, right, rounding):
    """Compares got with left @ right, computed in double, within the bound of the arithmetic."""
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    exact, magnitudes = left @ right, np.abs(left) @ np.abs(right)
    bound = rounding.bound(np.count_nonzero(left, axis=1)[:, None] + 0.0, magnitudes, exact)
    wrong = ~(np.abs(got.astype(np.float64) - exact) <= bound)
    assert not wrong.any(), (np.argwhere(wrong)[:3], got[wrong][:3], exact[wrong][:3])


def stored_places(weights):
    """Returns the row and the column of every stored value, in the order of weights.data."""
    if weights.format == "csr":
        return np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr)), weights.indices
    height, width = weights.blocksize
    block_row = np.repeat(np.arange(len(weights.indptr) - 1), np.diff(weights.indptr))
    rows = block_row[:, None, None] * height + np.arange(height)[None, :, None]
    cols = weights.indices[:, None, None] * width + np.arange(width)[None, None, :]
    return tuple(np.broadcast_arrays(rows, cols))


def expect_gradient(got, weights, dq, s, rounding):
    """Compares got with dq @ s.T at the places of the weights."""
    rows, cols = stored_places(weights)
    dq, s = np.asarray(dq, np.float64), np.asarray(s, np.float64)
    assert got.shape == weights.data.shape
    exact, magnitudes = (dq @ s.T)[rows, cols], (np.abs(dq) @ np.abs(s).T)[rows, cols]
    bound = rounding.bound(dq.shape[1], magnitudes, exact)
    assert (np.abs(got - exact) <= bound).all()

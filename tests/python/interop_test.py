"""Matrices and operands of other libraries, each in and, where there is a way, out again."""

import numpy as np
import pytest
import scipy.sparse as sp
from model import random_array, random_weights

import tessera as ts

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
sparse = pytest.importorskip("sparse", reason="python3-sparse is not installed")

WEIGHTS = random_weights(5, 24, 36, (1, 1), 0.3)
BLOCKS = random_weights(6, 24, 36, (4, 3), 0.4)
S = random_array(np.random.default_rng(7), (36, 6))


def unsorted(matrix):
    """Returns the same matrix with each row's columns in falling order."""
    order = np.lexsort((-matrix.indices, np.repeat(np.arange(24), np.diff(matrix.indptr))))
    return matrix.data[order], matrix.indices[order], matrix.indptr


def doubled(matrix):
    """Returns the same matrix as a COO in which every value is given in two halves."""
    coo = matrix.tocoo()
    half = np.concatenate([coo.data / 2] * 2)
    return sp.coo_matrix((half, (np.tile(coo.row, 2), np.tile(coo.col, 2))), matrix.shape)


def with_index_type(matrix, kind):
    """Returns (indptr, indices, data) with indices of a type."""
    return matrix.indptr.astype(kind), matrix.indices.astype(kind), matrix.data


MATRICES = {
    **{f"scipy {kind}": WEIGHTS.asformat(kind) for kind in ("csr", "csc", "coo", "dia", "lil", "dok")},
    **{f"scipy {kind} array": getattr(sp, f"{kind}_array")(WEIGHTS) for kind in ("csr", "csc", "coo", "bsr")},
    "unsorted": sp.csr_matrix(unsorted(WEIGHTS), WEIGHTS.shape),
    "duplicated": doubled(WEIGHTS),
    **{f"indices {kind}": with_index_type(WEIGHTS, kind) for kind in "bhilBHILq" if kind not in "bB"},
    "big-endian indices": with_index_type(WEIGHTS, ">i4"),
    "dense": WEIGHTS.toarray(),
    "np.matrix": WEIGHTS.todense(),
    "arrays of a layer": ts.Layer(WEIGHTS).arrays,
    "pydata COO": sparse.COO.from_scipy_sparse(WEIGHTS),
    "pydata GCXS": sparse.GCXS.from_scipy_sparse(WEIGHTS),
    "torch dense": torch.from_numpy(WEIGHTS.toarray()),
    "torch coo": torch.from_numpy(WEIGHTS.toarray()).to_sparse(),
    "torch csr": torch.from_numpy(WEIGHTS.toarray()).to_sparse_csr(),
    "torch csc": torch.from_numpy(WEIGHTS.toarray()).to_sparse_csc(),
}


@pytest.mark.parametrize("name", MATRICES)
def test_takes_the_matrix(name):
    shape = WEIGHTS.shape if type(MATRICES[name]) is tuple else None
    layer = ts.Layer(MATRICES[name], batch=6, shape=shape)
    assert abs(layer.weights - WEIGHTS).max() == 0
    assert np.allclose(layer @ S, WEIGHTS @ S, atol=1e-5)


TENSORS = {
    "double": (torch.ones(3, 4, dtype=torch.float64), TypeError, r"weights.to\(torch.float32\)"),
    "bfloat16": (torch.ones(3, 4, dtype=torch.bfloat16), TypeError, r"weights.to\(torch.float32\)"),
    "sparse in double": (torch.ones(3, 4, dtype=torch.float64).to_sparse(), TypeError, r"weights.to\(torch.float32\)"),
    "one dimension": (torch.ones(3), ts.InvalidArgument, "1 dimensions; a matrix has 2"),
    "sparse, one dimension": (torch.ones(3).to_sparse(), ts.InvalidArgument, "1 dimensions; a matrix has 2"),
    "pydata, one dimension": (sparse.COO.from_numpy(np.ones(3, np.float32)), ts.InvalidArgument, "1 dimensions"),
}


@pytest.mark.parametrize("fault", TENSORS)
def test_refuses_tensors(fault):
    tensor, error, text = TENSORS[fault]
    with pytest.raises(error, match=text):
        ts.Layer(tensor)


def test_arrays_of_a_layer_know_their_shape():
    layer = ts.Layer(BLOCKS)
    with pytest.raises(ts.InvalidArgument, match="has its own"):
        ts.Layer(layer.arrays, shape=(24, 36))
    layer.set_weights(ts.Layer(2 * BLOCKS).arrays)
    assert abs(layer.weights - 2 * BLOCKS).max() == 0


def test_blocks_stay_blocks():
    for matrix in (ts.Layer(BLOCKS).arrays, BLOCKS, ts.Layer(BLOCKS).to_torch(), (BLOCKS.indptr, BLOCKS.indices, BLOCKS.data)):
        layer = ts.Layer(matrix, batch=6)
        assert layer.block == (4, 3)
        assert layer.weights.format == "bsr" and abs(layer.weights - BLOCKS).max() == 0
        assert layer.values.shape == BLOCKS.data.shape


def test_gives_torch_its_matrix():
    got = ts.Layer(WEIGHTS).to_torch()
    assert got.layout == torch.sparse_csr
    assert (got.to_dense().numpy() == WEIGHTS.toarray()).all()


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_torch_operands_are_read_and_written_in_place(kind):
    layer = ts.Layer(WEIGHTS, batch=6, dtype=kind)
    s = torch.from_numpy(S).to(getattr(torch, kind))
    q = layer @ s
    assert isinstance(q, torch.Tensor) and q.dtype == s.dtype
    assert torch.allclose(q.float(), torch.from_numpy(WEIGHTS @ S), atol=0.1 if kind != "float32" else 1e-5)
    room = torch.zeros(6, 24, dtype=s.dtype)
    assert layer.forward(s, out=room.t()) is not None
    assert (room.t() == q).all()
    gradient = layer.grad_weights(q, s)
    assert gradient.dtype == torch.float32 and gradient.shape == (layer.nnz,)


def test_broadcast_operands_are_read():
    column = S[:, :1]
    layer = ts.Layer(WEIGHTS, batch=6)
    assert np.allclose(layer @ np.broadcast_to(column, (36, 6)), WEIGHTS @ np.repeat(column, 6, 1), atol=1e-5)

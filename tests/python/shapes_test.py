"""Operands of another number of dimensions: refused in words that say what to pass, in every call."""

import numpy as np
import pytest
import scipy.sparse as sp

import tessera as ts

F4 = np.float32
W = sp.random(8, 16, 0.5, "csr", F4, random_state=1)
S = np.ones((16, 3), F4)


class Flat:
    """A csr_array of one dimension, as newer SciPy has it."""

    format, shape, dtype = "csr", (4,), np.dtype(F4)
    data, indices, indptr = np.ones(2, F4), np.array([0, 2], np.int32), np.array([0, 2], np.int32)

    def tocsr(self):
        return self


SHAPES = {
    "spmm with a short vector": (lambda: ts.spmm(W, S[:8, 0]), r"8 x 1"),
    "spmm with a list": (lambda: ts.spmm(W, [[1.0]] * 16), r"pass np.array\(b, np.float32\)"),
    "spmm with a number": (lambda: ts.spmm(W, np.ones((), F4)), r"b has the shape \[\]; an operand has 2 dimensions, or 1"),
    "spmm with a wrong batch": (lambda: ts.spmm(W, np.ones((4, 8, 3), F4)), "8 x 3"),
    "spmm without a matrix": (lambda: ts.spmm(None, S), "NoneType is no matrix; pass"),
    "spmm with an out of one dimension": (lambda: ts.spmm(W, S, out=np.ones(8, F4)), r"8 x 1"),
    "spmm with a flat matrix": (lambda: ts.spmm(Flat(), S[:4]), "1 dimensions; a matrix has 2"),
    "sddmm with vectors": (lambda: ts.sddmm(W, np.ones(8, F4), np.ones(16, F4)), r"a has the shape \[8\]"),
    "matmul with a long vector on the left": (lambda: ts.matmul(np.ones(9, F4), W), "9 columns and 8 rows"),
    "matmul with a list on the right": (lambda: ts.matmul(W, [[1.0]] * 16), r"pass those, one for each group, or np.array\(b"),
    "matmul with a list on the left": (lambda: ts.matmul([[1.0] * 8], W), r"pass those, one for each group, or np.array\(a"),
    "matmul with no groups": (lambda: ts.matmul([], np.ones((0, 16, 3), F4)), "pass those, one for each group"),
    "matmul of groups with a matrix": (lambda: ts.matmul([W, W], S), r"2 sparse matrices; the dense operand is \[16, 3\]"),
    "matmul of groups with nothing": (lambda: ts.matmul([W, W], None), "NoneType|the dense operand"),
    "matmul of groups into a matrix": (lambda: ts.matmul([W], S[None], out=np.ones((8, 3), F4)), r"out is \[8, 3\]"),
    "matmul of two sparse ones": (lambda: ts.matmul(W, W.T), "pass one operand as a sparse matrix"),
    "a layer of a flat matrix": (lambda: ts.Layer(Flat()), "1 dimensions; a matrix has 2"),
    "a layer and a short vector": (lambda: ts.Layer(W) @ S[:8, 0], r"s is 8 x 1; this layer needs 16 x batch"),
    "a layer and a batch": (lambda: ts.Layer(W) @ S[None], r"s has the shape \[1, 16, 3\]; .*reshape s"),
    "a layer and more": (lambda: ts.Layer(W) @ S[None, None], "s has 4 dimensions; .*reshape s"),
    "simulate with a vector": (lambda: ts.simulate(W, S[:, 0].astype(np.float16)), r"s has the shape \[16\]"),
    "pictures of one dimension": (
        lambda: ts.train.Trainer("4-4-2").fit(np.zeros(4, np.uint8), np.zeros(4, int), epochs=1), r"x is \[4\]"
    ),
    "a single picture": (
        lambda: ts.train.Trainer("4-4-2").fit(np.uint8(3), np.zeros(4, int), epochs=1), r"x is \[\]"
    ),
    "no pictures": (
        lambda: ts.train.Trainer("4-4-2").fit(np.zeros((0, 4), np.uint8), np.zeros(0, int), epochs=1), r"x is \[0, 4\]"
    ),
    "csc values of two dimensions": (
        lambda: ts.spmm(damaged(W.tocsc(), data=np.ones((W.nnz, 1), F4)), S), "the data of a csc matrix has 2 dimensions"
    ),
}


def damaged(matrix, **fields):
    for name, value in fields.items():
        setattr(matrix, name, value)
    return matrix


@pytest.mark.parametrize("name", SHAPES)
def test_another_number_of_dimensions_is_told(name):
    call, text = SHAPES[name]
    with pytest.raises((ts.InvalidArgument, TypeError), match=text):
        call()


def test_tensors_of_more_dimensions_are_told():
    torch = pytest.importorskip("torch", reason="python3-torch is not installed")
    hybrid = torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(2, 3), (4, 3))
    with pytest.raises(ts.InvalidArgument, match="3 dimensions; a matrix has 2"):
        ts.spmm(torch.ones(2, 4, 4).to_sparse(), S[:4])
    with pytest.raises(TypeError, match="with dense dimensions is not read; pass a.to_dense"):
        ts.spmm(hybrid, S[:3])
    with pytest.raises(TypeError, match="b cannot be read.*strided.*; pass a dense tensor"):
        ts.spmm(W, torch.ones(16, 3).to_sparse())


def test_messages_speak_of_the_callers_rows_and_arrays():
    coo = sp.coo_array((np.ones(3, F4), (np.array([0, 1, 1]), np.array([0, 0, 1]))), shape=(2, 2))
    coo.row[1] = 3
    with pytest.raises(ts.BadInput, match="row 3; the matrix has 2 rows"):
        ts.matmul(coo, np.ones((2, 2), F4), transpose_lhs=True)
    csc = sp.csc_array(np.eye(3, dtype=F4))
    csc.indices[2] = 5
    with pytest.raises(ts.BadInput, match=r"indices\[2\] in block column 2 names block row 5"):
        ts.matmul(np.ones((2, 3), F4), csc)
    with pytest.raises(ts.BadInput, match=r"indptr\[0\]"):
        ts.Layer((np.array([1, 2, 3]), np.zeros(3, np.int32), np.ones(3, F4)), shape=(2, 2))


def test_matmul_takes_all_that_spmm_takes():
    layer = ts.Layer(W)
    np.testing.assert_allclose(ts.matmul(layer.arrays, S), W @ S, rtol=1e-5)
    np.testing.assert_allclose(ts.matmul(W.tolil(), S), W @ S, rtol=1e-5)
    assert ts.sddmm(W.tobsr((2, 2)), np.ones((8, 1), F4), np.ones((1, 16), F4)).shape[1:] == (2, 2)


def test_a_result_beyond_all_memory_is_no_small_one():
    tall = sp.csr_matrix(np.eye(64, 16, dtype=F4))
    wide = np.lib.stride_tricks.as_strided(np.ones(1, F4), (16, 2**56), (0, 0))
    for call in (lambda: ts.spmm(tall, wide), lambda: ts.Layer(tall) @ wide):
        with pytest.raises(ts.LimitExceeded, match="does not fit into memory"):
            call()

"""Matrices with a place or a pointer outside them: refused as they are, before any library converts them.

Found in every call that takes a matrix: SciPy's and torch's own conversions lose values or end the process.
"""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

import tessera as ts

F4 = np.float32


def coo(row=(0, 1, 1), col=(0, 0, 1)):
    """Returns 2 x 2 with three places; sorts of SciPy never saw the ones that are given here."""
    matrix = sp.coo_array((np.array([5, 7, 9], F4), (np.array([0, 1, 1]), np.array([0, 0, 1]))), shape=(2, 2))
    matrix.row[:], matrix.col[:] = row, col
    return matrix


def compressed(kind, indptr=(0, 2, 3), indices=(0, 1, 1), data=(5, 7, 9)):
    matrix = kind((np.array([5, 7, 9], F4), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    matrix.indptr, matrix.indices, matrix.data = np.array(indptr), np.array(indices), np.array(data, F4)
    return matrix


def with_field(matrix, **fields):
    for name, value in fields.items():
        setattr(matrix, name, value)
    return matrix


def lists(rows, data):
    """Returns a lil matrix with these lists."""
    matrix = sp.lil_array((2, 2), dtype=F4)
    for i in range(2):
        matrix.rows[i], matrix.data[i] = list(rows[i]), list(data[i])
    return matrix


def dictionary(places):
    matrix = sp.dok_matrix((2, 2), dtype=F4)
    dict.update(getattr(matrix, "_dict", matrix), dict.fromkeys(places, F4(1)))
    return matrix


def blocks(indptr, indices=(0, 1)):
    matrix = sp.bsr_array(np.eye(4, dtype=F4), blocksize=(2, 2))
    matrix.indptr, matrix.indices = np.array(indptr, np.int32), np.array(indices, np.int32)
    return matrix


def from_torch(make):
    torch = pytest.importorskip("torch", reason="python3-torch is not installed")
    return make(torch)


def damaged_csc(torch):
    tensor = torch.sparse_csc_tensor(torch.tensor([0, 1, 3]), torch.tensor([0, 0, 1]), torch.ones(3), (2, 2))
    tensor.row_indices()[1] = -1
    return tensor


def damaged_coo(torch):
    tensor = torch.sparse_coo_tensor(torch.tensor([[0, 1], [0, 1]]), torch.ones(2), (2, 2))
    tensor._indices()[0, 1] = 40_000_000
    return tensor


def damaged_csr(torch):
    tensor = torch.eye(2).to_sparse_csr()
    tensor.crow_indices()[1] = 9
    return tensor


def pydata(**fields):
    sparse = pytest.importorskip("sparse", reason="python3-sparse is not installed")
    return with_field(sparse.COO.from_numpy(np.eye(2, dtype=F4)), **fields)


FAULTS = {
    "coo, a row below": (lambda: coo(row=(0, 3, 1)), "row 3"),
    "coo, a row far below": (lambda: coo(row=(0, 40_000_000, 1)), "row 40000000"),
    "coo, a negative row": (lambda: coo(row=(0, -1, 1)), "row -1"),
    "coo, a column outside": (lambda: coo(col=(0, 2, 1)), "column 2; the matrix has 2 columns"),
    "coo, lists of two lengths": (lambda: with_field(coo(), row=np.array([0, 1])), "2 places and col has 3"),
    "csr, a column outside": (lambda: compressed(sp.csr_array, indices=(0, 2, 1)), r"indices\[1\]"),
    "csr, a pointer beyond": (lambda: compressed(sp.csr_array, indptr=(0, 2, 9)), "indptr"),
    "csc, a row outside": (lambda: compressed(sp.csc_array, indices=(0, 2, 1)), "column 0 names block row 2"),
    "csc, a negative row": (lambda: compressed(sp.csc_array, indices=(0, -7, 1)), "-7"),
    "csc, a pointer beyond": (lambda: compressed(sp.csc_array, indptr=(0, 1, 9)), "is 9; it must be 3"),
    "csc, pointers that begin at 4": (lambda: compressed(sp.csc_array, indptr=(4, 0, 0)), r"indptr\[0\].* is 4"),
    "csc, pointers that fall": (lambda: compressed(sp.csc_array, indptr=(0, 4, 3)), "descends"),
    "csc, places of no column": (
        lambda: compressed(sp.csc_array, indices=(0, 1, 1, 0, 7), data=(5, 7, 9, 1, 1)), "is 3; it must be 5"
    ),
    "bsr, pointers that begin at 1": (lambda: blocks([1, 3, 2]), r"indptr\[0\].* is 1"),
    "bsr, pointers that fall": (lambda: blocks([0, 3, 2]), "descends"),
    "bsr, a block outside": (lambda: blocks([0, 1, 2], [0, 2]), "block column 2"),
    "lil, a column outside": (lambda: lists([[0], [5]], [[1], [2]]), r"indices\[1\]"),
    "lil, more values than places": (lambda: lists([[0], [1]], [[1], range(1000)]), r"rows\[1\] has 1 places"),
    "lil, a text": (lambda: lists([[0], [1]], [[1], ["x"]]), "no numbers"),
    "dok, a place outside": (lambda: dictionary([(0, 1), (5, 0)]), "row 5"),
    "dia, a diagonal outside": (
        lambda: with_field(sp.dia_array(np.eye(3, dtype=F4)), offsets=np.array([3])), r"offsets\[0\] is 3; .* -2 .. 2"
    ),
    "dia, offsets without data": (lambda: with_field(sp.dia_array(np.eye(3, dtype=F4)), offsets=np.array([0, 1])), "2 offsets"),
    "torch csc": (lambda: from_torch(damaged_csc), "row -1"),
    "torch coo": (lambda: from_torch(damaged_coo), "row 40000000"),
    "torch csr": (lambda: from_torch(damaged_csr), "indptr"),
    "pydata COO": (lambda: pydata(coords=np.array([[0, 4], [0, 1]])), "row 4"),
    "pydata, a fill value": (lambda: pydata(fill_value=F4(2)), "fill value is 2"),
}

CALLS = {
    "Layer": lambda matrix, folder: ts.Layer(matrix, batch=4),
    "set_weights": lambda matrix, folder: ts.Layer(np.eye(2, dtype=F4), batch=4).set_weights(matrix),
    "simulate": lambda matrix, folder: ts.simulate(matrix, batch=4),
    "write": lambda matrix, folder: ts.write(folder / "a.mtx", matrix),
    "spmm": lambda matrix, folder: ts.spmm(matrix, np.ones((matrix.shape[1], 2), F4)),
    "sddmm": lambda matrix, folder: ts.sddmm(matrix, np.ones((matrix.shape[0], 1), F4), np.ones((1, matrix.shape[1]), F4)),
    "matmul": lambda matrix, folder: ts.matmul(np.ones((2, matrix.shape[0]), F4), matrix),
    "matmul, transposed": lambda matrix, folder: ts.matmul(matrix, np.ones((matrix.shape[0], 2), F4), transpose_lhs=True),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_place_outside_the_matrix_is_named_whatever_takes_it(fault, call, tmp_path):
    make, text = FAULTS[fault]
    with pytest.raises((ts.BadInput, ts.InvalidArgument), match=text):
        CALLS[call](make(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_conversions_are_those_of_scipy():
    rng = np.random.default_rng(4)
    dense = np.where(rng.random((9, 7)) < 0.4, rng.standard_normal((9, 7)), 0).astype(F4)
    dia = sp.dia_array((rng.standard_normal((4, 11)).astype(F4), [-8, -2, 0, 6]), shape=(9, 7))
    unsorted = sp.csc_array(dense)
    for column in range(7):
        places = slice(unsorted.indptr[column], unsorted.indptr[column + 1])
        unsorted.indices[places] = unsorted.indices[places][::-1]
        unsorted.data[places] = unsorted.data[places][::-1]
    doubled = sp.csc_array((np.ones(4, F4), np.array([2, 2, 0, 2]), np.array([0, 3, 4])), shape=(3, 2))
    for matrix in (dia, unsorted, doubled, sp.lil_array(dense), sp.dok_matrix(dense), sp.lil_array((3, 4), dtype=F4)):
        got, wanted = ts.Layer(matrix).weights, matrix.tocsr()
        wanted.sum_duplicates()
        assert (got.toarray() == wanted.toarray()).all() and got.nnz == wanted.nnz


@pytest.mark.parametrize("call", CALLS)
def test_a_mask_is_never_lost(call, tmp_path):
    weights = np.ma.masked_array(np.ones((2, 2), F4), [[True, False], [False, False]])
    with pytest.raises(TypeError, match=r"masked array; .*filled\(0\)|pass one operand as a sparse matrix"):
        CALLS[call](weights, tmp_path)


def test_masks_of_operands_values_and_places_are_not_lost():
    layer, masked = ts.Layer(np.eye(4, dtype=F4)), np.ma.masked_array(np.ones((4, 4), F4), np.eye(4))
    for call in (
        lambda: layer @ masked,
        lambda: layer.forward(np.ones((4, 4), F4), out=masked),
        lambda: layer.forward(np.ones((4, 4), F4), bias=masked[0]),
        lambda: layer.set_values(masked[0]),
        lambda: layer.update(removed=(np.ma.masked_array([0], [True]), [0])),
        lambda: ts.spmm(sp.eye(4, dtype=F4, format="csr"), masked),
        lambda: ts.Layer((np.arange(5), np.arange(4), masked[0])),
        lambda: ts.train.Trainer("4-4-2").fit(masked.astype(np.uint8), np.zeros(4, int), epochs=1),
    ):
        with pytest.raises(TypeError, match=r"masked array; .*filled\(0\)"):
            call()
    assert (layer @ np.ones((4, 1), F4) == 1).all()


@pytest.mark.parametrize("shape", [(4.5, 4), (4,), 4, "44", (4, None), (2**70, 4)])
def test_a_shape_that_is_none_is_refused(shape):
    with pytest.raises(ts.InvalidArgument, match="two whole numbers"):
        ts.Layer((np.arange(5), np.arange(4), np.ones(4, F4)), shape=shape)


def test_indices_of_two_types_are_read_as_they_are():
    matrix = sp.csr_matrix(np.eye(4, dtype=F4))
    matrix.indices = matrix.indices.astype(np.int64)
    assert (ts.spmm(matrix, np.eye(4, dtype=F4)) == np.eye(4)).all()


def test_scipy_is_not_imported_to_read_a_matrix():
    names = {name.partition(".")[0] for name in sys.modules[ts._weights.__name__].__dict__}
    assert not names & {"scipy", "torch", "sparse"}

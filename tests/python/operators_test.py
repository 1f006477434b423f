"""Layers and products as users of NumPy and SciPy write them: vectors, transposes, batches, linear operators, texts."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator, lsqr, svds

import tessera as ts
from model import random_array, random_weights

RANDOM = np.random.default_rng(8)
BLOCKED = {"elements": random_weights(1, 24, 36, (1, 1), 0.3), "blocks": random_weights(2, 24, 36, (4, 3), 0.4)}
ORDERS = ["features_first", "batch_first"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", BLOCKED)
def test_a_vector_gives_a_vector(name, order):
    w = BLOCKED[name]
    layer = ts.Layer(w, order=order)
    s, dq = random_array(RANDOM, (72,))[::2], random_array(RANDOM, (24,))
    for got, wanted in (
        (layer @ s, w @ s), (layer.grad_input(dq), w.T @ dq), (layer.T @ dq, w.T @ dq), (dq @ layer, w.T @ dq),
        (s @ layer.T, w @ s), (ts.spmm(w, s), w @ s), (ts.matmul(dq, w), w.T @ dq), (ts.matmul(w, dq, transpose_lhs=True), w.T @ dq),
    ):  # fmt: skip
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    out = np.empty(24, np.float32)
    assert layer.forward(s, out=out) is out and np.array_equal(out, layer @ s)
    np.testing.assert_allclose(
        layer.grad_weights(dq, s).reshape(-1), ts.Layer(w).grad_weights(dq[:, None], s[:, None]).reshape(-1), rtol=1e-5
    )


@pytest.mark.parametrize("order", ORDERS)
def test_a_transpose_is_the_matrix_of_the_gradient(order):
    w = BLOCKED["elements"]
    layer = ts.Layer(w, order=order)
    x, left = random_array(RANDOM, (24, 5)), random_array(RANDOM, (5, 24))
    assert layer.ndim == layer.T.ndim == 2 and layer.T.shape == (36, 24) and layer.T.T is layer
    if order == "features_first":
        np.testing.assert_allclose(layer.T @ x, w.T @ x, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(left @ layer, left @ w, rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_allclose(layer.T @ left, left @ w, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(left @ layer, left @ w, rtol=1e-4, atol=1e-5)
    right = random_array(RANDOM, (5, 36))
    np.testing.assert_allclose(right @ layer.T, right @ w.T, rtol=1e-4, atol=1e-5)
    assert repr(layer.T).startswith("Transpose(Layer(24 x 36")


@pytest.mark.parametrize("order", ORDERS)
def test_scipys_solvers_take_a_layer(order):
    w = sp.random(40, 20, 0.3, "csr", np.float32, np.random.default_rng(2)) + sp.eye(40, 20, dtype=np.float32)
    operator = aslinearoperator(ts.Layer(w, order=order))
    assert isinstance(operator, LinearOperator) and operator.shape == (40, 20) and operator.dtype == np.float32
    truth = np.arange(20.0)
    np.testing.assert_allclose(lsqr(operator, w @ truth, atol=1e-9, btol=1e-9)[0], truth, atol=1e-3)
    largest = np.linalg.norm(w.toarray(), 2)
    assert abs(svds(operator, k=1, return_singular_vectors=False)[0] / largest - 1) < 1e-3
    columns = RANDOM.random((20, 3))
    np.testing.assert_allclose(operator @ columns, w @ columns, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(operator.T @ (w @ columns), w.T @ (w @ columns), rtol=1e-4, atol=1e-3)
    with pytest.raises(ts.InvalidArgument, match="linear operators are float32"):
        aslinearoperator(ts.Layer(w, dtype="float16", order=order)).matvec(truth)


@pytest.mark.parametrize("shape", [(3, 36, 5), (2, 3, 36, 4), (0, 36, 2)])
def test_products_take_batches_of_operands(shape):
    w, b = BLOCKED["elements"], random_array(RANDOM, shape)
    wanted = w.toarray() @ b
    np.testing.assert_allclose(ts.spmm(w, b), wanted, rtol=1e-4, atol=1e-5)
    out = np.empty(wanted.shape, np.float32)
    assert ts.spmm(w, b, out) is out
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)
    turned = np.ascontiguousarray(np.swapaxes(b, -1, -2))
    np.testing.assert_allclose(ts.matmul(turned, w, transpose_rhs=True), np.swapaxes(wanted, -1, -2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", ["none", "relu", "gelu"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_layer_applies_an_activation(order, activation):
    w, s, bias = BLOCKED["elements"], random_array(RANDOM, (36, 6)), random_array(RANDOM, (24,))
    layer, first = ts.Layer(w, order=order), order == "batch_first"
    got = layer.forward(np.ascontiguousarray(s.T) if first else s, bias=bias, activation=activation)
    np.testing.assert_allclose(got.T if first else got, ts.spmm(w, s, bias=bias, activation=activation), rtol=1e-4, atol=1e-5)
    assert np.array_equal(layer.forward(got * 0, activation=activation) if got.shape[0] == 36 else got, got)


def test_an_activation_that_is_none_is_refused():
    layer = ts.Layer(BLOCKED["elements"])
    for wrong, error in (("tanh", ts.InvalidArgument), (3, TypeError)):
        with pytest.raises(error, match="activation"):
            layer.forward(np.ones((36, 2), np.float32), activation=wrong)


def test_a_layer_without_weights_applies_the_activation_to_the_bias():
    layer = ts.Layer(np.zeros((3, 0), np.float32))
    bias = np.array([-1, 0, 2], np.float32)
    assert np.array_equal(layer.forward(np.zeros((0, 2), np.float32), bias=bias, activation="relu")[:, 0], [0, 0, 2])


def test_a_layer_is_made_of_triplets():
    w = BLOCKED["elements"].tocoo()
    for given, shape in (((w.data, (w.row, w.col)), w.shape), ((w.data, (w.row.tolist(), w.col.tolist())), w.shape)):
        layer = ts.Layer(given, shape=shape)
        assert layer.shape == w.shape and abs(layer.weights - w).max() == 0
    one = np.ones(2, np.float32)
    assert ts.Layer((one, ([0, 2], [3, 1]))).shape == (3, 4)
    twice = ts.Layer((one, ([1, 1], [0, 0])), shape=(2, 2))
    assert twice.nnz == 1 and twice.values[0] == 2
    for wrong, error, text in (
        ((one, one[:1]), ts.InvalidArgument, "no pair of rows and columns"),
        ((one, ([0, 5], [0, 0])), ts.BadInput, "row 5; the matrix has 2 rows"),
        ((one,), ts.InvalidArgument, r"a tuple of 1; pass \(indptr, indices, data\), or \(data, \(rows, columns\)\)"),
    ):
        with pytest.raises(error, match=text):
            ts.Layer(wrong, shape=(2, 2))


@pytest.mark.parametrize("dtype", ["float16", np.float16, np.dtype(np.float16)])
def test_types_are_given_as_names_or_as_numpys(dtype):
    layer = ts.Layer(BLOCKED["elements"], dtype=dtype)
    assert layer.dtype == "float16" and (layer @ np.ones((36, 2), np.float16)).dtype == np.float16
    assert ts.plan(64, 64, batch=4, density=0.1, dtype=dtype).cycles > 0
    for wrong in (np.float64, "double", np.complex64, 3):
        with pytest.raises(ts.InvalidArgument, match="dtype is .*float32, float16, bfloat16"):
            ts.Layer(BLOCKED["elements"], dtype=wrong)


def test_every_class_has_a_text():
    w = BLOCKED["elements"]
    machine = ts.Machine("gc200")
    objects = [
        ts.Layer(w), ts.Layer(w).T, machine, ts.plan(64, 64, batch=4, density=0.1), ts.simulate(w, batch=4, passes="fwd"),
        ts.train.Trainer("4-4-2"), ts.Layer(w).times, ts.Layer(w).rounding(), ts.Layer(w).arrays,
    ]  # fmt: skip
    for each in objects:
        assert " object at 0x" not in repr(each) and type(each).__name__ in repr(each), repr(each)


def test_a_batched_result_has_the_leading_dimensions_of_the_operand():
    w = sp.random(6, 4, 0.5, "csr", np.float32, random_state=1)
    with pytest.raises(ts.InvalidArgument, match=r"leading dimensions \[3\]"):
        ts.spmm(w, np.ones((3, 4, 2), np.float32), out=np.zeros((2, 6, 2), np.float32))

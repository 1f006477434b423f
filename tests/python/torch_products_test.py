"""ts.spmm, ts.sddmm and ts.matmul on tensors of torch: tensors for tensors, and the gradients of dense products."""

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="python3-torch is not installed")

import tessera as ts  # noqa: E402
from model import random_weights  # noqa: E402

W = random_weights(5, 8, 12, (1, 1), 0.4)
DENSE = torch.from_numpy(W.toarray())
BLOCKS = random_weights(6, 8, 12, (4, 3), 0.5)


def bare(matrix):
    """Returns a matrix as arrays of torch, whose values may require a gradient."""
    return torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), torch.from_numpy(matrix.data).clone()


def square_of(result):
    return (result * torch.arange(1.0, result.numel() + 1).reshape(result.shape)).sum()


SPARSE = {
    "csr": lambda: DENSE.to_sparse_csr(),
    "coo": lambda: DENSE.to_sparse(),
}


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("shape", [(12, 5), (12,), (3, 12, 5), (2, 3, 12, 4)])
@pytest.mark.parametrize("activation", ["none", "relu", "gelu"])
def test_spmm_has_the_gradients_of_a_dense_product(kind, shape, activation):
    torch.manual_seed(1)
    a, b, bias = SPARSE[kind]().requires_grad_(), torch.randn(shape, requires_grad=True), torch.randn(8, requires_grad=True)
    weight, twin, added = DENSE.clone().requires_grad_(), b.detach().clone().requires_grad_(), bias.detach().clone().requires_grad_()
    q = ts.spmm(a, b, bias=bias, activation=activation, alpha=0.5)
    wanted = 0.5 * (weight @ twin) + (added if len(shape) == 1 else added[:, None])
    wanted = {"none": lambda t: t, "relu": torch.relu, "gelu": lambda t: torch.nn.functional.gelu(t, approximate="tanh")}[activation](wanted)
    assert torch.allclose(q, wanted, atol=1e-5)
    square_of(q).backward()
    square_of(wanted).backward()
    for got, true in ((b.grad, twin.grad), (bias.grad, added.grad), (a.grad.to_dense(), weight.grad * (DENSE != 0))):
        assert torch.allclose(got, true, rtol=1e-3, atol=1e-3)
    with torch.no_grad():
        assert torch.allclose(ts.spmm(a, b, bias=bias, activation=activation, alpha=0.5), q, atol=1e-5)


@pytest.mark.parametrize("matrix", [W, BLOCKS], ids=["csr", "bsr"])
def test_values_of_bare_arrays_get_their_gradient(matrix):
    torch.manual_seed(2)
    indptr, indices, values = bare(matrix)
    values.requires_grad_()
    b, places = torch.randn(12, 5), torch.from_numpy(matrix.toarray()) != 0
    square_of(ts.spmm((indptr, indices, values), b)).backward()
    weight = torch.from_numpy(matrix.toarray()).requires_grad_()
    square_of(weight @ b).backward()
    filled = matrix.copy()
    filled.data = values.grad.numpy()
    assert torch.allclose(torch.from_numpy(filled.toarray()), weight.grad * places, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("lhs", [False, True])
@pytest.mark.parametrize("rhs", [False, True])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("vector", [False, True])
def test_matmul_has_the_gradients_of_a_dense_product(first, lhs, rhs, vector):
    torch.manual_seed(3)
    stored = DENSE.t().contiguous() if (lhs if first else rhs) else DENSE
    a = stored.to_sparse_csr().requires_grad_()
    inner = 12 if first else 8
    shape = (inner,) if vector else ((inner, 5) if first else (5, inner))
    if (rhs if first else lhs) and not vector:
        shape = shape[::-1]
    dense = torch.randn(shape, requires_grad=True)
    operands = (a, dense) if first else (dense, a)
    q = ts.matmul(*operands, transpose_lhs=lhs, transpose_rhs=rhs)
    weight, twin = stored.clone().requires_grad_(), dense.detach().clone().requires_grad_()
    left, right = (weight, twin) if first else (twin, weight)
    turn = [t.t() if flag and t.dim() == 2 else t for t, flag in ((left, lhs), (right, rhs))]
    wanted = turn[0] @ turn[1]
    assert torch.allclose(q, wanted, atol=1e-5)
    square_of(q).backward()
    square_of(wanted).backward()
    assert torch.allclose(dense.grad, twin.grad, rtol=1e-4, atol=1e-4)
    assert torch.allclose(a.grad.to_dense(), weight.grad * (stored != 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("matrix", [W, BLOCKS], ids=["csr", "bsr"])
def test_sddmm_has_the_gradients_of_a_dense_product(matrix):
    torch.manual_seed(4)
    a, b = torch.randn(8, 3, requires_grad=True), torch.randn(3, 12, requires_grad=True)
    values = ts.sddmm(matrix, a, b, alpha=2)
    assert isinstance(values, torch.Tensor) and values.shape == matrix.data.shape
    seed = torch.randn(values.shape)
    (values * seed).sum().backward()
    filled = matrix.copy()
    filled.data = seed.numpy()
    mask = torch.from_numpy(filled.toarray())
    assert torch.allclose(a.grad, 2 * mask @ b.detach().t(), atol=1e-5)
    assert torch.allclose(b.grad, 2 * a.detach().t() @ mask, atol=1e-5)


def test_tensors_come_back_for_tensors_and_arrays_for_arrays():
    b = np.ones((12, 5), np.float32)
    for a, operand, kind in (
        (W, b, np.ndarray), (W, torch.from_numpy(b), torch.Tensor), (DENSE.to_sparse(), b, np.ndarray),
        (DENSE.to_sparse_csr(), torch.from_numpy(b), torch.Tensor), (bare(W), b, np.ndarray), (DENSE.to_sparse_csr().requires_grad_(), b, torch.Tensor),
    ):  # fmt: skip
        for got in (ts.spmm(a, operand, threads=1), ts.spmm(a, operand[:, 0])):
            assert isinstance(got, kind)
    out = torch.empty(8, 5)
    assert ts.spmm(W, torch.from_numpy(b), out) is out and torch.allclose(out, DENSE @ torch.from_numpy(b), atol=1e-5)
    groups = ts.matmul([W, W], torch.ones(2, 12, 3, requires_grad=True))
    assert isinstance(groups, torch.Tensor) and groups.requires_grad and groups.shape == (2, 8, 3)


def test_what_has_no_gradient_is_refused():
    b = torch.ones(12, 5, requires_grad=True)
    with pytest.raises(ts.InvalidArgument, match="out and beta have no gradients"):
        ts.spmm(W, b, torch.empty(8, 5))
    with pytest.raises(TypeError, match=r"\.to_sparse_csr\(\)"):
        ts.spmm(DENSE.clone().requires_grad_(), b)
    data = torch.ones(3, requires_grad=True)
    with pytest.raises(TypeError, match=r"pass \(indptr, indices, data\)"):
        ts.spmm((data, (np.arange(3), np.arange(3))), torch.ones(3, 2))


LEFT = torch.ones(8, 5)
PRODUCTS = {"spmm": lambda b: ts.spmm(W, b), "sddmm": lambda b: ts.sddmm(W, LEFT, b.t())}


@pytest.mark.parametrize("kind", PRODUCTS)
def test_second_derivatives_are_refused_and_never_left_out(kind):
    product, b = PRODUCTS[kind], torch.randn(12, 5, requires_grad=True)
    for loss in (lambda q: q.sum(), lambda q: q.square().sum()):  # the gradients of the result are constant in the first
        with pytest.raises(RuntimeError, match="differentiate twice"):
            torch.autograd.grad(loss(product(b)), b, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        torch.autograd.functional.jvp(product, b.detach(), b.detach())


def test_values_that_change_before_the_backward_pass_are_refused():
    forms = (lambda values: (np.arange(4), np.arange(3), values), lambda values: torch.diag(values).detach().to_sparse_csr())
    for form in forms:
        for trained in (True, False):
            given = form(torch.ones(3))
            values = given[-1] if isinstance(given, tuple) else given
            values.requires_grad_(trained)
            q = ts.spmm(given, torch.ones(3, 2, requires_grad=True))
            written = values.detach()
            (written if isinstance(given, tuple) else written.values()).mul_(10)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                q.sum().backward()


def test_double_operands_are_converted_where_that_is_asked_for():
    w64, b64 = W.astype(np.float64), np.random.default_rng(1).random((12, 5))
    for call in (lambda **o: ts.spmm(w64, b64, **o), lambda **o: ts.matmul(w64, b64, **o), lambda **o: ts.Layer(w64, **o) @ b64):
        with pytest.raises(TypeError, match="float64"):
            call()
    for dtype in ("float32", np.float32, np.dtype("float32"), torch.float32):
        np.testing.assert_allclose(ts.spmm(w64, b64, dtype=dtype), w64 @ b64, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ts.matmul(b64.T, w64.T, dtype=dtype), (w64 @ b64).T, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ts.Layer(w64, dtype=dtype).values, W.data)
        assert ts.sddmm(w64, np.ones((8, 1)), np.ones((1, 12)), dtype=dtype).dtype == np.float32
    assert torch.allclose(ts.spmm(DENSE.double().to_sparse(), torch.ones(12, 2).double(), dtype="float32"), DENSE.sum(1)[:, None].expand(8, 2), atol=1e-5)
    assert ts.Layer(DENSE.bfloat16().to_sparse(), dtype="bfloat16").nnz == W.nnz
    huge = sp.csr_matrix(np.array([[1e300]]))
    for wrong, error, text in ((huge, ts.BadInput, "beyond those of float32"), (huge * 1j, TypeError, "complex128")):
        with pytest.raises(error, match=text):
            ts.spmm(wrong, np.ones((1, 1)), dtype="float32")
    with pytest.raises(ts.InvalidArgument, match="products compute in float32"):
        ts.spmm(W, b64, dtype="float16")

"""Tensors of torch that are negated or conjugated lazily: their memory alone is not what they hold."""

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from torch import nn  # noqa: E402

import tessera as ts  # noqa: E402
from tessera.torch import SparseLinear  # noqa: E402

F4 = np.float32


def negated(*shape):
    """Returns random numbers that torch negates when it looks at them."""
    tensor = torch.randn(*shape, dtype=torch.complex64).conj().imag
    assert tensor.is_neg()
    return tensor


def negated_in_place(*shape):
    """Returns the same with contiguous memory."""
    tensor = torch._neg_view(torch.randn(*shape))
    assert tensor.is_neg() and tensor.is_contiguous()
    return tensor


@pytest.mark.parametrize("make", [negated, negated_in_place])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_module_computes_with_the_sign(make, kind):
    layer, x = SparseLinear(16, 8, density=0.5, dtype=kind), make(3, 16)
    if kind != torch.float32:
        x = torch._neg_view(x.to(kind).resolve_neg().neg())
        assert x.is_neg()
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            assert torch.equal(layer(x), layer(x.clone()))
    # Gradients that arrive negated.
    plain, lazy = (x.clone().requires_grad_() for _ in range(2))
    dq = torch._neg_view(torch.randn(3, 8).to(kind))
    gradients = []
    for given, seed in ((plain, dq.clone()), (lazy, dq)):
        layer.zero_grad()
        layer(given).backward(seed)
        gradients.append((given.grad, layer.values.grad.clone(), layer.bias.grad.clone()))
    assert all(torch.equal(a, b) for a, b in zip(*gradients))


def test_parameters_that_are_negated_are_refused():
    for name, count in (("values", 64), ("bias", 8)):
        layer = SparseLinear(16, 8, density=0.5)
        setattr(layer, name, nn.Parameter(negated_in_place(count)))
        for grad in (True, False):
            with torch.set_grad_enabled(grad), pytest.raises(TypeError, match=rf"{name}.*resolve_neg\(\)"):
                layer(torch.ones(3, 16))


OPERANDS = {
    "Layer @ s": lambda layer, x: layer @ x,
    "forward, out": lambda layer, x: layer.forward(torch.ones(4, 4), out=x),
    "forward, bias": lambda layer, x: layer.forward(torch.ones(4, 4), bias=x[0]),
    "grad_input": lambda layer, x: layer.grad_input(x),
    "grad_weights": lambda layer, x: layer.grad_weights(x, x),
    "set_values": lambda layer, x: layer.set_values(x[0]),
    "rewire": lambda layer, x: layer.rewire("rigl", dq=x, s=x),
    "spmm": lambda layer, x: ts.spmm(sp.eye(4, dtype=F4, format="csr"), x),
    "spmm, out": lambda layer, x: ts.spmm(sp.eye(4, dtype=F4, format="csr"), np.ones((4, 4), F4), out=x),
    "sddmm": lambda layer, x: ts.sddmm(sp.eye(4, dtype=F4, format="csr"), x, x),
    "matmul": lambda layer, x: ts.matmul(x, sp.eye(4, dtype=F4, format="csr")),
    "simulate": lambda layer, x: ts.simulate(np.eye(4, dtype=F4), x, passes="fwd"),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_that_are_used_where_they_are_are_refused(name):
    layer = ts.Layer(np.eye(4, dtype=F4))
    with pytest.raises(TypeError, match=r"negated lazily.*resolve_neg\(\)"):
        OPERANDS[name](layer, negated_in_place(4, 4))


def test_matrices_and_arrays_are_read_with_their_sign():
    dense = negated_in_place(4, 4)
    assert (ts.Layer(dense).weights.toarray() == dense.resolve_neg().numpy()).all()
    csr = torch.sparse_csr_tensor(torch.arange(5), torch.arange(4), torch.ones(4))
    values = negated_in_place(4)
    lazy = torch.sparse_coo_tensor(torch.arange(4).repeat(2, 1), values, (4, 4))
    assert (ts.spmm(lazy, np.eye(4, dtype=F4)) == np.diag(values.resolve_neg().numpy())).all()
    bare = ts.Layer((csr.crow_indices(), csr.col_indices(), values))
    assert (bare.values == values.resolve_neg().numpy()).all()
    module = SparseLinear(4, 4, density=1.0)
    module.load_state_dict({**module.state_dict(), "values": negated_in_place(16)})
    assert not module.values.is_neg()
    linear = nn.Linear(4, 4)
    linear.weight = nn.Parameter(dense)
    assert torch.equal(SparseLinear.from_dense(linear, density=1.0).to_dense().weight, dense.resolve_neg())


def test_tensors_without_memory_are_refused():
    zeros = torch._efficientzerotensor((4, 3))
    with pytest.raises(TypeError, match=r"s stores no elements; pass s.clone\(\)"):
        ts.Layer(np.eye(4, dtype=F4)) @ zeros

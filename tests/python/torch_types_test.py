"""Dense layers, masks and state_dicts of any type, and mixed precision."""

import copy
import io

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from torch import nn  # noqa: E402
from torch.nn.utils.stateless import functional_call  # noqa: E402

import tessera as ts  # noqa: E402
from tessera.torch import SparseLinear, sparsify  # noqa: E402

NARROW = [torch.bfloat16, torch.float16]

FROM_DENSE = {
    "a mask of 4 x 4 for 8 x 16": ({"mask": torch.ones(4, 4)}, ts.InvalidArgument, r"\[4, 4\]; .*\[8, 16\]"),
    "a mask of one column": ({"mask": torch.ones(8, 1)}, ts.InvalidArgument, r"\[8, 1\]"),
    "a transposed mask": ({"mask": torch.ones(16, 8)}, ts.InvalidArgument, r"\[16, 8\]"),
    "a mask that is none": ({"mask": "some"}, ts.InvalidArgument, "mask"),
    "a masked array": ({"mask": np.ma.masked_array(np.ones((8, 16)), 1)}, TypeError, "masked array"),
    "density 2": ({"density": 2.0}, ts.InvalidArgument, "density is 2.0"),
    "density -0.5": ({"density": -0.5}, ts.InvalidArgument, "density is -0.5"),
    "density NaN": ({"density": float("nan")}, ts.InvalidArgument, "density is nan"),
    "density a text": ({"density": "half"}, TypeError, "density is 'half'"),
    "both": ({"density": 0.5, "mask": torch.ones(8, 16)}, ts.InvalidArgument, "not both"),
}


@pytest.mark.parametrize("name", FROM_DENSE)
def test_from_dense_refuses_what_is_no_mask_and_no_density(name):
    options, error, text = FROM_DENSE[name]
    with pytest.raises(error, match=text):
        SparseLinear.from_dense(nn.Linear(16, 8), **options)


def test_from_dense_takes_masks_of_any_kind():
    linear, mask = nn.Linear(16, 8), torch.rand(8, 16) < 0.5
    for given in (mask, mask.float(), mask.numpy(), mask.tolist(), mask.t().contiguous().t()):
        assert torch.equal(SparseLinear.from_dense(linear, mask=given).to_dense().weight, linear.weight * mask)


def test_from_dense_refuses_what_is_no_linear_layer():
    for other in (nn.Conv1d(4, 4, 3), SparseLinear(4, 4), nn.ReLU()):
        with pytest.raises(TypeError, match="pass a torch.nn.Linear"):
            SparseLinear.from_dense(other, density=0.5)


@pytest.mark.parametrize("kind", NARROW)
def test_from_dense_keeps_the_type_of_the_layer(kind):
    dense = nn.Linear(16, 8).to(kind)
    sparse = SparseLinear.from_dense(dense, density=1.0)
    assert sparse.dtype == kind and sparse.values.dtype == torch.float32
    x = torch.randn(3, 16)
    assert torch.allclose(sparse(x.to(kind)).float(), dense.float()(x), atol=0.1)
    wide = SparseLinear.from_dense(nn.Linear(16, 8).to(kind), density=0.5, dtype=torch.float32)
    assert wide(x).dtype == torch.float32


def test_double_precision_is_computed_and_differentiated_twice():
    torch.manual_seed(1)
    dense = nn.Linear(6, 4).double()
    for layer in (SparseLinear.from_dense(dense, density=0.5), SparseLinear(6, 4, density=0.5, block=2).double()):
        assert layer.dtype == layer.values.dtype == layer.bias.dtype == layer.weight.dtype == torch.float64
        for activation in ("none", "relu"):
            layer.activation = activation
            x = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
            assert torch.autograd.gradcheck(lambda x, v, b: functional_call(layer, {"values": v, "bias": b}, (x,)),
                                            (x, layer.values, layer.bias))
            assert torch.autograd.gradgradcheck(lambda x, v: functional_call(layer, {"values": v}, (x,)), (x, layer.values))
    narrow = copy.deepcopy(layer).float()
    assert narrow.dtype == narrow.values.dtype == torch.float32
    assert torch.allclose(narrow(x.float()).double(), layer(x), atol=1e-6)
    assert layer.to_dense().weight.dtype == torch.float64 and copy.deepcopy(layer).bfloat16().values.dtype == torch.float32
    for call in (lambda: layer.rewire(None, "set", fraction=0.5), layer.to_torch):
        with pytest.raises(TypeError, match=r"call float\(\)"):
            call()


def test_another_type_of_input_is_told():
    with pytest.raises(TypeError, match=r"pass x.to\(torch.float32\), or convert the layer by to\(torch.float64\)"):
        SparseLinear(16, 8)(torch.ones(3, 16).double())
    for wrong, text in ((torch.int32, "int32"), ("half", "half"), (int, "int")):
        with pytest.raises(ts.InvalidArgument, match=f"dtype is {text}"):
            SparseLinear(16, 8, dtype=wrong)
    for given in ("bfloat16", torch.bfloat16):
        assert SparseLinear(16, 8, dtype=given).dtype == torch.bfloat16
    assert SparseLinear(16, 8, dtype=np.float16).dtype == torch.float16


def test_a_second_derivative_in_float_is_refused_as_users_know_it():
    layer = SparseLinear(6, 4, density=0.5)
    x = torch.randn(3, 6, requires_grad=True)
    for loss in (layer(x).square().sum(), layer(x).sum()):  # gradients of the values would be lost in the second
        with pytest.raises(RuntimeError, match="differentiate twice"):
            torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        torch.autograd.functional.hessian(lambda v: functional_call(layer, {"values": v}, (x,)).square().sum(), layer.values.detach())
    layer.double()
    (first,) = torch.autograd.grad(layer(x.double()).square().sum(), layer.values, create_graph=True)
    first.sum().backward()


def test_an_array_is_refused_in_words():
    with pytest.raises(TypeError, match="x is a ndarray; pass a tensor"):
        SparseLinear(5, 4)(np.ones((3, 5), np.float32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_type_has_a_relu_and_the_gradient_of_a_bias_alone(dtype):
    layer = SparseLinear(5, 4, density=0.5, activation="relu").to(dtype)
    layer.values.requires_grad_(False)
    with torch.no_grad():
        layer.bias.copy_(torch.tensor([30.0, -30.0, 30.0, 30.0]))
    x = torch.rand(3, 5).to(dtype)
    q = layer(x)
    assert torch.allclose(q.float(), (x.float() @ layer.to_dense().weight.float().t() + layer.bias).relu(), atol=0.3)
    q.sum().backward()
    assert layer.bias.grad.tolist() == [3, 0, 3, 3] and layer.values.grad is None


@pytest.mark.parametrize("kind", NARROW)
def test_to_chooses_the_type_of_the_operands_and_keeps_the_values(kind):
    net, x = nn.Sequential(SparseLinear(16, 8, density=0.5)), torch.randn(3, 16)
    before, wide = net[0].values.clone(), net(x)
    for converted in (copy.deepcopy(net).to(kind), copy.deepcopy(net).type(kind)):
        assert converted[0].dtype == kind and torch.equal(converted[0].values, before)
        q = converted(x.to(kind))
        assert q.dtype == kind and torch.allclose(q.float(), wide, atol=0.1)
        q.float().sum().backward()
        assert converted[0].values.grad.dtype == torch.float32
        assert torch.equal(converted.float()[0](x), net[0](x))
    assert copy.deepcopy(net).half()[0].dtype == torch.float16
    net.to(torch.float64)
    assert net[0].values.dtype == torch.float64 and net[0].indptr.dtype == torch.int32


def test_autocast_gives_its_own_type_as_for_a_dense_layer():
    torch.manual_seed(2)
    sparse = SparseLinear(16, 8, density=0.5)
    net, x = nn.Sequential(nn.Linear(16, 16), sparse, nn.ReLU(), nn.Linear(8, 3)), torch.randn(5, 16)
    twin = nn.Sequential(copy.deepcopy(net[0]), sparse.to_dense(), nn.ReLU(), copy.deepcopy(net[3]))
    for each in (net, twin):
        with torch.autocast("cpu", torch.bfloat16):
            middle, q = each[:2](x), each(x)
        assert middle.dtype == torch.bfloat16 and q.dtype == torch.bfloat16
        q.float().square().sum().backward()
    assert torch.allclose(net(x), twin(x), atol=1e-5)
    for a, b in ((net[0].weight.grad, twin[0].weight.grad), (sparse.bias.grad, twin[1].bias.grad)):
        assert torch.allclose(a, b, atol=0.05 * b.abs().max())
    narrow = SparseLinear(16, 8, density=0.5, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert narrow(x).dtype == torch.bfloat16
        with pytest.raises(TypeError, match="float64"):
            narrow(x.double())


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float64])
def test_state_dicts_of_other_types_are_loaded(kind):
    source, layer, x = SparseLinear(16, 8, density=0.5), SparseLinear(16, 8, density=0.25), torch.randn(3, 16)
    state = {name: t.to(kind) if t.is_floating_point() else t.to(torch.int64) for name, t in source.state_dict().items()}
    layer.load_state_dict(state)
    assert layer.values.dtype == torch.float32 and torch.equal(layer.values, state["values"].float())
    assert torch.allclose(layer(x), source(x), atol=0.05)


STATES = {
    "values of two dimensions": ("values", torch.ones(8, 8), ts.InvalidArgument, "one dimension"),
    "indices that are none": ("indices", torch.ones(64), TypeError, "indices is float32"),
    "an index outside": ("indices", torch.full((64,), 16), ts.BadInput, r"indices\[0\]"),
    "too few values": ("values", torch.ones(63), ts.BadInput, "63 values"),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_dict_that_is_none_changes_nothing(name):
    key, tensor, error, text = STATES[name]
    layer, x = SparseLinear(16, 8, density=0.5), torch.randn(3, 16)
    before = layer(x)
    with pytest.raises(error, match=text):
        layer.load_state_dict({**layer.state_dict(), key: tensor})
    assert torch.equal(layer(x), before)


def test_values_that_are_no_whole_blocks_are_refused():
    layer = SparseLinear(16, 8, density=0.5, block=4)
    with pytest.raises(ts.InvalidArgument, match="63 values, which are no whole blocks"):
        layer.load_state_dict({**layer.state_dict(), "values": torch.ones(63)})


def test_a_converted_module_is_saved_and_loaded():
    layer, file, x = SparseLinear(16, 8, density=0.5).to(torch.bfloat16), io.BytesIO(), torch.randn(3, 16).bfloat16()
    torch.save(layer, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x), layer(x))


@pytest.mark.parametrize("threads", [-1, 10**6])
def test_threads_that_no_call_takes_are_told_at_once(threads):
    with pytest.raises(ts.InvalidArgument, match="threads; use 1 to 1024, or 0 for all cores"):
        SparseLinear(4, 4, threads=threads)
    with pytest.raises(ts.InvalidArgument, match="threads; use 1 to 1024, or 0 for all cores"):
        sparsify(nn.Sequential(nn.Linear(4, 4)), density=0.5, threads=threads)

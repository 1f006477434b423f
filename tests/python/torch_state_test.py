"""What a SparseLinear remembers between passes: of tensors that are written, replaced, shared or copied."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.utils.stateless import functional_call  # noqa: E402

import tessera as ts  # noqa: E402
from tessera.torch import SET, RigL, SparseLinear  # noqa: E402
from tessera.torch._passes import Product  # noqa: E402

KINDS = [torch.float32, torch.bfloat16]


def dense_weight(layer, values):
    """Returns the dense weight of a layer with these values."""
    twin = copy.deepcopy(layer)
    twin.values.data = values.detach().clone()
    return twin.to_dense().weight.detach()


def tolerance(kind):
    return {"atol": 1e-5} if kind == torch.float32 else {"atol": 0.1, "rtol": 0.05}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_each_backward_multiplies_by_the_values_of_its_own_forward(kind, training):
    torch.manual_seed(1)
    layer = SparseLinear(16, 8, density=0.5, dtype=kind).train(training)
    ensemble = [torch.randn_like(layer.values).requires_grad_() for _ in range(3)]
    inputs = [torch.randn(5, 16, dtype=kind, requires_grad=True) for _ in ensemble]
    results = [functional_call(layer, {"values": v}, (x,)) for v, x in zip(ensemble, inputs)]
    for i in (1, 0, 2):
        results[i].float().sum().backward()
        weight = dense_weight(layer, ensemble[i])
        assert torch.allclose(results[i].float(), F.linear(inputs[i].detach().float(), weight, layer.bias), **tolerance(kind))
        assert torch.allclose(inputs[i].grad.float(), weight.sum(0).expand(5, 16), **tolerance(kind))
    assert layer.values.grad is None and all(v.grad is not None for v in ensemble)


def test_members_of_an_ensemble_may_have_patterns_of_their_own():
    members = [SparseLinear(16, 8, density=0.4) for _ in range(3)]
    inputs = [torch.randn(4, 16, requires_grad=True) for _ in members]
    states = [{name: t for name, t in m.named_parameters()} | dict(m.named_buffers()) for m in members]
    results = [functional_call(members[0], state, (x,)) for state, x in zip(states, inputs)]
    for member, x, q in zip(members, inputs, results):
        q.sum().backward()
        weight = member.to_dense().weight.detach()
        assert torch.allclose(q, F.linear(x, weight, member.bias), atol=1e-5)
        assert torch.allclose(x.grad, weight.sum(0).expand(4, 16), atol=1e-5)
        assert member.values.grad.shape == member.values.shape


def test_replaced_values_are_used_though_their_memory_is_used_again():
    layer, x = SparseLinear(16, 8, density=0.5).eval(), torch.randn(3, 16)
    with torch.no_grad():
        for step in range(200):
            if step % 2:
                layer.values = nn.Parameter(torch.full_like(layer.values, float(step)))
            else:
                layer.values.data = torch.full_like(layer.values, float(step))
            assert torch.allclose(layer(x), layer.to_dense()(x), rtol=1e-4, atol=1e-3), step


@pytest.mark.parametrize("training", [True, False])
def test_buffers_and_parameters_may_be_copied_in_place(training):
    a, b, x = SparseLinear(16, 8, density=0.25), SparseLinear(16, 8, density=0.25), torch.randn(4, 16)
    a.train(training)
    with torch.no_grad():
        a(x)
        for to, source in zip([*a.buffers(), *a.parameters()], [*b.buffers(), *b.parameters()]):
            to.copy_(source)
        assert torch.allclose(a(x), b(x), atol=1e-5)


def test_a_pattern_that_is_written_in_training_is_used():
    layer, other, x = SparseLinear(6, 4, density=0.5), SparseLinear(6, 4, density=0.5), torch.randn(4, 6)
    layer(x)
    layer.indptr.copy_(other.indptr)
    layer.indices.copy_(other.indices)
    assert torch.allclose(layer(x), F.linear(x, layer.to_dense().weight, layer.bias), atol=1e-5)
    layer.indptr[1] = 99
    with pytest.raises(ts.BadInput, match="indptr"):
        layer(x)


def test_a_pattern_written_between_forward_and_backward_is_refused():
    layer = SparseLinear(16, 24, density=0.3)
    for write in (lambda: layer.indices.add_(0), lambda: layer.load_state_dict(layer.state_dict())):
        q = layer(torch.randn(5, 16))
        write()
        with pytest.raises(ts.InvalidArgument, match="pattern changed"):
            q.sum().backward()


def test_averaged_models_are_those_of_their_averages():
    net, x = nn.Sequential(SparseLinear(16, 8, density=0.5)), torch.randn(4, 16)
    averaged = torch.optim.swa_utils.AveragedModel(net)
    for _ in range(3):
        with torch.no_grad():
            net[0].values.add_(1)
        averaged.update_parameters(net)
        averaged(x)
    expected = averaged.module[0].to_dense()
    assert torch.allclose(averaged(x), expected(x), atol=1e-5)
    averaged.eval()
    with torch.no_grad():
        assert torch.allclose(averaged(x), expected(x), atol=1e-5)


def test_a_dtype_that_is_changed_makes_another_layer():
    layer, x = SparseLinear(16, 8, density=0.5), torch.randn(4, 16)
    q = layer(x)
    layer.dtype, layer.threads = torch.bfloat16, 2
    assert torch.allclose(layer(x.bfloat16()).float(), q, atol=0.1)
    layer.dtype = torch.float32
    assert torch.equal(layer(x), q)


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_threads_may_use_one_module(kind):
    torch.manual_seed(3)
    layer = SparseLinear(32, 24, density=0.4, dtype=kind)
    values = [torch.randn_like(layer.values) for _ in range(4)]

    def work(i):
        # The first ones need no gradient of the input, and others do, so several layers are made at once.
        wrong = 0
        for step in range(60):
            x = torch.randn(6, 32, generator=torch.Generator().manual_seed(step)).to(kind).requires_grad_((step + i) % 3 > 0)
            mine = values[i].clone().requires_grad_()
            q = Product.apply(x, mine, layer.bias, layer, True)
            q.float().sum().backward()
            weight = weights[i]
            wrong += not torch.allclose(q.float(), F.linear(x.detach().float(), weight, layer.bias), **tolerance(kind))
            if x.grad is not None:
                wrong += not torch.allclose(x.grad.float(), weight.sum(0).expand(6, 32), **tolerance(kind))
        return wrong

    weights = [dense_weight(layer, v) for v in values]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [0] * 4


def test_copies_keep_what_users_added():
    layer = ts.Layer(torch.eye(4).numpy())
    layer.name, layer.tags = "first", ["a"]
    for twin in (copy.copy(layer), copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert twin.name == "first" and twin.tags == ["a"] and twin.dtype == "float32"
    assert copy.copy(layer).tags is layer.tags and copy.deepcopy(layer).tags is not layer.tags
    module = SparseLinear(8, 8)
    module.note = {"a": 1}
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert twin.note == {"a": 1}


class Named(ts.Layer):
    """A layer of a user, with another constructor."""

    def __init__(self, name):
        super().__init__(torch.eye(4).numpy())
        self.name = name


def test_layers_of_other_classes_are_copied_as_such():
    for twin in (copy.deepcopy(Named("n")), pickle.loads(pickle.dumps(Named("n"))), copy.copy(Named("n"))):
        assert type(twin) is Named and twin.name == "n" and twin.nnz == 4


@pytest.mark.parametrize("method", [RigL, SET])
def test_a_copied_method_rewires_the_copied_network(method):
    net = nn.Sequential(SparseLinear(12, 10, density=0.5))
    due = method(net, torch.optim.SGD(net.parameters(), lr=0.1), every=1, end=10, fraction=0.5)
    for other, again in (copy.deepcopy((net, due)), pickle.loads(pickle.dumps((net, due)))):
        assert again.layers[0] is other[0]
        other(torch.randn(4, 12)).sum().backward()
        assert again.step()
        assert not torch.equal(other[0].indices, net[0].indices) and torch.allclose(
            other(torch.ones(1, 12)), other[0].to_dense()(torch.ones(1, 12)), atol=1e-5
        )

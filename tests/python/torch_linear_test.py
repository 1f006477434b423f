"""What SparseLinear has beside its products: options, first values, groups for decay, fused ReLU, graphs."""

import copy
import io
import math
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from torch import nn  # noqa: E402
from torch.nn.utils import prune  # noqa: E402

import tessera as ts  # noqa: E402
from tessera.torch import RigL, SparseLinear, parameter_groups  # noqa: E402

KINDS = [torch.float32, torch.bfloat16, torch.float64]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block, threads", [(1, 1), (4, 1), (1, 2)])
def test_a_fused_relu_is_that_of_a_module_behind(kind, block, threads):
    torch.manual_seed(1)
    plain = SparseLinear(24, 72, density=0.4, block=block, threads=threads).to(kind)
    fused = copy.deepcopy(plain)
    fused.activation = "relu"
    for rows in (1, 5, 130) + (14600,) * (kind == torch.float32):  # 2 ** 20 gradients
        x = torch.randn(rows, 24).to(kind)
        inputs = [x.clone().requires_grad_() for _ in range(2)]
        results = [plain(inputs[0]).relu(), fused(inputs[1])]
        assert torch.equal(*results)
        for seed in (torch.randn(rows, 72), torch.randn(72, rows).t(), torch.ones(1, 1).expand(rows, 72)):
            found = [torch.autograd.grad(q, (x, layer.values, layer.bias), seed.to(kind), retain_graph=True)
                     for q, x, layer in zip(results, inputs, (plain, fused))]  # fmt: skip
            for a, b in zip(*found):
                assert torch.equal(a, b)
    with torch.no_grad():
        assert torch.equal(plain(inputs[0]).relu(), fused(inputs[0]))


@pytest.mark.parametrize("activation", ["none", "relu"])
def test_large_operands_are_read_as_given_with_the_bits_of_small_ones(activation):
    torch.manual_seed(3)
    layer = SparseLinear(1024, 1040, density=0.01, activation=activation)
    rows = 1030  # more than 2 ** 20 numbers, and no whole vectors
    x, dq = torch.randn(rows, 1024), torch.randn(rows, 1040)
    found = []
    for turn in (lambda m: m, lambda m: m.t().contiguous().t(), lambda m: torch.cat((m, m), 1)[:, : m.shape[1]]):
        given = turn(x).requires_grad_()
        q = layer(given)
        found.append((q, *torch.autograd.grad(q, (given, layer.values, layer.bias), turn(dq))))
    for other in found[1:]:
        for ours, theirs in zip(found[0], other):
            assert torch.equal(ours, theirs)
    masked = torch.where(found[0][0] > 0, dq, 0) if activation == "relu" else dq
    exact = masked.double().t() @ x.double()
    kept = layer.to_dense().weight != 0
    assert torch.allclose(found[0][2].double(), exact[kept], rtol=1e-3, atol=1e-2)
    assert torch.allclose(found[0][3].double(), masked.double().sum(0), rtol=1e-4, atol=1e-3)


def test_a_method_reads_large_operands_of_batches_that_shared_one_buffer():
    x, dq = torch.randn(2, 1100, 1024), torch.randn(2, 1100, 64)
    patterns = []
    for shares in (False, True):
        torch.manual_seed(4)
        layer = SparseLinear(1024, 64, density=0.05)
        method = RigL(layer, torch.optim.SGD(layer.parameters(), lr=0.1), every=1, end=9, fraction=0.5)
        buffer = torch.empty(1100, 1024)
        for part in range(2):
            layer(buffer.copy_(x[part]) if shares else x[part]).backward(dq[part])
        buffer.fill_(0)
        method.step()
        patterns.append(layer.indices.clone())
    assert torch.equal(*patterns)


def test_a_large_input_of_inference_mode_trains_a_layer():
    with torch.inference_mode():
        x = torch.randn(1100, 1024)
    layer = SparseLinear(1024, 8, density=0.1)
    layer(x).sum().backward()
    assert layer.values.grad.abs().sum() > 0


def test_a_large_input_that_is_written_before_the_backward_pass_is_refused_as_by_a_dense_layer():
    layer = SparseLinear(1024, 8, density=0.1)
    for made in (layer, layer.to_dense()):
        x = torch.randn(1024, 1024)
        q = made(x)
        x.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            q.sum().backward()


def test_a_fused_relu_keeps_nan_and_passes_its_gradient_as_torch_does():
    layer = SparseLinear(4, 4, density=1.0, activation="relu")
    x = torch.tensor([[math.nan, 1.0, 1.0, 1.0]], requires_grad=True)
    q = layer(x)
    assert q.isnan().all()
    q.sum().backward()
    assert torch.allclose(x.grad, layer.weight.detach().sum(0, keepdim=True), atol=1e-6)


def test_a_method_sees_the_gradient_behind_a_fused_relu():
    torch.manual_seed(2)
    plain = nn.Sequential(SparseLinear(16, 12, density=0.4), nn.ReLU())
    fused = copy.deepcopy(plain)[:1]
    fused[0].activation = "relu"
    x = torch.randn(9, 16)
    for net in (plain, fused):
        due = RigL(net, torch.optim.SGD(net.parameters(), lr=0.1), every=1, end=9, fraction=0.5)
        net(x).square().sum().backward()
        assert due.step()
    assert torch.equal(plain[0].indices, fused[0].indices) and torch.equal(plain[0].values, fused[0].values)


def test_an_activation_that_is_none_is_refused():
    with pytest.raises(ts.InvalidArgument, match="activation is 'tanh'; it is one of none, relu, gelu"):
        SparseLinear(4, 4, activation="tanh")
    assert SparseLinear(4, 4, activation=None).activation == "none"


def test_density_is_given_as_such_or_as_sparsity():
    assert SparseLinear(20, 10, sparsity=0.9).values.numel() == SparseLinear(20, 10).values.numel() == 20
    linear = nn.Linear(20, 10)
    assert torch.equal(SparseLinear.from_dense(linear, sparsity=0.7).indices, SparseLinear.from_dense(linear, density=0.3).indices)
    for make in (SparseLinear.from_dense, lambda _, **o: SparseLinear(20, 10, **o)):
        with pytest.raises(ts.InvalidArgument, match="not both"):
            make(linear, density=0.1, sparsity=0.9)
        with pytest.raises(ts.InvalidArgument, match="sparsity is 1.5"):
            make(linear, sparsity=1.5)


def test_a_pruned_layer_keeps_what_is_not_zero():
    linear = nn.Linear(20, 10)
    prune.l1_unstructured(linear, "weight", amount=0.75)
    with torch.no_grad():
        linear.weight_orig.mul_(2)  # of which `weight` knows only after the next forward pass
    sparse = SparseLinear.from_dense(linear, batch=7)
    assert sparse.values.numel() == 50 and sparse.batch == 7
    assert torch.equal(sparse.to_dense().weight, linear.weight_orig * linear.weight_mask)
    with pytest.raises(ts.InvalidArgument, match="no zeros; give density, sparsity or mask"):
        SparseLinear.from_dense(nn.Linear(20, 10))


def test_a_layer_keeps_the_mode_of_the_one_that_it_is_made_from():
    assert not SparseLinear.from_dense(nn.Linear(4, 4).eval(), density=0.5).training


def test_first_values_have_the_deviation_of_the_inputs_that_are_there():
    torch.manual_seed(3)
    layer = SparseLinear(4000, 2, density=0.5)
    layer._take((torch.tensor([0, 4, 4000], dtype=torch.int32).numpy(),
                 torch.cat([torch.arange(4), torch.arange(3996)]).to(torch.int32).numpy()), torch.zeros(4000))  # fmt: skip
    few = []
    for _ in range(200):
        layer.reset_parameters()
        few.append(layer.values[:4].detach().clone())
    assert abs(torch.cat(few).std() / math.sqrt(2 / 4) - 1) < 0.1
    assert abs(layer.values[4:].std() / math.sqrt(2 / 3996) - 1) < 0.1 and not layer.bias.any()
    before = layer.values.detach().clone()
    nn.Sequential(layer).apply(lambda m: m.reset_parameters() if hasattr(m, "reset_parameters") else None)
    assert not torch.equal(layer.values, before)


def test_decay_is_meant_for_values_but_not_for_biases():
    net = nn.Sequential(SparseLinear(8, 8), nn.LayerNorm(8), nn.Linear(8, 2))
    decayed, others = parameter_groups(net, 0.1)
    assert decayed["weight_decay"] == 0.1 and others["weight_decay"] == 0
    assert {id(p) for p in decayed["params"]} == {id(net[0].values), id(net[2].weight)}
    assert len(others["params"]) == 4 and [id(p) for p in net[0].decay_parameters()] == [id(net[0].values)]
    torch.optim.AdamW(parameter_groups(net, 0.1))


def test_the_text_of_a_layer_says_what_it_is():
    assert repr(SparseLinear(20, 10, sparsity=0.9, activation="relu", dtype=torch.bfloat16)) == (
        "SparseLinear(in_features=20, out_features=10, bias=True, density=0.1, block=(1, 1), threads=1, "
        "dtype=torch.bfloat16, activation='relu')"
    )


@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_csr", "to_mkldnn"])
def test_inputs_are_dense(form):
    with pytest.raises(TypeError, match=r"x has the layout torch\..*: x.to_dense\(\)"):
        SparseLinear(8, 8)(getattr(torch.ones(2, 8), form)())


def test_a_layer_is_on_the_cpu():
    assert SparseLinear(8, 8, device="cpu").values.is_cpu
    with pytest.raises(ts.InvalidArgument, match="device is cuda; a SparseLinear runs on the CPU"):
        SparseLinear(8, 8, device="cuda")


@pytest.mark.skipif("TESSERA_SANITIZED" in os.environ, reason="a sanitizer keeps what is freed")
def test_steps_and_rewires_need_no_more_memory_in_the_end():
    code = (
        "import resource, torch; from torch import nn; from tessera.torch import *\n"
        "net = nn.Sequential(SparseLinear(128, 256, activation='relu'), nn.Linear(256, 4))\n"
        "opt = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9); due = RigL(net, opt, every=10, end=10**6)\n"
        "x = torch.randn(32, 128)\n"
        "def steps(n):\n"
        "    for _ in range(n):\n"
        "        opt.zero_grad(); net(x).square().sum().backward(); due.step() or opt.step()\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "first = steps(300); print(steps(1700) - first)\n"
    )
    grown = int(subprocess.run([sys.executable, "-B", "-c", code], check=True, capture_output=True, text=True).stdout)
    assert grown < 4096, grown  # KiB


@pytest.mark.parametrize("kind", KINDS)
def test_a_traced_network_is_saved_and_computes_the_same(kind):
    net = nn.Sequential(SparseLinear(16, 12, density=0.4, activation="relu"), SparseLinear(12, 4, density=0.5, block=2)).to(kind)
    x, other = torch.randn(3, 16).to(kind), torch.randn(2, 5, 16).to(kind)
    traced = torch.jit.trace(net, x, check_trace=True)
    assert torch.equal(traced(x), net(x))
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    loaded = torch.jit.load(file)
    assert torch.equal(loaded(x), net(x))
    if kind != torch.float64:
        assert "tessera::sparse_linear" in str(traced.graph) or "tessera::sparse_linear" in str(traced.inlined_graph)
    batched = torch.jit.trace(net, other)
    assert torch.equal(batched(other), net(other))


def test_a_traced_network_is_trained_and_sees_new_values():
    net, x = nn.Sequential(SparseLinear(16, 12, density=0.4, activation="relu"), nn.Linear(12, 3)), torch.randn(5, 16)
    traced = torch.jit.trace(net, x)
    for form in (net, traced):
        net.zero_grad()
        form(x).square().sum().backward()
        form.wanted = [p.grad.clone() for p in net.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(net.wanted, traced.wanted))
    with torch.no_grad():
        net[0].values.mul_(2)
        net[0].values.data.add_(1)
        assert torch.equal(traced(x), net(x))


def test_the_operator_has_all_in_its_arguments():
    layer, x = SparseLinear(16, 12, density=0.4), torch.randn(5, 16, requires_grad=True)
    rest = layer.indptr, layer.indices, 16, [1, 1], 1, 128, "none"
    q = torch.ops.tessera.sparse_linear(x, layer.values, layer.bias, *rest)
    assert torch.equal(q, layer(x))
    dq = torch.randn(5, 12)
    wanted = torch.autograd.grad(layer(x), (x, layer.values, layer.bias), dq)
    found = torch.ops.tessera.sparse_linear_backward(dq, x.detach(), q.detach(), layer.values.detach(), [True] * 3, *rest)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted))
    assert [g.numel() for g in torch.ops.tessera.sparse_linear_backward(
        dq, x.detach(), q.detach(), layer.values.detach(), [False, True, False], *rest)] == [0, layer.values.numel(), 0]  # fmt: skip


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="this torch has no torch.compile")
def test_torch_compile_has_no_break_at_a_layer():
    net, x = nn.Sequential(SparseLinear(16, 12, density=0.4, activation="relu"), nn.Linear(12, 3)), torch.randn(5, 16)
    if not hasattr(torch.library, "register_autograd"):
        pytest.skip("this torch is older than 2.4")
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
    for form in (net, compiled):
        net.zero_grad()
        form(x).square().sum().backward()
        form.wanted = [p.grad.clone() for p in net.parameters()]
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(net.wanted, compiled.wanted))
    exported = torch.export.export(net.eval(), (x,))
    assert torch.allclose(exported.module()(x), net(x))


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 5, 16), (2, 3, 5, 16)])
def test_contiguous_inputs_of_more_dimensions_are_not_copied(kind, shape):
    from torch.utils._python_dispatch import TorchDispatchMode

    called = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            called.append(str(function))
            return function(*args, **(kwargs or {}))

    layer, x = SparseLinear(16, 8, density=0.5, dtype=kind), torch.randn(shape).to(kind).requires_grad_()
    weights = torch.randn(*shape[:-1], 8).to(kind)  # a gradient that is contiguous, too
    layer(x.detach())  # makes the layer, which looks at the pattern
    with Recorder():
        layer(x).backward(weights)
    copies = [name for name in called if name.split(".")[1] in ("clone", "copy_", "_to_copy", "contiguous", "cat", "index")]
    assert called and not copies, copies

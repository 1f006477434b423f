"""SparseLinear beside a dense nn.Linear with a mask, and changes of the pattern."""

import copy
import json
import math
import os
import pathlib
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import tessera as ts  # noqa: E402
from tessera.torch import SET, RigL, Sampled, SparseLinear, Static  # noqa: E402

OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-2, momentum=0.5),
}


def shared_folder():
    """Returns the folder of vectors beside the source tree, or None."""
    root = pathlib.Path(__file__).resolve().parents[2]
    folder = pathlib.Path(os.environ.get("TESSERA_SHARED", root.parent / "shared"))
    return folder if folder.is_dir() else None


class Masked(nn.Linear):
    """The dense twin: a linear layer whose weight is multiplied by a mask."""

    def __init__(self, sparse):
        super().__init__(sparse.in_features, sparse.out_features)
        self.load_state_dict(sparse.to_dense().state_dict())
        self.mask = mask_of(sparse)

    def forward(self, x):
        return F.linear(x, self.weight * self.mask, self.bias)


def mask_of(sparse):
    """Returns 1 where the sparse layer stores a value."""
    ones = copy.deepcopy(sparse)
    ones.values.data = torch.ones_like(ones.values)
    return ones.to_torch().to_dense()


def stored(sparse, dense):
    """Returns the elements of a dense matrix in the order of the sparse layer's values."""
    numbered = copy.deepcopy(sparse)
    numbered.values.data = torch.arange(1, sparse.values.numel() + 1, dtype=torch.float32)
    order = numbered.to_torch().to_dense().to(torch.int64)
    result = torch.zeros(sparse.values.numel())
    result[order[order > 0] - 1] = dense[order > 0]
    return result


def pair(block, seed=0):
    """Returns a sparse network, its dense twin, and a batch."""
    torch.manual_seed(seed)
    sparse = nn.Sequential(SparseLinear(24, 32, density=0.3, block=block), nn.ReLU(), nn.Linear(32, 5))
    twin = nn.Sequential(Masked(sparse[0]), nn.ReLU(), copy.deepcopy(sparse[2]))
    return sparse, twin, torch.randn(16, 24), torch.randint(5, (16,))


@pytest.mark.parametrize("block", [1, 4, (2, 3)])
def test_loss_and_all_gradients_are_those_of_the_masked_layer(block):
    sparse, twin, x, y = pair(block)
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    losses = [F.cross_entropy(net(x), y) for net, x in zip((sparse, twin), inputs)]
    for loss in losses:
        loss.backward()
    assert torch.allclose(losses[0], losses[1])
    assert torch.allclose(inputs[0].grad, inputs[1].grad, atol=1e-6)
    assert torch.allclose(sparse[0].bias.grad, twin[0].bias.grad, atol=1e-6)
    assert torch.allclose(sparse[0].values.grad, stored(sparse[0], twin[0].weight.grad), atol=1e-6)


@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_ten_steps_and_a_rewire_are_those_of_the_masked_layer(name, block):
    sparse, twin, x, y = pair(block)
    optimisers = [OPTIMISERS[name](net.parameters()) for net in (sparse, twin)]
    rigl = RigL(sparse, optimisers[0], every=5, end=9, fraction=0.5)
    for step in range(1, 11):
        for net, optimiser in zip((sparse, twin), optimisers):
            optimiser.zero_grad()
            F.cross_entropy(net(x), y).backward()
        before = mask_of(sparse[0])
        changed = rigl.step()
        assert changed == (step == 5)
        if not changed:
            for optimiser in optimisers:
                optimiser.step()
        else:
            # The twin: places that left lose value and slots; new ones start with 0.
            twin[0].mask = mask_of(sparse[0])
            kept = before * twin[0].mask
            assert (kept.sum() < before.sum()) and (before.sum() == twin[0].mask.sum())
            twin[0].weight.data *= kept
            for slot in optimisers[1].state[twin[0].weight].values():
                if torch.is_tensor(slot) and slot.dim() == 2:
                    slot *= kept
        assert torch.allclose(sparse[0].values, stored(sparse[0], twin[0].weight), atol=2e-5)
    assert torch.allclose(sparse(x), twin(x), atol=1e-4)


def test_gradients_add_up_over_backward_passes_and_batches_of_any_size():
    sparse, twin, x, y = pair(1)
    for rows in (x[:7], x[7:8], x[8:], x[:0]):
        if len(rows) == 0:
            assert sparse(rows).shape == (0, 5)
            continue
        for net in (sparse, twin):
            net(rows).square().sum().backward()
    expected = stored(sparse[0], twin[0].weight.grad)
    assert torch.allclose(sparse[0].values.grad, expected, rtol=1e-4, atol=1e-5)
    assert sparse[0](x[0]).shape == (32,) and sparse[0](x.reshape(2, 8, 24)).shape == (2, 8, 32)


def test_no_grad_keeps_nothing_and_eval_sees_new_values():
    sparse, _, x, _ = pair(1)
    with torch.no_grad():
        q = sparse(x)
        assert q.grad_fn is None
        sparse.eval()
        sparse[0].values.mul_(2)
        doubled = sparse[0](x) - sparse[0].bias
        sparse[0].values.data.mul_(0.5)
        sparse[0].refresh()
        assert torch.allclose(doubled, 2 * (sparse[0](x) - sparse[0].bias), atol=1e-5)


def test_copies_pickles_and_state_dicts_compute_the_same(tmp_path):
    sparse, _, x, _ = pair((4, 2))
    expected = sparse(x)
    torch.save(sparse, tmp_path / "net.pt")
    torch.save(sparse.state_dict(), tmp_path / "state.pt")
    other = pair((4, 2), seed=5)[0]
    parameter = other[0].values
    assert not torch.equal(other(x), expected)
    other.load_state_dict(torch.load(tmp_path / "state.pt"))
    assert other[0].values is parameter
    for net in (other, copy.deepcopy(sparse), pickle.loads(pickle.dumps(sparse)), torch.load(tmp_path / "net.pt", weights_only=False)):
        assert torch.equal(net(x), expected)
    state = sparse.state_dict()
    state["0.indices"] = state["0.indices"] + 100
    with pytest.raises(ts.BadInput):
        other.load_state_dict(state)
    assert torch.equal(other(x), expected)


def test_from_dense_and_back():
    linear = nn.Linear(12, 8)
    whole = SparseLinear.from_dense(linear, density=1.0)
    assert torch.equal(whole.to_dense().weight, linear.weight)
    assert torch.equal(whole.to_dense().bias, linear.bias)
    half = SparseLinear.from_dense(linear, density=0.5)
    kept = half.to_dense().weight != 0
    assert kept.sum() == 48 and linear.weight[kept].abs().min() >= linear.weight[~kept].abs().max()
    mask = torch.zeros(8, 12)
    mask[5, 7] = 1
    blocks = SparseLinear.from_dense(linear, mask=mask, block=(4, 3))
    assert blocks.values.numel() == 12
    assert torch.equal(blocks.to_dense().weight[4:8, 6:9], linear.weight[4:8, 6:9])
    with pytest.raises(ts.InvalidArgument):
        SparseLinear.from_dense(linear)
    assert "density=0.5" in repr(half)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_narrow_types(kind):
    layer = SparseLinear(24, 16, density=0.5, dtype=kind)
    x = torch.randn(6, 24)
    wide = copy.deepcopy(layer)
    wide.dtype = torch.float32
    q = layer(x.to(kind))
    assert q.dtype == kind and torch.allclose(q.float(), wide(x), atol=0.1)
    q.float().sum().backward()
    assert layer.values.grad.dtype == torch.float32
    with pytest.raises(TypeError, match="x.to"):
        layer(x)
    # Sums of many rows are larger than the largest half-precision number.
    layer(torch.zeros(4096, 24, dtype=kind)).backward(torch.full((4096, 16), 20.0, dtype=kind))
    assert (layer.bias.grad - (6 + 4096 * 20)).abs().max() < 1  # 6 from the sum above


def test_functions_in_place_may_follow():
    layer, x, gradients = SparseLinear(16, 24, density=0.3), torch.randn(5, 16), []
    for relu in (nn.ReLU(), nn.ReLU(inplace=True)):
        layer.values.grad = None
        nn.Sequential(layer, relu)(x).square().sum().backward()
        gradients.append(layer.values.grad)
    assert torch.equal(*gradients)


def test_results_and_gradients_are_contiguous_as_those_of_a_linear_layer():
    layer, x = SparseLinear(16, 24, density=0.3), torch.randn(5, 16, requires_grad=True)
    q = layer(x)
    q.sum().backward()
    assert q.is_contiguous() and x.grad.is_contiguous() and q._base is None


def test_a_rewire_between_forward_and_backward_is_refused():
    layer = SparseLinear(16, 24, density=0.3)
    q = layer(torch.randn(5, 16))
    layer.rewire(None, "set", fraction=0.5)
    with pytest.raises(ts.InvalidArgument, match="pattern changed"):
        q.sum().backward()


def test_a_layer_made_in_inference_mode_runs():
    with torch.inference_mode():
        layer, x = SparseLinear(16, 24, density=0.3).eval(), torch.randn(5, 16)
        assert torch.allclose(layer(x), layer.to_dense()(x), atol=1e-5)


@pytest.mark.parametrize("method", [SET, Sampled, Static])
def test_other_methods_keep_the_number_of_values(method):
    sparse, _, x, y = pair(1)
    optimiser = OPTIMISERS["sgd"](sparse.parameters())
    changes = method(sparse, optimiser, every=2, end=6, fraction=0.4)
    pattern, count = sparse[0].indices.clone(), sparse[0].values.numel()
    flags = []
    for _ in range(6):
        optimiser.zero_grad()
        F.cross_entropy(sparse(x), y).backward()
        flags.append(changes.step())
        if not flags[-1]:
            optimiser.step()
    assert flags == ([False] * 6 if method is Static else [False, True] * 2 + [False, False])
    assert sparse[0].values.numel() == count
    assert torch.equal(sparse[0].indices, pattern) == (method is Static)


def test_two_sparse_layers_in_a_row_and_a_shared_one():
    torch.manual_seed(1)
    first, second = SparseLinear(20, 30, density=0.4), SparseLinear(30, 20, density=0.4)
    net = nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), first)
    twin = nn.Sequential(*(Masked(m) if isinstance(m, SparseLinear) else m for m in (first, nn.Tanh(), second, nn.Tanh())))
    twin.add_module("4", twin[0])
    x = torch.randn(9, 20)
    for each in (net, twin):
        each(x).square().sum().backward()
    assert torch.allclose(first.values.grad, stored(first, twin[0].weight.grad), rtol=1e-3, atol=1e-4)


def test_refuses_what_is_wrong():
    with pytest.raises(ts.InvalidArgument, match="block"):
        SparseLinear(10, 10, block=3)
    with pytest.raises(ts.InvalidArgument, match="density"):
        SparseLinear(10, 10, density=1.5)
    layer = SparseLinear(10, 10)
    with pytest.raises(ts.InvalidArgument, match=r"\[3, 9\]"):
        layer(torch.zeros(3, 9))
    with pytest.raises(ts.InvalidArgument, match="SparseLinear"):
        RigL(nn.Linear(3, 3), None, end=10)


@pytest.mark.parametrize(
    "method, options, error, text",
    [
        (RigL, {}, TypeError, "end"),
        (RigL, {"end": 0}, ts.InvalidArgument, r"end is 0; .* 0.75 \* steps"),
        (RigL, {"end": math.inf}, ts.InvalidArgument, "end is inf"),
        (SET, {"end": 10, "fraction": 2}, ts.InvalidArgument, "fraction"),
        (RigL, {"end": 10, "poool": "max"}, TypeError, "RigL has no option poool; .* pool, exclude"),
        (SET, {"end": 10, "pool": "max"}, TypeError, "SET has no option pool"),
        (Static, {"end": 10, "exclude": "kept"}, TypeError, "Static has no option exclude"),
        (RigL, {"end": 10, "pool": "some"}, ts.InvalidArgument, "sum, max or mean"),
        (Sampled, {"end": 10, "factor": -1.0}, ts.InvalidArgument, "factor"),
    ],
)
def test_methods_refuse_wrong_options_at_once(method, options, error, text):
    layer = SparseLinear(10, 10)
    with pytest.raises(error, match=text):
        method(layer, torch.optim.SGD(layer.parameters(), lr=0.1), **options)


@pytest.mark.parametrize("method", [RigL, Sampled, SET])
def test_a_rewire_without_a_backward_changes_nothing(method):
    net = nn.Sequential(SparseLinear(10, 10, density=0.5), SparseLinear(10, 10, density=0.5))
    due = method(net, torch.optim.SGD(net.parameters(), lr=0.1), every=1, end=10, fraction=0.5)
    net[0](torch.randn(4, 10)).sum().backward()
    before = copy.deepcopy(net.state_dict())
    with pytest.raises(ts.InvalidArgument, match="number 1 of 2 had none"):
        due.step()
    assert due.steps == 0 and all(torch.equal(now, before[name]) for name, now in net.state_dict().items())
    net(torch.randn(4, 10)).sum().backward()
    assert due.step() and due.steps == 1


@pytest.mark.parametrize("block", [1, 2])
def test_slots_of_other_types_are_carried(block):
    layer = SparseLinear(12, 16, density=0.5, block=block)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    kinds = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64)
    count = layer.values.numel()
    # Slots that number the values, one as another layer's would be, and one that is no list.
    slots = {str(kind): torch.arange(1, count + 1).to(kind) for kind in kinds}
    optimiser.state[layer.values] = {**slots, "short": torch.ones(count - 1), "step": 3}
    layer.values.data = torch.arange(1, count + 1, dtype=torch.float32)
    layer.rewire(optimiser, "set", fraction=0.5, seed=4)
    moved = optimiser.state[layer.values]
    # The values tell where each one came from; new ones are 0.
    assert (layer.values == 0).sum() > 0 and (layer.values > 0).sum() > 0
    for kind in kinds:
        assert moved[str(kind)].dtype == kind
        assert torch.equal(moved[str(kind)], layer.values.detach().to(kind)), kind
    assert moved["short"].numel() == count - 1 and moved["step"] == 3


def test_operands_of_any_strides_and_frozen_parameters():
    sparse, twin, x, _ = pair(1)
    layer, dense = sparse[0], twin[0]
    wide = torch.randn(24, 40)
    for given in (x.t().contiguous().t(), wide[:, ::3].t(), x[:1], x[:1].expand(5, 24), x.flip(0)[::2]):
        for weights_too in (True, False):
            layer.values.requires_grad_(weights_too)
            inputs = [given.detach().requires_grad_() for _ in range(2)]
            seed = torch.randn(32, len(given)).t()  # in rows of features
            for seeded in (seed, seed.contiguous(), seed[:1, :1].expand(len(given), 32)):
                results = [part(each) for part, each in zip((layer, dense), inputs)]
                assert torch.allclose(*results, atol=1e-5)
                for part, each, result in zip((layer, dense), inputs, results):
                    part.zero_grad()
                    each.grad = None
                    result.backward(seeded)
                assert torch.allclose(inputs[0].grad, inputs[1].grad, atol=1e-5)
                assert torch.allclose(layer.bias.grad, dense.bias.grad, atol=1e-5)
                if weights_too:
                    assert torch.allclose(layer.values.grad, stored(layer, dense.weight.grad), atol=1e-4)


def test_an_input_may_need_its_gradient_only_later():
    layer, x = SparseLinear(24, 32, density=0.3), torch.randn(16, 24)
    layer(x).sum().backward()
    first, values = layer._made.layer.memory_bytes, layer.values.grad.clone()
    layer.zero_grad()
    needs = x.clone().requires_grad_()
    layer(needs).sum().backward()
    assert layer._made.layer.memory_bytes > first
    assert torch.equal(layer.values.grad, values)
    assert torch.allclose(needs.grad, layer.to_dense().weight.sum(0).expand(16, 24), atol=1e-5)


def test_refuses_parameters_that_are_not_plain_floats():
    x = torch.zeros(3, 10)
    for name, wrong in (("values", torch.zeros(20)[::2]), ("bias", torch.zeros(8, dtype=torch.float64)),
                        ("bias", torch.zeros(16)[::2]), ("bias", torch.zeros(7))):
        layer = SparseLinear(10, 8, density=10 / 80)
        getattr(layer, name).data = wrong
        with pytest.raises(TypeError, match=name):
            layer(x)
    layer = SparseLinear(10, 8, density=10 / 80)
    layer.values.data = torch.zeros(7)
    with pytest.raises(ts.Error):
        layer(x)
    good = SparseLinear(10, 8, density=10 / 80)
    good(x)
    good.values.data = torch.zeros(7)
    with pytest.raises(ts.InvalidArgument, match="7 values; this layer has 10"):
        good(x)


@pytest.mark.skipif(shared_folder() is None, reason="there is no folder of vectors beside the tree")
def test_rewires_are_those_of_the_vectors():
    vectors = [json.loads(line) for line in open(shared_folder() / "cases/rewire_vectors.jsonl")]
    assert len(vectors) >= 15
    for case in vectors:
        side, rows, cols = case["block"], case["rows"], case["cols"]
        layer = SparseLinear(cols, rows, block=side, density=0)
        places = np.array(case["places"], np.int32).reshape(-1, 2)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(places[:, 0], minlength=rows // side))]).astype(np.int32)
        values = torch.tensor(case["values"], dtype=torch.float32).reshape(-1)
        layer._take((indptr, places[:, 1].copy()), values)
        optimiser = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
        momentum = torch.tensor(case["momentum"], dtype=torch.float32).reshape(-1)
        optimiser.state[layer.values]["momentum_buffer"] = momentum
        layer.rewire(
            optimiser,
            "rigl",
            fraction=case["fraction"],
            dq=[torch.tensor(case["dq"], dtype=torch.float32)],
            s=[torch.tensor(case["s"], dtype=torch.float32)],
            pool=case["pool"],
            exclude=case["exclude"],
        )
        new = np.array(case["new_places"], np.int32).reshape(-1, 2)
        assert (layer.indices.numpy() == new[:, 1]).all(), case["id"]
        assert (np.repeat(np.arange(rows // side), np.diff(layer.indptr.numpy())) == new[:, 0]).all(), case["id"]
        expected = [torch.tensor(case[name], dtype=torch.float32).reshape(-1) for name in ("new_values", "new_momentum")]
        assert torch.equal(layer.values.detach(), expected[0]), case["id"]
        assert torch.equal(optimiser.state[layer.values]["momentum_buffer"], expected[1]), case["id"]

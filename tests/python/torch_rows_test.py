"""Rows of a SparseLinear as an embedding, and GELU as its activation, beside what torch computes."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import tessera as ts  # noqa: E402
from tessera.torch import RigL, SparseLinear, TopK, densify  # noqa: E402


@pytest.mark.parametrize("ids", [torch.tensor([[3, 0, 3], [11, 7, 3]]), torch.tensor(5, dtype=torch.int32), torch.zeros(0, dtype=torch.uint8)])
@pytest.mark.parametrize("block", [1, 3, (2, 4), (1, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_rows_are_those_of_an_embedding(dtype, block, ids):
    torch.manual_seed(1)
    layer = SparseLinear(24, 12, density=0.4, block=block).to(dtype)
    found, wanted = layer.rows(ids), F.embedding(ids.long(), layer.weight)
    assert found.dtype == dtype and torch.equal(found, wanted)
    gradient = torch.randn(wanted.shape).to(dtype)
    ours, theirs = (torch.autograd.grad(rows, layer.values, gradient)[0] for rows in (found, wanted))
    bound = 5e-2 if dtype == torch.bfloat16 else 1e-5  # torch adds up in 16 bits
    assert torch.allclose(ours, theirs, rtol=bound, atol=bound)


def test_gradients_of_rows_do_not_depend_on_threads():
    torch.manual_seed(2)
    layer, ids, dx = SparseLinear(256, 50, density=0.3), torch.randint(50, (4000,)), torch.randn(4000, 256)
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(torch.autograd.grad(layer.rows(ids), layer.values, dx)[0])
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)


def places_of(layer):
    """Returns the stored places as numbers of a flattened weight."""
    rows = np.repeat(np.arange(layer.out_features), np.diff(layer.indptr.numpy()))
    return set((rows * layer.in_features + layer.indices.numpy()).tolist())


class Tied(nn.Module):
    """Scores of the next word by the rows of the word before."""

    def __init__(self, words, width):
        super().__init__()
        self.head = SparseLinear(width, words, density=0.2)

    def forward(self, ids):
        if isinstance(self.head, SparseLinear):
            return self.head(self.head.rows(ids).tanh())
        return self.head(F.embedding(ids, self.head.weight).tanh())


def test_methods_see_the_gradient_of_rows_and_of_scores():
    torch.manual_seed(3)
    net, ids = Tied(30, 20), torch.randint(30, (2, 40))
    twin = densify(copy.deepcopy(net))
    rigl = RigL(net, torch.optim.SGD(net.parameters(), lr=0.1), every=1, end=9, fraction=0.2)
    for module in (net, twin):
        F.cross_entropy(module(ids).flatten(0, 1), ids.roll(1).flatten()).backward()
    before = twin.head.weight.detach() != 0
    gradient = twin.head.weight.grad.abs().masked_fill(before, -1).flatten()
    assert rigl.step() and rigl.history[-1].moved > 20
    grown = places_of(net.head) - set(torch.nonzero(before.flatten()).flatten().tolist())
    assert grown == set(gradient.topk(len(grown)).indices.tolist()) and len(grown) == rigl.history[-1].moved


def test_a_sparse_embedding_alone_keeps_its_largest_weights():
    torch.manual_seed(4)
    table, out = SparseLinear(16, 40, bias=False, density=0.1, min_per_neuron=1), nn.Linear(16, 40)
    table.values.data *= 0.01  # so that others are soon larger
    optimiser = torch.optim.Adam([*table.parameters(), *out.parameters()], lr=0.01)
    due = TopK(table, optimiser, every=2, end=200, min_per_neuron=1)
    losses = []
    for _ in range(200):
        ids = torch.randint(40, (64,))
        loss = F.cross_entropy(out(table.rows(ids)), (ids * 7 + 1) % 40)
        optimiser.zero_grad()
        loss.backward()
        losses.append(loss.item())
        if not due.step():
            optimiser.step()
    assert losses[-1] < 0.3 * losses[0] and due.dead_neurons() == 0 and sum(change.moved for change in due.history) > 5


def test_options_of_an_embedding_are_refused():
    for options in ({"padding_idx": 3}, {"max_norm": 0.1}, {"scale_grad_by_freq": True}, {"sparse": True}):
        with pytest.raises(ts.InvalidArgument, match=f"has {next(iter(options))}"):
            SparseLinear.from_dense(nn.Embedding(10, 8, **options), density=0.5)


def test_a_dense_embedding_becomes_rows():
    embedding = nn.Embedding(10, 8)
    table = SparseLinear.from_dense(embedding, density=0.5)
    assert table.bias is None and torch.equal(table.rows(torch.arange(10)), table.weight)


@pytest.mark.parametrize(
    "ids, kind, text",
    [
        (torch.tensor([1.0]), TypeError, "float32; pass a tensor of whole numbers"),
        ([1, 2], TypeError, "ids are a list"),
        (torch.tensor([True]), TypeError, "torch.bool"),
        (torch.tensor([0, 12]), ts.InvalidArgument, r"ids have 12; the layer has rows 0 \.\. 11"),
        (torch.tensor([-1]), ts.InvalidArgument, "ids have -1"),
    ],
)
def test_wrong_ids_are_told(ids, kind, text):
    with pytest.raises(kind, match=text):
        SparseLinear(8, 12).rows(ids)


def test_a_pattern_that_changes_before_the_backward_pass_is_told():
    layer = SparseLinear(8, 12, density=0.5)
    taken = layer.rows(torch.tensor([1, 2]))
    layer.rewire(None, "set", fraction=0.5)
    with pytest.raises(ts.InvalidArgument, match="the pattern changed after rows"):
        taken.sum().backward()
    taken = layer.rows(torch.tensor([1, 2]))
    layer.indices.copy_(layer.indices.clone())
    with pytest.raises(ts.InvalidArgument, match="the pattern changed after rows"):
        taken.sum().backward()
    layer.indices[0] = 8
    with pytest.raises(ts.BadInput, match="block column 8"):
        layer.rows(torch.tensor([0]))
    layer.indptr[1] = -1
    with pytest.raises(ts.BadInput, match="indptr must rise"):
        layer.rows(torch.tensor([0, 1]))


def test_rows_in_a_graph_are_refused():
    with pytest.raises(RuntimeError, match="outside of graphs"):
        torch.jit.trace(Tied(30, 20), torch.randint(30, (2, 4)))


def test_methods_see_rows_in_floats_whatever_the_default_type_is():
    table = SparseLinear(8, 12, density=0.5)
    rigl = RigL(table, torch.optim.SGD(table.parameters(), lr=0.1), every=1, end=9, fraction=0.5)
    try:
        torch.set_default_dtype(torch.float64)
        table.rows(torch.tensor([1, 2, 1])).square().sum().backward()
        assert rigl.step()
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_gelu_is_that_of_torch(dtype):
    torch.manual_seed(5)
    plain, x = SparseLinear(24, 12, density=0.5).to(dtype), torch.randn(3, 7, 24).to(dtype)
    layer = copy.deepcopy(plain)
    layer.activation = "gelu"
    bound = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2, torch.float16: 2e-3}[dtype]
    kind = torch.float64 if dtype == torch.float64 else torch.float32
    results = []
    for module in (plain, layer):
        given = x.clone().requires_grad_()
        q = module(given)
        q = F.gelu(q.to(kind), approximate="tanh") if module is plain else q.to(kind)
        results.append((q, *torch.autograd.grad(q.square().sum(), (given, module.values, module.bias))))
    for ours, theirs in zip(results[1], results[0]):
        assert torch.allclose(ours.to(kind), theirs.to(kind), rtol=bound, atol=20 * bound)
    with torch.no_grad():
        assert torch.allclose(layer(x).to(kind), results[0][0], rtol=bound, atol=bound)
    assert repr(layer).endswith("activation='gelu')")


def test_gelu_in_graphs_and_in_dense_networks():
    torch.manual_seed(6)
    net, x = nn.Sequential(SparseLinear(16, 12, density=0.4, activation="gelu"), nn.Linear(12, 3)), torch.randn(5, 16)
    traced = torch.jit.trace(net, x)
    assert torch.allclose(traced(x), net(x), atol=1e-6)
    assert torch.allclose(densify(copy.deepcopy(net))(x), net(x), atol=1e-5)


def test_top_k_of_a_layer_in_bfloat16_is_nearly_that_of_floats():
    torch.manual_seed(7)
    layer = SparseLinear(64, 48, density=0.1, activation="relu")
    layer.values.data *= 0.01  # so that others are soon larger
    twin = copy.deepcopy(layer).bfloat16()
    assert twin.values.dtype == torch.float32
    places = []
    for module in (layer, twin):
        optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
        due = TopK(module, optimiser, every=4, end=40)
        generator = torch.Generator().manual_seed(8)
        for _ in range(40):
            x = torch.randn(32, 64, generator=generator)
            q = module(x.to(module.dtype)).float()
            optimiser.zero_grad()
            (q - x[:, :48].relu()).square().mean().backward()
            if not due.step():
                optimiser.step()
        places.append(places_of(module))
        assert module.values.dtype == torch.float32 and sum(change.moved for change in due.history) > 5
    assert len(places[0] & places[1]) > 0.9 * len(places[0])

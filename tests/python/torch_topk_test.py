"""TopK and Prune beside dense tensors with masks, schedules of densities, and neurons that keep their weights."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from torch import nn  # noqa: E402

import tessera as ts  # noqa: E402
from tessera.torch import SET, Density, Prune, RigL, SparseLinear, Static, TopK  # noqa: E402

ROWS, COLS = 24, 40


def dense_of(layer, numbers):
    """Return numbers of the stored values, such as a moment, in the places of a dense weight."""
    rows = np.repeat(np.arange(ROWS), np.diff(layer.indptr.numpy()))
    dense = torch.zeros(ROWS, COLS)
    dense[torch.from_numpy(rows), layer.indices.long()] = numbers.detach()
    return dense


def masked_step(weight, moments, mask, gradient, step, lr, stored, betas=(0.9, 0.999), eps=1e-8):
    """Return weight, moments and mask after Adam's step on stored places, and on others from a fresh state."""
    m, v = (mask * (b * old + (1 - b) * new) for b, old, new in zip(betas, moments, (gradient, gradient**2)))
    rate = lr / (1 - betas[0] ** step)
    stepped = torch.where(mask, weight - rate * m / (v.sqrt() / (1 - betas[1] ** step) ** 0.5 + eps), torch.zeros(()))
    first = torch.where(mask, torch.zeros(()), -lr * gradient / (gradient.abs() + eps))
    # Entrants have nearly the same magnitude, so the largest gradients enter where smaller weights are.
    room = stored - int((stepped.abs() >= lr).sum())
    order = torch.where(mask, torch.full((), -1.0), gradient.abs()).reshape(-1).argsort(descending=True)[: max(room, 0)]
    entered = torch.zeros(ROWS * COLS, dtype=torch.bool).index_fill(0, order, True).reshape(ROWS, COLS)
    candidates = torch.where(entered, first.abs() * (1 - 1e-4), stepped.abs())
    kept = torch.zeros(ROWS * COLS, dtype=torch.bool).index_fill(0, candidates.reshape(-1).topk(stored).indices, True)
    kept = kept.reshape(ROWS, COLS)
    corrections = [1 - b**step for b in betas]
    begun = (gradient * corrections[0], gradient**2 * corrections[1])
    moments = [kept * torch.where(entered, new, old) for new, old in zip(begun, (m, v))]
    return kept * torch.where(entered, first, stepped), moments, kept


@pytest.mark.parametrize("density", [None, Density(last=0.1, end=16, first=0.2), Density(last=0.3, end=16, first=0.2, curve="linear")])
def test_top_k_is_the_rule_of_masks_step_by_step(density):
    torch.manual_seed(1)
    layer = SparseLinear(COLS, ROWS, bias=False, density=0.2)
    layer.values.data = torch.randn(layer.values.numel()) * 0.05
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.02)
    due = TopK(layer, optimiser, every=1, end=20, density=density)
    weight, moments = dense_of(layer, layer.values), [torch.zeros(ROWS, COLS)] * 2
    mask, moved = weight != 0, 0
    for step in range(1, 21):
        x, dq = torch.randn(6, COLS), torch.randn(6, ROWS)
        layer(x).backward(dq)
        assert due.step()
        optimiser.zero_grad()
        weight, moments, mask = masked_step(weight, moments, mask, dq.T @ x, step, 0.02, layer.values.numel())
        assert torch.equal(dense_of(layer, torch.ones(layer.values.numel())) != 0, mask), step
        assert torch.allclose(dense_of(layer, layer.values), weight, atol=1e-5)
        for name, wanted in zip(("exp_avg", "exp_avg_sq"), moments):
            assert torch.allclose(dense_of(layer, optimiser.state[layer.values][name]), wanted, rtol=1e-3, atol=1e-5)
        moved += due.history[-1].moved
    assert moved > 20 and due.history[-1].density == pytest.approx(0.2 if density is None else density.last, abs=1e-3)


@pytest.mark.parametrize("make", [lambda p: torch.optim.AdamW(p, lr=0.02), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
                                  lambda p: torch.optim.SGD(p, lr=0.05)])  # fmt: skip
@pytest.mark.parametrize("search", ["exact", "shortlist", "sampled"])
def test_top_k_learns_with_every_optimiser_and_search(make, search):
    torch.manual_seed(2)
    net = nn.Sequential(SparseLinear(20, 32, density=0.1, activation="relu"), SparseLinear(32, 3, density=0.3))
    optimiser = make(net.parameters())
    due = TopK(net, optimiser, every=4, end=200, search=search)
    x = torch.randn(64, 20)
    y, losses = x[:, :3].argmax(1), []
    for _ in range(200):
        losses.append(nn.functional.cross_entropy(net(x), y))
        optimiser.zero_grad()
        losses[-1].backward()
        if not due.step():
            optimiser.step()
    assert losses[-1] < 0.6 * losses[0] and [m.values.numel() for m in net] == [64, 29]


@pytest.mark.parametrize("method", [Prune, RigL, SET, TopK])
def test_densities_follow_their_schedule(method):
    torch.manual_seed(3)
    layer = SparseLinear(COLS, ROWS, density=1.0)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.01)
    due = method(layer, optimiser, every=2, end=12, density=Density(last=0.2, end=9, curve="exponential"), min_per_neuron=1)
    for step in range(1, 13):
        loss = layer(torch.randn(5, COLS)).square().sum()  # its graph lives on during the next forward pass
        loss.backward()
        assert due.step() == (step % 2 == 0)
        if step % 2 == 0:
            share = max(0.2, 0.2 ** (step / 9))
            assert layer.values.numel() == round(due.density_at(step) * ROWS * COLS) and due.density_at(step) == pytest.approx(share)
            assert optimiser.state[layer.values]["exp_avg"].shape == layer.values.shape if method is not RigL else True
        else:
            optimiser.step()
    assert due.dead_neurons() == 0 and int(np.diff(layer.indptr.numpy()).min()) >= 1


def test_neurons_that_die_are_told_and_those_that_keep_a_weight_live():
    layer = SparseLinear(COLS, ROWS, density=0.3)
    with torch.no_grad():
        layer.values[: int(layer.indptr[1])] *= 1e-6
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.0)
    due = Prune(layer, optimiser, every=1, end=1, density=Density(last=0.1, end=1, first=0.3))
    layer(torch.randn(2, COLS)).sum().backward()
    with pytest.warns(RuntimeWarning, match="step 1: .+ neurons have no weight.*min_per_neuron=1"):
        due.step()
    assert due.dead_neurons() >= 1
    layer = SparseLinear(COLS, ROWS, density=0.05, min_per_neuron=1)
    assert int(layer.indptr.diff().min()) >= 1 and set(layer.indices.tolist()) == set(range(COLS))


@pytest.mark.parametrize("method", [Prune, RigL, SET])
def test_rows_keep_a_constant_fan_in(method):
    layer = SparseLinear(COLS, ROWS, density=0.3, constant_fan_in=True)
    assert set(layer.indptr.diff().tolist()) == {12}
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.01)
    due = method(layer, optimiser, every=1, end=4, density=Density(last=0.2, end=3, first=0.3), constant_fan_in=True)
    for _ in range(4):
        layer(torch.randn(5, COLS)).square().sum().backward()
        due.step()
        assert int(layer.indptr.diff().max() - layer.indptr.diff().min()) <= 1
    assert layer.values.numel() == 192 and set(layer.indptr.diff().tolist()) == {8}


BAD = {
    "top-k with a constant fan-in": (lambda: TopK(net(), None, end=300, constant_fan_in=True), ts.InvalidArgument, "RigL, SET and Prune"),
    "two rules of rows": (lambda: SparseLinear(8, 8, min_per_neuron=1, constant_fan_in=True), ts.InvalidArgument, "not both"),
    "Static with a density": (lambda: Static(net(), None, end=3, density=Density(0.1, 2)), ts.InvalidArgument, "changes no density"),
    "a density that is a number": (lambda: RigL(net(), None, end=300, density=0.1), ts.InvalidArgument, r"it is Density\(last, end\)"),
    "a density that is a pair": (lambda: Prune(net(), None, end=300, density=(0.1, 200)), ts.InvalidArgument, r"it is Density\(last, end\)"),
    "Prune without a density": (lambda: Prune(net(), None, end=3), ts.InvalidArgument, "needs a density that falls"),
    "Prune that grows": (lambda: Prune(net(), None, every=1, end=3, density=Density(0.9, 2, first=0.1)), ts.InvalidArgument, "that falls"),
    "a density that is not reached": (lambda: RigL(net(), None, end=300, density=Density(0.1, 301)), ts.InvalidArgument, "last rewire is at step 300"),
    "a curve": (lambda: RigL(net(), None, end=300, density=Density(0.1, 300, curve="line")), ts.InvalidArgument, "linear, cubic or exponential"),
    "a search": (lambda: TopK(net(), None, end=300, search="fast"), ts.InvalidArgument, "exact, shortlist or sampled"),
    "top-k of a bare layer": (lambda: ts.Layer(np.eye(4, dtype=np.float32)).rewire("top-k"), ts.InvalidArgument, "tessera.torch.TopK"),
    "a density of 0": (lambda: ts.Layer(np.eye(4, dtype=np.float32)).rewire("prune", density=0.0), ts.InvalidArgument, "above 0"),
    "too few for all neurons": (lambda: SparseLinear(40, 40, density=0.05, min_per_neuron=3), ts.InvalidArgument, "need 120 blocks"),
}  # fmt: skip


def net():
    return SparseLinear(8, 8, density=0.5)


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_told(name):
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("make, text", [
    (lambda p: torch.optim.RMSprop(p), "a RMSprop is not supported; use torch.optim.Adam"),
    (lambda p: torch.optim.Adam(p, amsgrad=True), "Adam with amsgrad"),
    (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), "SGD with nesterov"),
    (lambda p: torch.optim.Adam([torch.zeros(3, requires_grad=True)]), "no such parameter"),
])  # fmt: skip
def test_optimisers_whose_rule_is_another_are_refused(make, text):
    layer = net()
    due = TopK(layer, make(layer.parameters()), every=1, end=3)
    layer(torch.randn(2, 8)).sum().backward()
    with pytest.raises(ts.InvalidArgument, match=text):
        due.step()


def test_blocks_are_refused():
    layer = SparseLinear(8, 8, density=0.5, block=2)
    due = TopK(layer, torch.optim.Adam(layer.parameters()), every=1, end=3)
    layer(torch.randn(2, 8)).sum().backward()
    with pytest.raises(ts.InvalidArgument, match="store elements, or choose rigl"):
        due.step()


def test_a_layer_prunes_and_grows_to_a_density():
    rng = np.random.default_rng(1)
    w = (rng.standard_normal((16, 20)) * (rng.random((16, 20)) < 0.5)).astype(np.float32)
    layer = ts.Layer(w)
    origin = layer.rewire("prune", density=0.25)
    assert layer.nnz == 80 == len(origin) and (origin >= 0).all()
    kept = np.sort(np.abs(w[w != 0]))[-80:]
    assert np.array_equal(np.sort(np.abs(layer.weights.data)), kept)
    layer.rewire("set", fraction=0.0, density=0.5)
    assert layer.nnz == 160 and np.count_nonzero(layer.weights.data) == 80
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.rewire("rigl", dq=rng.random((16, 3), np.float32), s=rng.random((20, 3), np.float32), density=0.1, min_per_neuron=1)
    assert int(np.diff(layer.weights.indptr).min()) >= 1


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_top_k_begins_with_a_layer_that_stores_nothing(kind):
    torch.manual_seed(4)
    layer = SparseLinear(COLS, ROWS, bias=False, density=0.0)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.02)
    x, dq = torch.randn(6, COLS), torch.randn(6, ROWS)
    layer(x).backward(dq)
    optimiser.step()
    for name in ("exp_avg", "exp_avg_sq"):
        optimiser.state[layer.values][name] = torch.zeros(0, dtype=kind)
    origin = layer.rewire(optimiser, "top-k", dq=[dq.T.contiguous()], s=[x.T.contiguous()], density=0.1)
    assert len(origin) == layer.values.numel() == ROWS * COLS // 10 and (origin < 0).all()
    for name in ("exp_avg", "exp_avg_sq"):
        slot = optimiser.state[layer.values][name]
        assert slot.dtype == kind and slot.numel() == len(origin) and bool((slot != 0).all())


def test_the_candidates_of_a_search_are_those_of_the_library():
    def trained(factor):
        torch.manual_seed(1)
        layer = SparseLinear(64, 48, density=0.1)
        net, options = nn.Sequential(layer), {} if factor is None else {"factor": factor}
        optimiser = torch.optim.Adam(net.parameters(), lr=0.5)
        due = TopK(net, optimiser, every=1, end=5, search="sampled", **options)
        (net(torch.randn(16, 64)) ** 2).sum().backward()
        assert due.step()
        return layer.indices

    assert torch.equal(trained(None), trained(4)) and not torch.equal(trained(None), trained(0.5))
    dq, s = (np.random.default_rng(i).standard_normal((n, 8)).astype(np.float32) for i, n in enumerate((48, 64)))

    def rewired(**options):
        layer = ts.Layer(sp.random(48, 64, 0.1, "csr", np.float32, np.random.default_rng(3)))
        layer.rewire("sampled", dq=dq, s=s, **options)
        return layer.arrays.indices

    assert np.array_equal(rewired(), rewired(factor=2)) and not np.array_equal(rewired(), rewired(factor=4))

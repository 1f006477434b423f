"""sparsify() and densify(): which layers are swapped, why, and that models compute and load the same."""

import copy
import io

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.utils import prune  # noqa: E402

import tessera as ts  # noqa: E402
from tessera.torch import RigL, SparseAttention, SparseLinear, densify, erk, sparsify  # noqa: E402
from tessera.torch import _sparsify as module  # noqa: E402

SIZE = 16


def perceptron():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 40, bias=False), nn.ReLU(), nn.Linear(40, 5))


class Transformer(nn.Module):
    def __init__(self, **options):
        super().__init__()
        layer = nn.TransformerEncoderLayer(SIZE, 4, 32, dropout=0.0, batch_first=True, **options)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.decoder = nn.TransformerDecoderLayer(SIZE, 2, 32, dropout=0.0, batch_first=True, **options)
        self.head = nn.Linear(SIZE, 3)

    def forward(self, x, padding=None):
        memory = self.encoder(x, src_key_padding_mask=padding)
        causal = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
        return self.head(self.decoder(x, memory, tgt_mask=causal, memory_key_padding_mask=padding))


def pruned(model, share=0.75):
    for part in model.modules():
        for name in ("weight", "in_proj_weight"):
            weight = getattr(part, name, None)
            if isinstance(weight, nn.Parameter) and weight.dim() == 2:
                bound = weight.abs().flatten().kthvalue(int(share * weight.numel())).values
                weight.data[weight.abs() <= bound] = 0
    return model


def test_all_linear_layers_are_swapped_by_erks_densities():
    net = perceptron()
    wanted = erk([(40, 20), (40, 40), (5, 40)], 0.3)
    table = sparsify(net, density=0.3)
    assert [s.name for s in table] == ["0", "2", "4"] and all(s.swapped for s in table)
    assert [type(m) for m in net] == [SparseLinear, nn.ReLU, SparseLinear, nn.ReLU, SparseLinear]
    for swap, density in zip(table, wanted):
        assert abs(swap.density - density) < 1 / (swap.shape[0] * swap.shape[1])
    assert table[2].density > table[0].density > table[1].density and table[0].shape == (40, 20)
    assert net[2].bias is None and net(torch.randn(3, 20)).shape == (3, 5)
    same = sparsify(perceptron(), sparsity=0.75, distribution="uniform")
    assert all(abs(s.density - 0.25) < 0.01 for s in same)
    assert "name" in repr(table) and "40 x 20" in repr(table) and "<table>" in table._repr_html_()


@pytest.mark.parametrize("options", [{}, {"norm_first": True, "activation": "gelu"}])
def test_a_pruned_transformer_computes_and_learns_as_before(options):
    torch.manual_seed(2)
    dense = pruned(Transformer(**options))
    sparse = copy.deepcopy(dense)
    table = sparsify(sparse)
    assert all(s.swapped for s in table) and len(table) == 3 + 2 * 3 + 2
    assert all(s.density < 0.27 for s in table)
    assert isinstance(sparse.encoder.layers[0].self_attn, SparseAttention)
    x = torch.randn(3, 6, SIZE)
    padding = torch.tensor([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1]]).bool()
    for mode in (True, False):
        for mask in (None, padding):
            for grad in (True, False):
                with torch.set_grad_enabled(grad):
                    results = [net.train(mode)(x, mask) for net in (dense, sparse)]
                    shown = slice(None) if mask is None else ~padding
                    assert torch.allclose(results[0][shown], results[1][shown], atol=1e-5)
    for net in (dense, sparse):
        net.train()
        net(x).square().sum().backward()
    weight = dense.encoder.layers[0].self_attn.in_proj_weight
    got = sparse.encoder.layers[0].self_attn.k_proj
    wanted = weight.grad[SIZE : 2 * SIZE][weight[SIZE : 2 * SIZE] != 0]
    assert torch.allclose(got.values.grad, wanted, rtol=1e-3, atol=1e-4)
    optimiser = torch.optim.SGD(sparse.parameters(), lr=0.01)
    due = RigL(sparse, optimiser, every=1, end=9)
    sparse(x).square().sum().backward()
    assert due.step() and len(due.history) == len(due.layers) == 4 * 4 + 7


def test_attention_is_that_of_torch():
    torch.manual_seed(3)
    for options in ({}, {"batch_first": True}, {"kdim": 12, "vdim": 8}, {"bias": False, "batch_first": True}):
        dense = pruned(nn.ModuleList([nn.MultiheadAttention(SIZE, 4, **options)]), 0.7)[0]
        if "kdim" in options:
            for name in ("q", "k", "v"):
                getattr(dense, f"{name}_proj_weight").data[::2] = 0
        sparse = SparseAttention.from_dense(dense)
        q, k, v = (torch.randn(5, 4, n) for n in (SIZE, options.get("kdim", SIZE), options.get("vdim", SIZE)))
        sources, batch = (4, 5) if "batch_first" in options else (5, 4)
        for masks in (
            {},
            {"attn_mask": torch.rand(sources, sources) < 0.3, "average_attn_weights": False},
            {"attn_mask": torch.randn(batch * 4, sources, sources), "need_weights": False},
            {"key_padding_mask": (torch.rand(batch, sources) < 0.3) & (torch.arange(sources) > 0)},
        ):
            if masks.get("attn_mask") is not None and masks["attn_mask"].dtype == torch.bool:
                masks["attn_mask"].fill_diagonal_(False)
            results = [layer(q, k, v, **masks) for layer in (dense, sparse)]
            assert torch.allclose(results[0][0], results[1][0], atol=1e-5)
            if results[0][1] is None:
                assert results[1][1] is None
            else:
                assert torch.allclose(results[0][1], results[1][1], atol=1e-5)
        one = [layer(q[0], k[0], v[0])[0] for layer in (dense, sparse)]
        assert torch.allclose(*one, atol=1e-5)
        back = sparse.to_dense()
        assert all(torch.equal(a, b) for a, b in zip(back.state_dict().values(), dense.state_dict().values()))
        other = SparseAttention.from_dense(dense, [0.5] * 4)
        other.load_state_dict(dense.state_dict())
        assert torch.allclose(other(q, k, v)[0], dense(q, k, v)[0], atol=1e-5)


def test_what_has_no_sparse_form_is_left_dense_and_told():
    class Own(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    net = nn.ModuleDict({
        "plain": nn.Linear(8, 8), "own": Own(8, 8), "odd": nn.Linear(7, 8), "hooked": nn.Linear(8, 8),
        "attention": nn.MultiheadAttention(8, 2, add_bias_kv=True), "table": nn.Embedding(8, 8), "tied": nn.Linear(8, 8),
        "head": nn.Linear(8, 8), "heads": nn.ModuleList([nn.Linear(8, 8)]), "pruned": nn.Linear(8, 8),
    })  # fmt: skip
    net["tied"].weight = net["table"].weight
    net["hooked"].register_forward_hook(lambda *_: None)
    prune.l1_unstructured(net["pruned"], "weight", 0.5)
    why = {s.name: s.why for s in sparsify(net, density=0.5, block=2, skip=["head*"])}
    assert why == {
        "plain": "not measured", "own": "a Own may compute something else than torch.nn.Linear",
        "odd": "8 x 7 is not cut into blocks of 2 x 2", "hooked": "it has hooks, which a swap would lose",
        "attention": "add_bias_kv is not supported", "tied": "its weight is shared with another module", "head": "skipped",
        "heads.0": "skipped", "pruned": "not measured",
    }  # fmt: skip
    assert [n for n, m in net.named_children() if isinstance(m, SparseLinear)] == ["plain", "pruned"]
    assert "not pruned" in sparsify(perceptron())[0].why
    with pytest.raises(ts.InvalidArgument, match="no module has the name 'haed'; there are 0, 2, 4"):
        sparsify(perceptron(), density=0.5, skip="haed")
    for wrong in (nn.Linear(4, 4), nn.MultiheadAttention(4, 2)):
        with pytest.raises(ts.InvalidArgument, match=r"itself call from_dense\(\)"):
            sparsify(wrong, density=0.5)
    with pytest.raises(ts.InvalidArgument, match=r"itself call to_dense\(\)"):
        densify(SparseLinear(4, 4))


def test_a_module_that_is_used_twice_stays_one():
    linear = nn.Linear(8, 8)
    net = nn.Sequential(linear, nn.ReLU(), linear)
    assert len(sparsify(net, density=0.5)) == 1 and net[0] is net[2] and isinstance(net[0], SparseLinear)


def test_layers_are_swapped_where_they_are_measured_to_pay(monkeypatch):
    times = iter([(2.0, 1.0), (2.0, 1.9), (1.0, 0.5)])
    seen = []

    def measured(dense, sparse, args, kwargs, trains):
        seen.append((args[0].shape, trains, sparse.batch))
        return next(times)

    monkeypatch.setattr(module, "_milliseconds", measured)
    net = perceptron()
    net.add_module("unused", nn.Linear(5, 5))
    net.forward = lambda x: net[:5](x)
    table = sparsify(net, torch.randn(7, 20), density=0.3, at_least=1.1, skip="4")
    assert [(s.name, s.swapped, s.ms_dense, s.ms_sparse, s.why) for s in table] == [
        ("0", True, 2.0, 1.0, "2.00 times as fast"), ("2", False, 2.0, 1.9, "1.05 times as fast, less than 1.1"),
        ("4", False, None, None, "skipped"), ("unused", False, None, None, "the sample does not reach it"),
    ]  # fmt: skip
    assert seen == [((7, 20), True, 7), ((7, 40), True, 7)]
    assert net.training and all(m.training for m in net.modules()) and "forward" not in net[2].__dict__


@pytest.mark.parametrize("training", [True, False])
def test_a_sample_may_be_the_arguments_by_name_and_everything_is_measured(training):
    net = Transformer().train(training)
    before = [p.grad for p in net.parameters()]
    table = sparsify(net, {"x": torch.randn(2, 5, SIZE)}, density=0.2, at_least=0.0)
    assert all(s.swapped and s.ms_dense > 0 and s.ms_sparse > 0 for s in table) and len(table) == 11
    assert not any(before) and all(p.grad is None for p in net.parameters())
    assert sparsify(Transformer(), (torch.randn(2, 5, SIZE),), density=0.2, at_least=1e9)[0].swapped is False


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_densify_is_the_way_back_and_states_load_both_ways(kind):
    dense = pruned(Transformer()).to(kind)
    sparse = copy.deepcopy(dense)
    sparsify(sparse)
    back = densify(copy.deepcopy(sparse))
    assert not any(isinstance(m, (SparseLinear, SparseAttention)) for m in back.modules())
    wanted = dense.state_dict()
    assert set(back.state_dict()) == set(wanted)
    assert all(t.dtype == wanted[n].dtype and torch.equal(t, wanted[n]) for n, t in back.state_dict().items())
    dense.load_state_dict(back.state_dict())
    other = Transformer().to(kind)
    sparsify(other, density=0.1)
    other.load_state_dict(wanted)  # a dense one, whose zeros make the pattern
    x = torch.randn(2, 4, SIZE).to(kind)
    assert torch.allclose(other(x).float(), dense(x).float(), atol=1e-5 if kind == torch.float32 else 0.2)
    file = io.BytesIO()
    torch.save(sparse.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(x), sparse(x))


def test_a_dense_state_without_zeros_is_cut_to_the_density_of_the_layer():
    linear, layer = nn.Linear(20, 10), SparseLinear(20, 10, density=0.2)
    with pytest.warns(UserWarning, match="200 blocks that are not zero; the 40 largest are kept"):
        layer.load_state_dict(linear.state_dict())
    cut = SparseLinear.from_dense(linear, density=0.2)
    assert torch.equal(layer.indices, cut.indices) and torch.equal(layer.values, cut.values)
    with pytest.raises(ts.InvalidArgument, match=r"weight has the shape \[10, 20\]; this layer needs \[10, 21\]"):
        SparseLinear(21, 10).load_state_dict(linear.state_dict())


def test_a_fused_relu_is_a_module_of_the_dense_model():
    net, x = nn.Sequential(SparseLinear(8, 8, density=0.5, activation="relu"), SparseLinear(8, 2)), torch.randn(3, 8)
    wanted = net(x)
    assert torch.allclose(densify(net)(x), wanted, atol=1e-6) and isinstance(net[0], nn.Sequential)


def test_frozen_layers_stay_frozen():
    net = perceptron().requires_grad_(False)
    sparsify(net, density=0.5)
    assert not any(p.requires_grad for p in net.parameters())


def test_a_sparsified_model_learns():
    torch.manual_seed(4)
    net = perceptron()
    sparsify(net, density=0.5)
    x, y = torch.randn(64, 20), torch.randint(5, (64,))
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for _ in range(30):
        loss = F.cross_entropy(net(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_what_is_frozen_stays_frozen():
    model = nn.Sequential(nn.Linear(32, 48), nn.Linear(48, 16))
    model[0].weight.requires_grad_(False)
    model[1].bias.requires_grad_(False)
    sparsify(model, density=0.2)
    assert [(layer.values.requires_grad, layer.bias.requires_grad) for layer in model] == [(False, True), (True, False)]


def test_refuses_what_is_no_module():
    with pytest.raises(TypeError, match="model is of type dict; pass a module of torch"):
        sparsify({}, density=0.1)

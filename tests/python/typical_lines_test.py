"""Lines as users of SciPy, NumPy and torch type them: each works, or says what to type instead."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator, cg

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.utils import parametrizations, parametrize, prune  # noqa: E402

import tessera as ts  # noqa: E402
import tessera.torch as tt  # noqa: E402
from tessera.torch import RigL, SparseLinear  # noqa: E402

W = sp.random(16, 16, 0.3, "csr", np.float32, np.random.default_rng(1))
W64 = sp.random(16, 16, 0.3, random_state=1)  # coo in double, SciPy's default
X = np.random.default_rng(2).random((16, 4)).astype(np.float32)
TX, TY = torch.randn(6, 16), torch.randint(3, (6,))
L = ts.Layer(W)


def near(got, wanted, atol=1e-4):
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), atol=atol)


class Doubled(nn.Module):
    def forward(self, values):
        return 2 * values


def trained(net, optimiser=None, x=TX):
    optimiser = optimiser or torch.optim.SGD(net.parameters(), lr=0.1)
    loss = F.cross_entropy(net(x), TY)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    assert all(p.grad is not None for p in net.parameters())
    return net


def small(**options):
    return nn.Sequential(SparseLinear(16, 24, **options), nn.ReLU(), nn.Linear(24, 3))


def autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert small()(TX).dtype == torch.bfloat16


def clipped():
    net = small()
    F.cross_entropy(net(TX), TY).backward()
    assert nn.utils.clip_grad_norm_(net.parameters(), 0.1) > 0


def parametrized():
    layer = SparseLinear(16, 16)
    nn.init.ones_(layer.bias)
    plain = layer(TX).detach()
    parametrize.register_parametrization(layer, "bias", Doubled())
    assert torch.allclose(layer(TX), plain + 1, atol=1e-5)
    layer(TX).sum().backward()
    assert layer.parametrizations["bias"].original.grad is not None


def weight_tied():
    first = SparseLinear(16, 16)
    second = SparseLinear(16, 16)
    second.values, second.indptr, second.indices = first.values, first.indptr, first.indices
    nn.Sequential(first, second)(TX).sum().backward()
    assert second.values.grad is first.values.grad


def recurrent_head():
    rnn, head = nn.LSTM(16, 8, batch_first=True), SparseLinear(8, 3, density=0.5)
    q = head(rnn(torch.randn(2, 5, 16))[0])
    q.sum().backward()
    assert q.shape == (2, 5, 3) and head.values.grad is not None


def applied():
    net = small()
    net.apply(lambda m: m.reset_parameters() if hasattr(m, "reset_parameters") else None)


def decayed():
    net = small()
    trained(net, torch.optim.AdamW(tt.parameter_groups(net, weight_decay=0.01)))


def rewired():
    net = small()
    optimiser = torch.optim.Adam(net.parameters())
    due = RigL(net, optimiser, every=1, end=10)
    trained(net, optimiser)
    F.cross_entropy(net(TX), TY).backward()
    assert due.step() and due.history[0].moved > 0


def functional():
    from torch.nn.utils.stateless import functional_call

    layer = SparseLinear(16, 4)
    got = functional_call(layer, {"values": layer.values * 2}, (TX,))
    assert torch.allclose(got - layer.bias, 2 * (layer(TX) - layer.bias), atol=1e-5)


def mixed_master_values():
    net = small().to(torch.bfloat16)
    trained(net, x=TX.bfloat16())
    assert net[0].values.dtype == torch.float32


def pruned_model():
    net = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 3))
    for layer in (net[0], net[2]):
        prune.l1_unstructured(layer, "weight", amount=0.9)
        prune.remove(layer, "weight")
    wanted = net(TX)
    assert all(s.swapped for s in tt.sparsify(net))
    assert torch.allclose(net(TX), wanted, atol=1e-5)


def round_trip():
    net = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 3))
    state = net.state_dict()
    tt.sparsify(net, density=0.3)
    net.load_state_dict(state)
    tt.densify(net).load_state_dict(state)


def transformer():
    block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    tt.sparsify(block, density=0.3)
    block(torch.randn(2, 4, 16)).sum().backward()
    with torch.no_grad():
        block.eval()(torch.randn(2, 4, 16))


def attention_projection():
    attention = nn.MultiheadAttention(16, 2, batch_first=True)
    attention.out_proj = SparseLinear.from_dense(attention.out_proj, density=0.3)
    attention(TX[None], TX[None], TX[None])[0].sum().backward()
    assert attention.out_proj.values.grad is not None


def conjugate_gradients():
    spd = (sp.eye(16) * 20 + W + W.T).tocsr().astype(np.float32)
    found, failed = cg(aslinearoperator(ts.Layer(spd)), np.ones(16))
    assert failed == 0
    near(spd @ found, np.ones(16), 1e-3)


WORKS = {
    "L @ x": lambda: near(L @ X, W @ X),
    "L @ vector": lambda: near(L @ X[:, 0], W @ X[:, 0]),
    "L.T @ x": lambda: near(L.T @ X, W.T @ X),
    "x @ L": lambda: near(X.T @ L, X.T @ W),
    "L.shape, L.ndim, L.nnz": lambda: (L.shape, L.ndim, L.nnz) == (W.shape, W.ndim, W.nnz) or pytest.fail(),
    "cg(aslinearoperator(L), b)": conjugate_gradients,
    "ts.spmm(w, x)": lambda: near(ts.spmm(W, X), W @ X),
    "ts.spmm(w, vector)": lambda: near(ts.spmm(W, X[:, 0]), W @ X[:, 0]),
    "ts.spmm(w, batch)": lambda: near(ts.spmm(W, np.stack([X, X])), np.stack([W @ X] * 2)),
    "ts.spmm(sp.random(...), x, dtype=np.float32)": lambda: near(ts.spmm(W64, X.astype(float), dtype=np.float32), W64 @ X),
    "ts.Layer(sp.random(...), dtype='float32')": lambda: near(ts.Layer(W64, dtype="float32") @ X, W64 @ X),
    "ts.Layer((data, (row, col)), shape=...)": lambda: near(
        ts.Layer((W.data, W.tocoo().coords if hasattr(W.tocoo(), "coords") else (W.tocoo().row, W.tocoo().col)), shape=W.shape) @ X, W @ X
    ),
    "ts.spmm(tensor.to_sparse(), tensor)": lambda: near(ts.spmm(torch.from_numpy(W.toarray()).to_sparse(), torch.from_numpy(X)), W @ X),
    "ts.matmul(x, w)": lambda: near(ts.matmul(X.T.copy(), W), X.T @ W),
    "layer.forward(x, bias=b, activation='relu')": lambda: near(
        L.forward(X, bias=np.ones(16, np.float32), activation="relu"), np.maximum(W @ X + 1, 0)
    ),
    "loss.backward(); opt.step()": lambda: trained(small()),
    "SparseLinear(..., activation='relu')": lambda: trained(nn.Sequential(SparseLinear(16, 24, activation="relu"), nn.Linear(24, 3))),
    "SparseLinear(16, 24, sparsity=0.9, device='cpu')": lambda: trained(small(sparsity=0.9, device="cpu")),
    "with torch.autocast('cpu', torch.bfloat16)": autocast,
    "net.to(torch.bfloat16)": mixed_master_values,
    "net.double()": lambda: trained(small().double(), x=TX.double()),
    "gradcheck(layer.double(), x)": lambda: torch.autograd.gradcheck(SparseLinear(4, 3, density=0.5).double(), torch.randn(2, 4).double().requires_grad_()),
    "clip_grad_norm_(net.parameters())": clipped,
    "register_parametrization(layer, 'bias', ...)": parametrized,
    "second.values = first.values": weight_tied,
    "SparseLinear on an LSTM": recurrent_head,
    "net.apply(init)": applied,
    "AdamW(parameter_groups(net))": decayed,
    "RigL(net, opt, ...).step()": rewired,
    "functional_call(layer, {...}, x)": functional,
    "torch.jit.trace(net, x)": lambda: torch.jit.trace(small(), TX)(TX),
    "prune, then sparsify(net)": pruned_model,
    "net.load_state_dict(dense.state_dict())": round_trip,
    "sparsify(TransformerEncoderLayer)": transformer,
    "attention.out_proj = SparseLinear.from_dense(...)": attention_projection,
    "torch.save, deepcopy": lambda: __import__("copy").deepcopy(small())(TX),
    "ts.advise(net, batch=32)": lambda: ts.advise(small(), batch=32)["machines"][0]["layers"],
    "ts.__version__": lambda: ts.__version__.split("."),
}

TELLS = {
    "ts.spmm(sp.random(...), x)": (lambda: ts.spmm(W64, X), TypeError, r"a: the values are float64; .*dtype=\"float32\""),
    "L @ float64": (lambda: L @ X.astype(float), TypeError, r"s is float64; .*s.astype\(np.float32\)"),
    "L @ list": (lambda: L @ ([[1.0]] * 16), TypeError, r"np.array\(s, np.float32\)"),
    "SparseLinear(..., dtype=torch.int8)": (lambda: SparseLinear(4, 4, dtype=torch.int8), ts.InvalidArgument, "float32, float16, bfloat16 or float64"),
    "SparseLinear(..., device='cuda')": (lambda: SparseLinear(4, 4, device="cuda"), ts.InvalidArgument, "leave device out"),
    "layer(x.double())": (lambda: SparseLinear(16, 4)(TX.double()), TypeError, r"pass x.to\(torch.float32\)"),
    "nn.init.zeros_(layer.weight)": (lambda: nn.init.zeros_(SparseLinear(4, 4).weight), ts.InvalidArgument, "write layer.values"),
    "layer.weight = linear.weight": (lambda: setattr(SparseLinear(4, 4), "weight", nn.Linear(4, 4).weight), ts.InvalidArgument, "write layer.values"),
    "SparseLinear.from_dense(linear)": (lambda: SparseLinear.from_dense(nn.Linear(4, 4)), ts.InvalidArgument, "give density, sparsity or mask"),
    "sparsify(nn.Linear(...))": (lambda: tt.sparsify(nn.Linear(4, 4), density=0.1), ts.InvalidArgument, "itself call from_dense"),
    "RigL(dense network)": (lambda: RigL(nn.Linear(4, 4), None, end=10), ts.InvalidArgument, r"sparsify\(network\)"),
    "spectral_norm(layer)": (lambda: parametrizations.spectral_norm(SparseLinear(4, 4)), ValueError, "weight"),
    "ts.read_model('model.pt')": (lambda: ts.read_model("model.pt"), ts.BadInput, "ts.write_model"),
}


@pytest.mark.parametrize("line", WORKS)
def test_the_line_works(line):
    WORKS[line]()


@pytest.mark.parametrize("line", TELLS)
def test_the_line_says_what_to_do(line):
    call, error, text = TELLS[line]
    with pytest.raises(error, match=text):
        call()


def test_there_are_at_least_forty():
    assert len(WORKS) + len(TELLS) >= 40

"""torch's own blocks that read `weight`: they train the values and evaluate what was trained, or refuse at once."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from torch import nn  # noqa: E402

import tessera as ts  # noqa: E402
from tessera.torch import RigL, SparseLinear  # noqa: E402

SIZE = 8


def sparsified(module):
    """Replaces the projections and linear layers of a block, and returns its dense twin."""
    twin = copy.deepcopy(module)
    for block, dense in zip(list(module.modules()), list(twin.modules())):
        for name in ("out_proj", "linear1", "linear2"):
            if hasattr(block, name):
                sparse = SparseLinear.from_dense(getattr(block, name), density=0.5)
                setattr(block, name, sparse)
                setattr(dense, name, Masked(sparse))
    return twin


class Masked(nn.Linear):
    """A dense layer whose weight is zero where the sparse one stores nothing, and stays so."""

    def __init__(self, sparse):
        super().__init__(sparse.in_features, sparse.out_features)
        self.load_state_dict(sparse.to_dense().state_dict())
        mask = (self.weight != 0).float()
        self.weight.register_hook(lambda gradient: gradient * mask)


class Attention(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.mha = nn.MultiheadAttention(SIZE, 2, batch_first=True, **options)

    def forward(self, x):
        return self.mha(x, x, x, need_weights=False)[0]


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(SIZE, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x, x.flip(1))


BLOCKS = {
    "MultiheadAttention": Attention,
    "MultiheadAttention with other keys": lambda: Attention(kdim=SIZE, vdim=SIZE, add_bias_kv=True),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(SIZE, 2, 16, dropout=0.0, batch_first=True),
    "TransformerEncoderLayer, gelu": lambda: nn.TransformerEncoderLayer(
        SIZE, 2, 16, dropout=0.0, batch_first=True, activation="gelu", norm_first=True
    ),
    "TransformerEncoder": lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(SIZE, 2, 16, dropout=0.0, batch_first=True), 2
    ),
    "TransformerDecoderLayer": Decoder,
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_trained_and_evaluated_as_its_dense_twin(name):
    torch.manual_seed(4)
    block = BLOCKS[name]()
    twin = sparsified(block)
    x, target = torch.randn(3, 5, SIZE), torch.randn(3, 5, SIZE)
    sparse = [module for module in block.modules() if isinstance(module, SparseLinear)]
    before = [layer.values.clone() for layer in sparse]
    losses = []
    for net in (block, twin):
        optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        for _ in range(5):
            loss = (net(x) - target).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        losses.append(loss)
    assert torch.allclose(*losses, atol=1e-5)
    assert all(not torch.equal(layer.values, old) for layer, old in zip(sparse, before))
    for net in (block, twin):
        net.eval()
    with torch.no_grad():  # the fused paths of torch
        assert torch.allclose(block(x), twin(x), atol=1e-4)
        assert torch.allclose(block(x), block.train()(x), atol=1e-5)
    block.eval()
    with torch.inference_mode():
        assert torch.allclose(block(x), twin(x), atol=1e-4)


def test_an_encoder_takes_a_mask_of_padding():
    torch.manual_seed(5)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(SIZE, 2, 16, dropout=0.0, batch_first=True), 2)
    twin = sparsified(encoder)
    x, padding = torch.randn(3, 5, SIZE), torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 1, 1, 1, 1]]).bool()
    with torch.no_grad():
        for mode in (True, False):
            got, wanted = (net.train(mode)(x, src_key_padding_mask=padding) for net in (encoder, twin))
            kept = ~padding[:, : got.shape[1]]
            assert torch.allclose(got[kept], wanted[:, : got.shape[1]][kept], atol=1e-4)


def test_a_projection_rewires():
    torch.manual_seed(6)
    block = Attention()
    sparsified(block)
    optimiser = torch.optim.SGD(block.parameters(), lr=0.1, momentum=0.9)
    x = torch.randn(3, 5, SIZE)
    block(x).square().sum().backward()
    assert block.mha.out_proj.values.grad.abs().sum() > 0
    # RigL needs operands of the layer itself, which attention does not call: it says so, and changes nothing.
    rigl = RigL(block, optimiser, every=1, end=9, fraction=0.5)
    block(x).square().sum().backward()
    with pytest.raises(ts.InvalidArgument, match="number 0 of 1 had none"):
        rigl.step()


@pytest.mark.parametrize("block", [1, (2, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_weight_is_dense_and_connected(block, dtype):
    layer = SparseLinear(16, 8, density=0.5, block=block, dtype=dtype)
    assert layer.weight.shape == (8, 16) and layer.weight.dtype == dtype and layer.weight.requires_grad
    assert torch.equal(layer.weight.float(), layer.to_torch().to_dense().to(dtype).float())
    factors = torch.randn(8, 16)
    (layer.weight.float() * factors).sum().backward()
    ones = copy.deepcopy(layer)
    ones.values.data.fill_(1)
    wanted = copy.deepcopy(layer)
    wanted.values.data = layer.values.grad
    stored = ones.to_dense().weight
    assert torch.allclose(wanted.to_dense().weight, factors * stored, atol=0.02 if dtype != torch.float32 else 0)


WRITES = {
    "zeros_": lambda layer: nn.init.zeros_(layer.weight),
    "xavier_uniform_": lambda layer: nn.init.xavier_uniform_(layer.weight),
    "normal_": lambda layer: layer.weight.normal_(),
    "data.fill_": lambda layer: layer.weight.data.fill_(0),
    "detach().mul_": lambda layer: layer.weight.detach().mul_(2),
    "a row": lambda layer: layer.weight.data[0].zero_(),
    "an element": lambda layer: layer.weight.data.__setitem__((0, 0), 1.0),
    "data =": lambda layer: setattr(layer.weight, "data", torch.zeros(8, 16)),
    "+=": lambda layer: layer.weight.data.__iadd__(1),
    "copy_": lambda layer: layer.weight.copy_(torch.ones(8, 16)),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_to_the_weight_is_refused(name):
    layer = SparseLinear(16, 8, density=0.5)
    with torch.no_grad(), pytest.raises(ts.InvalidArgument, match="write layer.values"):
        WRITES[name](layer)


def test_other_uses_of_the_weight_are_those_of_a_tensor():
    layer, other = SparseLinear(16, 8, density=0.5), torch.zeros(8, 16)
    with torch.no_grad():
        other.copy_(layer.weight)
        other.add_(layer.weight)
    assert torch.equal(other, 2 * layer.to_dense().weight)
    assert type(layer.weight * 2) is torch.Tensor and type(layer.weight.detach().clone()) is torch.Tensor
    with pytest.raises((AttributeError, RuntimeError, ts.InvalidArgument)):
        nn.init.zeros_(layer.weight.values())
    tied = nn.Linear(16, 8)
    with pytest.raises(TypeError, match="cannot assign"):
        tied.weight = layer.weight


def test_a_nested_tensor_is_refused_with_the_remedy():
    nested = torch.nested.nested_tensor([torch.ones(2, 16), torch.ones(3, 16)])
    with pytest.raises(TypeError, match="enable_nested_tensor=False"):
        SparseLinear(16, 8)(nested)


@pytest.mark.parametrize("given", [nn.Parameter(torch.zeros(4, 8)), torch.zeros(4, 8), None])
def test_a_weight_is_not_set_or_shared(given):
    layer = SparseLinear(8, 4, density=0.5)
    with pytest.raises(ts.InvalidArgument, match="cannot be set or shared: write layer.values"):
        layer.weight = given
    with pytest.raises(ts.InvalidArgument, match="cannot be set or shared"):
        layer.register_parameter("weight", None)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("name, at, number", [("indices", 0, 7), ("indices", 3, -1), ("indptr", 0, 1), ("indptr", -1, 9), ("indptr", 1, 6)])
def test_a_pattern_written_with_a_place_outside_is_told(kind, name, at, number):
    layer = SparseLinear(6, 4, density=0.5).to(kind)  # 12 values; a place beyond a row is one of the next row
    getattr(layer, name)[at] = number
    if name == "indptr" and at == 1:
        layer.indptr[2] = 5  # falls
    with pytest.raises(ts.BadInput, match="indices|indptr"):
        layer.weight
    with pytest.raises(ts.BadInput, match="indices|indptr"):
        layer(torch.ones(2, 6, dtype=kind))

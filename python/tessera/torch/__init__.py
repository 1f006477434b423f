"""Sparse layers for PyTorch: a module like torch.nn.Linear, and methods that change its pattern.

    net = nn.Sequential(SparseLinear(784, 1024, density=0.1, activation="relu"), nn.Linear(1024, 10))
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    rigl = RigL(net, opt, every=100, end=3000, fraction=0.3)
    for x, y in batches:
        loss = F.cross_entropy(net(x), y); opt.zero_grad(); loss.backward()
        if not rigl.step(): opt.step()

sparsify(model) swaps the linear layers and attention blocks of a model, densify(model) swaps them back.
"""

from tessera.torch._attention import SparseAttention
from tessera.torch._linear import SparseLinear
from tessera.torch._rewiring import SET, Change, Density, Prune, RigL, Rewiring, Sampled, Static, TopK, erk
from tessera.torch._sparsify import Swap, SwapTable, densify, parameter_groups, sparsify

__all__ = [
    "Change",
    "Density",
    "Prune",
    "RigL",
    "Rewiring",
    "SET",
    "Sampled",
    "SparseAttention",
    "SparseLinear",
    "Static",
    "Swap",
    "SwapTable",
    "TopK",
    "densify",
    "erk",
    "parameter_groups",
    "sparsify",
]

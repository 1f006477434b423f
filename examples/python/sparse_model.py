"""A pruned transformer as a sparse one: swapped where that is measured to pay, saved, loaded and trained on.

usage: sparse_model.py [--width 256] [--density 0.05] [--steps 20]
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import tempfile
import time

import torch
from torch import nn
from torch.nn.utils import prune

import tessera as ts
from tessera.torch import RigL, densify, parameter_groups, sparsify


def make(width: int) -> nn.Module:
    """Returns an encoder of two layers with a head for each token."""
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(width, 8))


def cut(model: nn.Module, density: float) -> None:
    """Sets all but the largest weights of the linear layers to zero, as a recipe for pruning does."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.MultiheadAttention)):
            name = "weight" if isinstance(module, nn.Linear) else "in_proj_weight"
            prune.l1_unstructured(module, name, amount=1 - density)
            prune.remove(module, name)


def milliseconds(models: list[nn.Module], x: torch.Tensor) -> list[float]:
    """Returns the medians of the times of a forward and a backward pass, taken in turns."""
    times: list[list[float]] = [[] for _ in models]
    for _ in range(9):
        for model, kept in zip(models, times):
            begin = time.perf_counter()
            model(x).square().mean().backward()
            kept.append(1e3 * (time.perf_counter() - begin))
    return [statistics.median(kept) for kept in times]


def train(model: nn.Module, x: torch.Tensor, steps: int) -> float:
    """Trains towards random targets with patterns that change, and returns the loss."""
    optimiser = torch.optim.AdamW(parameter_groups(model, weight_decay=1e-2), lr=1e-3)
    rigl = RigL(model, optimiser, every=5, end=max(5, int(0.75 * steps)))
    target, loss = torch.randn(*x.shape[:2], 8), torch.zeros(())
    for _ in range(steps):
        loss = (model(x) - target).square().mean()
        optimiser.zero_grad()
        loss.backward()
        if not rigl.step():
            optimiser.step()
    return loss.item()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--density", type=float, default=0.05)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args(arguments)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    x = torch.randn(8, 32, args.width)

    dense, sparse = make(args.width), make(args.width)
    cut(dense, args.density)
    sparse.load_state_dict(dense.state_dict())
    table = sparsify(sparse, x)
    print(table)
    print("the same results:", torch.allclose(dense(x), sparse(x), atol=1e-4))
    print("ms a step, dense {:.1f}, sparse {:.1f}".format(*milliseconds([dense, sparse], x)))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.safetensors")
        ts.write_model(path, sparse.state_dict())
        print(f"{path.stat().st_size / 1e6:.2f} MB, dense {sum(4 * p.numel() for p in dense.parameters()) / 1e6:.2f} MB")
        loaded = make(args.width)
        sparsify(loaded, density=args.density, skip=[swap.name for swap in table if not swap.swapped])
        loaded.load_state_dict(ts.read_model(path).state_dict())
    print("loaded as it was:", torch.equal(loaded(x), sparse(x)))
    if any(swap.swapped for swap in table):
        print(f"loss after {args.steps} steps: {train(sparse, x, args.steps):.3f}")
    print("back to dense:", densify(sparse)[1])


if __name__ == "__main__":
    main()

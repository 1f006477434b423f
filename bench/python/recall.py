"""Measures what the searches of top-k find of the largest gradients of a small GPT in training (examples/python).

usage: PYTHONPATH=BUILD/python recall.py [--steps 10 100 300] [--width 256] [--layers 2] [--density 0.015625]

For each matrix and step: the share of the k places of largest gradient that are not stored, k being the number of
stored values, which `shortlist` and `sampled` find. Tokens are 4,096 a step, the optimiser is Adam, patterns change
every ten steps by the exact search.
"""

from __future__ import annotations

import argparse
import copy
import pathlib
import sys

import numpy as np
import torch
from torch.nn import functional as F

from tessera.torch import SparseLinear, TopK, parameter_groups

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples/python"))
import sparse_gpt  # noqa: E402

EVERY, BATCH, CONTEXT = 10, 16, 256


def places_of(layer):
    """Returns the stored places as numbers of a flattened weight."""
    rows = np.repeat(np.arange(layer.out_features), np.diff(layer.indptr.numpy()))
    return torch.from_numpy(rows * layer.in_features + layer.indices.numpy())


def recall_of(layer, search):
    """Returns the share of the largest gradients outside the pattern that a search finds."""
    dq, s = (torch.cat([operands[i].float() for operands in layer._operands], 1) for i in range(2))
    stored = places_of(layer)
    gradient = (dq @ s.t()).abs().flatten().index_fill(0, stored, -1)
    wanted = gradient.topk(len(stored)).indices
    twin = copy.deepcopy(layer)
    optimiser = torch.optim.Adam(twin.parameters(), lr=1e6)  # all that a search finds is larger than what is stored
    twin.values.grad = torch.zeros_like(twin.values)
    optimiser.step()
    twin.rewire(optimiser, "top-k", dq=[dq], s=[s], search=search)
    return float(torch.isin(places_of(twin), wanted).float().mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, nargs="+", default=[10, 100, 300])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--density", type=float, default=1 / 64)
    args = parser.parse_args()
    if min(args.steps) < EVERY or any(step % EVERY for step in args.steps):
        parser.error(f"--steps are multiples of {EVERY}, at which patterns change")
    args.tied, args.context = False, CONTEXT
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net, text = sparse_gpt.SparseGpt(args), sparse_gpt.read_text()
    optimiser = torch.optim.Adam(parameter_groups(net, weight_decay=0.0), lr=2e-3)
    due = TopK(net, optimiser, every=EVERY, end=max(args.steps), min_per_neuron=1)
    print("step\tmatrix\tshortlist\tsampled")
    for step in range(1, max(args.steps) + 1):
        starts = torch.randint(len(text) - CONTEXT - 1, (BATCH,))
        rows = text[starts[:, None] + torch.arange(CONTEXT + 1)]
        loss = F.cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        for name, layer in net.named_modules() if step in args.steps else ():
            if isinstance(layer, SparseLinear):
                print(step, name, *(f"{recall_of(layer, search):.3f}" for search in ("shortlist", "sampled")), sep="\t", flush=True)
        if not due.step():
            optimiser.step()


if __name__ == "__main__":
    main()

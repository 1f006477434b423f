"""Trains a small GPT whose matrices keep only their largest weights: stored sparse, and dense with masks.

usage: sparse_gpt.py [--density 0.0625] [--steps 500] [--width 256] [--layers 4] [--every 10]
                     [--search exact|shortlist|sampled] [--tied] [--bfloat16] [--only sparse|masked]
                     [--plot FILE.png]

Both begin with the same weights, see the same text and follow the same rule, so their losses agree; only the time and
the memory differ. The text is the licences that every Debian system has (package base-files), byte by byte.
"""

from __future__ import annotations

import argparse
import copy
import math
import pathlib
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tessera.torch import SparseLinear, TopK, densify, parameter_groups

HEADS, BYTES, RATE = 4, 256, 2e-3


class Block(nn.Module):
    """Attention and a perceptron, each on normalised inputs and added to them."""

    def __init__(self, width: int, density: float) -> None:
        super().__init__()

        def linear(inputs: int, outputs: int, activation: str = "none") -> SparseLinear:
            return SparseLinear(inputs, outputs, density=density, activation=activation, min_per_neuron=1)

        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = linear(width, 3 * width), linear(width, width)
        self.up, self.down = linear(width, 4 * width, "relu"), linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (p.view(batch, length, HEADS, -1).transpose(1, 2) for p in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = q @ k.transpose(2, 3) / math.sqrt(width // HEADS)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(later, -math.inf).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        y: Tensor = x + self.down(self.up(self.norm2(x)))
        return y


class SparseGpt(nn.Module):
    """A transformer that reads bytes; its matrices are sparse, and so is the embedding of tokens if it is the head's."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__()
        width = args.width
        self.token, self.place = None if args.tied else nn.Embedding(BYTES, width), nn.Embedding(args.context, width)
        for embedding in [self.place] if self.token is None else [self.token, self.place]:
            nn.init.normal_(embedding.weight, std=0.1)
        self.blocks = nn.Sequential(*(Block(width, args.density) for _ in range(args.layers)))
        self.norm, self.head = nn.LayerNorm(width), SparseLinear(width, BYTES, density=args.density, min_per_neuron=1)

    def embedding(self, tokens: Tensor) -> Tensor:
        if self.token is not None:
            return self.token(tokens)  # type: ignore[no-any-return]
        return self.head.rows(tokens) if isinstance(self.head, SparseLinear) else F.embedding(tokens, self.head.weight)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.place(torch.arange(tokens.shape[1]))
        scores: Tensor = self.head(self.norm(self.blocks(x)))
        return scores


class MaskedTopK:
    """The rule of tessera.torch.TopK on dense layers with masks, as it is usually trained."""

    def __init__(self, net: nn.Module, optimiser: torch.optim.Adam, every: int, end: int) -> None:
        self.weights = [m.weight for m in net.modules() if isinstance(m, nn.Linear)]
        self.masks = [weight != 0 for weight in self.weights]
        self.optimiser, self.every, self.end, self.steps = optimiser, every, end, 0

    def step(self) -> None:
        """Makes the optimiser's step where weights are stored, and every so often lets others enter."""
        self.steps += 1
        gradients = [weight.grad.clone() for weight in self.weights if weight.grad is not None]
        for weight, mask in zip(self.weights, self.masks):
            weight.grad.mul_(mask)  # type: ignore[union-attr]
        self.optimiser.step()
        if self.steps % self.every == 0 and self.steps <= self.end:
            self.masks = [self._rewire(*each) for each in zip(self.weights, self.masks, gradients)]

    @torch.no_grad()
    def _rewire(self, weight: Tensor, mask: Tensor, gradient: Tensor) -> Tensor:
        """Places without a weight step by the rate; of all weights the largest stay, and one in each row and column."""
        group, state = self.optimiser.param_groups[0], self.optimiser.state[weight]
        first = -group["lr"] * gradient / (gradient.abs() + group["eps"])
        stored, kept = int(mask.sum()), torch.zeros_like(mask)
        kept.scatter_(1, weight.abs().argmax(1, True), True).scatter_(0, weight.abs().argmax(0, True), True)
        room = min(stored - int((kept | (weight.abs() >= group["lr"])).sum()), int((~mask).sum()))
        order = gradient.abs().masked_fill(mask, -1).reshape(-1).topk(max(room, 0)).indices
        entered = torch.zeros(mask.numel(), dtype=torch.bool).index_fill(0, order, True).view_as(mask)
        sizes = torch.where(entered, first.abs() * (1 - 1e-4), weight.abs()).masked_fill(kept, math.inf)
        chosen = torch.zeros_like(mask).view(-1).index_fill(0, sizes.reshape(-1).topk(stored).indices, True).view_as(mask)
        for name, power, beta in (("exp_avg", 1, group["betas"][0]), ("exp_avg_sq", 2, group["betas"][1])):
            begun = gradient**power * (1 - beta ** int(state["step"]))
            state[name].copy_(torch.where(entered, begun, state[name]) * chosen)
        weight.copy_(torch.where(entered, first, weight) * chosen)
        return chosen


def read_text() -> Tensor:
    """Returns the bytes of the licences, one text after the other."""
    files = sorted(p for p in pathlib.Path("/usr/share/common-licenses").iterdir() if p.is_file() and not p.is_symlink())
    return torch.frombuffer(bytearray(b"".join(p.read_bytes() for p in files)), dtype=torch.uint8).long()


def memory_of(net: nn.Module, optimiser: torch.optim.Optimizer) -> int:
    """Returns the bytes of weights, gradients and the optimiser's numbers. Patterns are counted, too."""
    parts = [*net.parameters(), *net.buffers(), *(p.grad for p in net.parameters() if p.grad is not None)]
    parts += [t for state in optimiser.state.values() for t in state.values() if torch.is_tensor(t)]
    return sum(part.numel() * part.element_size() for part in parts)


def train(net: nn.Module, is_masked: bool, args: argparse.Namespace) -> list[float]:
    """Trains a network, prints its figures and returns the loss of each step."""
    text, generator = read_text(), torch.Generator().manual_seed(args.seed)
    optimiser = torch.optim.Adam(parameter_groups(net, weight_decay=0.0), lr=RATE)
    end = max(args.steps * 3 // 4, 1)
    masked = MaskedTopK(net, optimiser, args.every, end) if is_masked else None
    due = None if is_masked else TopK(net, optimiser, every=args.every, end=end, search=args.search, min_per_neuron=1)
    losses: list[float] = []
    begin = time.process_time()
    for step in range(args.steps):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / 50) * (1 + math.cos(math.pi * step / args.steps)) / 2
        starts = torch.randint(len(text) - args.context - 1, (args.batch,), generator=generator)
        rows = text[starts[:, None] + torch.arange(args.context + 1)]
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bfloat16):
            loss = F.cross_entropy(net(rows[:, :-1]).flatten(0, 1).float(), rows[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        losses.append(loss.item())
        if masked is not None:
            masked.step()
        elif due is not None and not due.step():
            optimiser.step()
        if (step + 1) % 100 == 0:
            print(f"  step {step + 1}: loss {sum(losses[-50:]) / 50:.4f}", flush=True)
    seconds = time.process_time() - begin
    print(
        f"{'dense with masks' if is_masked else 'sparse'}: loss {sum(losses[-50:]) / len(losses[-50:]):.4f}, "
        f"{args.steps * args.batch * args.context / seconds:,.0f} tokens/s, "
        f"{memory_of(net, optimiser) / 1e6:.1f} MB of weights and optimiser"
    )
    return losses


def main(arguments: list[str] | None = None) -> dict[str, list[float]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--density", type=float, default=1 / 16)
    for name, default in (("steps", 500), ("width", 256), ("layers", 4), ("every", 10), ("batch", 8), ("context", 64), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--search", choices=("exact", "shortlist", "sampled"), default="exact")
    parser.add_argument("--tied", action="store_true", help="embed tokens by the rows of the last layer")
    parser.add_argument("--bfloat16", action="store_true", help="activations in bfloat16; weights stay float32")
    parser.add_argument("--only", choices=("sparse", "masked"))
    parser.add_argument("--plot", type=pathlib.Path)
    args = parser.parse_args(arguments)
    if min(args.steps, args.width, args.layers, args.every, args.batch, args.context) < 1 or args.width % HEADS:
        parser.error(f"sizes and steps begin at 1, and the width is a multiple of {HEADS}, the number of heads")
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    net = SparseGpt(args)
    twin = densify(copy.deepcopy(net))
    for layer in (m for m in net.modules() if args.bfloat16 and isinstance(m, SparseLinear)):
        layer.bfloat16()
    curves = {}
    if args.only != "masked":
        curves["sparse"] = train(net, False, args)
    if args.only != "sparse":
        curves["dense with masks"] = train(twin, True, args)
    if args.plot:
        from matplotlib import pyplot

        for name, losses in curves.items():
            pyplot.plot(losses, label=name)
        pyplot.xlabel("step")
        pyplot.ylabel("loss")
        pyplot.legend()
        pyplot.savefig(args.plot)
    return curves


if __name__ == "__main__":
    main()

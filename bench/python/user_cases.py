"""Measures ten products that users have beside torch and SciPy, or a training run beside masks.

usage: PYTHONPATH=BUILD/python user_cases.py [--repeats 9]     ten products
       PYTHONPATH=BUILD/python user_cases.py --masks [--epochs 3] [--seeds 3]   Fashion-MNIST by RigL

Prints tab-separated text. Times are CPU time of one thread: medians of calls in turns, which are
checked first, or the median of whole trainings. The dense product is the faster of torch's and NumPy's.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import statistics
import time

import python_bench as bench  # first, because it sets the threads of NumPy
import numpy as np
import scipy
import torch
from torch import nn

import tessera as ts
import tessera.torch

# outputs, inputs, batch, density, block, pass
CASES = [
    (2048, 768, 128, 0.1, 1, "Fwd"),
    (2048, 768, 128, 0.1, 1, "GradA"),
    (2048, 768, 128, 0.1, 1, "GradW"),
    (1024, 784, 128, 0.02, 1, "Fwd"),
    (4096, 4096, 256, 0.1, 1, "Fwd"),
    (4096, 4096, 256, 0.02, 1, "Fwd"),
    (4096, 4096, 1, 0.1, 1, "Fwd"),
    (4096, 4096, 256, 0.1, 4, "Fwd"),
    (4096, 4096, 256, 0.1, 16, "Fwd"),
    (4096, 4096, 256, 0.5, 1, "Fwd"),
]


def head(*names):
    """Prints where and when the figures are measured, and the names of the columns."""
    if "openblas" not in open("/proc/self/maps").read():
        raise SystemExit("user_cases.py: NumPy has no OpenBLAS, so dense products would be slow: install libopenblas0-pthread")
    models = [line.split(": ")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    print(f"# {models[0]}, {len(models)} cores, one thread; {datetime.date.today()}; tessera {ts.__version__}, "
          f"torch {torch.__version__}, SciPy {scipy.__version__}, NumPy {np.__version__}, Python {platform.python_version()}")
    print(*names, sep="\t", flush=True)


def calls_of(weights, layer, s, dq, what):
    """Returns our call and those of dense torch, dense NumPy, torch's CSR and SciPy; None where there is none."""
    dense, flat = weights.toarray(), weights.tocsr()
    if what == "GradA":
        dense, flat, weights = np.ascontiguousarray(dense.T), flat.T.tocsr(), weights.T.tocsr()
        s, call = dq, layer.grad_input
    elif what == "Fwd":
        call = layer.forward
    else:
        a, b = torch.from_numpy(dq), torch.from_numpy(s)
        rows, cols = flat.nonzero()
        assert np.allclose(layer.grad_weights(dq, s), (dq @ s.T)[rows, cols], atol=1e-2)
        return lambda: layer.grad_weights(dq, s), lambda: a @ b.T, lambda: dq @ s.T, None, None
    assert np.allclose(call(s), weights @ s, atol=1e-2)
    csr = torch.sparse_csr_tensor(*map(torch.from_numpy, (flat.indptr, flat.indices, flat.data)), flat.shape)
    tensor, operand = torch.from_numpy(dense), torch.from_numpy(s)
    return lambda: call(s), lambda: tensor @ operand, lambda: dense @ s, lambda: csr @ operand, lambda: weights @ s


def digits(figure):
    """Returns a figure with three digits, or nothing where there is none."""
    return "" if figure is None else f"{figure:.3g}" if figure < 1000 else f"{figure:.0f}"


def products(repeats):
    head("outputs", "inputs", "batch", "density", "block", "pass", "tessera_ms", "dense_ms", "faster_than_dense",
         "torch_csr_ms", "scipy_ms")
    for outputs, inputs, batch, density, block, what in CASES:
        rng = np.random.default_rng(2)
        weights = bench.make_weights(outputs, inputs, density, block)
        layer = ts.Layer(weights, batch=batch)
        s, dq = (rng.standard_normal((n, batch), np.float32) for n in (inputs, outputs))
        calls = calls_of(weights, layer, s, dq, what)
        times = iter(bench.medians([call for call in calls if call], repeats))
        ours, torch_dense, numpy_dense, csr, scipy_time = (1e3 * next(times) if call else None for call in calls)
        dense = min(torch_dense, numpy_dense)
        row = [ours, dense, dense / ours, csr, scipy_time]
        print(outputs, inputs, batch, density, block, what, *map(digits, row), sep="\t",
              flush=True)


class Masked(nn.Linear):
    """A dense layer with a mask: weights outside it are kept at 0 by hand, and all products are dense."""

    def __init__(self, inputs, outputs, density, block):
        assert block == 1
        super().__init__(inputs, outputs)
        count = round(density * inputs * outputs)
        self.mask = torch.zeros(outputs * inputs)
        self.mask[torch.randperm(outputs * inputs)[:count]] = 1
        self.mask = self.mask.view(outputs, inputs)
        with torch.no_grad():
            self.weight.copy_(torch.randn(outputs, inputs) * (2 / max(inputs * density, 1)) ** 0.5 * self.mask)
            self.bias.zero_()

    def dense_gradient(self):
        return self.weight.grad

    def finish_gradient(self):
        self.weight.grad.mul_(self.mask)


class Pruned(Masked):
    """The same as torch.nn.utils.prune keeps it: the weight is multiplied by its mask in every forward pass."""

    def forward(self, x):
        self.product = self.weight * self.mask
        if self.training:
            self.product.retain_grad()  # a rewire reads it
        return nn.functional.linear(x, self.product, self.bias)

    def dense_gradient(self):
        return self.product.grad

    def finish_gradient(self):
        pass


class MaskedRigL:
    """RigL on masks, with the schedule of tessera.torch.RigL."""

    def __init__(self, net, opt, every, end, fraction):
        self.layers, self.opt = [layer for layer in net if isinstance(layer, Masked)], opt
        any_net = nn.Sequential(ts.torch.SparseLinear(8, 8, density=0.5))
        self.schedule, self.steps = ts.torch.RigL(any_net, opt, every=every, end=end, fraction=fraction), 0

    def step(self):
        self.steps += 1
        fraction = self.schedule.fraction_at(self.steps)
        for layer in self.layers:
            if fraction > 0:
                self.rewire(layer, fraction)
            else:
                layer.finish_gradient()
        return fraction > 0

    @torch.no_grad()
    def rewire(self, layer, fraction):
        mask, weight, gradient = (part.view(-1) for part in (layer.mask, layer.weight, layer.dense_gradient()))
        count = int(fraction * mask.sum())
        dropped = weight.abs().masked_fill(mask == 0, float("inf")).topk(count, largest=False).indices
        mask[dropped] = 0
        mask[gradient.abs().masked_fill(mask == 1, -1).topk(count).indices] = 1
        weight.mul_(mask)
        for slot in self.opt.state[layer.weight].values():
            if torch.is_tensor(slot) and slot.shape == layer.weight.shape:
                slot.mul_(layer.mask)


def masks(epochs, seeds):
    example, folder = bench.fashion_mnist_example()
    head("layers", "epochs", "seeds", "cpu_s", "test_accuracy_percent")
    example.print = lambda *_: None
    kinds = [("tessera.torch.SparseLinear", example.SparseLinear, example.RigL), ("mask kept by hand", Masked, MaskedRigL),
             ("weight * mask, as torch.nn.utils.prune", Pruned, MaskedRigL)]
    for name, layer, rule in kinds:
        example.SparseLinear, example.RigL = layer, rule
        times, accuracies = [], []
        for seed in range(1, seeds + 1):
            begin = time.process_time()
            accuracies.append(example.train(argparse.Namespace(data=folder, epochs=epochs, images=60000, density=0.1,
                                                               block=1, seed=seed)))
            times.append(time.process_time() - begin)
        print(name, epochs, seeds, f"{statistics.median(times):.1f}", f"{100 * statistics.mean(accuracies):.1f}",
              sep="\t", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--masks", action="store_true")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.masks:
        masks(args.epochs, args.seeds)
    else:
        products(args.repeats)


if __name__ == "__main__":
    main()

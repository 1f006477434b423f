"""Measures the Python package beside SciPy, NumPy and torch, in turns within one process.

usage: PYTHONPATH=BUILD/python python_bench.py [--bars] [--repeats 9] [--only NAME ...]

Each figure is a median of CPU time, or a ratio of two such medians, with one thread each; CPU time
leaves out the time in which other programs have the processor. Results of the passes are checked
before they are timed. --bars ends with exit code 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import time

# Before NumPy is imported: one thread, and OpenBLAS's best kernels where Debian's build has others.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text():
    os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn
from torch.nn import functional as F

import tessera as ts
from tessera.torch import RigL, SparseLinear, sparsify

# outputs, inputs, batch, density, block
SHAPES = [
    (1024, 784, 128, 0.1, 1),
    (1024, 784, 128, 0.02, 1),
    (4096, 4096, 128, 0.1, 1),
    (4096, 4096, 128, 0.02, 1),
    (4096, 4096, 256, 0.1, 1),
    (4096, 4096, 128, 0.1, 16),
]
SMALL_CALLS = 2000


def medians(calls, repeats, inner=1):
    """Returns the median seconds of each call, run in turns."""
    times = [[] for _ in calls]
    for turn in range(repeats + 1):
        for call, kept in zip(calls, times):
            begin = time.process_time()
            for _ in range(inner):
                call()
            if turn > 0:  # the first one warms up
                kept.append((time.process_time() - begin) / inner)
    return [statistics.median(kept) for kept in times]


def make_weights(outputs, inputs, density, block, seed=1):
    """Returns random weights as CSR, or BSR for blocks."""
    rng = np.random.default_rng(seed)
    cells = sp.random(outputs // block, inputs // block, density, "csr", np.float32, rng)
    if block == 1:
        cells.data[:] = rng.standard_normal(cells.nnz)
        return cells
    data = rng.standard_normal((cells.nnz, block, block), np.float32)
    return sp.bsr_matrix((data, cells.indices, cells.indptr), (outputs, inputs), blocksize=(block, block))


class Bars:
    """The table of bars."""

    def __init__(self):
        self.missed = 0

    def add(self, name, figure, bar, at_least=True, unit="x"):
        """Prints a row; bar None only states the figure."""
        verdict = ""
        if bar is not None:
            met = figure >= bar if at_least else figure <= bar
            self.missed += not met
            verdict = f"{'>=' if at_least else '<='} {bar:g} | {'met' if met else 'MISSED'}"
        else:
            verdict = " | "
        print(f"| {name} | {figure:.3g} {unit} | {verdict} |", flush=True)


def bench_import(bars, repeats):
    code = "import time, numpy; begin = time.process_time(); import tessera; print(time.process_time() - begin)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(repeats)]
    # The least: other programs can only make one slower.
    bars.add("`import tessera` beyond NumPy's own, least of the processes", 1e3 * min(float(run.stdout) for run in runs), 60, False, "ms")


def bench_calls(bars, repeats):
    weights = make_weights(16, 16, 0.2, 1)
    layer = ts.Layer(weights, batch=1)
    s, q = np.ones((16, 1), np.float32), np.empty((16, 1), np.float32)
    ts_, tq = torch.from_numpy(s), torch.from_numpy(q)
    calls = [lambda: layer.forward(s, out=q), lambda: weights @ s, lambda: layer.forward(ts_, out=tq)]
    ours, scipy, tensors = (1e6 * t for t in medians(calls, 5 * repeats, SMALL_CALLS))
    bars.add("call, 16 x 16, batch 1, NumPy", ours, 2.0, False, "us")
    bars.add("SciPy's `w @ s` by the same call", scipy / ours, 1.0)
    bars.add("call, 16 x 16, batch 1, torch", tensors, 4.0, False, "us")


def bench_passes(bars, repeats):
    ratios = {"Fwd by SciPy": [], "GradA by SciPy": [], "GradW by NumPy": []}
    least = {"Fwd by SciPy": 8, "GradA by SciPy": 7, "GradW by NumPy": 2.8}
    for shape in SHAPES:
        outputs, inputs, batch, density, block = shape
        rng = np.random.default_rng(2)
        weights = make_weights(outputs, inputs, density, block)
        layer = ts.Layer(weights, batch=batch)
        s, dq = (rng.standard_normal((n, batch), np.float32) for n in (inputs, outputs))
        q, ds, dw = np.empty_like(dq), np.empty_like(s), layer.values
        flat = weights.tocsr()
        rows, cols = np.repeat(np.arange(outputs), np.diff(flat.indptr)), flat.indices
        transposed = weights.T.tocsr() if block == 1 else weights.T.tobsr((block, block))
        assert np.allclose(layer @ s, weights @ s, atol=1e-2)
        assert np.allclose(layer.grad_input(dq), transposed @ dq, atol=1e-2)
        pairs = {
            "Fwd by SciPy": (lambda: layer.forward(s, out=q), lambda: weights @ s),
            "GradA by SciPy": (lambda: layer.grad_input(dq, out=ds), lambda: transposed @ dq),
            "GradW by NumPy": (lambda: layer.grad_weights(dq, s, out=dw), lambda: (dq @ s.T)[rows, cols]),
        }
        for name, calls in pairs.items():
            ours, theirs = medians(calls, repeats)
            ratios[name].append(theirs / ours)
            bars.add(f"{name}: {outputs} x {inputs} x {batch}, {density}, block {block}", theirs / ours, least[name])
        if block == 1:
            csr = torch.sparse_csr_tensor(*map(torch.from_numpy, (flat.indptr, flat.indices, flat.data)), flat.shape)
            operand = torch.from_numpy(s)
            ours, theirs = medians((pairs["Fwd by SciPy"][0], lambda: csr @ operand), repeats)
            bars.add(f"Fwd by torch CSR: {outputs} x {inputs} x {batch}, {density}", theirs / ours, 4.5)
    for name, bar in (("Fwd by SciPy", 13), ("GradA by SciPy", 12), ("GradW by NumPy", 5.5)):
        bars.add(f"{name}: geometric mean", statistics.geometric_mean(ratios[name]), bar)


def bench_vector(bars, repeats):
    weights = make_weights(4096, 4096, 0.1, 1)
    layer = ts.Layer(weights, batch=1)
    s, q = np.ones((4096, 1), np.float32), np.empty((4096, 1), np.float32)
    ours, theirs = medians((lambda: layer.forward(s, out=q), lambda: weights @ s), 3 * repeats)
    bars.add("batch of one, 4096 x 4096, 0.1: Fwd by SciPy", theirs / ours, 2.2)
    for outputs, inputs, density in ((2048, 768, 0.1), (2048, 768, 0.01), (256, 256, 0.1), (4096, 1024, 0.02)):
        weights = make_weights(outputs, inputs, density, 1)
        layer, wide = ts.Layer(weights, batch=1), ts.Layer(weights, batch=128)
        s, column = np.ones(inputs, np.float32), np.ones((inputs, 1), np.float32)
        calls = (
            lambda: layer @ column, lambda: wide @ s, lambda: weights @ column, lambda: ts.spmm(weights, s, threads=1),
            lambda: weights @ s,
        )
        own, of_many, theirs, product, of_vector = medians(calls, 3 * repeats, 20)
        for name, ratio in (
            ("layer @ column", theirs / own),
            ("layer of 128 columns @ vector", of_vector / of_many),
            ("spmm(w, vector)", of_vector / product),
        ):
            bars.add(f"`{name}`, {outputs} x {inputs}, {density}: by SciPy", ratio, 1.0)


def bench_call(bars, repeats):
    """One product with SciPy's matrix, of operands that NumPy allocates: their rows are not aligned as vectors are."""
    for outputs, inputs, density, batch in ((3072, 768, 0.5, 64), (2048, 5632, 0.05, 16), (1024, 1024, 0.1, 50)):
        weights = make_weights(outputs, inputs, density, 1)
        layer, s = ts.Layer(weights, batch=batch, threads=1), np.ones((inputs, batch), np.float32)
        call, prepared, theirs = medians((lambda: ts.spmm(weights, s, threads=1), lambda: layer @ s, lambda: weights @ s), repeats)
        name = f"`spmm(w, s)`, {outputs} x {inputs} x {batch}, {density}"
        bars.add(f"{name}: by SciPy", theirs / call, 5)
        bars.add(f"{name}: by the layer", prepared / call, 0.85)


def bench_batch_first(bars, repeats):
    rng = np.random.default_rng(3)
    layer = ts.Layer(make_weights(1024, 784, 0.1, 1), batch=128)
    s, dq = rng.standard_normal((784, 128), np.float32), rng.standard_normal((1024, 128), np.float32)
    q, ds, dw = np.empty_like(dq), np.empty_like(s), layer.values
    st, dqt, qt, dst = (np.ascontiguousarray(a.T).T for a in (s, dq, q, ds))
    for name, plain, first in (
        ("forward", lambda: layer.forward(s, out=q), lambda: layer.forward(st, out=qt)),
        ("grad_input", lambda: layer.grad_input(dq, out=ds), lambda: layer.grad_input(dqt, out=dst)),
        ("grad_weights", lambda: layer.grad_weights(dq, s, out=dw), lambda: layer.grad_weights(dqt, st, out=dw)),
    ):
        ours, theirs = medians((plain, first), 5 * repeats)
        bars.add(f"batch first by features first, 1024 x 784 x 128, 0.1: {name}", theirs / ours, 1.25, False)


def bench_construction(bars, repeats):
    weights = make_weights(4096, 4096, 0.1, 1)
    (ours,) = medians((lambda: ts.Layer(weights, batch=128),), repeats)
    bars.add(f"`ts.Layer(w)` of {weights.nnz:,} values, all passes", 1e3 * ours, 50, False, "ms")


class Masked(nn.Linear):
    """A dense layer whose weight is multiplied by a mask, as users of masks run it."""

    def __init__(self, inputs, outputs, density):
        super().__init__(inputs, outputs)
        self.mask = (torch.rand(outputs, inputs) < density).float()

    def forward(self, x):
        return F.linear(x, self.weight * self.mask, self.bias)


class TorchSparse(nn.Module):
    """A layer by torch.sparse.mm, whose gradient stays in the pattern."""

    def __init__(self, inputs, outputs, density):
        super().__init__()
        dense = torch.randn(outputs, inputs) * (torch.rand(outputs, inputs) < density)
        self.weight = nn.Parameter(dense.to_sparse().coalesce())
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return torch.sparse.mm(self.weight, x.t()).t() + self.bias


def step_of(sizes, make, batch=128, momentum=0):
    """Returns a function that runs one step of training of a network, with ReLU between its layers."""
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:-1]):
        layer = make(inputs, outputs)
        layers += [layer] if getattr(layer, "activation", "none") == "relu" else [layer, nn.ReLU()]
    net = nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=momentum)
    x, y = torch.randn(batch, sizes[0]), torch.randint(sizes[-1], (batch,))

    def step():
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()

    return step


@contextlib.contextmanager
def idle_layers():
    """Lets the passes of sparse layers do nothing, so that a step takes the time of torch and of Python alone."""
    names = "_train_forward", "_train_backward"
    kept = [getattr(ts.Layer, name) for name in names]
    try:
        for name in names:
            setattr(ts.Layer, name, lambda *_: None)
        yield
    finally:
        for name, call in zip(names, kept):
            setattr(ts.Layer, name, call)


def bench_floor(bars, repeats, sizes, density, batch=128, most=None):
    """States the parts of a step, each in turns with the masked step, which leaves the caches as it does in training."""
    ours = step_of(sizes, lambda i, o: SparseLinear(i, o, density=density, activation="relu"), batch)
    masked = step_of(sizes, lambda i, o: Masked(i, o, density), batch)
    ours()  # makes the layer

    def idle():
        with idle_layers():
            ours()

    floor, first = medians((idle, masked), repeats)
    whole, second = medians((ours, masked), repeats)
    name = f"torch step, {'-'.join(map(str, sizes))}, {density}"
    bars.add(f"{name}: floor, of torch and Python", 1e6 * floor, most, False, unit="us")
    bars.add(f"{name}: our passes", 1e6 * (whole - floor), None, unit="us")
    bars.add(f"{name}: masked `nn.Linear` by the floor", (first + second) / 2 / floor, None)


def bench_torch(bars, repeats):
    small, large = (784, 1024, 10), (784, 4096, 4096, 10)
    for sizes, density, block, bar in (
        (small, 0.1, 1, 3.0), (small, 0.02, 1, 6), (large, 0.1, 1, 4.8), (large, 0.02, 1, 16), (large, 0.1, 16, 8),
    ):
        ours = step_of(sizes, lambda i, o: SparseLinear(i, o, density=density, block=block, activation="relu"))
        times = medians((ours, step_of(sizes, nn.Linear)), repeats * (5 if sizes is small else 1))
        name = "-".join(map(str, sizes))
        bars.add(f"torch step, {name}, {density}, block {block}: `nn.Linear` by ours", times[1] / times[0], bar)
        if sizes is small:
            bench_floor(bars, 3 * repeats, sizes, density)
            peers = (ours, step_of(sizes, lambda i, o: Masked(i, o, density)),
                     step_of(sizes, lambda i, o: TorchSparse(i, o, density)))
            first, masked, sparse = medians(peers, 3 * repeats)
            bars.add(f"torch step, {name}, {density}: masked `nn.Linear` by ours", masked / first, 3 if density == 0.1 else 6)
            bars.add(f"torch step, {name}, {density}: `torch.sparse` by ours", sparse / first, 9 if density == 0.1 else None)


def bench_trainer(bars, repeats):
    """Steps of the trainer of `tessera train` with RigL, its rewires included, beside dense steps of torch."""
    sizes, batch, epochs = (784, 1024, 1024, 10), 100, 3
    example, folder = fashion_mnist_example()
    x, y = (example.read_idx(folder / f"train-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1"))
    dense = step_of(sizes, nn.Linear, batch, momentum=0.9)
    for density, bar in ((0.1, 0.22), (0.01, 0.045), (0.001, 0.015)):
        ratios, steps = [], []
        for _ in range(max(3, repeats // 2)):  # in turns; the least epoch beside the median of as many dense steps
            (theirs,) = medians((dense,), 5 * repeats)
            trainer = ts.train.Trainer("-".join(map(str, sizes)), method="rigl", density=density, batch=batch)
            trainer.fit(x, y, epochs=epochs, test=(x[:batch], y[:batch]))  # hardly an evaluation
            seconds = np.diff([0, *(epoch.seconds for epoch in trainer.history)])  # by the clock
            steps.append(min(seconds) / (len(x) // batch))
            ratios.append(steps[-1] / theirs)
        name = f"`tessera train`, 784-1024-1024-10, {density}, batch {batch}"
        bars.add(f"{name}: a step", 1e6 * statistics.median(steps), None, unit="us")
        bars.add(f"{name}: step by `nn.Linear`'s", statistics.median(ratios), bar, False)
    bench_floor(bars, 3 * repeats, sizes, 0.1, batch, most=2000)


def bench_block(bars, repeats):
    """All passes of the six matrices of a transformer's block, one weight in 64 stored, for 4,096 tokens."""
    sizes = [(1024, 1024)] * 4 + [(1024, 4096), (4096, 1024)]  # inputs, outputs
    tokens = [(torch.randn(4096, i, requires_grad=True), torch.randn(4096, o)) for i, o in sizes]

    def passes(make):
        layers = [make(i, o) for i, o in sizes]

        def run():
            for layer, (x, dq) in zip(layers, tokens):
                layer.zero_grad(set_to_none=True)
                x.grad = None
                layer(x).backward(dq)

        return run

    def plain_passes():
        cases = []
        for (inputs, outputs), (x, dq) in zip(sizes, tokens):
            layer = ts.Layer(make_weights(outputs, inputs, 1 / 64, 1), batch=len(x))
            s, dq = (np.ascontiguousarray(a.detach().numpy().T) for a in (x, dq))
            cases.append((layer, s, dq, np.empty_like(dq), np.empty_like(s), layer.values))

        def run():
            for layer, s, dq, q, ds, dw in cases:
                layer.forward(s, out=q)
                layer.grad_input(dq, out=ds)
                layer.grad_weights(dq, s, out=dw)

        return run

    calls = (
        passes(lambda i, o: SparseLinear(i, o, density=1 / 64)), passes(lambda i, o: Masked(i, o, 1 / 64)), plain_passes(),
    )
    ours, masked, plain = medians(calls, repeats)
    bars.add("six matrices of a block, 1/64, 4,096 tokens: ours", 1e3 * ours, None, unit="ms")
    bars.add("six matrices of a block, 1/64, 4,096 tokens: masked `nn.Linear` by ours", masked / ours, 16)
    bars.add("six matrices of a block, 1/64, 4,096 tokens: masked `nn.Linear` by the layer's passes", masked / plain, 22)


def bench_sparsify(bars, repeats):
    block = lambda: nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    perceptron = lambda: nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 10))
    for name, make, x in (("perceptron", perceptron, torch.randn(128, 784)), ("encoder layer", block, torch.randn(4, 64, 256))):
        for density in (0.5, 0.1):
            dense, sparse = make(), make()
            swaps = sparsify(sparse, x, density=density)
            calls = (lambda: sparse(x).square().sum().backward(), lambda: dense(x).square().sum().backward())
            first, second = medians(calls, repeats, 5)
            swapped = sum(swap.swapped for swap in swaps)
            bars.add(f"`sparsify`, {name}, {density}, {swapped} of {len(swaps)} swapped: ours by dense", first / second, 1.05, False)


def bench_rewire(bars, repeats):
    net = SparseLinear(784, 1024, density=0.1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    rigl = RigL(net, opt, every=1, end=10**9)
    x, dq = torch.randn(128, 784), torch.randn(128, 1024)
    net(x).backward(dq)
    opt.step()
    rigl._watch()
    net(x).backward(dq)
    operands = list(net._operands)
    k = int(0.3 * net.values.numel())

    def ours():
        net._operands[:] = operands
        assert rigl.step()

    def theirs():
        gradient = np.abs(dq.numpy().T @ x.numpy())
        np.argpartition(gradient.reshape(-1), gradient.size - k)

    first, second = medians((ours, theirs), 3 * repeats)
    bars.add("`RigL.step()`, 784 x 1024, 0.1: NumPy's gradient and argpartition by ours", second / first, 3)


def fashion_mnist_example():
    """Returns the module of examples/python/rigl_torch.py, and the folder of its data."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"))
    import rigl_torch

    return rigl_torch, pathlib.Path("/usr/share/datasets/fashion-mnist")


def bench_fit(bars, repeats):
    # The trainer in C++ measures its own time, by the wall clock: to be made from data in memory, and
    # the epochs. Python's call has, besides, the checks and the copies of its arrays.
    example, folder = fashion_mnist_example()
    x, y = (example.read_idx(folder / f"t10k-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1"))
    ratios = []
    for _ in range(max(3, repeats // 3)):
        trainer = ts.train.Trainer("784-1024-10", method="rigl", density=0.1)
        begin = time.perf_counter()
        trainer.fit(x, y, epochs=3)
        seconds = time.perf_counter() - begin
        ratios.append(seconds / (trainer._trained().setup_seconds() + trainer.history[-1].seconds))
    bars.add("`Trainer.fit`, 3 epochs of 10,000 pictures, by the C++ trainer", statistics.median(ratios), 1.03, False)


def bench_accuracy(bars, _):
    example, folder = fashion_mnist_example()
    recipe = argparse.Namespace(data=folder, epochs=30, images=60000, density=0.1, block=1, seed=1)
    accuracy = 100 * example.train(recipe)
    bars.add("RigL through torch, 784-1024-10, 0.1, 30 epochs, seed 1: test accuracy", accuracy, 89.5, unit="%")


BENCHES = {
    "import": bench_import,
    "calls": bench_calls,
    "passes": bench_passes,
    "vector": bench_vector,
    "call": bench_call,
    "batch_first": bench_batch_first,
    "construction": bench_construction,
    "torch": bench_torch,
    "block": bench_block,
    "trainer": bench_trainer,
    "sparsify": bench_sparsify,
    "rewire": bench_rewire,
    "fit": bench_fit,
    "accuracy": bench_accuracy,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bars", action="store_true")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--only", nargs="+", choices=BENCHES, default=list(BENCHES))
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    bars = Bars()
    print("| measure | figure | bar | |\n| --- | ---: | --- | --- |")
    for name in args.only:
        BENCHES[name](bars, args.repeats)
    print(f"\n{bars.missed} bars missed")
    return int(args.bars and bars.missed > 0)


if __name__ == "__main__":
    sys.exit(main())

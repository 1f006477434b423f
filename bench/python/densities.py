"""Trains two networks at several densities beside dense torch with masks, and prints a table.

usage: PYTHONPATH=BUILD/python densities.py [--epochs 2] [--densities 1 0.5 ...] [--images N] [--networks NAME ...]

784-1024-1024-10 on Fashion-MNIST and 3072-1024-512-10 on drawn pictures, batch 100, one thread. Ours is the trainer of
`tessera train` by ts.train.Trainer, with fixed Erdős–Rényi patterns. torch has the same patterns as masks over nn.Linear
with its own first values, and the same optimiser. An epoch is the least processor time of the epochs, the test after each
of them included; inference is a median of calls in turns, through ts.Layer and torch's dense layers.
"""

from __future__ import annotations

import argparse
import datetime
import math
import platform
import time

import python_bench as bench  # first, because it sets the threads of NumPy
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import tessera as ts

BATCH, CLASSES, PICTURES, TESTED = 100, 10, 50_000, 10_000
NETWORKS = {"fashion-mnist": (784, 1024, 1024, 10), "drawn": (3072, 1024, 512, 10)}
RATES = {"fashion-mnist": 0.1, "drawn": 0.01}  # first ones; with 0.1 dense layers of 3,072 inputs diverge
DENSITIES = (1, 0.5, 0.2, 0.1, 0.05, 0.01, 0.005, 0.001)


def drawn_pictures(count, classes, rng):
    """Returns pictures that are one of `classes` and as much noise, and their labels."""
    labels = rng.integers(len(classes), size=count)
    noise = rng.integers(0, 256, (count, classes.shape[1]), np.uint8)
    return noise // 2 + classes[labels] // 2, labels


def pictures_of(name, most):
    """Returns ((x, y), (x, y)): what is trained on and what is tested, x [n, inputs] of uint8."""
    if name == "drawn":
        rng = np.random.default_rng(1)
        classes = rng.integers(0, 256, (CLASSES, NETWORKS[name][0]), np.uint8)
        return [drawn_pictures(min(count, most), classes, rng) for count in (PICTURES, TESTED)]
    example, folder = bench.fashion_mnist_example()
    parts = [[example.read_idx(folder / f"{part}-{kind}-ubyte.gz")[:most] for kind in ("images-idx3", "labels-idx1")]
             for part in ("train", "t10k")]
    return [(x.reshape(len(x), -1), y) for x, y in parts]


def seconds_of(call):
    """Returns what a call returns, and its processor time."""
    begin = time.process_time()
    result = call()
    return result, time.process_time() - begin


def train_ours(sizes, density, data, epochs, rate):
    """Returns the trainer, the seconds of its shortest epoch and the last accuracy of the test."""
    trainer = ts.train.Trainer(sizes, method="static", density=density, distribution="erk", batch=BATCH, rate=rate)
    _, whole = seconds_of(lambda: trainer.fit(*data[0], epochs=epochs, test=data[1]))
    shares = np.diff([0, *(epoch.seconds for epoch in trainer.history)])  # of the time by the clock
    return trainer, whole * min(shares) / sum(shares), trainer.history[-1].test_accuracy


def spread(arrays, values):
    """Returns the dense matrix with `values` at the places of a pattern."""
    rows = np.repeat(np.arange(arrays.shape[0]), np.diff(arrays.indptr))
    dense = np.zeros(arrays.shape, np.float32)
    dense[rows, arrays.indices] = values
    return torch.from_numpy(dense)


class Masked(bench.Masked):
    """A dense layer with the pattern of a sparse one as its mask."""

    def __init__(self, arrays):
        super().__init__(*reversed(arrays.shape), 0)
        self.mask = spread(arrays, 1)


def as_tensors(pixels, labels, mean, deviation):
    return (torch.from_numpy(pixels.astype(np.float32)) / 255 - mean) / deviation, torch.from_numpy(labels.astype(np.int64))


def train_torch(net, data, epochs, first_rate):
    """Returns the seconds of the shortest epoch and the last accuracy of the test."""
    (x, y), (tested, right) = data
    mean, deviation = (float(f(x[:1000] / 255)) for f in (np.mean, np.std))
    test = as_tensors(tested, right, mean, deviation)
    steps = len(x) // BATCH * epochs
    opt = torch.optim.SGD(net.parameters(), lr=first_rate, momentum=0.9, weight_decay=2e-4)
    rate = torch.optim.lr_scheduler.LambdaLR(opt, lambda t: 0.5 * (1 + math.cos(math.pi * t / steps)))

    def epoch():
        for rows in np.random.default_rng(1).permutation(len(x))[: steps // epochs * BATCH].reshape(-1, BATCH):
            pictures, labels = as_tensors(x[rows], y[rows], mean, deviation)
            opt.zero_grad()
            F.cross_entropy(net(pictures), labels).backward()
            opt.step()
            rate.step()
        with torch.no_grad():
            found = torch.cat([net(part) for part in test[0].split(1000)]).argmax(1)
        return float((found == test[1]).float().mean())

    runs = [seconds_of(epoch) for _ in range(epochs)]
    return min(seconds for _, seconds in runs), runs[-1][0]


def inference(trainer, batch, repeats):
    """Returns the milliseconds of our layers and of torch's dense ones for a batch."""
    count = len(trainer.sizes) - 1
    weights = [trainer.weights(i) for i in range(count)]
    layers = [trainer.layer(i, batch=batch, order="batch_first", passes="fwd") for i in range(count)]
    net = nn.Sequential()
    for i, (arrays, bias) in enumerate(weights):
        dense = nn.Linear(*reversed(arrays.shape))
        dense.weight.data, dense.bias.data = spread(arrays, arrays.data), torch.from_numpy(bias)
        net.extend([dense, nn.ReLU()] if i + 1 < count else [dense])
    x = torch.randn(batch, trainer.sizes[0])

    def ours():
        s = x
        for i, layer in enumerate(layers):
            s = layer.forward(s, bias=weights[i][1], activation="relu" if i + 1 < count else "none")
        return s

    @torch.no_grad()
    def theirs():
        return net(x)

    right = theirs()
    assert torch.allclose(ours(), right, rtol=1e-3, atol=1e-4 * float(right.abs().max()))
    return (1e3 * seconds for seconds in bench.medians((ours, theirs), repeats, 20))


def row(name, density, data, epochs, repeats):
    """Returns the figures of one network at one density, in the order of the head."""
    sizes = NETWORKS[name]
    torch.manual_seed(1)
    trainer, ours, accuracy = train_ours(sizes, density, data, epochs, RATES[name])
    layers = [Masked(trainer.weights(i)[0]) for i in range(len(sizes) - 1)]
    net = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))[:-1]
    theirs, other = train_torch(net, data, epochs, RATES[name])
    times = [ms for batch in (1, BATCH) for ms in inference(trainer, batch, repeats)]
    return [ours, theirs, theirs / ours, 100 * accuracy, 100 * other, *times]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--densities", type=float, nargs="+", default=DENSITIES)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--images", type=int, default=60_000, help="first pictures to use of each part")
    parser.add_argument("--repeats", type=int, default=9, help="of inference")
    args = parser.parse_args()
    torch.set_num_threads(1)
    models = [line.split(": ")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    print(f"# {models[0]}, one thread; {datetime.date.today()}; torch {torch.__version__}, Python {platform.python_version()}")
    print("network", "density", "s_epoch", "masked_s_epoch", "faster", "accuracy_percent", "masked_accuracy_percent",
          "batch_1_ms", "batch_1_dense_ms", "batch_100_ms", "batch_100_dense_ms", sep="\t", flush=True)
    for name in args.networks:
        data = pictures_of(name, args.images)
        for density in args.densities:
            figures = row(name, density, data, args.epochs, args.repeats)
            print("-".join(map(str, NETWORKS[name])), f"{density:g}", *(f"{figure:.3g}" for figure in figures), sep="\t", flush=True)


if __name__ == "__main__":
    main()

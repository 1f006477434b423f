"""Trains a sparse network on Fashion-MNIST with RigL: 784-1024-10, a tenth of the weights.

usage: rigl_torch.py [--epochs 30] [--density 0.1] [--block 1] [--images N] [--seed 1]
The data are those of Debian's package dataset-fashion-mnist.
"""

from __future__ import annotations

import argparse
import gzip
import math
import pathlib
import time

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from tessera.torch import RigL, SparseLinear

BATCH = 128
MEAN, DEVIATION = 0.2860, 0.3530  # of the pixels of the training images


def read_idx(path: pathlib.Path) -> NDArray[np.uint8]:
    """Returns the array of a file in the IDX format, which begins with the sizes."""
    data = gzip.decompress(path.read_bytes())
    sizes = np.frombuffer(data, ">i4", count=data[3], offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(sizes)


def load(folder: pathlib.Path, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns normalised images [n, 784] and labels [n]."""
    pixels = read_idx(folder / f"{name}-images-idx3-ubyte.gz").reshape(-1, 784)
    labels = read_idx(folder / f"{name}-labels-idx1-ubyte.gz")
    images = (torch.from_numpy(pixels.astype(np.float32)) / 255 - MEAN) / DEVIATION
    return images, torch.from_numpy(labels.astype(np.int64))


def train(args: argparse.Namespace) -> float:
    """Trains and returns the accuracy on the test images."""
    torch.manual_seed(args.seed)
    x, y = (part[: args.images] for part in load(args.data, "train"))
    net = nn.Sequential(
        SparseLinear(784, 1024, density=args.density, block=args.block), nn.ReLU(), nn.Linear(1024, 10)
    )
    steps = args.epochs * (len(x) // BATCH)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=2e-4)
    rate = torch.optim.lr_scheduler.LambdaLR(opt, lambda t: 0.5 * (1 + math.cos(math.pi * t / steps)))
    rigl = RigL(net, opt, every=100, end=int(0.75 * steps), fraction=0.3)
    for epoch in range(args.epochs):
        begin, loss = time.perf_counter(), torch.zeros(())
        for rows in torch.randperm(len(x))[: steps // args.epochs * BATCH].split(BATCH):
            loss = F.cross_entropy(net(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            if not rigl.step():
                opt.step()
            rate.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, {time.perf_counter() - begin:.1f} s")
    net.eval()
    images, labels = load(args.data, "t10k")
    with torch.no_grad():
        return float((net(images).argmax(1) == labels).float().mean())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--images", type=int, default=60000)
    parser.add_argument("--density", type=float, default=0.1)
    parser.add_argument("--block", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    torch.set_num_threads(1)
    print(f"test accuracy {100 * train(parser.parse_args(arguments)):.2f} %")


if __name__ == "__main__":
    main()

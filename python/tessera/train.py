"""The trainer in C++: whole networks of sparse layers, without PyTorch."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tessera import _core
from tessera._core import InvalidArgument
from tessera._layer import Layer
from tessera._options import number, require_one_of, seed_number, size, text, thread_count, whole_number
from tessera._weights import Arrays, array_of

__all__ = ["Epoch", "Trainer"]


class Epoch(NamedTuple):
    """Figures of one epoch; accuracies are shares, losses means in nats."""

    epoch: int
    loss: float
    accuracy: float
    test_loss: float
    test_accuracy: float
    seconds: float


class Trainer:
    """Trains a network with ReLU between its layers on pictures of 8 bits, with cross-entropy.

    sizes         "784-1024-10", or a list
    method        "static", "set", "rigl", "sampled", "top-k" or "prune": how the patterns change
    density       of the weights; distribution "uniform" keeps the last layer dense, "erk" gives
                  narrow layers more
    density_schedule  "linear", "cubic" or "exponential": the density goes from first_density to density over
                  the first half of the run, and "prune" needs one that falls; None: it stays
    first_density  of a schedule, 1.0 by default
    min_per_neuron  blocks that each row and column of blocks of a sparse layer keeps
    rate, fraction, every    first learning rate, first share that a rewire moves, steps between two

    fit(x, y, epochs=30) uses SGD with momentum 0.9 and decay 2e-4, a rate that falls as a cosine, and
    rewires up to three quarters of the run. Results have the same bits for any number of threads.
    """

    def __init__(
        self,
        sizes: str | Sequence[int],
        *,
        method: str = "rigl",
        density: float = 0.1,
        density_schedule: str | None = None,
        first_density: float | None = None,
        distribution: str = "uniform",
        min_per_neuron: int = 0,
        block: int = 1,
        batch: int = 128,
        rate: float = 0.1,
        fraction: float = 0.3,
        every: int = 100,
        seed: int = 1,
        threads: int = 1,
    ) -> None:
        require_one_of("distribution", distribution, ("uniform", "erk"))
        if density_schedule is not None:
            require_one_of("density_schedule", density_schedule, ("linear", "cubic", "exponential"))
        elif first_density is not None:
            raise InvalidArgument("first_density is that of a density_schedule, which is not given")
        self.sizes = _layer_sizes(sizes)
        self._options: dict[str, Any] = {
            "method": text("method", method), "density": number("density", density), "distribution": distribution,
            "density_schedule": density_schedule or "", "first_density": number("first_density", 1.0 if first_density is None else first_density),
            "min_per_neuron": whole_number("min_per_neuron", min_per_neuron, 0),
            "block": whole_number("block", block), "batch": whole_number("batch", batch), "rate": number("rate", rate),
            "fraction": number("fraction", fraction), "every": whole_number("every", every),
            "seed": seed_number(seed), "threads": thread_count(threads),
        }
        if method == "prune" and (density_schedule is None or self._options["density"] >= self._options["first_density"]):
            raise InvalidArgument('"prune" needs a density that falls: density_schedule="cubic" and density below first_density')
        self._run: _core._Trainer | None = None
        self.history: list[Epoch] = []

    def fit(self, x: Any, y: Any, *, epochs: int, test: tuple[Any, Any] | None = None, verbose: bool = False) -> list[Epoch]:
        """Train anew on pictures x [n, inputs] of uint8 with labels y [n]; return the epochs' figures.

        test is a pair like (x, y); without it the figures of the test are those of (x, y). Ctrl-C
        ends it with KeyboardInterrupt; `history` has the epochs that were finished, and weights are
        those of the last step.
        """
        epochs = size("epochs", epochs)
        pixels, labels = _pictures(x, y, self.sizes)
        test_pixels, test_labels = (pixels, labels) if test is None else _pictures(*test, self.sizes)
        self._run = _core._Trainer(
            pixels, labels, test_pixels, test_labels, self.sizes, epochs=epochs, **self._options
        )
        self.history = []
        for _ in range(epochs):
            self.history.append(Epoch(**self._run.epoch()))
            if verbose:
                print(self.history[-1])
        return self.history

    def __repr__(self) -> str:
        sizes, options = "-".join(map(str, self.sizes)), self._options
        return (
            f"Trainer({sizes!r}, method={options['method']!r}, density={options['density']:g}, {len(self.history)} epochs trained)"
        )

    def _trained(self) -> _core._Trainer:
        if self._run is None:
            raise InvalidArgument("call fit first")
        return self._run

    def weights(self, index: int) -> tuple[Arrays, NDArray[np.float32]]:
        """Return (indptr, indices, data, shape) and the bias of a layer, counted from 0."""
        run = self._trained()
        arrays, shape, bias = run.layer(whole_number("the layer", index, 0, run.layers() - 1))
        return Arrays(*arrays, shape), bias

    def layer(self, index: int, **options: Any) -> Layer:
        """Return a ts.Layer with the weights of a layer, which knows no bias."""
        return Layer(self.weights(index)[0], **options)


def _layer_sizes(sizes: Any) -> list[int]:
    try:
        words = sizes.split("-") if isinstance(sizes, str) else sizes
        numbers = [int(word) if isinstance(word, str) else operator.index(word) for word in words]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) < 2 or min(numbers) < 1:
        raise InvalidArgument(
            f'sizes are {sizes!r}; they are two or more whole numbers from 1 on: "784-1024-10" or [784, 1024, 10]'
        )
    return numbers


def _pictures(x: Any, y: Any, sizes: list[int]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    pixels, labels = array_of(x, "x"), array_of(y, "y")
    if pixels.dtype != np.uint8:
        raise TypeError(f"x is {pixels.dtype}; pictures are uint8, 0 .. 255: x.astype(np.uint8)")
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise TypeError("y is not a list of whole numbers")
    if pixels.ndim < 2 or pixels.size == 0 or len(pixels) != len(labels) or pixels[0].size != sizes[0]:
        raise InvalidArgument(
            f"x is {list(pixels.shape)} with {len(labels)} labels; the network needs [n, {sizes[0]}] with n labels"
        )
    pixels = pixels.reshape(len(pixels), -1)
    if labels.min() < 0 or labels.max() >= sizes[-1]:
        raise InvalidArgument(f"labels are {labels.min()} .. {labels.max()}; the network has {sizes[-1]} outputs")
    if sizes[-1] > 256:
        raise InvalidArgument(f"the network has {sizes[-1]} outputs; the trainer takes up to 256")
    return np.ascontiguousarray(pixels), np.ascontiguousarray(labels, np.uint8)

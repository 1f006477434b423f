"""A sparse layer forward and backward, one step of training, a new pattern, and its cost on tiles.

Needs Python and NumPy only. With SciPy, weights may be any of its sparse matrices.
"""

import numpy as np

import tessera as ts


def main() -> None:
    rng = np.random.default_rng(1)
    w = rng.standard_normal((1024, 784), np.float32)
    w[rng.random(w.shape) >= 0.1] = 0  # one weight in ten stays

    layer = ts.Layer(w, batch=128)
    print(layer)

    s = rng.standard_normal((784, 128), np.float32)
    q = layer @ s
    print("forward agrees with NumPy:", np.allclose(q, w @ s, atol=1e-3))

    target = rng.standard_normal(q.shape, np.float32)
    dq = (q - target) / np.float32(q.size)
    dw = layer.grad_weights(dq, s)
    before = np.square(q - target).mean()
    layer.values = layer.values - 20 * dw
    print("a step lowers the loss:", bool(np.square(layer @ s - target).mean() < before))

    origin = layer.rewire("rigl", fraction=0.3, dq=dq, s=s)
    print(f"rewired: {np.count_nonzero(origin < 0):,} of {layer.nnz:,} weights are at new places")

    run = ts.simulate(layer.arrays, batch=128, machine="gc200")
    print(f"the same layer on 1,472 tiles: {run.cycles:,} cycles, results right: {run.ok}")


if __name__ == "__main__":
    main()

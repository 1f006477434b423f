"""The trainer in C++ from Python."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import tessera as ts


def pictures(count, seed=1):
    """Returns pictures whose brightest third tells their label."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=count)
    x = rng.integers(0, 120, (count, 30), np.uint8)
    for third in range(3):
        x[labels == third, third * 10 : third * 10 + 10] += 100
    return x, labels


def test_fit_learns_and_repeats():
    x, y = pictures(512)
    results = []
    for threads in (1, 2):
        trainer = ts.train.Trainer("30-40-3", density=0.3, batch=32, every=8, threads=threads)
        history = trainer.fit(x, y, epochs=4, test=pictures(100, 2))
        assert [epoch.epoch for epoch in history] == [1, 2, 3, 4]
        assert history[-1].test_accuracy > 0.9 and history[-1].loss < history[0].loss
        results.append(trainer.weights(0))
    assert all((a == b).all() for a, b in zip(results[0][0][:3], results[1][0][:3]))
    arrays, bias = results[0]
    assert arrays.shape == (40, 30) and len(arrays.data) == 360 and bias.shape == (40,)
    assert trainer.layer(0).nnz == 360


@pytest.mark.parametrize("method", ["prune", "rigl", "top-k"])
def test_a_density_falls_over_half_of_the_run(method):
    x, y = pictures(512)
    trainer = ts.train.Trainer(
        "30-40-3", method=method, density=0.2, density_schedule="cubic", min_per_neuron=1, batch=32, every=4
    )
    history = trainer.fit(x, y, epochs=4)
    stored, _ = trainer.weights(0)
    assert len(stored.data) == 240 and history[-1].accuracy > 0.9
    assert (np.diff(stored.indptr) > 0).all() and len(np.unique(stored.indices)) == 30


def test_ctrl_c_ends_fit():
    x, y = pictures(4096)
    trainer = ts.train.Trainer("30-2000-3", density=0.5, batch=64)
    thread = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(x, y, epochs=10000)
    thread.join()
    assert len(trainer.weights(0)[0].data) == 30000
    time.sleep(0.1)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"sizes": "30-x-3"}, "784-1024-10"),
        ({"sizes": "30"}, "two or more"),
        ({"sizes": [30, 0, 3]}, "from 1 on"),
        ({"sizes": [30, 8.5, 3]}, "8.5"),
        ({"sizes": 30}, "784-1024-10"),
        ({"method": "magic"}, "rigl"),
        ({"method": "prune"}, "density_schedule"),
        ({"method": "prune", "density_schedule": "cubic", "density": 1.0}, "density that falls"),
        ({"density_schedule": "square"}, "exponential"),
        ({"first_density": 0.5}, "which is not given"),
        ({"density_schedule": "cubic", "first_density": 0.0}, "density"),
        ({"density": 0.1, "min_per_neuron": 9}, "min_per_neuron"),
        ({"distribution": "even"}, "erk"),
        ({"density": 2.0}, "density"),
        ({"batch": 1000}, "batch"),
        ({"sizes": "31-8-3"}, "31"),
        ({"sizes": "30-8-2"}, "labels"),
    ],
)
def test_refuses_what_is_wrong(options, text):
    x, y = pictures(64)
    with pytest.raises(ts.InvalidArgument, match=text):
        ts.train.Trainer(**{"sizes": "30-8-3", **options}).fit(x, y, epochs=1)
    with pytest.raises(TypeError, match="uint8"):
        ts.train.Trainer("30-8-3").fit(x / 255, y, epochs=1)

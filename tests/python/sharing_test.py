"""Threads, processes and memory."""

import os
import resource
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from model import random_array, random_weights

import tessera as ts

WEIGHTS = random_weights(1, 96, 80, (1, 1), 0.2)
S = random_array(np.random.default_rng(1), (80, 16))


def run_python(code):
    """Runs a program in an interpreter of its own and returns what it printed."""
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_threads_share_a_layer():
    layer = ts.Layer(WEIGHTS, batch=16)
    operands = [random_array(np.random.default_rng(i), (80, 16)) for i in range(4)]
    expected = [layer @ s for s in operands]
    wrong = []

    def work(i):
        for _ in range(200):
            if not (layer @ operands[i] == expected[i]).all():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_weights_may_change_while_another_thread_runs_passes():
    layer = ts.Layer(WEIGHTS, batch=16)
    other = random_weights(2, 96, 80, (1, 1), 0.3)
    legal = [layer @ S, ts.Layer(other, batch=16) @ S]
    stop, wrong = threading.Event(), []

    def work():
        while not stop.is_set():
            q = layer @ S
            if not any((q == expected).all() for expected in legal):
                wrong.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(50):
        layer.set_weights(other)
        layer.set_weights(WEIGHTS)
    stop.set()
    thread.join()
    assert not wrong


def test_values_are_whole_while_another_thread_changes_the_pattern():
    full, one = np.ones((256, 256), np.float32), np.zeros((256, 256), np.float32)
    one[0, 0] = 1
    layer, stop, wrong = ts.Layer(full, batch=1, passes="fwd"), threading.Event(), []

    def work():
        while not stop.is_set():
            if not (layer.values == 1).all():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        layer.set_weights(one)
        layer.set_weights(full)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_pass_lets_other_threads_run():
    layer = ts.Layer(random_weights(3, 1024, 1024, (1, 1), 0.5), batch=512)
    s = np.ones((1024, 512), np.float32)
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    layer @ s
    end = time.perf_counter()
    stop.set()
    thread.join()
    assert any(begin < at < end for at in ticks)


@pytest.mark.parametrize("threads", [1, 2])
def test_layers_survive_fork(threads):
    layer = ts.Layer(WEIGHTS, batch=16, threads=threads)
    expected = layer @ S
    child = os.fork()
    if child == 0:
        same = (layer @ S == expected).all() and (ts.Layer(WEIGHTS, batch=16, threads=2) @ S == expected).all()
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_ten_thousand_layers_leave_no_memory_behind():
    small = random_weights(1, 16, 16, (1, 1), 0.3)
    s = np.ones((16, 2), np.float32)

    def make(count):
        for _ in range(count):
            layer = ts.Layer(small, batch=2)
            layer.grad_weights(layer @ s, s)

    make(500)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    make(10000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # KiB


def test_results_live_longer_than_their_layer():
    layer = ts.Layer(WEIGHTS, batch=16)
    q, values = layer @ S, layer.values
    expected = q.copy(), values.copy()
    del layer
    for _ in range(20):
        ts.Layer(WEIGHTS, batch=16) @ S
    assert (q == expected[0]).all() and (values == expected[1]).all()
    with pytest.raises(NameError):
        layer  # noqa: F821


def test_imports_quickly_quietly_and_without_scipy_or_torch():
    out = run_python(
        "import warnings, time, sys; warnings.simplefilter('error'); import numpy, numpy.typing\n"
        "import tessera; print('scipy' in sys.modules, 'torch' in sys.modules)"
    )
    assert out == "False False\n"


def test_a_subinterpreter_is_refused():
    out = run_python(
        "import _xxsubinterpreters as sub; i = sub.create()\n"
        "try: sub.run_string(i, 'import tessera._core')\n"
        "except Exception as e: print(e)"
    )
    assert "interpreter" in out

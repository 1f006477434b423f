"""Threads, processes and memory."""

import os
import resource
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

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


@contextmanager
def repeated_in_threads(work, threads=1):
    """Calls work() again and again in other threads meanwhile; what it raises is raised here."""
    stop = threading.Event()

    def repeat():
        while not stop.is_set():
            work()

    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(repeat) for _ in range(threads)]
        try:
            yield
        finally:
            stop.set()
        for thread in running:
            thread.result()


def test_a_failure_in_another_thread_is_seen():
    with pytest.raises(ZeroDivisionError):
        with repeated_in_threads(lambda: 1 / 0):
            pass


def test_threads_share_a_layer():
    layer = ts.Layer(WEIGHTS, batch=16)
    operands = [random_array(np.random.default_rng(i), (80, 16)) for i in range(4)]
    expected = [layer @ s for s in operands]

    def work(i):
        return all((layer @ operands[i] == expected[i]).all() for _ in range(200))

    with ThreadPoolExecutor(4) as pool:  # which raises what a thread raised
        assert all(pool.map(work, range(4)))


def test_weights_may_change_while_another_thread_runs_passes():
    layer = ts.Layer(WEIGHTS, batch=16)
    other = random_weights(2, 96, 80, (1, 1), 0.3)
    legal = [layer @ S, ts.Layer(other, batch=16) @ S]

    def work():
        q = layer @ S
        assert any((q == expected).all() for expected in legal)

    with repeated_in_threads(work):
        for _ in range(50):
            layer.set_weights(other)
            layer.set_weights(WEIGHTS)


def test_values_are_whole_while_another_thread_changes_the_pattern():
    full, one = np.ones((256, 256), np.float32), np.zeros((256, 256), np.float32)
    one[0, 0] = 1
    layer = ts.Layer(full, batch=1, passes="fwd")

    def work():
        assert (layer.values == 1).all()

    with repeated_in_threads(work, threads=3):
        for _ in range(300):
            layer.set_weights(one)
            layer.set_weights(full)


def test_a_pass_lets_other_threads_run():
    layer = ts.Layer(random_weights(3, 1024, 1024, (1, 1), 0.2), batch=256, passes="fwd")
    s, ticks = np.ones((1024, 256), np.float32), []

    def runs_beside_a_pass():
        begin = time.perf_counter()
        layer @ s
        quarter = (time.perf_counter() - begin) / 4
        # A pass that kept the interpreter lock would leave the other thread nothing but the edges.
        return any(begin + quarter < at < begin + 3 * quarter for at in ticks)

    with repeated_in_threads(lambda: ticks.append(time.perf_counter())):
        assert any(runs_beside_a_pass() for _ in range(20))


RUNS_OF_LAYERS = """
import os
import numpy as np
import tessera as ts

def ran_ns():
    # The processor time of each thread of this process but the main one.
    others = {}
    for task in os.listdir("/proc/self/task"):
        if int(task) != os.getpid():
            others[task] = int(open(f"/proc/self/task/{task}/schedstat").read().split()[0])
    return others

def others_ran(call):
    before = ran_ns()
    call()
    return any(ns > before.get(task, 0) for task, ns in ran_ns().items())

rng = np.random.default_rng(1)
w = (rng.standard_normal((512, 512)) * (rng.random((512, 512)) < 0.3)).astype(np.float32)
s = rng.standard_normal((512, 256)).astype(np.float32)
one = ts.Layer(w, batch=256)
expected, gradient = one @ s, one.grad_weights(one @ s, s)
assert not all(others_ran(lambda: one @ s) for _ in range(20)), "a layer of one thread runs on others"
two = ts.Layer(w, batch=256, threads=2)
after = ts.Layer(w, batch=256)  # the last one made must not decide either
for layer in (one, two, after, two, one):
    assert (layer @ s == expected).all() and (layer.grad_weights(expected, s) == gradient).all()
used = any(others_ran(lambda: two @ s) for _ in range(500))
assert used or len(os.sched_getaffinity(0)) == 1, "a layer of two threads runs on one while layers of one thread exist"
print("right")
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="this system does not count a thread's time")
def test_layers_of_different_threads_run_side_by_side():
    # In a process of its own, where no other layer has woken threads.
    assert run_python(RUNS_OF_LAYERS) == "right\n"


@pytest.mark.parametrize("threads", [1, 2])
def test_layers_survive_fork(threads):
    layer = ts.Layer(WEIGHTS, batch=16, threads=threads)
    expected = layer @ S
    child = os.fork()
    if child == 0:
        same = (layer @ S == expected).all() and (ts.Layer(WEIGHTS, batch=16, threads=2) @ S == expected).all()
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif("TESSERA_SANITIZED" in os.environ, reason="a sanitizer keeps freed memory")
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


def test_results_live_longer_than_their_layer_and_methods_keep_it():
    layer = ts.Layer(WEIGHTS, batch=16)
    q, values, forward, alive = layer @ S, layer.values, layer.forward, weakref.ref(layer)
    expected = q.copy(), values.copy()
    del layer
    assert alive() is not None and (forward(S) == expected[0]).all()
    del forward
    assert alive() is None
    for _ in range(20):
        ts.Layer(WEIGHTS, batch=16) @ S
    assert (q == expected[0]).all() and (values == expected[1]).all()


def test_imports_quietly_and_nothing_that_takes_long():
    # Its time is a row of bench/python/python_bench.py.
    out = run_python(
        "import warnings, sys, numpy; warnings.simplefilter('error'); before = set(sys.modules)\n"
        "import tessera; print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    slow = {"asyncio", "html", "matplotlib", "onnx", "scipy", "tempfile", "torch", "tqdm", "unittest", "xml"}
    assert "tessera" in out.split() and not slow & set(out.split())


def test_the_module_may_be_imported_again():
    out = run_python(
        "import sys, tessera as first\n"
        "for name in [n for n in sys.modules if n.split('.')[0] == 'tessera']: del sys.modules[name]\n"
        "import tessera as second\n"
        "print(first is not second, second.Layer(__import__('numpy').eye(4, dtype='float32')).shape)"
    )
    assert "True (4, 4)" in out


def test_a_subinterpreter_is_refused():
    out = run_python(
        "try: import _interpreters as sub\n"  # from Python 3.13 on, where run_string returns what was raised
        "except ImportError: import _xxsubinterpreters as sub\n"
        "i = sub.create()\n"
        "try: print(sub.run_string(i, 'import tessera._core'))\n"
        "except Exception as e: print(e)"
    )
    assert "interpreter" in out

"""What calls do to the process: its threads, its floating-point mode, its children by fork()."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from model import random_array, random_weights

import tessera as ts

RANDOM = np.random.default_rng(11)
WEIGHTS = random_weights(5, 96, 96, (1, 1), 0.3)
S = random_array(RANDOM, (96, 32))


def threads_of_process():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("Threads")).split()[1])


@pytest.mark.parametrize("threads", [-1, 1025, 10**6, 2**31 - 1, 10**12])
def test_every_call_takes_0_to_1024_threads(threads):
    calls = [
        lambda: ts.spmm(WEIGHTS, S, threads=threads),
        lambda: ts.sddmm(WEIGHTS, S, S.T.copy(), threads=threads),
        lambda: ts.Layer(WEIGHTS, threads=threads),
        lambda: ts.simulate(WEIGHTS, S, threads=threads),
        lambda: ts.train.Trainer("4-2", threads=threads),
    ]
    for call in calls:
        with pytest.raises(ts.InvalidArgument, match="threads; use 1 to 1024, or 0 for all cores"):
            call()


def test_calls_with_many_numbers_of_threads_leave_those_of_one():
    ts.spmm(WEIGHTS, S, threads=2)
    before = threads_of_process()
    for threads in range(8, 40):
        ts.spmm(WEIGHTS, S, threads=threads)
    assert threads_of_process() <= before + 40


# The mode is set by the instructions of the processor, so it is tried in a process of its own.
FLUSHED = """
import ctypes, sys
import numpy as np, scipy.sparse as sp
import tessera as ts
libm = ctypes.CDLL("libm.so.6")
FE_UPWARD = 0x800
w = sp.random(96, 96, 0.3, "csr", np.float32, random_state=1)
w.data *= np.float32(1e-22)
x = np.full((96, 64), 1e-20, np.float32)
layer = ts.Layer(w)
def results():
    out = [ts.spmm(w, x, threads=t).tobytes() for t in (1, 2, 5)]
    return out + [(layer @ x).tobytes(), ts.sddmm(w, x, x.T.copy()).tobytes()]
expected = results()
assert len(set(expected[:3])) == 1
assert libm.fesetround(FE_UPWARD) == 0
for turn in range(3):
    assert results() == expected, turn
assert libm.fegetround() == FE_UPWARD
tiny = sp.random(64, 64, 0.3, "csr", np.float32, random_state=1)
tiny.data *= np.float32(1e-30)
simulated = ts.simulate(tiny, np.full((64, 4), 1e-10, np.float32), machine="mk1", dtype="float32")
assert simulated.ok, simulated
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of the mode is that of x86")
def test_the_rounding_of_the_caller_changes_no_bit_and_no_verdict():
    subprocess.run([sys.executable, "-c", FLUSHED], check=True, timeout=120)


def outcome_in_child(call, seconds=60):
    """Call fork() and then call() in the child. Return 0 if it returned True, or None if it hung."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork() in a process with threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if call() else 1
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_child_of_fork_computes_while_a_thread_of_the_parent_does(threads):
    layer = ts.Layer(WEIGHTS, threads=threads)
    expected, product = layer @ S, ts.spmm(WEIGHTS, S, threads=threads)
    over = threading.Event()

    def work():
        while not over.is_set():
            layer @ S
            ts.spmm(WEIGHTS, S, threads=threads)

    def child():
        again = ts.Layer(WEIGHTS, threads=threads) @ S
        return (
            np.array_equal(layer @ S, expected)
            and np.array_equal(ts.spmm(WEIGHTS, S, threads=threads), product)
            and np.array_equal(again, expected)
        )

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            assert outcome_in_child(child) == 0
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_a_result_in_the_memory_of_the_pattern_is_refused(kind):
    w = sp.random(300, 300, 0.2, "csr", np.float32, random_state=1).asformat(kind)
    name = "col" if kind == "coo" else "indices"
    list_ = getattr(w, name)
    memory = np.zeros(max(list_.size, 3000), np.int32)
    memory[: list_.size] = list_
    setattr(w, name, memory[: list_.size])
    before = memory.copy()
    out = memory.view(np.float32)[:3000].reshape(300, 10)
    with pytest.raises(ts.InvalidArgument, match="share|overlap"):
        ts.spmm(w, np.ones((300, 10), np.float32), out=out)
    assert np.array_equal(memory, before)

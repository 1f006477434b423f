"""Numbers and texts that are none: one line that names the option, and nothing is computed or asked for first."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import tessera as ts

F4 = np.float32
EYE, ONE = np.eye(8, dtype=F4), np.ones((8, 1), F4)
PICTURES = np.zeros((4, 8), np.uint8), np.zeros(4, int)
LARGE = np.arange(900.0).reshape(30, 30)  # NumPy prints so many numbers in full


def layer():
    return ts.Layer(EYE)


def fit(epochs=1, **options):
    return ts.train.Trainer("8-8-2", **{"batch": 2, **options}).fit(*PICTURES, epochs=epochs)


NUMBERS = {
    "rewire, fraction NaN": (lambda: layer().rewire("set", fraction=float("nan")), ValueError, "fraction is nan"),
    "rewire, fraction 1.1": (lambda: layer().rewire("rigl", fraction=1.1, dq=ONE, s=ONE), ValueError, "fraction is 1.1"),
    "rewire, fraction a text": (lambda: layer().rewire("set", fraction="0.3"), TypeError, "fraction is '0.3'"),
    "rewire, fraction an array": (lambda: layer().rewire("set", fraction=LARGE), TypeError, "fraction"),
    "rewire, seed -1": (lambda: layer().rewire("set", seed=-1), ValueError, "seed is -1"),
    "rewire, seed 2^64": (lambda: layer().rewire("set", seed=2**64), ValueError, "seed is 18446744073709551616"),
    "rewire, method a number": (lambda: layer().rewire(3), TypeError, "method is 3"),
    "rewire, pool an array": (lambda: layer().rewire("rigl", dq=ONE, s=ONE, pool=LARGE), TypeError, "pool"),
    "rounding of a number": (lambda: layer().rounding(3), TypeError, "call is 3"),
    "Layer, batch 2^31": (lambda: ts.Layer(EYE, batch=2**31), ValueError, "batch.* 2147483648"),
    "Layer, batch 2^70": (lambda: ts.Layer(EYE, batch=2**70), ValueError, "batch is 1180591620717411303424"),
    "Layer, threads 2^40": (lambda: ts.Layer(EYE, threads=2**40), ValueError, "1099511627776 threads; use 1 to 1024"),
    "Layer, threads 1.0": (lambda: ts.Layer(EYE, threads=1.0), TypeError, "threads is 1.0"),
    "Layer, dtype an array": (lambda: ts.Layer(EYE, dtype=LARGE), ValueError, "dtype"),
    "spmm, threads 1.0": (lambda: ts.spmm(sp.csr_array(EYE), ONE, threads=1.0), TypeError, "threads is 1.0"),
    "spmm, threads an array": (lambda: ts.spmm(sp.csr_array(EYE), ONE, threads=LARGE), TypeError, "threads"),
    "spmm, alpha a text": (lambda: ts.spmm(sp.csr_array(EYE), ONE, alpha="1"), TypeError, "alpha is '1'"),
    "spmm, activation a number": (lambda: ts.spmm(sp.csr_array(EYE), ONE, activation=3), TypeError, "activation is 3"),
    "sddmm, beta an array": (lambda: ts.sddmm(sp.csr_array(EYE), ONE, ONE.T, beta=LARGE), TypeError, "beta"),
    "matmul, threads None": (lambda: ts.matmul(sp.csr_array(EYE), ONE, threads=None), TypeError, "threads is None"),
    "simulate, batch -1": (lambda: ts.simulate(EYE, batch=-1), ValueError, "batch is -1"),
    "simulate, batch 2^31": (lambda: ts.simulate(EYE, batch=2**31), ValueError, "batch is 2147483648"),
    "simulate, seed -1": (lambda: ts.simulate(EYE, seed=-1), ValueError, "seed is -1"),
    "simulate, threads an array": (lambda: ts.simulate(EYE, batch=4, threads=LARGE), TypeError, "threads"),
    "simulate, options a list": (lambda: ts.simulate(EYE, options=[1]), TypeError, "options"),
    "plan, outputs 8.0": (lambda: ts.plan(8.0, 8, batch=4, density=0.1), TypeError, "outputs is 8.0"),
    "plan, inputs an array": (lambda: ts.plan(8, LARGE, batch=4, density=0.1), TypeError, "inputs"),
    "plan, groups a text": (lambda: ts.plan(8, 8, batch=4, density=0.1, groups="2"), TypeError, "groups is '2'"),
    "plan, density a text": (lambda: ts.plan(8, 8, batch=4, density="a"), TypeError, "density is 'a'"),
    "plan, density NaN": (lambda: ts.plan(8, 8, batch=4, density=float("nan")), ValueError, "density is nan"),
    "plan, block 2^70": (lambda: ts.plan(8, 8, batch=4, density=0.1, block=2**70), ValueError, "block"),
    "plan, machine an array": (lambda: ts.plan(8, 8, batch=4, density=0.1, machine=LARGE), TypeError, "machine"),
    "plan, an option that is no JSON": (
        lambda: ts.plan(8, 8, batch=4, density=0.1, options={"a": LARGE}), TypeError, "options"
    ),
    "crossover, inputs a text": (lambda: ts.crossover(8, "8", batch=4), TypeError, "inputs is '8'"),
    "Trainer, block 2.0": (lambda: fit(block=2.0), TypeError, "block is 2.0"),
    "Trainer, every 1.5": (lambda: fit(every=1.5), TypeError, "every is 1.5"),
    "Trainer, every 0": (lambda: fit(every=0), ValueError, "every is 0"),
    "Trainer, seed -1": (lambda: fit(seed=-1), ValueError, "seed is -1"),
    "Trainer, fraction NaN": (lambda: fit(fraction=float("nan")), ValueError, "fraction is nan"),
    "Trainer, rate NaN": (lambda: fit(rate=float("nan")), ValueError, "rate"),
    "Trainer, density an array": (lambda: fit(density=LARGE), TypeError, "density"),
    "Trainer, method an array": (lambda: fit(method=LARGE), TypeError, "method"),
    "Trainer, epochs 1.0": (lambda: fit(epochs=1.0), TypeError, "epochs is 1.0"),
    "Trainer, epochs 10^18": (lambda: fit(epochs=10**18), ValueError, "epochs is"),
    "Trainer, batch 10^9": (lambda: fit(batch=10**9), ValueError, "batches of 1000000000 from 4 images; .* 1 to 4"),
    "Trainer, batch 2^31": (lambda: fit(batch=2**31), ValueError, "batch .*2147483648"),
    "forward, another option": (lambda: layer().forward(LARGE, outt=LARGE), TypeError, r"pass forward\(s, out=None, bias=None, activation=\"none\"\)"),
    "forward without operand": (lambda: layer().forward(), TypeError, r"pass forward\(s"),
    "grad_input, too many": (lambda: layer().grad_input(LARGE, LARGE, LARGE), TypeError, r"pass grad_input\(dq, out=None\)"),
    "grad_weights, one operand": (lambda: layer().grad_weights(LARGE), TypeError, r"pass grad_weights\(dq, s"),
    "set_values, two": (lambda: layer().set_values(LARGE, LARGE), TypeError, r"pass set_values\(values\)"),
    "Machine of an array": (lambda: ts.Machine(LARGE), TypeError, "name is of type ndarray; pass a text"),
    "Machine.from_json of an array": (lambda: ts.Machine.from_json(LARGE), TypeError, "text is of type ndarray"),
    "Machine.from_file of an array": (lambda: ts.Machine.from_file(LARGE), TypeError, "ndarray"),
    "read an array": (lambda: ts.read(LARGE), TypeError, "ndarray"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_the_option_is_named_in_one_short_line(name):
    call, error, text = NUMBERS[name]
    with pytest.raises(error, match=text) as raised:
        call()
    assert len(str(raised.value)) < 400 and "Invoked with" not in str(raised.value)


def test_threads_are_bounded_where_they_are_made():
    with pytest.raises(ts.InvalidArgument, match="threads"):
        ts.spmm(sp.csr_array(EYE), ONE, threads=-1)


COUNTS_THREADS = """
import numpy as np, scipy.sparse as sp, tessera as ts
w, x = sp.random(64, 64, 0.3, "csr", np.float32), np.ones((64, 8), np.float32)
for threads in range(8, 40):
    ts.spmm(w, x, threads=threads)
print([line for line in open("/proc/self/status") if line.startswith("Threads")][0].split()[1])
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="this system does not count threads")
def test_products_with_many_numbers_of_threads_keep_the_threads_of_one():
    done = subprocess.run([sys.executable, "-B", "-c", COUNTS_THREADS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 2 * 40


def test_a_nul_does_not_cut_a_text(tmp_path):
    path = tmp_path / "w.mtx"
    ts.write(path, EYE)
    cut = f"{path}\0.npz"
    for call in (lambda: ts.read(cut), lambda: ts.write(cut, EYE), lambda: ts.Machine.from_file(cut)):
        with pytest.raises(ts.InvalidArgument, match=r"w.mtx\\x00.npz has a NUL"):
            call()
    for call in (lambda: ts.plan(8, 8, batch=4, density=0.1, machine="gc200\0"), lambda: layer().rewire("set\0")):
        with pytest.raises(TypeError, match="text without NUL"):
            call()
    with pytest.raises(ts.InvalidArgument, match=r"gc200\\x00"):
        ts.Machine("gc200\0 and the rest")
    assert [p.name for p in tmp_path.iterdir()] == ["w.mtx"]


def test_paths_may_have_any_bytes(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"w\xff.mtx")
    ts.write(path, EYE)
    assert (ts.read(os.fsdecode(path)).toarray() == EYE).all()
    with pytest.raises(ts.Error, match=r"x\\xff.mtx|x\ufffd.mtx"):
        ts.read(os.path.join(os.fsencode(tmp_path), b"x\xff.mtx"))


def test_the_package_tells_its_version():
    assert ts.__version__.count(".") == 2 and ts.__version__ in (ts._core.__version__,)


def test_a_layer_that_was_never_made_is_refused():
    unmade = ts.Layer.__new__(ts.Layer)
    for call in (
        lambda: unmade @ ONE,
        lambda: unmade.forward(ONE),
        lambda: unmade.grad_input(ONE),
        lambda: unmade.grad_weights(ONE, ONE),
        lambda: unmade.set_values(ONE),
        lambda: unmade.nnz,
        lambda: unmade.memory_bytes,
        lambda: unmade.values,
        lambda: unmade.arrays,
        lambda: unmade.times,
        lambda: unmade.update(),
    ):
        with pytest.raises(TypeError):
            call()
    for kind in (ts.Plan, ts.Run, ts.Machine):
        with pytest.raises(TypeError):
            kind.__new__(kind).to_json()

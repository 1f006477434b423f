"""Wrong arguments: the type of the exception, a message with place and remedy, and no change."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from model import random_array, random_weights

import tessera as ts

WEIGHTS = random_weights(1, 12, 10, (1, 1), 0.4)
S = random_array(np.random.default_rng(1), (10, 4))
PTR = np.array([0, 2, 3])
COL = np.array([0, 2, 1])
DATA = np.ones(3, np.float32)

ARRAYS = {
    "indptr descends": (([0, 2, 1], COL[:1], DATA[:1]), ts.BadInput, "row"),
    "indptr does not begin at 0": (([1, 2, 3], COL, DATA), ts.BadInput, "0"),
    "indptr ends elsewhere": (([0, 2, 4], COL, DATA), ts.BadInput, "4"),
    "indptr is empty": (([], [], DATA[:0]), ts.BadInput, ""),
    "a column is out of range": ((PTR, [0, 3, 1], DATA), ts.BadInput, "3"),
    "a column is negative": ((PTR, [0, -2, 1], DATA), ts.BadInput, "-2"),
    "data has another length": ((PTR, COL, DATA[:2]), ts.BadInput, "2"),
    "an index beyond 32 bits": ((PTR, [0, 2**40, 1], DATA), ts.BadInput, r"indices\[1\]"),
    "an index beyond 63 bits": ((PTR, np.array([0, 2**63, 1], np.uint64), DATA), ts.InvalidArgument, "64"),
    "indices are floats": ((PTR, COL * 1.5, DATA), TypeError, r"astype\(np.int64\)"),
    "indices are flags": ((PTR, COL > 0, DATA), TypeError, r"astype\(np.int64\)"),
    "indices have 2 dimensions": ((PTR, COL[None], DATA), ts.InvalidArgument, "2 dimensions"),
    "data is double": ((PTR, COL, DATA * 1.0 + np.zeros(3)), TypeError, r"data.astype\(np.float32\)"),
    "data is big-endian": ((PTR, COL, DATA.astype(">f4")), TypeError, r"astype\(np.float32\)"),
    "data is complex": ((PTR, COL, DATA.astype(complex)), TypeError, "complex128"),
    "data is objects": ((PTR, COL, DATA.astype(object)), TypeError, "object"),
    "data is structured": ((PTR, COL, np.zeros(3, "f4,f4")), TypeError, "f4"),
    "data has 2 dimensions": ((PTR, COL, DATA[:, None]), ts.InvalidArgument, "2 dimensions"),
    "two arrays": ((PTR, COL), ts.InvalidArgument, r"are \(data, \(rows, columns\)\)"),
    "four arrays": ((PTR, COL, DATA, DATA), ts.InvalidArgument, "indptr, indices, data"),
}

MATRICES = {
    "one dimension": (DATA, ts.InvalidArgument, "1 dimensions; a matrix has 2"),
    "three dimensions": (np.ones((2, 2, 2), np.float32), ts.InvalidArgument, "3 dimensions; a matrix has 2"),
    "a list": ([[1.0, 2.0]], TypeError, r"np.array\(weights, np.float32\)"),
    "scipy in double": (WEIGHTS.astype(np.float64), TypeError, r"weights.astype\(np.float32\)"),
}

OPERANDS = {
    "double": (S.astype(np.float64), TypeError, r"s.astype\(np.float32\)"),
    "half": (S.astype(np.float16), TypeError, "float16"),
    "whole numbers": (S.astype(np.int32), TypeError, "int32"),
    "big-endian": (S.astype(">f4"), TypeError, ">f4"),
    "complex": (S.astype(np.complex64), TypeError, "complex64"),
    "objects": (S.astype(object), TypeError, "object"),
    "a short vector": (S[:-1, 0], ts.InvalidArgument, "9 x 1"),
    "no dimension": (S[0, :1].reshape(()), ts.InvalidArgument, r"s has the shape \[\]"),
    "three dimensions": (S[None], ts.InvalidArgument, r"\[1, 10, 4\]"),
    "four dimensions": (S[None, None], ts.InvalidArgument, "4 dimensions"),
    "another size": (S[:9], ts.InvalidArgument, "9 x 4; this layer needs 10 x batch"),
    "a ragged list": ([[1], [1, 2]], TypeError, r"list; pass np.array\(s, np.float32\)"),
    "nothing": (None, TypeError, "NoneType"),
    "a sparse matrix": (sp.csr_matrix(S), TypeError, r"s.toarray\(\)"),
    "misaligned": (np.frombuffer(bytes(161), np.float32, 40, 1).reshape(10, 4), ts.InvalidArgument, r"s.copy\(\)"),
    "half elements apart": (np.zeros((10, 4), "f4,u2")["f0"], ts.InvalidArgument, r"s.copy\(\)"),
}


def fixed_layer():
    return ts.Layer(WEIGHTS, batch=4)


@pytest.mark.parametrize("fault", ARRAYS)
def test_refuses_weights(fault):
    arrays, error, text = ARRAYS[fault]
    with pytest.raises(error, match=text):
        ts.Layer(arrays, batch=4, shape=(2, 3))
    layer = ts.Layer((PTR, COL, DATA), batch=4, shape=(2, 3))
    before = layer.values
    with pytest.raises(error, match=text):
        layer.set_weights(arrays)
    assert (layer.values == before).all() and layer.weights.nnz == 3


@pytest.mark.parametrize("fault", MATRICES)
def test_refuses_matrices(fault):
    matrix, error, text = MATRICES[fault]
    with pytest.raises(error, match=text):
        ts.Layer(matrix, batch=4)


@pytest.mark.parametrize("shape", [(2**40, 0), (2**31 - 1, 0), (0, 2**40)])
def test_rows_without_a_byte_take_no_memory(shape):
    empty = np.zeros(shape, np.float32)
    for call in (ts.Layer, lambda a: ts.simulate(a), lambda a: ts.advise(a, batch=8)):
        with pytest.raises(ts.LimitExceeded, match=f"weights is {shape[0]} x {shape[1]}; with 0 bytes"):
            call(empty)
    assert ts.Layer(empty[:5, :5]).nnz == 0


class Exported:
    """An array that is known by __dlpack__ only."""

    def __init__(self, array):
        self.__dlpack__ = array.__dlpack__
        self.dtype = array.dtype


def test_refuses_misaligned_tensors():
    layer, room = fixed_layer(), np.zeros(161, np.uint8)
    aligned, misaligned = (room[at : at + 160].view(np.float32).reshape(10, 4) for at in (0, 1))
    assert (layer.forward(Exported(aligned), out=np.ones((12, 4), np.float32)) == 0).all()
    with pytest.raises(ValueError, match="s has elements that are not aligned"):
        layer.forward(Exported(misaligned), out=np.ones((12, 4), np.float32))


@pytest.mark.parametrize("fault", OPERANDS)
def test_refuses_operands(fault):
    operand, error, text = OPERANDS[fault]
    layer = fixed_layer()
    with pytest.raises(error, match=text):
        layer.forward(operand)
    assert np.allclose(layer @ S, WEIGHTS @ S, atol=1e-5)


def test_refuses_left_operands_in_the_users_words():
    with pytest.raises(TypeError, match="a csr_matrix @ layer: .* toarray"):
        WEIGHTS @ fixed_layer()
    for left, shape in ((S.T, r"\[4, 10\]"), (np.ones((2, 3, 12), np.float32), r"\[2, 3, 12\]")):
        with pytest.raises(ts.InvalidArgument, match=rf"left operand has the shape {shape}; this layer needs \[rows, 12\] or \[12\]"):
            left @ fixed_layer()


@pytest.mark.parametrize(
    "out, error, text",
    [
        (np.empty((12, 3), np.float32), ts.InvalidArgument, "batch of 3"),
        (np.empty((11, 4), np.float32), ts.InvalidArgument, "11 x 4"),
        (np.empty((12, 4), np.float64), TypeError, "float64"),
        (np.broadcast_to(np.float32(0), (12, 4)), ts.InvalidArgument, "read-only"),
        (np.lib.stride_tricks.as_strided(np.empty(4, np.float32), (12, 4), (0, 4)), ts.InvalidArgument, "itself"),
        ("text", TypeError, "str"),
    ],
)
def test_refuses_outputs(out, error, text):
    with pytest.raises(error, match=text):
        fixed_layer().forward(S, out=out)


def test_refuses_options_values_and_changes():
    layer = fixed_layer()
    before = layer.values
    with pytest.raises(ts.InvalidArgument, match="float32, float16, bfloat16"):
        ts.Layer(WEIGHTS, dtype="float64")
    with pytest.raises(ts.InvalidArgument, match=r"batch is 9223372036854775808; it is 1 \.\. 2147483647"):
        ts.Layer(WEIGHTS, batch=2**63)
    with pytest.raises(ts.InvalidArgument, match="batch_first"):
        ts.Layer(WEIGHTS, order="C")
    with pytest.raises(ts.InvalidArgument, match="threads"):
        ts.Layer(WEIGHTS, threads=-1)
    for batch in (0, -1, 2**31):
        with pytest.raises(ts.InvalidArgument):
            ts.Layer(WEIGHTS, batch=batch)
    for wrong in ({"batch": "many"}, {"batch": 2.0}, {"batch": 4, "threads": None}):
        with pytest.raises(TypeError, match="whole number"):
            ts.Layer(WEIGHTS, **wrong)
    with pytest.raises(TypeError, match="batch is 'a'; it is a whole number"):
        ts.crossover(64, 64, batch="a")
    with pytest.raises(ts.InvalidArgument, match="shape is for"):
        ts.Layer(WEIGHTS, shape=(12, 10))
    with pytest.raises(TypeError, match="Path|str"):
        ts.Layer("weights.smtx")
    for values, error in ((before[:-1], ts.InvalidArgument), (before.astype(float), TypeError), (before[::-1], ts.InvalidArgument)):
        with pytest.raises(error):
            layer.values = values
    row, col = WEIGHTS.nonzero()
    for change in ({"removed": ([0], [11])}, {"added": (row[:1], col[:1])}, {"removed": 3}, {"removed": ([0, 0], [1])}):
        with pytest.raises(ts.InvalidArgument):
            layer.update(**change)
    with pytest.raises(ts.InvalidArgument, match="12 x 10"):
        layer.set_weights(sp.csr_matrix((3, 3), dtype=np.float32))
    assert (layer.values == before).all()


def test_a_truncated_pickle_is_an_error():
    data = pickle.dumps(fixed_layer())
    for length in range(0, len(data), 97):
        with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError)):
            pickle.loads(data[:length])


def test_exceptions_are_also_those_of_python():
    assert issubclass(ts.InvalidArgument, ValueError) and issubclass(ts.BadInput, ValueError)
    assert issubclass(ts.LimitExceeded, MemoryError) and issubclass(ts.NoSolution, RuntimeError)
    assert all(issubclass(kind, ts.Error) for kind in (ts.BadInput, ts.LimitExceeded, ts.NoSolution))


def test_no_call_answers_wrong_arguments_in_the_words_of_pybind():
    plan, host = (ts.plan(64, 64, batch=8, density=0.1, machine=m) for m in (ts.Machine("gc200"), "host"))
    run = ts.simulate(sp.random(16, 16, 0.2, "csr", np.float32, random_state=1), np.ones((16, 4), np.float32))
    calls = [ts.Machine, lambda *_: ts.Machine(), lambda *_: ts.Machine("gc200", tiles=3), ts.Machine.from_file, ts.Machine.from_json]
    for made in (plan, host, run, ts.Machine("gc200"), ts.Layer(np.eye(4, dtype=np.float32))):
        calls += [getattr(made, name) for name in dir(made) if name[0] != "_" and callable(getattr(made, name, None))]
    for call in calls:
        try:
            call(*range(30))
        except TypeError as error:
            assert "incompatible" not in str(error) and "Invoked" not in str(error), error


LONE = "\ud800"


@pytest.mark.parametrize("name", [LONE, f"{LONE}.safetensors", f"{LONE}.onnx", f"{LONE}.index.json", "w.mtx\0"])
def test_paths_that_no_file_has_are_told(name):
    calls = (
        ts.read, ts.read_model, lambda p: ts.write(p, WEIGHTS), lambda p: ts.write_model(p, {}), lambda p: ts.advise(p, batch=2),
        ts.Machine.from_file, ts.simulate(np.eye(4, dtype=np.float32)).to_html,
    )  # fmt: skip
    for call in calls:
        with pytest.raises(ts.InvalidArgument, match="the path .* has a (NUL|lone surrogate)"):
            call(name)


def test_a_path_of_bytes_that_are_no_text_is_one(tmp_path):
    name = str(tmp_path / "m\udcff.safetensors")
    ts.write_model(name, {"a": WEIGHTS.toarray()})
    assert np.array_equal(ts.read_model(name)["a"], WEIGHTS.toarray())
    assert ts.read(name).nnz == WEIGHTS.nnz and len(ts.advise(name, batch=8)["machines"]) == 1


def test_texts_that_are_not_in_unicode_are_told():
    layer, s = fixed_layer(), np.ones((10, 4), np.float32)
    size = {"batch": 8, "density": 0.1}
    calls = [
        lambda: ts.Machine(LONE), lambda: ts.Machine.from_json(LONE), lambda: ts.plan(8, 8, **size, machine=LONE),
        lambda: ts.verdict(8, 8, **size, machine=LONE), lambda: ts.crossover(8, 8, batch=8, machine=LONE),
        lambda: ts.plan(8, 8, **size, options={LONE: 1}), lambda: ts.sweep({LONE: [1]}), lambda: ts.sweep({"density": [LONE]}),
        lambda: ts.advise({"a": np.eye(3, dtype=np.float32)}, batch=8, tensor=LONE), lambda: layer.forward(s, activation=LONE),
        lambda: ts.spmm(WEIGHTS, s, activation=LONE), lambda: layer.rewire("set", pool=LONE), lambda: layer.rounding(LONE),
        lambda: ts.write_model("unwritten.safetensors", {LONE: s}), lambda: ts.Machine(**{LONE: 1}),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(TypeError) as error:
            call()
        assert "\\ud800" in str(error.value) and "incompatible" not in str(error.value)

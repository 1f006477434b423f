"""ONNX files: dense and sparse initialisers, how products read them, and files that break the rules."""

import numpy as np
import onnx
import pytest
import scipy.sparse as sp
from onnx import TensorProto, helper, numpy_helper

import tessera as ts

F4 = np.float32
W = sp.random(6, 13, 0.4, "csr", F4, np.random.default_rng(1)).toarray()


def sparse_tensor(name, w, linear=True):
    places = np.nonzero(w)
    values = numpy_helper.from_array(w[places], name)
    numbers = np.ravel_multi_index(places, w.shape) if linear else np.stack(places, 1)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(numbers.astype(np.int64)), list(w.shape))


def write(path, dense=(), sparse=(), nodes=(), change=None):
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "xy")
    tensors = [numpy_helper.from_array(array, name) for name, array in dict(dense).items()]
    graph = helper.make_graph(list(nodes), "g", [x], [y], tensors, sparse_initializer=list(sparse))
    if change:
        change(graph)
    onnx.save(helper.make_model(graph), str(path))
    return path


def test_initialisers_have_their_names_and_the_shape_of_the_file(tmp_path):
    arrays = {"w": W, "half": W.astype(np.float16), "double": W.astype(float), "whole": np.arange(6).reshape(2, 3), "b": W[0]}
    model = ts.read_model(write(tmp_path / "m.onnx", arrays, [sparse_tensor("s", W), sparse_tensor("pairs", W, False)]))
    assert list(model) == [*arrays, "s", "pairs"]
    for name, wanted in {**arrays, "s": W, "pairs": W}.items():
        assert np.array_equal(model[name], wanted) and model[name].dtype != np.float16
    assert [(i.dtype, i.form) for i in model.tensors][1:3] == [("F16", "dense"), ("F64", "dense")] and model.tensors[-1].form == "sparse"
    assert model.tensors[0].shape == (6, 13) and "pairs" in repr(model)
    for name in ("w", "s", "pairs", "half"):  # no product reads them
        assert np.allclose(model.matrix(name).toarray(), W, atol=1e-3) and model.matrix(name).nnz == np.count_nonzero(W)
    with pytest.raises(ts.InvalidArgument, match="a matrix has two sides"):
        model.matrix("b")
    with pytest.raises(ts.BadInput, match="'whole' is int64; weights are floats"):
        model.matrix("whole")


def test_a_matrix_is_the_weight_of_its_product(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "right"], ["1"]),
        helper.make_node("MatMul", ["left", "x"], ["2"]),
        helper.make_node("Gemm", ["x", "gemm", "b"], ["3"], alpha=0.5),
        helper.make_node("Gemm", ["x", "linear", "b"], ["4"], transB=1),
        helper.make_node("Gemm", ["first", "x"], ["5"], transA=1),
        helper.make_node("Add", ["x", "linear"], ["6"]),
    ]
    dense = {"right": W.T.copy(), "left": W, "linear": W, "first": W.T.copy(), "b": W[0]}
    model = ts.read_model(write(tmp_path / "m.onnx", dense, [sparse_tensor("gemm", W.T.copy())], nodes))
    for name in ("right", "left", "linear", "first"):
        assert np.array_equal(model.matrix(name).toarray(), W)
    assert np.allclose(model.matrix("gemm").toarray(), W / 2)
    x = np.random.default_rng(3).random((5, 13), F4)
    assert np.allclose((ts.Layer(model.matrix("right")) @ x.T).T, x @ model["right"], atol=1e-5)


def test_zeros_of_a_sparse_initialiser_are_not_stored(tmp_path):
    sparse = sparse_tensor("w", W)
    numbers = numpy_helper.to_array(sparse.values).copy()
    numbers[::2] = 0
    sparse.values.CopyFrom(numpy_helper.from_array(numbers, "w"))
    matrix = ts.read_model(write(tmp_path / "m.onnx", sparse=[sparse])).matrix("w")
    assert matrix.nnz == np.count_nonzero(numbers) and matrix.sum() == pytest.approx(numbers.sum(), rel=1e-5)


def test_an_initialiser_that_is_read_in_two_ways_is_no_one_weight(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["1"]), helper.make_node("Gemm", ["x", "w"], ["2"], transB=1)]
    model = ts.read_model(write(tmp_path / "m.onnx", {"w": W}, nodes=nodes))
    with pytest.raises(ts.BadInput, match="'w' is read by products in several ways"):
        model.matrix("w")
    assert np.array_equal(model["w"], W)


def external(location):
    def change(graph):
        tensor = graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)

    return change


def outside(graph):
    graph.sparse_initializer[0].indices.CopyFrom(numpy_helper.from_array(np.full(np.count_nonzero(W), 78, np.int64)))


def twice(graph):
    graph.sparse_initializer[0].indices.CopyFrom(numpy_helper.from_array(np.full(np.count_nonzero(W), 5, np.int64)))


def too_few(graph):
    graph.sparse_initializer[0].indices.CopyFrom(numpy_helper.from_array(np.arange(3)))


def test_numbers_beside_the_file_are_read(tmp_path):
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    model = ts.read_model(write(tmp_path / "m.onnx", {"w": W}, change=external("w.bin")))
    assert np.array_equal(model["w"], W)


DAMAGE = {
    "data in another folder": ({"w": W}, (), external("../w.bin"), "read from files of the same folder only"),
    "data that is not there": ({"w": W}, (), external("w.bin"), "cannot be read"),
    "too little data": ({"w": W}, (), lambda g: setattr(g.initializer[0], "raw_data", b"1234"), "cannot be read"),
    "an unknown type": ({"w": W}, (), lambda g: setattr(g.initializer[0], "data_type", 0), "cannot be read"),
    "a type that ONNX does not have": ({"w": W}, (), lambda g: setattr(g.initializer[0], "data_type", 999), "'w' has the type 999"),
    "an index outside": ((), [sparse_tensor("w", W)], outside, r"inside \[6, 13\]"),
    "a place given twice": ((), [sparse_tensor("w", W)], twice, "two values at one place"),
    "too few indices": ((), [sparse_tensor("w", W)], too_few, "one for each value"),
    "one name for two": ({"w": W}, [sparse_tensor("w", W)], None, "two initialisers have the same name"),
    "a negative side": ((), [sparse_tensor("w", W)], lambda g: g.sparse_initializer[0].dims.__setitem__(0, -6), "has the shape"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files_are_told(tmp_path, name):
    dense, sparse, change, text = DAMAGE[name]
    with pytest.raises(ts.BadInput, match=text):
        ts.read_model(write(tmp_path / "m.onnx", dense, sparse, change=change))["w"]


@pytest.mark.parametrize(("sides", "error"), [([2**40, 0], ts.BadInput), ([2**40, 1], ts.BadInput), ([2**31 - 1, 1], ts.LimitExceeded)])
def test_rows_without_a_byte_are_refused(tmp_path, sides, error):
    sparse = sparse_tensor("w", np.zeros((1, 1), F4))
    sparse.dims[:] = sides
    model = ts.read_model(write(tmp_path / "m.onnx", sparse=[sparse]))
    with pytest.raises(error, match=f"'w' is {sides[0]} x {sides[1]}"):
        model.matrix("w")
    huge = sparse_tensor("w", np.zeros((1, 1), F4))
    huge.dims[:] = [2**31 - 1, 2**31 - 1]
    with pytest.raises(ts.LimitExceeded, match="does not fit into memory"):
        ts.read_model(write(tmp_path / "h.onnx", sparse=[huge]))["w"]


def test_advice_says_that_a_sparse_initialiser_does_not_fit_into_memory_dense(tmp_path, monkeypatch):
    def no_memory(_):
        raise MemoryError

    monkeypatch.setattr(sp.csr_matrix, "toarray", no_memory)
    with pytest.raises(ts.LimitExceeded, match="w is 6 x 13, which does not fit into memory dense"):
        ts.advise(write(tmp_path / "m.onnx", sparse=[sparse_tensor("w", W)]), batch=8)


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_float32_are_refused(tmp_path):
    big = np.array([[1e300, 1]])
    model = ts.read_model(write(tmp_path / "m.onnx", {"w": big}, [sparse_tensor("s", big)]))
    for name in "ws":
        with pytest.raises(ts.BadInput, match=f"'{name}' has finite numbers beyond those of float32"):
            model.matrix(name)


def test_what_is_no_onnx_file_is_told(tmp_path, monkeypatch):
    (tmp_path / "bytes.onnx").write_bytes(b"\xff" * 40)
    with pytest.raises(ts.BadInput, match="no ONNX file"):
        ts.read_model(tmp_path / "bytes.onnx")
    with pytest.raises(ts.BadInput, match="No such file"):
        ts.read_model(tmp_path / "missing.onnx")
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match="python3-onnx"):
        ts.read_model(tmp_path / "bytes.onnx")

"""Checkpoints of whole models: shards, folders, compressed weights, and files that break the rules."""

import json
import struct
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

import tessera as ts

F4 = np.float32


def bits_of(flags):
    return np.packbits(flags, axis=1, bitorder="little")


def compressed(layer, w, kind=F4):
    flags = w != 0
    counts = flags.sum(1)
    return {
        f"{layer}.compressed": w[flags].astype(kind), f"{layer}.bitmask": bits_of(flags),
        f"{layer}.shape": np.array(w.shape, np.int64), f"{layer}.row_offsets": np.cumsum(counts) - counts,
    }  # fmt: skip


def weights(rows=6, cols=13, seed=1):
    return sp.random(rows, cols, 0.4, "csr", F4, np.random.default_rng(seed)).toarray()


def half_of_rows(rows=4, cols=8):
    rng = np.random.default_rng(2)
    w = np.zeros((rows, cols), F4)
    for r in range(rows):
        for c in range(0, cols, 4):
            w[r, c + rng.choice(4, 2, replace=False)] = 1 + rng.random(2)
    return w


def test_a_file_has_its_tensors_by_name(tmp_path):
    w = weights()
    tensors = {
        "model.layers.0.mlp.down_proj_with_a_long_name.weight": w, "bias": np.arange(3, dtype=np.float16),
        "double": w.astype(np.float64), "whole": np.arange(6).reshape(2, 3), "flags": np.array([True, False]),
        "zeros": np.zeros((3, 4), F4), "one": np.float32(3).reshape(()),
    }  # fmt: skip
    ts.write_model(tmp_path / "m.safetensors", tensors)
    model = ts.read_model(tmp_path / "m.safetensors")
    assert list(model) == list(tensors) and len(model) == 7 and "bias" in model
    for name, wanted in tensors.items():
        assert np.array_equal(model[name], wanted) and model[name].shape == wanted.shape
    name = next(iter(tensors))
    assert (model.tensors[0].name, model.tensors[0].dtype, model.tensors[0].shape, model.tensors[0].form) == (name, "F32", (6, 13), "dense")
    assert name in repr(model) and "[6, 13]" in repr(model) and name in model._repr_html_()
    got = model.matrix(name)
    assert got.nnz == np.count_nonzero(w) and np.array_equal(got.toarray(), w)
    assert model.matrix("zeros").nnz == 0 and ts.Layer(model.matrix("zeros")).nnz == 0
    with pytest.raises(KeyError, match="no tensor 'weight'; it has model.layers"):
        model["weight"]
    with pytest.raises(ts.InvalidArgument, match=r"\[3\]; a matrix has two sides"):
        model.matrix("bias")


@pytest.mark.parametrize("kind", [F4, np.float16])
def test_compressed_weights_have_the_name_of_the_weight(tmp_path, kind):
    w = weights().astype(kind)
    half = half_of_rows().astype(kind)
    second = compressed("b", half, kind)
    second["b.compressed"], second["b.shape"] = second["b.compressed"].reshape(4, 4), second["b.shape"].reshape(2, 1)
    del second["b.row_offsets"]
    ts.write_model(tmp_path / "m.safetensors", {**compressed("a.b", w, kind), **second, "b.bias": np.zeros(4, F4)})
    model = ts.read_model(tmp_path / "m.safetensors")
    assert {i.name: i.form for i in model.tensors} == {"a.b.weight": "sparse-bitmask", "b.weight": "sparse-24-bitmask", "b.bias": "dense"}
    for name, wanted in (("a.b.weight", w), ("b.weight", half)):
        assert np.array_equal(model[name], wanted.astype(F4)) and model[name].dtype == F4
        assert np.array_equal(model.matrix(name).toarray(), wanted) and model.matrix(name).nnz == np.count_nonzero(wanted)


DAMAGE = {
    "too few values": (lambda t: t.update({"a.compressed": t["a.compressed"][1:]}), "bits are set, but there are"),
    "bits behind the last column": (lambda t: t["a.bitmask"].__setitem__((0, 1), 255), "bits behind the last column, 12, are set"),
    "another bit": (lambda t: t["a.bitmask"].__setitem__((0, 0), t["a.bitmask"][0, 0] ^ 1), "bits are set, but there are"),
    "a bit in another row": (lambda t: t.update({"a.row_offsets": t["a.row_offsets"] + 1}), "row_offsets are not those"),
    "another shape": (lambda t: t.update({"a.shape": np.array([6, 40])}), r"bitmask is uint8 \[6, 2\], not uint8 \[6, 5\]"),
    "three sides": (lambda t: t.update({"a.shape": np.array([6, 13, 1])}), "it has two sides"),
    "no shape": (lambda t: t.pop("a.shape"), "there is no a.shape"),
    "no values": (lambda t: t.pop("a.compressed"), "there is no a.compressed"),
    "no bits": (lambda t: t.pop("a.bitmask"), "there is no a.bitmask"),
    "bits and values alone": (lambda t: [t.pop(f"a.{part}") for part in ("shape", "row_offsets")], "there is no a.shape: add"),
    "a dense weight as well": (lambda t: t.update({"a.weight": weights()}), "'a.weight' is given twice, dense, .*; remove one of the two"),
    "sides that are floats": (lambda t: t.update({"a.shape": np.array([6, 13.9])}), "2 numbers of float64; .* whole numbers"),
    "a side that is no number": (lambda t: t.update({"a.shape": np.array([6, np.nan], F4)}), "2 numbers of float32; .* whole numbers"),
    "a side that is infinite": (lambda t: t.update({"a.shape": np.array([6, np.inf], F4)}), "2 numbers of float32; .* whole numbers"),
    "sides that are flags": (lambda t: t.update({"a.shape": np.array([True, True])}), "2 numbers of bool; .* whole numbers"),
    "a negative side": (lambda t: t.update({"a.shape": np.array([-6, 13])}), "a is -6 x 13; a matrix of a model needs at least 1 x 1"),
    "a side beyond 31 bits": (lambda t: t.update({"a.shape": np.array([6, 2**63], np.uint64)}), "a side is at most 2147483647"),
    "values in whole numbers": (lambda t: t.update({"a.compressed": t["a.compressed"].astype(np.int8)}), "compressed is I8"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_compressed_weights_are_told(tmp_path, name):
    damage, text = DAMAGE[name]
    tensors = compressed("a", weights())
    damage(tensors)
    ts.write_model(tmp_path / "m.safetensors", tensors)
    with pytest.raises(ts.BadInput, match=text):
        ts.read_model(tmp_path / "m.safetensors")["a.weight"]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ([1, 2, 3, 4, 0, 0, 0, 0], "group of four columns has two"), ([1, 2, 3, 0, 0, 0, 4, 0], "group of four columns has two"),
        ([1, 2, 3, 0, 0, 0], "6 columns, which are no groups of four"),
    ],
)  # fmt: skip
def test_at_most_two_of_four_are_stored_in_the_form_of_two_of_four(tmp_path, row, text):
    w = np.array([row], F4)
    tensors = compressed("a", w)
    tensors["a.compressed"] = tensors["a.compressed"].reshape(1, -1)
    ts.write_model(tmp_path / "m.safetensors", tensors)
    with pytest.raises(ts.BadInput, match=text):
        ts.read_model(tmp_path / "m.safetensors").matrix("a.weight")


def test_the_names_of_one_part_or_two_may_be_tensors_of_any_kind(tmp_path):
    tensors = {
        "a.shape": np.ones((2, 2), F4), "b.compressed": np.ones(3, F4), "c.row_offsets": np.arange(3), "bitmask": np.ones(2, np.uint8),
        "d.bitmask": np.ones(2, np.uint8), "e.compressed": np.ones(3, F4), "e.shape": np.ones(2, F4), "e.weight": np.ones((1, 1), F4),
        "f.bitmask": np.ones((2, 1), np.uint8), "f.shape": np.arange(2),
    }  # fmt: skip
    ts.write_model(tmp_path / "m.safetensors", tensors)
    model = ts.read_model(tmp_path / "m.safetensors")
    assert sorted(model) == sorted(tensors) and {info.form for info in model.tensors} == {"dense"}


def test_whole_numbers_are_scaled_or_refused(tmp_path):
    w = np.array([[1, -2], [0, 4]], np.int8)
    ts.write_model(tmp_path / "m.safetensors", {
        "a.weight": w, "a.weight_scale": np.array([[0.5], [2]], F4), "b.weight": w, "c.weight": w, "c.weight_scale": np.ones(1, F4),
        "c.weight_zero_point": np.ones(1, np.int8), "d.weight_packed": np.ones((2, 1), np.int32),
        "e.qweight": w,
    })  # fmt: skip
    model = ts.read_model(tmp_path / "m.safetensors")
    assert np.array_equal(model["a.weight"], [[0.5, -1], [0, 8]]) and model.matrix("a.weight").nnz == 3
    for name, text in (("b.weight", r"I8, whole numbers without a scale \(b.weight_scale\)"), ("c.weight", "save the model in floats"),
                       ("d.weight_packed", "packed")):  # fmt: skip
        for read in (model.__getitem__, model.matrix):
            with pytest.raises(ts.BadInput, match=text):
                read(name)
    assert np.array_equal(model["e.qweight"], w)
    with pytest.raises(ts.BadInput, match="whole numbers without a scale"):
        model.matrix("e.qweight")


def shards(folder, files):
    names = {}
    for file, tensors in files.items():
        ts.write_model(folder / file, tensors)
        names.update(dict.fromkeys(tensors, file))
    return names


def test_a_folder_of_shards_is_one_model(tmp_path):
    a, b = weights(seed=3), weights(seed=4)
    names = shards(tmp_path, {"model-1-of-2.safetensors": {"a": a}, "model-2-of-2.safetensors": {"b": b}})
    assert sorted(ts.read_model(tmp_path)) == ["a", "b"]  # without an index
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": names}))
    for path in (tmp_path, index, str(tmp_path)):
        model = ts.read_model(path)
        assert np.array_equal(model["a"], a) and np.array_equal(model["b"], b)
    for text, wrong in {
        "no index of shards": "[]", "not json|no index": "{", r"weight_map names '../x.safetensors'": '{"weight_map": {"a": "../x.safetensors"}}',
        "says that 'c' is in model-1": json.dumps({"weight_map": {**names, "c": "model-1-of-2.safetensors"}}),
        "No such file": json.dumps({"weight_map": {"a": "model-3.safetensors"}}),
        "needs \"weight_map\"": '{"weight_map": []}', "the file of each tensor": '{"weight_map": {"a": 3}}',
        "which names the file": '{"weight_map": {}}', "weight_map names ''": '{"weight_map": {"a": ""}}',
        "no index of shards.*recursion": "[" * 100000, r"/\\ud800: .*surrogate": '{"weight_map": {"a": "\\ud800"}}',
    }.items():  # fmt: skip
        index.write_text(wrong)
        with pytest.raises(ts.BadInput, match=text):
            ts.read_model(tmp_path)
    index.unlink()
    ts.write_model(tmp_path / "again.safetensors", {"a": a})
    with pytest.raises(ts.BadInput, match="'a' is in .*again.safetensors as well"):
        ts.read_model(tmp_path)


def test_what_no_file_of_tensors_has_is_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    for given, error, text in (
        ({"w": sp.eye(3, format="csr", dtype=np.float32)}, TypeError, r"w is sparse.*pass w.toarray\(\)"),
        ({"__metadata__": np.ones(3, np.float32)}, ts.InvalidArgument, "__metadata__ is no name of a tensor"),
    ):
        with pytest.raises(error, match=text):
            ts.write_model(path, given)
        assert not path.exists()


def test_what_is_no_model_is_told(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "none.safetensors").write_bytes(b"")
    (tmp_path / "short.safetensors").write_bytes(b"123456789")
    for path, text in (
        (tmp_path / "empty", "no .safetensors file in this folder"), (tmp_path / "none.safetensors", "empty"),
        (tmp_path / "missing" / "x.index.json", "x.index.json: No such file"), (tmp_path / ("a" * 300), "File name too long"),
        (tmp_path / "short.safetensors", "header"), (tmp_path / "missing.safetensors", "No such file"),
        (tmp_path / "model.pt", r"convert it: ts.write_model\(.*torch.load\('model.pt'"), ("/dev/null", "no plain file"),
    ):  # fmt: skip
        with pytest.raises(ts.BadInput, match=text):
            ts.read_model(path)
    with pytest.raises(ts.InvalidArgument, match="use .safetensors"):
        ts.write_model(tmp_path / "m.npz", {})
    for tensors in ([1], None, weights()):
        with pytest.raises(TypeError, match="tensors is .*; it is a mapping, such as"):
            ts.write_model(tmp_path / "m.safetensors", tensors)
    with pytest.raises(TypeError, match="a is complex128"):
        ts.write_model(tmp_path / "m.safetensors", {"a": np.ones(2, complex)})


def test_a_model_goes_into_torch_and_back(tmp_path):
    torch = pytest.importorskip("torch", reason="python3-torch is not installed")
    from torch import nn

    from tessera.torch import SparseLinear, densify, sparsify

    net = nn.Sequential(nn.Linear(13, 6), nn.ReLU(), nn.Linear(6, 4))
    net[0].weight.data = torch.from_numpy(weights())
    state = {n: t.bfloat16() if n == "2.bias" else t for n, t in net.state_dict().items()}
    ts.write_model(tmp_path / "m.safetensors", state)
    model = ts.read_model(tmp_path)
    net[2].bias.data = net[2].bias.bfloat16().float()
    other = nn.Sequential(nn.Linear(13, 6), nn.ReLU(), nn.Linear(6, 4))
    other.load_state_dict(model.state_dict())
    x = torch.randn(3, 13)
    assert torch.equal(other(x), net(x))
    sparsify(other, skip="2")
    assert isinstance(other[0], SparseLinear) and torch.allclose(other(x), net(x), atol=1e-5)
    ts.write_model(tmp_path / "s.safetensors", other.state_dict())
    again = nn.Sequential(SparseLinear(13, 6), nn.ReLU(), nn.Linear(6, 4))
    again.load_state_dict(ts.read_model(tmp_path / "s.safetensors").state_dict())
    assert torch.equal(again(x), other(x))
    assert all(torch.equal(a, b) for a, b in zip(densify(again).state_dict().values(), net.state_dict().values()))
    ts.write_model(tmp_path / "c.safetensors", {**compressed("0", weights()), **{n: t for n, t in state.items() if n != "0.weight"}})
    again.load_state_dict(ts.read_model(tmp_path / "c.safetensors").state_dict())
    assert torch.equal(again(x), net(x))


# (the shape of int8 weights, that of their scale, the factor in the dimensions of the weights; None is refused)
SCALES = [
    ((2, 2), (2,), (2, 1)), ((2, 2), (2, 1), (2, 1)), ((2, 2), (1, 2), (1, 2)), ((2, 2), (), ()), ((2, 2), (1, 1), ()),
    ((2, 3), (1, 3), (1, 3)), ((1, 3), (1, 3), (1, 3)), ((3, 1), (3, 1), (3, 1)), ((1, 1), (1,), ()), ((4,), (4,), (4,)),
    ((2, 1, 2), (2, 1), (2, 1, 1)), ((2, 1, 2), (2,), (2, 1, 1)), ((2, 3, 2), (1, 3, 1), (1, 3, 1)), ((2, 3, 1, 1), (2, 1, 1, 1), (2, 1, 1, 1)),
    ((2, 2), (3,), None), ((2, 3), (3,), None), ((2, 3), (1, 2), None), ((4, 4), (4, 2), None), ((4, 4), (4, 4), None), ((4, 4), (2, 1), None),
    ((2, 2, 2), (2, 1), None), ((2, 3, 3), (1, 3), None), ((2, 2), (2, 1, 1), None), ((2, 2), (0,), None), ((4, 1, 4), (4, 4), None),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "of_scale", "factor"), SCALES)
def test_a_scale_belongs_to_the_side_that_its_shape_names(tmp_path, shape, of_scale, factor):
    whole = np.arange(1, 1 + np.prod(shape), dtype=np.int8).reshape(shape)
    scale = 10 ** np.arange(np.prod(of_scale), dtype=F4).reshape(of_scale)
    ts.write_model(tmp_path / "m.safetensors", {"a.weight": whole, "a.weight_scale": scale, "b": whole, "b_scale": scale})
    model = ts.read_model(tmp_path / "m.safetensors")
    for name in ("a.weight", "b"):
        if factor is None:
            with pytest.raises(ts.BadInput, match="one for each of the rows .* save the model in floats"):
                model[name]
            continue
        wanted = whole * scale.reshape(factor)
        assert np.array_equal(model[name], wanted) and model[name].dtype == F4
        if len(shape) == 2:
            assert np.array_equal(model.matrix(name).toarray(), wanted)


@pytest.mark.filterwarnings("error")
def test_whole_numbers_of_any_dimensions_have_a_scale_of_floats(tmp_path):
    w = np.ones((2, 1, 2), np.int8)
    ts.write_model(tmp_path / "m.safetensors", {
        "a.weight": w, "b.weight": w[0, 0], "c.weight": w, "c.weight_scale": np.ones(2, np.uint8),
        "d.weight": w, "d.weight_scale": np.array([1, 1e300]), "e.weight": w * 100, "e.weight_scale": np.array([3e38], F4),
        "f.weight": w * 0, "f.weight_scale": np.array([np.inf], F4), "g.weight": w, "g.weight_scale": np.array([1, np.nan], F4),
        "h.weight": w, "h.weight_scale": np.array([0x7FF0000000000001]).view(np.float64),  # a NaN that signals
        "one": np.int8(3).reshape(()), "one_scale": F4(2).reshape(()),
    })  # fmt: skip
    model = ts.read_model(tmp_path / "m.safetensors")
    for name, text in (("a.weight", "without a scale"), ("b.weight", "without a scale"), ("c.weight", "'c.weight_scale' is U8; a scale is floats"),
                       ("d.weight", "'d.weight_scale' has finite numbers beyond"), ("e.weight", "times 'e.weight_scale' is beyond"),
                       *((f"{layer}.weight", f"'{layer}.weight_scale' has numbers that are not finite") for layer in "fgh")):  # fmt: skip
        with pytest.raises(ts.BadInput, match=text):
            model[name]
    assert isinstance(model["one"], np.ndarray) and model["one"].shape == () and model["one"] == 6


def raw_file(path, tensors):
    """Write a file whose header may claim what no array of NumPy is: NAME: (type, shape, bytes)."""
    header, data = {}, b""
    for name, (kind, shape, numbers) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@contextmanager
def most_memory(most):
    """Require that Python and NumPy have fewer bytes at any time of this block."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


EMPTY = [[2 * 10**8, 0], [2**40, 0], [0, 2**40], [5, 0], [2**63 - 1, 0]]


@pytest.mark.parametrize("sides", EMPTY)
def test_rows_without_a_byte_take_no_memory(tmp_path, sides):
    tensors = {"a.weight": ("F32", sides, b""), "b.weight": ("F32", [1, 2], b"1234" * 2)}
    model = ts.read_model(raw_file(tmp_path / "m.safetensors", tensors))
    parts = {
        "a.compressed": ("F32", [0], b""), "a.bitmask": ("U8", [sides[0], -(-sides[1] // 8)], b""),
        "a.shape": ("I64", [2], struct.pack("<2q", *sides)),
    }  # fmt: skip
    text = f"is {sides[0]} x {sides[1]}; a matrix of a model needs at least 1 x 1"
    with most_memory(2**26):
        with pytest.raises(ts.BadInput, match=f"'a.weight' {text}"):
            model.matrix("a.weight")
        advice = ts.advise(model, batch=8)
        with pytest.raises(ts.BadInput, match=f"a {text}"):
            ts.read_model(raw_file(tmp_path / "c.safetensors", parts))
    assert [layer["name"] for layer in advice["machines"][0]["layers"]] == ["b.weight"] and advice["left_out"] == ["a.weight"]


def test_a_shape_that_no_array_has_is_told(tmp_path):
    model = ts.read_model(raw_file(tmp_path / "m.safetensors", {"a": ("F32", [2**62, 2**62, 0], b"")}))
    for read in (model.__getitem__, lambda _: model.state_dict()):
        with pytest.raises(ts.BadInput, match="'a' has the shape .* which no array has"):
            read("a")


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_float32_are_refused_in_every_form(tmp_path):
    big = np.array([[1e300, 1]])
    ts.write_model(tmp_path / "m.safetensors", {"a.weight": big, **compressed("b", big, np.float64), "c.weight": np.array([[np.inf, 1]])})
    model = ts.read_model(tmp_path / "m.safetensors")
    for call in (lambda: model.matrix("a.weight"), lambda: model.matrix("b.weight"), lambda: model["b.weight"]):
        with pytest.raises(ts.BadInput, match="m.safetensors: .* has finite numbers beyond those of float32"):
            call()
    assert model["a.weight"][0, 0] == 1e300, "float64 stays what it is"
    assert np.isinf(model.matrix("c.weight")[0, 0])

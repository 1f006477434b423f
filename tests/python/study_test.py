"""Questions of cost: ts.verdict, ts.advise and ts.sweep."""

import numpy as np
import pytest
import scipy.sparse as sp

import tessera as ts

SMALL = ts.Machine.from_json('{"base": "gc200", "name": "small", "tiles": 32}')
LAYER = {"outputs": 96, "inputs": 64, "batch": 16}


def test_a_verdict_has_three_values_and_a_sentence():
    for machine in ("host", SMALL):
        sparse = ts.verdict(**LAYER, density=0.01, machine=machine)
        full = ts.verdict(**LAYER, density=1, machine=machine)
        assert sparse["better"] in ("sparse", "dense", "about equal") and full["better"] != "sparse"
        assert sparse["text"].endswith(")") and sparse["pays_up_to_density"] < 1
        assert ("sparse_seconds" if machine == "host" else "sparse_cycles") in sparse
    with pytest.raises(ts.InvalidArgument, match="options"):
        ts.verdict(**LAYER, density=0.1, options={"availableMemoryProportion": 0.5})


def test_advice_on_a_matrix_is_that_on_its_file(tmp_path):
    weights = sp.random(96, 64, 0.1, "csr", np.float32, random_state=1)
    path = tmp_path / "w.mtx"
    ts.write(path, weights)
    own, of_file = (ts.advise(w, batch=16, machine=SMALL)["machines"][0]["layers"][0] for w in (weights, path))
    assert own["name"] == "weights" and own["forms"] == of_file["forms"] and len(own["forms"]) == 5
    assert own["best"] in ("dense", "1x1", "4x4", "8x8", "16x16")
    host = ts.advise(weights, batch=16)["machines"][0]
    assert host["how"] == "forecast" and host["layers"][0]["forms"][0]["seconds"] > 0
    for given in (weights, path):
        run = ts.advise(given, batch=16, measure=True)["machines"][0]
        assert run["how"] == "measured" and run["layers"][0]["forms"][0]["seconds"] > 0
    with pytest.raises(ts.InvalidArgument, match="measure is True"):
        ts.advise(weights, batch=16, machine=SMALL, measure=True)


def test_a_sweep_has_the_figures_that_vary_in_every_point():
    result = ts.sweep({"density": [0.1, 0.5], "tiles": [8, 32]}, **LAYER, machine=SMALL)
    points = [(p["density"], p["tiles"]) for p in result["points"]]
    assert points == [(0.1, 8), (0.1, 32), (0.5, 8), (0.5, 32)]
    assert all(p["cycles"] > 0 and p["dense_cycles"] > 0 for p in result["points"])
    with pytest.raises(ts.InvalidArgument, match="there is no figure"):
        ts.sweep({"colour": [1]}, **LAYER, machine=SMALL)
    with pytest.raises(ts.InvalidArgument, match="modelled"):
        ts.sweep({"tiles": [8]}, **LAYER)


def test_options_and_figures_that_are_no_mapping_are_told():
    one = {"batch": 8, "options": "x", "machine": SMALL}
    calls = (
        lambda: ts.verdict(8, 8, density=0.1, **one), lambda: ts.crossover(8, 8, **one), lambda: ts.sweep({"density": [0.1]}, **one),
        lambda: ts.advise(np.eye(8, dtype=np.float32), **one), lambda: ts.plan(8, 8, density=0.1, **one),
        lambda: ts.simulate(np.eye(8, dtype=np.float32), **one),
        lambda: ts.crossover(8, 8, batch=8, options={"planConstraints": {"partition": {"x": object()}}}),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(TypeError, match="options are no mapping of texts .* pass a dict"):
            call()
    for over, text in (
        ([1], r"over is \[1\]; it is a mapping"), (None, "over is None; it is a mapping"), ({"density": 1}, "over: density has 1; it has a list"),
        ({"density": "0.1"}, "over: density has '0.1'; it has a list"), ({"density": b"ab"}, "over: density has b'ab'; it has a list"),
        ({"density": np.array(0.1)}, r"over: density has array\(0.1\); it has a list"),
        ({"density": ["0.1"]}, "density is '0.1'; it is a number"),
        ({1: [1]}, "over is 1; it is a text"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=text):
            ts.sweep(over, **LAYER, machine=SMALL)


def test_a_layer_that_fits_nowhere_has_a_reason():
    small = {"availableMemoryProportion": 1e-6}
    with pytest.raises(ts.NoSolution, match="no plan .*; no dense plan"):
        ts.verdict(**LAYER, density=0.1, machine=SMALL, options=small)
    with pytest.raises(ts.NoSolution):
        ts.crossover(**LAYER, machine=SMALL, options={"planConstraints": {"partition": {"x": 5000}}})
    with pytest.raises(ts.InvalidArgument):
        ts.advise(sp.csr_matrix((0, 4), dtype=np.float32), batch=4, machine=SMALL)


def test_models_are_advised_by_their_matrices(tmp_path):
    rng = np.random.default_rng(3)
    state = {
        name: (rng.standard_normal(shape) * (rng.random(shape) < 0.1)).astype(np.float32) for name, shape in (("a.weight", (64, 32)), ("b.weight", (32, 64)))
    }
    state["b.bias"] = np.zeros(32, np.float32)
    ts.write_model(tmp_path / "m.safetensors", state)

    def layers(advice):
        assert advice["left_out"] == ["b.bias"]
        return advice["machines"][0]["layers"]

    wanted = layers(ts.advise(tmp_path / "m.safetensors", batch=32))
    for given in (tmp_path, ts.read_model(tmp_path), state):
        assert layers(ts.advise(given, batch=32)) == wanted
    ids = {**state, "ids": np.ones((4, 4), np.int64)}
    assert ts.advise(ids, batch=32)["left_out"] == ["b.bias", "ids"]
    (only,) = ts.advise(state, batch=32, tensor="a.weight")["machines"][0]["layers"]
    assert only["name"] == "a.weight" == wanted[0]["name"]
    for tensor in ("c.weight", "b.bias"):
        with pytest.raises(ts.InvalidArgument, match="there is no matrix .* among a.weight, b.weight"):
            ts.advise(state, batch=32, tensor=tensor)


def test_a_sparse_layer_of_torch_is_advised_as_a_module_around_it():
    pytest.importorskip("torch")
    from tessera.torch import SparseLinear
    from torch import nn

    layer = SparseLinear(64, 32, density=0.1)
    (alone,) = ts.advise(layer, batch=8)["machines"][0]["layers"]
    (inside,) = ts.advise(nn.Sequential(layer), batch=8)["machines"][0]["layers"]
    assert (alone["name"], inside["name"]) == ("weight", "0.weight")
    assert alone["forms"] == inside["forms"]


def names_of(advice):
    return [layer["name"] for layer in advice["machines"][0]["layers"]]


def test_a_layer_that_is_run_may_be_faster_dense():
    nearly_full = sp.random(64, 64, 0.9, "csr", np.float32, random_state=1)
    assert "measured" in ts.advise(nearly_full, batch=16, measure=True)["verdict"]


def test_matrices_of_scipy_are_advised_in_any_format_and_by_name():
    weights = sp.random(48, 32, 0.1, "csr", np.float32, random_state=1)
    (wanted,) = ts.advise(weights, batch=8)["machines"][0]["layers"]
    for form in ("dok", "coo", "lil"):
        (found,) = ts.advise(weights.asformat(form), batch=8)["machines"][0]["layers"]
        assert found["forms"] == wanted["forms"]
    by_name = ts.advise({"a": weights, "b": weights.astype(float).todok(), "c": np.ones(3)}, batch=8)
    assert names_of(by_name) == ["a", "b"] and by_name["left_out"] == ["c"]
    assert by_name["machines"][0]["layers"][0]["forms"] == wanted["forms"]


def test_weights_in_whole_numbers_are_advised_by_their_scale_and_compressed_ones_as_such(tmp_path):
    weights = np.eye(16, dtype=np.float32)
    state = {
        "q.weight": weights.astype(np.int8), "q.weight_scale": np.full((16, 1), 0.5, np.float32), "ids": np.ones((4, 4), np.int64),
        "l.compressed": np.ones(16, np.float32), "l.bitmask": np.packbits(weights != 0, 1, bitorder="little"),
        "l.shape": np.array([16, 16]),
    }  # fmt: skip
    path = tmp_path / "m.safetensors"
    groups = {"g.weight": state["q.weight"], "g.weight_scale": np.ones((16, 2), np.float32)}
    ts.write_model(path, {**state, **groups})
    advice = ts.advise(path, batch=8)
    assert sorted(names_of(advice)) == ["l.weight", "q.weight"] and {*groups} < {*advice["left_out"]}
    with pytest.raises(ts.BadInput, match="scales of groups are not read"):
        ts.advise(path, batch=8, tensor="g.weight")
    ts.write_model(path, state)
    for given in (path, tmp_path, ts.read_model(path)):
        advice = ts.advise(given, batch=8)
        assert sorted(names_of(advice)) == ["l.weight", "q.weight"] and sorted(advice["left_out"]) == ["ids", "q.weight_scale"]
        assert all(layer["non_zeros"] == 16 for layer in advice["machines"][0]["layers"])
    ts.write_model(path, {name: state[name] for name in ("q.weight", "q.weight_scale")})
    assert names_of(ts.advise(path, batch=8, tensor="q.weight")) == ["q.weight"]
    with pytest.raises(ts.BadInput, match='"q.weight" is whole numbers that "q.weight_scale" scales'):
        ts.read(f"{path}#q.weight")
    with pytest.raises(ts.BadInput, match="ts.write_model"):
        ts.advise("model.pt", batch=8)


def test_a_module_of_torch_is_advised_by_its_layers():
    torch = pytest.importorskip("torch", reason="python3-torch is not installed")
    from tessera.torch import SparseLinear

    net = torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.ReLU(), SparseLinear(48, 16, density=0.1))
    first, second = ts.advise(net, batch=8)["machines"][0]["layers"]
    assert (first["name"], second["name"]) == ("0.weight", "2.weight") and second["non_zeros"] == net[2].values.numel()
    assert isinstance(net[2], SparseLinear), "the model stays as it was"

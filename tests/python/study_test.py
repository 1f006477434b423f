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


def test_a_layer_that_is_run_may_be_faster_dense():
    nearly_full = sp.random(64, 64, 0.9, "csr", np.float32, random_state=1)
    assert "measured" in ts.advise(nearly_full, batch=16, measure=True)["verdict"]

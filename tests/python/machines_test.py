"""Plans, runs on modelled machines, files, and the end by Ctrl-C."""

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from model import dense, expect_product, random_array, random_weights

import tessera as ts

WEIGHTS = random_weights(1, 64, 48, (1, 1), 0.2)
SMALL = ts.Machine.from_json('{"base": "gc200", "name": "small", "tiles": 16}')


def test_a_plan_has_costs_text_and_json():
    plan = ts.plan(256, 192, batch=32, density=0.1, machine="gc200")
    assert plan.cycles > 0 and plan.dense_cycles > 0 and 1 <= plan.tiles <= 1472
    parts = plan.partition
    assert parts["g"] * parts["x"] * parts["y"] * parts["z"] == plan.tiles
    assert json.loads(plan.to_json())["problem"] is not None
    assert "Fwd" in str(plan) and "limits" in plan.explain().lower()
    assert json.loads(plan.explanation_json())
    for word in ("256", "192", "density 0.1", "cycles", "kB"):
        assert word in repr(plan)
    assert "<table>" in plan._repr_html_()
    forward = ts.plan(256, 192, batch=32, density=0.1, passes="fwd")
    assert forward.cycles < plan.cycles


@pytest.mark.parametrize("value", [70000.0, -65520.0])
def test_a_weight_that_half_cannot_hold_is_refused_and_not_called_right(value):
    weights = WEIGHTS.astype(np.float32).copy()
    weights.data[5] = value
    with pytest.raises(ts.BadInput, match=re.escape(f"weight 5 is {value:g}; half holds -65504 to 65504")):
        ts.simulate(weights, dtype="float16", machine=SMALL, batch=4)
    assert ts.simulate(weights, dtype="float32", machine=SMALL, batch=4).ok
    weights.data[5] = 65504.0
    assert ts.simulate(weights, dtype="float16", machine=SMALL, batch=4).ok


def test_no_plan_has_the_nearest_one_and_remedies():
    with pytest.raises(ts.NoSolution) as caught:
        ts.plan(4096, 4096, batch=512, density=0.5, machine=SMALL)
    assert caught.value.remedies and all(isinstance(text, str) for text in caught.value.remedies)
    assert "tiles" in str(caught.value) and ts.NoSolution.remedies == ()
    with pytest.raises(ts.NoSolution) as caught:
        ts.plan(1024, 1024, batch=8192, density=0.1, machine=SMALL)
    assert caught.value.plan is None or caught.value.plan.cycles > 0


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_run_has_results_within_rounding_and_a_report(dtype):
    kind = np.dtype(dtype).type
    rng = np.random.default_rng(2)
    s, dq = (random_array(rng, (size, 8)).astype(kind) for size in (48, 64))
    run = ts.simulate(WEIGHTS, s, dq=dq, machine=SMALL)
    assert run.ok and run.cycles == sum(run.pass_cycles.values())
    assert list(run.pass_cycles) == ["fwd", "grad_a", "grad_w"] and run.seconds > 0
    rounding = ts.Rounding(2.0**-11 if kind is np.float16 else 2.0**-24, 2.0**-24, 64)
    expect_product(run.results["fwd"], dense(WEIGHTS, dtype), s, rounding)
    expect_product(run.results["grad_a"], dense(WEIGHTS, dtype).T, dq, rounding)
    exact = (dq.astype(float) @ s.astype(float).T)[WEIGHTS.nonzero()]
    assert np.allclose(run.results["grad_w"], exact, rtol=1e-2, atol=0.05)
    assert "passed" in run.table() or "ok" in run.table()
    assert json.loads(run.to_json())["status"] == "passed"
    assert run.to_csv().count("\n") > 5 and "64" in repr(run) and "<table>" in run._repr_html_()


def test_a_run_writes_a_page(tmp_path):
    run, path = ts.simulate(WEIGHTS, batch=4, machine=SMALL), tmp_path / "r.html"
    try:
        run.to_html(path)
    except ts.InvalidArgument as error:
        assert "npm" in str(error) and not path.exists()
        pytest.skip("built without npm: there are no pages")
    page = path.read_text()
    assert page.startswith("<!doctype html>") and page.count("</html>") == 1
    report = json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S)[1])
    made = json.loads(run.to_json())
    assert report["passes"] == made["passes"] and report["planned"] == made["planned"]
    run.to_html(str(path))
    with pytest.raises(ts.InvalidArgument):
        run.to_html(tmp_path / "none" / "r.html")


def test_a_run_draws_operands_and_may_be_forward_only():
    run = ts.simulate(WEIGHTS, batch=4, machine=SMALL, passes="fwd")
    assert run.ok and list(run.results) == ["fwd"] and run.results["fwd"].dtype == np.float16
    assert (run.results["fwd"] == ts.simulate(WEIGHTS, batch=4, machine=SMALL, passes="fwd").results["fwd"]).all()


def test_crossover_is_where_plans_cost_what_dense_costs():
    found = ts.crossover(256, 256, batch=32, machine=SMALL, passes="fwd")
    assert 0 < found.density < 1
    options = {"planConstraints": {"useDense": False}}
    at = [ts.plan(256, 256, batch=32, density=found.density + d, machine=SMALL, passes="fwd", options=options).cycles for d in (0, 0.001)]
    assert at[0] < found.dense_cycles <= at[1]


def test_crossover_keeps_the_callers_options():
    layer = {"outputs": 256, "inputs": 256, "batch": 32, "machine": SMALL, "passes": "fwd"}
    options = {"availableMemoryProportion": 0.024, "planConstraints": {"partition": {"x": 8}}}
    found, free = ts.crossover(**layer, options=options), ts.crossover(**layer)
    options["planConstraints"]["useDense"] = False
    plan = ts.plan(**layer, density=found.density, options=options)
    assert plan.partition["x"] == 8 and plan.cycles < found.dense_cycles
    assert found.dense_cycles == plan.dense_cycles > free.dense_cycles
    pinned = ts.crossover(**layer, options={"planConstraints": {"partition": {"x": 8}}})
    assert pinned.density < free.density  # other cuts, which the pin forbids, cost less
    with pytest.raises(ts.InvalidArgument, match="useDense"):
        ts.crossover(**layer, options={"planConstraints": {"useDense": True}})
    with pytest.raises(ts.InvalidArgument, match="must be an object"):
        ts.crossover(**layer, options={"planConstraints": 3})


def test_blocks_may_be_numbers_of_numpy():
    layer = {"outputs": 64, "inputs": 64, "batch": 4, "density": 0.25, "machine": SMALL}
    for block in (np.int64(4), (np.int32(4), 4), np.array([4, 4])):
        assert ts.plan(**layer, block=block).cycles == ts.plan(**layer, block=4).cycles
    for block in (4.0, "4", (4, 4, 4), None):
        with pytest.raises(ts.InvalidArgument, match="block is"):
            ts.plan(**layer, block=block)


def test_machines_come_from_names_files_and_json(tmp_path):
    gc200 = ts.Machine("gc200")
    assert gc200.tiles == 1472 and "gc200" in ts.Machine.names() and gc200.tile_memory_bytes > 600000
    (tmp_path / "m.json").write_text(gc200.to_json())
    for path in (tmp_path / "m.json", str(tmp_path / "m.json")):
        assert ts.Machine.from_file(path) == gc200 != SMALL
    for bad in ("gc201", "host"):
        with pytest.raises(ts.InvalidArgument):
            ts.Machine(bad)
    with pytest.raises(ts.BadInput, match="tiles"):
        ts.Machine.from_json('{"base": "gc200", "tiles": -1}')
    with pytest.raises(ts.Error):
        ts.Machine.from_file(str(tmp_path / "none.json"))


@pytest.mark.parametrize("ending", ["mtx", "npz", "smtx"])
def test_files_read_back(tmp_path, ending):
    path = tmp_path / f"w.{ending}"
    ts.write(path, WEIGHTS)
    got = ts.read(path)
    expected = WEIGHTS if ending != "smtx" else sp.csr_matrix((np.ones_like(WEIGHTS.data), WEIGHTS.indices, WEIGHTS.indptr), WEIGHTS.shape)
    assert got.dtype == np.float32 and (got != expected).nnz == 0
    with pytest.raises(ts.BadInput):
        ts.read(tmp_path / f"none.{ending}")
    with pytest.raises(ts.InvalidArgument, match=".mtx"):
        ts.write(tmp_path / "w.text", WEIGHTS)


def test_plans_of_this_computer_are_forecasts_by_form_and_pass():
    layer = {"outputs": 256, "inputs": 512, "batch": 8, "density": 0.05, "machine": "host"}
    plan = ts.plan(**layer)
    assert isinstance(plan, ts.HostPlan) and "float" in plan.request and plan.threads >= 1
    assert list(plan.forms) == ["1x1", "4x4", "8x8", "16x16", "dense"] and plan.fastest in plan.forms
    sums = {name: sum(p["seconds"] for p in form.values()) for name, form in plan.forms.items()}
    assert plan.seconds == pytest.approx(sums["1x1"]) and plan.dense_seconds == pytest.approx(sums["dense"])
    assert min(sums, key=sums.get) == plan.fastest and min(sums.values()) > 0
    assert list(plan.cells) == list(plan.forms["1x1"]) == ["fwd", "grad_a", "grad_w"]
    assert all(0 < cells["outputs"] <= 256 and 0 < cells["inputs"] <= 512 for cells in plan.cells.values())
    report = json.loads(plan.to_json())
    assert report["fastest"] == plan.fastest and report["ways"][0]["passes"][0]["method"] == "sparse"
    assert plan.to_csv().startswith("form,pass,seconds\n") and f"fastest: {plan.fastest}" in str(plan)
    assert "HostPlan" in repr(plan) and plan.fastest in repr(plan)
    assert list(ts.plan(**layer, block=(8, 8), groups=2, passes="fwd").cells) == ["fwd"]


def test_few_columns_of_large_weights_read_packed_rows_on_this_computer():
    plan = ts.plan(8192, 8192, batch=1, density=0.1, dtype="float16", passes="fwd", machine="host")
    # Without the instructions of AVX-512, which builds with sanitizers leave out, numbers of 16 bits are widened instead.
    narrower = os.environ.get("TESSERA_TARGET") or os.environ.get("TESSERA_SANITIZED")
    expands = "avx512vl" in Path("/proc/cpuinfo").read_text() and not narrower
    assert plan.forms["1x1"]["fwd"]["method"] == ("packed" if expands else "sparse")
    assert plan.forms["dense"]["fwd"]["method"] == "dense"
    assert plan.forms["4x4"]["fwd"]["method"] == "sparse" and ("rows" in str(plan)) == expands


def test_refuses_what_is_wrong():
    with pytest.raises(ts.InvalidArgument, match="this computer has none"):
        ts.plan(64, 64, batch=4, density=0.1, machine="host", options={"availableMemoryProportion": 0.5})
    for wrong in ({"density": 2}, {"batch": 0}, {"dtype": "int8"}, {"passes": "some"}, {"options": {"nothing": 1}}):
        with pytest.raises(ts.InvalidArgument):
            ts.plan(**{"outputs": 64, "inputs": 64, "batch": 4, "density": 0.1, **wrong})
    with pytest.raises(ts.InvalidArgument, match="s has 3 rows"):
        ts.simulate(WEIGHTS, np.zeros((3, 4), np.float16))
    with pytest.raises(TypeError, match="float16"):
        ts.simulate(WEIGHTS, np.zeros((48, 4), np.float32), dtype="float16")
    with pytest.raises(ts.InvalidArgument, match='"nope" is not known; .*, or "host"'):
        ts.verdict(64, 64, batch=4, density=0.1, machine="nope")


def test_results_that_are_no_numbers_are_right_where_an_operand_is_none():
    run = ts.simulate(WEIGHTS, np.full((WEIGHTS.shape[1], 4), np.nan, np.float32))
    assert run.ok and np.isnan(run.results["fwd"][np.diff(WEIGHTS.indptr) > 0]).all()


def test_ctrl_c_ends_a_long_call_at_once():
    big = random_weights(3, 2048, 2048, (1, 1), 0.2)
    begin = time.perf_counter()
    ended = []

    def interrupt():
        time.sleep(0.3)
        ended.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        while time.perf_counter() < begin + 60:
            ts.simulate(big, batch=512, machine="gc200")
    waited = time.perf_counter() - ended[0]
    thread.join()
    assert waited < 2  # 0.2 s on a computer that does nothing else
    assert ts.simulate(WEIGHTS, batch=4, machine=SMALL, passes="fwd").ok


def test_numbers_of_files_are_the_nearest_floats(tmp_path):
    path = tmp_path / "w.mtx"

    def read(value):
        path.write_text(f"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {value}\n")
        return ts.read(path).data[0]

    middle = "1.000000059604644775390625"
    assert read(middle) == 1, "the even one of two floats"
    assert read(middle + "0" * 20 + "1") == np.nextafter(np.float32(1), np.float32(2))
    assert read("3.4028234e38") == np.finfo(np.float32).max
    with pytest.raises(ts.BadInput, match="3.4e38"):
        read("1e39")
    np.save(tmp_path / "w.npy", np.full((2, 2), 1e300))
    with pytest.raises(ts.BadInput, match="row 0, column 0"):
        ts.read(tmp_path / "w.npy")


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_places_given_twice_are_the_same_in_files_and_in_arrays(tmp_path, form):
    places = sp.coo_matrix((np.float32([1, 2, 4]), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    if form == "csr":
        matrix = sp.csr_matrix((places.data, [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    elif form == "csc":
        matrix = sp.csc_matrix((np.float32([4, 1, 2]), [1, 0, 0], [0, 1, 3]), shape=(2, 2))
    else:
        matrix = places
    sp.save_npz(tmp_path / "w.npz", matrix)
    read = ts.read(tmp_path / "w.npz")
    assert np.array_equal(read.toarray(), [[0, 3], [4, 0]])
    assert np.array_equal(read.toarray(), ts.Layer(matrix).weights.toarray())


def test_places_given_twice_in_a_file_of_a_pattern_are_one(tmp_path):
    (tmp_path / "w.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 3\n1 2\n1 2\n2 1\n")
    assert np.array_equal(ts.read(tmp_path / "w.mtx").toarray(), [[0, 1], [1, 0]])


@pytest.mark.parametrize(("made", "by"), [(ts.Plan, "ts.plan"), (ts.HostPlan, "ts.plan"), (ts.Run, "ts.simulate")])
def test_classes_that_functions_return_name_the_function(made, by):
    for arguments in ((), (1, "a")):
        with pytest.raises(TypeError, match=f"made by {by}"):
            made(*arguments)

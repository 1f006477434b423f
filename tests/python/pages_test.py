"""The examples and the blocks of the pages run and print what they say; types are right."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")


def has(module):
    return importlib.util.find_spec(module) is not None


def run(*command):
    """Runs a program and returns what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def blocks(page, kind):
    """Returns the fenced blocks of a page."""
    return re.findall(rf"^```{kind}\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


@pytest.mark.skipif(not has("torch"), reason="python3-torch is not installed")
@pytest.mark.parametrize("page", ["python", "torch"])
def test_the_guide_runs(page):
    found = blocks(f"docs/{page}.md", "python")
    assert len(found) >= 4
    run(sys.executable, "-B", "-c", "\n".join(found))


def test_the_quick_start_prints_what_the_guide_quotes():
    out = run(sys.executable, "-B", "examples/python/quick_start.py")
    (quoted,) = blocks("docs/python.md", "output")
    # Made by tests/docs/requote.py. The last of nearly equal gradients depends on the kernels of a processor, and
    # the memory of a layer on its caches, for which the cells are cut.
    varying = re.compile(r"[0-9,]+ of|memory [0-9.]+ MB")
    assert varying.sub("N", out) == varying.sub("N", quoted)


def test_the_readme_runs():
    found = blocks("README.md", "python")
    assert len(found) == 1
    run(sys.executable, "-B", "-c", found[0])


def test_what_if_draws_a_chart(tmp_path):
    chart = ("--chart", str(tmp_path / "c.png")) if has("matplotlib") else ()
    out = run(sys.executable, "-B", "examples/python/what_if.py", "--outputs=64", "--inputs=64", "--batch=8", *chart)
    assert "1472 tiles" in out
    assert not chart or (tmp_path / "c.png").stat().st_size > 1000


@pytest.mark.skipif(not (has("torch") and FASHION.is_dir()), reason="no torch or no dataset-fashion-mnist")
def test_rigl_learns():
    out = run(sys.executable, "-B", "examples/python/rigl_torch.py", "--epochs=2", "--images=2560")
    assert float(re.search(r"accuracy ([0-9.]+) %", out)[1]) > 60
    assert len((ROOT / "examples/python/rigl_torch.py").read_text().splitlines()) <= 90


@pytest.mark.skipif(not has("torch"), reason="python3-torch is not installed")
@pytest.mark.parametrize("option", ["--search=exact", "--tied", "--bfloat16"])
def test_a_sparse_gpt_learns_as_a_masked_one(option, tmp_path):
    chart = (option, "--plot", str(tmp_path / "c.png")) if has("matplotlib") else (option,)
    sizes = ("--steps=60", "--width=64", "--layers=1", "--batch=8", "--context=32", "--density=0.2", "--every=5")
    out = run(sys.executable, "-B", "examples/python/sparse_gpt.py", *sizes, *chart)
    losses = [float(loss) for loss in re.findall(r"^(?:sparse|dense with masks): loss ([0-9.]+), ", out, re.M)]
    assert len(losses) == 2 and losses[0] == pytest.approx(losses[1], rel=0.01) and losses[0] < 5.5
    assert len(chart) < 2 or (tmp_path / "c.png").stat().st_size > 1000
    assert len((ROOT / "examples/python/sparse_gpt.py").read_text().splitlines()) < 200
    wrong = subprocess.run([sys.executable, "-B", "examples/python/sparse_gpt.py", "--width=30"], cwd=ROOT, capture_output=True, text=True)
    assert wrong.returncode == 2 and "the width is a multiple of 4" in wrong.stderr


@pytest.mark.skipif(not (has("torch") and FASHION.is_dir()), reason="no torch or no dataset-fashion-mnist")
def test_the_table_of_densities_has_both_networks():
    sizes = ("--images=1000", "--epochs=1", "--densities", "0.01", "--repeats=1")
    lines = run(sys.executable, "-B", "bench/python/densities.py", *sizes).splitlines()
    head, *rows = (line.split("\t") for line in lines if not line.startswith("#"))
    for name, row in zip(("784-1024-1024-10", "3072-1024-512-10"), rows, strict=True):
        found = dict(zip(head, row, strict=True))
        assert (found["network"], found["density"]) == (name, "0.01")
        assert float(found["faster"]) == pytest.approx(float(found["masked_s_epoch"]) / float(found["s_epoch"]), rel=0.02)
        assert float(found["accuracy_percent"]) > 15 and float(found["batch_100_ms"]) > 0


@pytest.mark.skipif(not has("torch"), reason="python3-torch is not installed")
def test_the_recall_of_searches_is_that_of_their_candidates():
    out = run(sys.executable, "-B", "bench/python/recall.py", "--steps", "10", "--width=32", "--layers=1", "--density=0.0625")
    rows = [line.split("\t") for line in out.splitlines()[1:]]
    assert [row[1] for row in rows] == ["blocks.0.qkv", "blocks.0.out", "blocks.0.up", "blocks.0.down", "head"]
    shortlist, sampled = (sum(float(row[i]) for row in rows) / len(rows) for i in (2, 3))
    assert shortlist > 0.9 and 0.15 < sampled < 0.4  # four of fifteen places that are free are looked at


SMALL_SIZES = {
    "quick_start": None,
    "rigl_torch": ["--epochs=1", "--images=1280"],
    "sparse_gpt": ["--width=32", "--layers=1", "--steps=10"],
    "sparse_model": ["--width=64", "--steps=6"],
    "what_if": ["--outputs=64", "--inputs=64", "--batch=8"],
}
NEEDS = {"rigl_torch": has("torch") and FASHION.is_dir(), "sparse_gpt": has("torch"), "sparse_model": has("torch")}


def test_notebooks_are_those_of_the_examples(tmp_path):
    run(sys.executable, "-B", "examples/python/make_notebooks.py", str(tmp_path))
    kept = {path.stem for path in (ROOT / "examples/python").glob("*.ipynb")}
    assert kept == {path.stem for path in tmp_path.glob("*.ipynb")} == set(SMALL_SIZES)
    for name in kept:
        # To make them again: examples/python/make_notebooks.py
        assert (tmp_path / f"{name}.ipynb").read_text() == (ROOT / f"examples/python/{name}.ipynb").read_text()


@pytest.mark.parametrize("name", SMALL_SIZES)
def test_notebooks_run(name):
    if not NEEDS.get(name, True):
        pytest.skip("no torch or no dataset-fashion-mnist")
    notebook = json.loads((ROOT / f"examples/python/{name}.ipynb").read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5) and len(notebook["cells"]) >= 4
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if SMALL_SIZES[name] is not None:
        assert cells[-1].startswith("main([")
        cells[-1] = f"main({SMALL_SIZES[name]})"
    out = run(sys.executable, "-B", "-c", "\n\n".join(cells))
    wanted = {
        "quick_start": "results right: True", "rigl_torch": "accuracy", "sparse_gpt": "tokens/s",
        "sparse_model": "loaded as it was: True",
        "what_if": "1472 tiles",
    }  # fmt: skip
    assert wanted[name] in out


@pytest.mark.skipif(not (has("mypy") and has("torch")), reason="mypy or torch is not installed")
def test_stubs_are_those_of_the_module(tmp_path):
    package = ROOT / "python"
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "tessera", "--concise", "--mypy-config-file", ROOT / "pyproject.toml",
         "--allowlist", ROOT / "tests/python/stubtest_allowed.txt"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(package)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not has("mypy"), reason="mypy is not installed")
def test_types_are_right(tmp_path):
    package = str(ROOT / "python")
    settings = {**os.environ, "MYPYPATH": package, "MYPY_CACHE_DIR": str(tmp_path)}
    examples = sorted(map(str, (ROOT / "examples/python").glob("*.py")))
    for what in (["-p", "tessera"], examples):
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *what],
            capture_output=True, text=True, cwd=ROOT, env=settings,
        )
        assert done.returncode == 0, done.stdout + done.stderr

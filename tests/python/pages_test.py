"""The examples and the blocks of the pages run and print what they say; types are right."""

import importlib.util
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
def test_the_guide_runs():
    found = blocks("docs/python.md", "python")
    assert len(found) >= 5
    run(sys.executable, "-B", "-c", "\n".join(found))


def test_the_quick_start_prints_what_the_readme_quotes():
    out = run(sys.executable, "-B", "examples/python/quick_start.py")
    (quoted,) = blocks("README.md", "output")
    # Modelled cycles, and the last of equal gradients, may change with the planner and the kernels.
    assert re.sub(r"[0-9,]+ (cycles|of)", r"N \1", out) == re.sub(r"[0-9,]+ (cycles|of)", r"N \1", quoted)


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


@pytest.mark.skipif(not has("mypy"), reason="mypy is not installed")
def test_types_are_right(tmp_path):
    package = str(ROOT / "python")
    settings = {**os.environ, "MYPYPATH": package, "MYPY_CACHE_DIR": str(tmp_path)}
    examples = sorted(map(str, (ROOT / "examples/python").glob("*.py")))
    for what in (["-p", "tessera"], examples):
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--config-file", f"{package}/pyproject.toml", *what],
            capture_output=True, text=True, cwd=ROOT, env=settings,
        )
        assert done.returncode == 0, done.stdout + done.stderr

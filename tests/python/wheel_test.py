"""The wheel, made of the build that is tested, in an environment of its own."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 12e6


@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("build", "wheel", "setuptools"))) or not shutil.which("patchelf"),
    reason="python3-build, python3-wheel, python3-setuptools or patchelf is not installed",
)
def test_the_wheel_runs_the_quick_start_with_its_own_libraries(tmp_path):
    source, venv = tmp_path / "source", tmp_path / "venv"
    for file in ("setup.py", "pyproject.toml", "base/version.hpp", "python/README.md", "LICENSE"):
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, source / file)
    shutil.copytree(ROOT / "python/tessera", source / "python/tessera")
    make = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    done = subprocess.run(make, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
    assert done.returncode == 0, done.stdout + done.stderr
    python = f"cp3{sys.version_info.minor}"
    (wheel,) = tmp_path.glob(f"tessera-*-{python}-{python}-linux_x86_64.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"tessera/py.typed", "tessera/_core.pyi", "tessera/torch/__init__.py", "tessera/torch/_linear.py"} <= set(names)
    carried = [name for name in names if ".so" in name]
    assert len(carried) >= 4
    if not any("dnnl" in name for name in carried):  # a wheel for others is made without it
        assert wheel.stat().st_size < MOST_BYTES
    # An environment without the system's packages but NumPy; ./dev wheel-check has a bare Debian.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    site = venv / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    (site / "numpy").symlink_to(pathlib.Path(importlib.util.find_spec("numpy").origin).parent)
    zipfile.ZipFile(wheel).extractall(site)
    code = (
        "import importlib.util; assert not importlib.util.find_spec('scipy')\n"
        "import runpy, tessera, tessera._core; print(tessera.__file__)\n"
        f"runpy.run_path({str(ROOT / 'examples/python/quick_start.py')!r}, run_name='__main__')\n"
        "print(*{line.split()[-1] for line in open('/proc/self/maps') if '.so' in line}, sep='\\n')"
    )
    done = subprocess.run([venv / "bin/python", "-c", code], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert str(site) in done.stdout.splitlines()[0] and "results right: True" in done.stdout
    for name in ("libfmt", "libhwy", "libtbb.so"):
        assert any(name in line and str(site) in line for line in done.stdout.splitlines()), name

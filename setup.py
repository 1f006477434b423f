"""Builds the Python package: `pip install --no-build-isolation .` at the root of the project.

CMake compiles the module and the libraries that it links, and nothing else, in build/pip, with the vector kernels of this
computer alone; another computer that loads the module runs plain C++, with the same bits. `./dev wheel` sets
TESSERA_BUILD to a folder in which the module is built already, and gets a wheel for other computers: it carries the shared
libraries that the module needs and that a bare Debian has not, beside the module, which looks for them there ($ORIGIN).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
# What every Debian system with Python has.
EVERYWHERE = {"libc", "libm", "libstdc++", "libgcc_s", "libz", "libcrypto", "libbz2", "liblzma"}


def version():
    """Returns the version of the library."""
    return re.search(r'TESSERA_VERSION "([^"]+)"', (ROOT / "base/version.hpp").read_text(encoding="utf-8"))[1]


def compiled():
    """Compiles the module and returns its build folder."""
    build = ROOT / "build/pip"
    for command in (
        ["cmake", "--preset", "pip", f"-DTESSERA_PYTHON3={sys.executable}"],
        ["cmake", "--build", str(build), "--parallel", str(os.cpu_count() or 1), "--target", "tessera_python"],
    ):
        try:
            subprocess.run(command, cwd=ROOT, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            packages = "g++ cmake ninja-build and the packages that CONTRIBUTING.md names"
            raise SystemExit(f"setup.py: {' '.join(command)} failed ({error}); it needs {packages}") from error
    return build


def module_in(build):
    """Returns the path of the module of a build folder."""
    modules = sorted((pathlib.Path(build).resolve() / "python/tessera").glob("_core.*.so"))
    if len(modules) != 1:
        raise SystemExit(f"setup.py: there is no module in {build}; build the target tessera_python there")
    return modules[0]


def needed_libraries(module):
    """Returns the paths of the shared libraries to carry."""
    lines = subprocess.run(["ldd", module], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    pairs = [line.split("=>") for line in lines if "=>" in line]
    missing = [name.strip() for name, path in pairs if "not found" in path]
    if missing:
        raise SystemExit(f"setup.py: {module} needs {', '.join(missing)}, which are not found")
    paths = [pathlib.Path(path.split()[0]) for _, path in pairs]
    return [path for path in paths if path.name.partition(".so")[0] not in EVERYWHERE]


class BuildPackage(build_py):
    """Adds the module, and for other computers its libraries, to the package."""

    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib) / "tessera"
        given = os.environ.get("TESSERA_BUILD")
        module = module_in(given or compiled())
        shutil.copy(module, target / module.name)
        if not given:
            return
        for path in [module, *needed_libraries(module)]:
            copy = target / path.name
            shutil.copyfile(path.resolve(), copy)
            copy.chmod(0o755)
            subprocess.run(["strip", "--strip-unneeded", copy], check=True)
            subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", copy], check=True)


class BinaryDistribution(Distribution):
    """Gives the wheel the name of this interpreter and computer."""

    def has_ext_modules(self):
        return True


(ROOT / "build/pip/package").mkdir(parents=True, exist_ok=True)
setup(
    version=version(),
    packages=["tessera", "tessera.torch"],
    package_dir={"tessera": "python/tessera", "tessera.torch": "python/tessera/torch"},
    package_data={"tessera": ["py.typed", "*.pyi"]},
    cmdclass={"build_py": BuildPackage},
    distclass=BinaryDistribution,
    options={"egg_info": {"egg_base": "build/pip/package"}, "build": {"build_base": "build/pip/package"}},
)

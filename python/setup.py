"""Makes the wheel of a module that CMake has built: `./dev wheel` runs it.

TESSERA_BUILD names the build folder. The wheel carries the shared libraries that the module needs and
that a bare Debian has not, beside the module, which looks for them there ($ORIGIN).
"""

import os
import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
# What every Debian system with Python has.
EVERYWHERE = {"libc", "libm", "libstdc++", "libgcc_s", "libz", "libcrypto", "libbz2", "liblzma"}


def built_module():
    """Returns the path of the module."""
    build = os.environ.get("TESSERA_BUILD")
    if not build:
        raise SystemExit("setup.py: set TESSERA_BUILD to a build folder, or run ./dev wheel")
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
    """Adds the module and its libraries to the package."""

    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib) / "tessera"
        module = built_module()
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


setup(
    packages=["tessera"],
    package_dir={"tessera": str((HERE / "tessera").relative_to(HERE))},
    package_data={"tessera": ["py.typed", "*.pyi"]},
    cmdclass={"build_py": BuildPackage},
    distclass=BinaryDistribution,
)

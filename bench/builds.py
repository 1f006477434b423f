#!/usr/bin/env python3
"""Times builds from the start: user and wall seconds of a preset's target in an empty build folder, without a cache.

usage: bench/builds.py [TREE ...]   trees to compare, such as two checkouts; default: this one
Each line of the output is a row of bench/results/builds.md. Packages must be installed (./dev setup --all).
"""

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parents[1]
# What a user waits for: name, preset, target. A tree without the preset or the target is passed over.
BUILDS = [
    ("./dev demo", "demo", "demo"),
    ("pip install .", "pip", "tessera_python"),
    ("./dev build with tests and Python", "release", "all"),
]


def children():
    """Returns user seconds of all finished child processes."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def build(tree, preset, target):
    """Returns user and wall seconds of a build, or None if the tree does not have it."""
    folder = tree / "build" / "timed"
    shutil.rmtree(folder, ignore_errors=True)
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    user, wall = children(), time.monotonic()
    for command in (
        ["cmake", "--preset", preset, "-B", str(folder), "-DCMAKE_CXX_COMPILER_LAUNCHER="],
        ["cmake", "--build", str(folder), "-j", str(os.cpu_count()), "--target", target],
    ):
        if subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=False).returncode != 0:
            return None
    shutil.rmtree(folder)
    return children() - user, time.monotonic() - wall


def main():
    for tree in [pathlib.Path(path).resolve() for path in sys.argv[1:]] or [HERE]:
        for name, preset, target in BUILDS:
            times = build(tree, preset, target)
            row = f"{times[0]:.0f} s | {times[1]:.0f} s" if times else "not in this tree | "
            print(f"| {name} | {tree.name} | {row} |", flush=True)


if __name__ == "__main__":
    main()

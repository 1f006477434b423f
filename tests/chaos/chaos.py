#!/usr/bin/env python3
"""Runs the programs under random circumstances and reports every promise that they break.

Usage: chaos.py --programs DIR [--minutes M] [--trials N] [--seed S] [SERIES...]

The series are command_lines, layers, resources and kills; all of them run if none is named, and share the time. The
exit code is 1 if there are findings. The same seed draws the same trials.
"""

import argparse
import importlib
import random
import sys

from support import Chaos

SERIES = ["command_lines", "layers", "resources", "kills"]


def main():
    """Run the series that the command line names and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("series", nargs="*", help=", ".join(SERIES))
    parser.add_argument("--programs", required=True, help="the folder of tessera and sparse_fc_layer")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--trials", type=int, default=None, help="the most trials of a series")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.series if name not in SERIES]:
        parser.error(f"there is no series {unknown[0]}; there are: {', '.join(SERIES)}")
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(10**6)
    names = arguments.series or SERIES
    findings = 0
    for name in names:
        chaos = Chaos(arguments.programs, seed, 60 * arguments.minutes / len(names), arguments.trials)
        try:
            importlib.import_module(name).run(chaos)
        finally:
            chaos.close()
        findings += len(chaos.findings)
        print(f"{name}: {chaos.trials} trials, {len(chaos.findings)} findings, {chaos.known} known, seed {seed}",
              flush=True)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

"""Shows in one chart how modelled cycles depend on the tiles of a machine and on the density.

usage: what_if.py [--outputs 1024] [--inputs 1024] [--batch 128] [--chart what_if.png]
"""

from __future__ import annotations

import argparse
import json

import tessera as ts

TILES = (184, 368, 736, 1472)
DENSITIES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)


def cycles(outputs: int, inputs: int, batch: int, tiles: int, density: float) -> int | None:
    """Returns the cycles of all passes, or None if the layer does not fit."""
    machine = ts.Machine.from_json(json.dumps({"base": "gc200", "name": f"{tiles} tiles", "tiles": tiles}))
    try:
        return ts.plan(outputs, inputs, batch=batch, density=density, machine=machine).cycles
    except ts.NoSolution:
        return None


def draw(path: str, table: dict[int, list[int | None]]) -> None:
    """Writes the table as a chart."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    for tiles, row in table.items():
        pyplot.loglog(DENSITIES, row, marker="o", label=f"{tiles:,} tiles")
    pyplot.xlabel("density")
    pyplot.ylabel("modelled cycles of all passes")
    pyplot.legend()
    pyplot.savefig(path)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, size in (("outputs", 1024), ("inputs", 1024), ("batch", 128)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--chart", help="an image to write")
    args = parser.parse_args(arguments)
    print("density  " + "".join(f"{density:>10}" for density in DENSITIES))
    table = {}
    for tiles in TILES:
        table[tiles] = [cycles(args.outputs, args.inputs, args.batch, tiles, d) for d in DENSITIES]
        print(f"{tiles:>5} tiles" + "".join(f"{c:>10,}" if c else "   no plan" for c in table[tiles]))
    if args.chart:
        draw(args.chart, table)


if __name__ == "__main__":
    main()

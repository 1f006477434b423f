"""Makes the outputs that the pages quote again.

Each fenced block `console` is replaced by its commands ("$ command") with what they print now, each
block `text` of docs/start.md by what the example of that place prints, the figures in the table of layers
there by those of sparse_fc_layer, and the block `output` of docs/python.md by what the quick start of the
Python package prints (if the package was built). Tests in tests/docs and tests/python compare the same
places.

usage: requote.py BUILD_FOLDER
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ["host_layer", "first_layer", "training_step"]  # in the order of docs/start.md
TABLE_ROW = re.compile(r"\| (\d+) x (\d+) x (\d+) \| (\d+) \| ([0-9.]+) \| [0-9,]+ \| [0-9,]+ \| [0-9,]+ \|")


def output_of(command, build):
    """Returns what a shell command prints at the root of the tree with the built tools on the path."""
    script = f'PATH="$1/tools:$PATH" && {command}'
    done = subprocess.run(["/bin/sh", "-c", script, "sh", str(build)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"requote.py: exit code {done.returncode}: {command}")
    return done.stdout


def quick_start_output(block, build):
    """Returns what the quick start in Python prints, or the block as it is if the package was not built."""
    if not list(build.glob("python/tessera/_core.*.so")):
        print("requote.py: there is no Python package in this build; its output stays as it is", file=sys.stderr)
        return block
    quick_start = [sys.executable, "-B", str(ROOT / "examples/python/quick_start.py")]
    environment = {**os.environ, "PYTHONPATH": str(build / "python")}
    return subprocess.run(quick_start, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def console_block(block, build):
    """Returns a console block whose commands are followed by their present output."""
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{output_of(command, build)}" for command in commands)


def table_row(row, build):
    """Returns a row of the table of docs/start.md with the planned, simulated and dense cycles of today."""
    outputs, inputs, batch, block, density = row.groups()
    out = output_of(
        f"sparse_fc_layer --single-phase fwd --output-size {outputs} --input-size {inputs}"
        f" --batch-size {batch} --block-size {block} --density {density}", build)
    simulated, planned = re.search(r" total +\d+ +([0-9,]+) +([0-9,]+)", out).groups()
    dense = re.search(r"dense \(([0-9,]+), ", out).group(1)
    return f"| {outputs} x {inputs} x {batch} | {block} | {density} | {planned} | {simulated} | {dense} |"


def requote(page, build):
    """Rewrites one page and says whether it changed."""
    old = page.read_text()
    new = re.sub(r"(?<=```console\n)(.*?)(?=```)", lambda m: console_block(m[0], build), old, flags=re.S)
    if page == ROOT / "docs/start.md":
        examples = iter(EXAMPLES)
        new = re.sub(r"(?<=```text\n)(.*?)(?=```)",
                     lambda _: output_of(str(build / "examples" / next(examples)), build), new, flags=re.S)
        new = TABLE_ROW.sub(lambda row: table_row(row, build), new)
    new = re.sub(r"(?<=```output\n)(.*?)(?=```)", lambda m: quick_start_output(m[0], build), new, flags=re.S)
    if new != old:
        page.write_text(new)
        print(page.relative_to(ROOT))


def main():
    """Requotes every page that tests/docs checks."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        requote(page, build)


if __name__ == "__main__":
    main()

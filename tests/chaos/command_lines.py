"""Random command lines from the programs' own tables of options, with values that are mostly legal."""

import re

CHOICES = {
    "--single-phase": ["all", "fwd", "bwd", "wu"],
    "--data-type": ["float", "half", "bfloat16"],
    "--partials-type": ["float", "half"],
    "--machine": ["gc200", "bow", "mk1", "host", "machine.json"],
    "--dense": ["never", "always", "auto"],
    "--on-no-fit": ["fail", "best-effort"],
    "--pattern": ["uniform", "banded", "rowwise", "power-law", "saw-tooth", "2:4", "1:3", "5:4", "n:m"],
    "--matmul-options": ['{"metaInfoBucketOversizeProportion": 0.1}', '{"partitioner.forceBucketSpills": true}',
                         '{"sharedBuckets": false}', '{"popLibsParity": true}', '{"searchLimit": 3}',
                         '{"searchLimit": 1e999}', "{", '{"x": 1, "x": 2}'],
    "--plan-constraints": ['{"partition": {"x": 2}}', '{"useDense": true}', '{"useDense": false}',
                           '{"exchange": {"gradWExchangeBuckets": true}}', '{"partition": {"z": 0}}', "[]"],
    "--inject": ["tile=0,step=1,bit=3", "tile=1,step=2,bit=70000,pass=bwd", "tile=4294967296,step=1,bit=1", "bit=x"],
    "--weighted-area-begin": ["{0,0}", "{2,3}", "4,4", "{9999,1}"],
    "--weighted-area-end": ["{8,8}", "{5,900}", "{0,0}"],
    "--block-size": ["1", "2", "4", "{2,3}", "8", "16", "{1,4}", "4096", "0", "{2,"],
}
FILES = ["weights.mtx", "weights.smtx", "mask.txt", "damaged.npz", "empty.npy", "no-such-file.mtx", ".", "/dev/null", ""]
JUNK = ["", "-1", "0", "1e999", "nan", "inf", "0x10", "010", "9" * 30, "\x1b[31m", "é", "{}", "--", "a" * 300, "1,2,3"]


def options_of(chaos, program, command):
    """Return the options of a program's help page as pairs of a name and the type of its value ("" for a switch)."""
    page = chaos.run([program, *command, "--help"]).out
    found = re.findall(r"^  (?:-\w,)?(--[\w-]+)(?: ([A-Z][\w.]*)([^\n]*))?$|^  (?:-\w,)?(--[\w-]+) {2,}", page,
                       re.MULTILINE)
    options = {}
    for name, kind, rest, switch in found:
        is_value = kind not in ("", "Excludes") and not kind.islower()
        options[name or switch] = kind + rest if is_value else ""
    for name in ("--help", "--version", "--generate", "--config", "--variable-seed"):
        options.pop(name, None)
    return list(options.items())


def value_of(chaos, name, kind, folder):
    """Return a value for an option: nine in ten are legal in form."""
    draw = chaos.random
    if draw.random() < 0.08:
        return draw.choice(JUNK)
    if name in CHOICES:
        return draw.choice(CHOICES[name])
    if "DIR" in kind:
        return draw.choice([str(folder / "out"), str(folder / "weights.mtx" / "x"), "/proc/nowhere", str(folder)])
    if "FILE" in kind or "PATH" in kind:
        if name in ("--trace", "--html", "--output", "-o"):
            return draw.choice([str(folder / "result.json"), str(folder / "missing" / "x.html"), "/dev/full"])
        return draw.choice([str(folder / file) if file[:1] not in ("", "/", ".") else file for file in FILES])
    if "FLOAT" in kind:
        return draw.choice(["0", "1", "0.5", f"{draw.random():.3f}", "1e-9", "-0.5", "2"])
    if name == "--threads":
        return str(draw.choice([1, 2, 3]))
    if "INT" in kind:
        return str(draw.choice([1, 2, 3, 7, 16, draw.randrange(1, 300), draw.randrange(1, 300), 2**31 - 1, 2**31]))
    return draw.choice(["fwd", "text", "1", *JUNK])


def write_inputs(folder):
    """Write the files that random command lines name."""
    (folder / "weights.mtx").write_text("%%MatrixMarket matrix coordinate real general\n4 6 3\n1 2 0.5\n3 6 -2\n4 1 1\n")
    (folder / "weights.smtx").write_text("4, 6, 3\n0 1 1 2 3\n1 5 0\n")
    (folder / "mask.txt").write_text("2 3\n1 0 1\n0 1 0\n")
    (folder / "damaged.npz").write_bytes(b"PK\x03\x04" + b"\0" * 60)
    (folder / "empty.npy").write_bytes(b"")
    (folder / "machine.json").write_text('{"base": "gc200", "tiles": 7}')


def draw_command(chaos, tables, folder):
    """Draw a program, its sizes or a file, and up to six options."""
    draw = chaos.random
    command, options = draw.choice(tables)
    words = list(command)
    chosen = dict(draw.sample(options, min(len(options), draw.randrange(7))))
    needed = dict(options)
    if draw.random() < 0.9 and "--matrix" not in chosen:
        for name in ("--input-size", "--output-size", "--density"):
            if name in needed:
                chosen[name] = needed[name]
        if "--tiles-per-ipu" in needed and draw.random() < 0.8:
            chosen["--tiles-per-ipu"] = "INT"
    if "train" in command:  # the whole data set would take minutes
        words += ["--images=64", "--epochs=1"]
        chosen = {name: kind for name, kind in chosen.items() if name not in ("--images", "--epochs")}
    for name, kind in chosen.items():
        words.append(name)
        if kind:
            value = value_of(chaos, name, kind, folder)
            words[-1:] = [f"{name}={value}"] if draw.random() < 0.3 else [name, value]
    return [word.replace("\0", "") for word in words]


def run(chaos):
    """Run random command lines and check how each of them ends."""
    layer, tessera = chaos.program("sparse_fc_layer"), chaos.program("tessera")
    tables = [([layer], options_of(chaos, layer, []))] * 5
    for command in ("plan", "run", "convert", "compare", "sweep", "crossover", "advise", "matmul", "network",
                    "report", "train"):
        tables.append(([tessera, command], options_of(chaos, tessera, [command])))
    chaos.expect(all(options for _, options in tables), "a help page has no options", chaos.run([layer, "--help"]))
    while chaos.goes_on():
        folder = chaos.new_folder()
        write_inputs(folder)
        command = draw_command(chaos, tables, folder)
        outcome = chaos.run(command, cwd=folder)
        codes = [0, 2, 3, 4]
        if any(word.startswith(("--inject", "--threshold")) for word in command):
            codes.append(1)
        if re.search(r"enough memory|written|cannot write", outcome.err):
            codes.append(6)
        if outcome.code == 1 and "compare" in command:
            codes.append(1)
        chaos.expect_documented_end(outcome, codes)

"""Runs without memory, disk, permission or a reader: an error is reported, and no torn file is left."""

import os
import resource

from support import read_npy


def sizes(chaos):
    """Return the words of a small random layer."""
    draw = chaos.random
    return ["--input-size", draw.randrange(1, 200), "--output-size", draw.randrange(1, 200), "--density",
            f"{draw.random():.2f}", "--batch-size", draw.randrange(1, 20), "--tiles-per-ipu", draw.randrange(2, 32),
            "--seed", draw.randrange(1000)]


def expect_whole_files(chaos, folder, outcome):
    """Check that every file in a folder of results is complete."""
    for path in folder.rglob("*") if folder.is_dir() else []:
        if path.suffix == ".npy":
            try:
                read_npy(path)
            except (ValueError, IndexError, KeyError, AttributeError) as torn:
                chaos.find(f"a file is torn ({torn})", outcome)
        if path.suffix in (".json", ".html", ".npz") and path.stat().st_size == 0:
            chaos.find(f"{path.name} is empty", outcome)


def little_memory(chaos):
    """Limit the address space to what the loader needs and somewhat more."""
    limit = chaos.random.randrange(60 << 20, 800 << 20)
    outcome = chaos.run([chaos.program("sparse_fc_layer"), *sizes(chaos)], {resource.RLIMIT_AS: limit})
    loads = "error while loading shared libraries" not in outcome.err
    if loads:
        chaos.expect_documented_end(outcome, (0, 2, 4, 6))


def full_disk(chaos):
    """Limit the length of files; the signal that this raises is ignored as on a disk without quota."""
    folder = chaos.new_folder()
    limit = chaos.random.randrange(0, 20000)
    outcome = chaos.run([chaos.program("sparse_fc_layer"), *sizes(chaos), "--output-dir", folder / "out", "--html",
                         folder / "page.html", "-q"], {resource.RLIMIT_FSIZE: limit})
    chaos.expect_documented_end(outcome, (2, 4, 6))
    expect_whole_files(chaos, folder, outcome)


def read_only_folder(chaos):
    """Write to a folder without permission, or, as root, to one that nobody can write to."""
    folder = chaos.new_folder() / "closed"
    folder.mkdir(mode=0o500)
    target = "/proc/self" if os.geteuid() == 0 else str(folder)
    option = chaos.random.choice([["--output-dir", target + "/out"], ["--html", target + "/page.html"],
                                  ["--trace", target + "/trace.json"]])
    outcome = chaos.run([chaos.program("sparse_fc_layer"), *sizes(chaos), *option])
    chaos.expect_documented_end(outcome, (2, 4, 6))


def full_device(chaos):
    """Write to the device that is always full."""
    with open("/dev/full", "wb") as full:
        outcome = chaos.run([chaos.program("sparse_fc_layer"), *sizes(chaos)], stdout=full)
    chaos.expect_documented_end(outcome, (4, 6))


def closed_pipe(chaos):
    """Close the reading end of the output before the program writes."""
    reader, writer = os.pipe()
    os.close(reader)
    outcome = chaos.run([chaos.program("sparse_fc_layer"), *sizes(chaos), "--json"], stdout=writer)
    os.close(writer)
    chaos.expect(outcome.code in (4, 6, 141, -13), "a closed pipe is not noticed", outcome)


def run(chaos):
    """Take away one resource after the other."""
    trials = [little_memory, full_disk, read_only_folder, full_device, closed_pipe]
    while chaos.goes_on():
        trials[chaos.trials % len(trials)](chaos)

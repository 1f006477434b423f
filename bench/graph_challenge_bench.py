#!/usr/bin/env python3
"""GraphChallenge's 30 layers on one core: our host layer beside SciPy's sparse products.

Usage: graph_challenge_bench.py PROGRAM FOLDER [--bars] [--runs N]
  PROGRAM  examples/graph_challenge, built for release
  FOLDER   the unpacked network

Both count the processor time of their one thread, and of it what lies between reading the files and the published images: ours encodes every layer,
SciPy's matrices are made while reading. Every run's images are compared with the published ones.
--bars: one line a bar (name, figure, bar, ok or short), exit 1 when one is short.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import time

# Before NumPy starts threads of its own.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

NEURONS, LAYERS, BIAS, CAP = 1024, 30, -0.3, 32
RATE = re.compile(r"end to end: ([0-9.]+) ms, ([0-9.]+) useful GFLOP/s")


def host_run(program, folder, data_type):
    """Milliseconds end to end and useful GFLOP/s of our program on one thread."""
    words = [program, folder, "--machine", "host", "--data-type", data_type, "--threads", "1"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = RATE.search(done.stdout)
    return float(found[1]), float(found[2])


class SciPyNetwork:
    """The network as NumPy and SciPy users write it, in float."""

    def __init__(self, folder):
        import numpy
        from scipy import io, sparse

        self.numpy = numpy
        path = f"{folder}/n{NEURONS}-l%d.mtx"
        read = [io.mmread(path % layer) for layer in range(1, LAYERS + 1)]
        self.weights = [sparse.csr_matrix(w.T, dtype=numpy.float32) for w in read]
        images = io.mmread(f"{folder}/sparse-images-{NEURONS}_subset.mtx")
        self.images = numpy.ascontiguousarray(images.T.toarray(), dtype=numpy.float32)
        answer = io.mmread(f"{folder}/neuron{NEURONS}-l120-categories_subset.mtx").tocsr()
        self.published = numpy.flatnonzero(numpy.diff(answer.indptr))
        nonzeros = sum(w.nnz for w in self.weights)
        self.flops = 2.0 * nonzeros * self.images.shape[1]

    def with_dense_images(self):
        y = self.images
        for weights in self.weights:
            y = weights @ y
            y += self.numpy.float32(BIAS)
            self.numpy.clip(y, 0, CAP, out=y)
        return self.numpy.flatnonzero((y > 0).any(axis=0))

    def with_sparse_images(self):
        """As GraphChallenge's own reference: values that become 0 are dropped."""
        from scipy import sparse

        y = sparse.csr_matrix(self.images)
        for weights in self.weights:
            y = weights @ y
            y.data += self.numpy.float32(BIAS)
            self.numpy.clip(y.data, 0, CAP, out=y.data)
            y.eliminate_zeros()
        return self.numpy.flatnonzero(y.getnnz(axis=0))

    def milliseconds(self, run):
        start = time.thread_time()
        alive = run()
        seconds = time.thread_time() - start
        if list(alive) != list(self.published):
            sys.exit("SciPy does not find the published images")
        return 1e3 * seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--bars", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    try:
        network = SciPyNetwork(arguments.folder)
    except ImportError:
        sys.exit("python3-scipy is missing: nothing to compare with")
    median = statistics.median
    # In turns, so that a neighbour's load falls on all of them.
    turns = range(arguments.runs)
    times = [(host_run(arguments.program, arguments.folder, "float"),
              host_run(arguments.program, arguments.folder, "half"),
              network.milliseconds(network.with_dense_images),
              network.milliseconds(network.with_sparse_images)) for _ in turns]
    scipy = {"SciPy, dense images": median(t[2] for t in times),
             "SciPy, sparse images": median(t[3] for t in times)}
    short = False
    for name, at in (("host, float", 0), ("host, half", 1)):
        ours = median(t[at][0] for t in times)
        rate = median(t[at][1] for t in times)
        print(f"{name:<28}{ours:>10.1f} ms {rate:>8.2f} useful GFLOP/s")
        if arguments.bars:
            for way, taken in scipy.items():
                gain = taken / ours
                short |= gain < 5
                print(f"{name + ' by ' + way:<44}{gain:>8.2f}{5:>8.2f} "
                      f"{'ok' if gain >= 5 else 'short'}")
    for name, taken in scipy.items():
        print(f"{name:<28}{taken:>10.1f} ms {network.flops / taken * 1e-6:>8.2f} useful GFLOP/s")
    return int(short)


if __name__ == "__main__":
    sys.exit(main())

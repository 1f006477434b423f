"""Random layers on random machines, compared value by value with plain Python, or with SciPy where it is installed."""

import struct

from support import read_npy, write_npy

try:
    import scipy.sparse
except ImportError:
    scipy = None

UNIT = {"float": 2.0**-24, "half": 2.0**-11, "bfloat16": 2.0**-8}  # the rounding unit of the results


def as_float(value):
    """Round to single precision, which the weights of a layer have."""
    return struct.unpack("f", struct.pack("f", value))[0]


def as_type(value, data_type):
    """Round to the type of a layer, so that the reference multiplies the same numbers."""
    if data_type == "half":
        return struct.unpack("e", struct.pack("e", value))[0]
    if data_type == "bfloat16":
        (bits,) = struct.unpack("I", struct.pack("f", value))
        bits += 0x7FFF + (bits >> 16 & 1)
        return struct.unpack("f", struct.pack("I", bits & 0xFFFF0000))[0]
    return as_float(value)


class Layer:
    """A random layer with its weights by place, its input, and the words of its command line."""

    def __init__(self, chaos):
        draw = chaos.random
        most = 300 if scipy else 60
        self.type = draw.choice(["float", "float", "half", "bfloat16"])
        self.rows, self.cols = draw.randrange(1, most), draw.randrange(1, most)
        self.batch = draw.choice([1, 2, 3, 7, 16, draw.randrange(1, 40)])
        density = draw.choice([0, 0.05, 0.3, 1, draw.random()])
        self.weights = {(r, c): as_type(draw.uniform(-1, 1), self.type) for r in range(self.rows)
                        for c in range(self.cols) if draw.random() < density}
        self.input = [as_type(draw.uniform(-1, 1), self.type) for _ in range(self.cols * self.batch)]
        self.words = ["--data-type", self.type, "--block-size", draw.choice(["1", "1", "2", "4", "{2,3}", "8"]),
                      "--threads", draw.choice(["1", "2", "3"]), "--single-phase", draw.choice(["all", "fwd", "bwd", "wu"])]
        if draw.random() < 0.3:
            self.words += ["--machine", "host", "--dense", draw.choice(["never", "always"])]
        else:
            self.words += ["--machine", draw.choice(["gc200", "mk1"]), "--tiles-per-ipu", str(draw.randrange(1, 65))]
            self.words += draw.choice([[], ["--isolate"], ["--self-check"], ["--on-no-fit", "best-effort"],
                                       ["--matmul-options", '{"partitioner.forceBucketSpills": true}']])

    def write(self, folder):
        """Write the weights and the input to files, and return the words that name them."""
        entries = list(self.weights.items())
        lines = [f"{r + 1} {c + 1} {value!r}" for (r, c), value in entries]
        text = f"%%MatrixMarket matrix coordinate real general\n{self.rows} {self.cols} {len(lines)}\n"
        (folder / "weights.mtx").write_text(text + "".join(line + "\n" for line in lines))
        write_npy(folder / "input.npy", (self.cols, self.batch), self.input, "f")
        return ["--matrix", folder / "weights.mtx", "--input", folder / "input.npy"]

    def products(self):
        """Return the exact results and the sums of magnitudes, both [rows][batch] in one list."""
        size = self.rows * self.batch
        exact, magnitude = [0.0] * size, [0.0] * size
        if scipy and self.weights:
            places, values = zip(*self.weights.items())
            rows, cols = zip(*places)
            matrix = scipy.sparse.csr_matrix((values, (rows, cols)), shape=(self.rows, self.cols))
            dense = [self.input[c * self.batch : (c + 1) * self.batch] for c in range(self.cols)]
            exact = [v for row in (matrix @ dense).tolist() for v in row]
            dense = [[abs(v) for v in row] for row in dense]
            magnitude = [v for row in (abs(matrix) @ dense).tolist() for v in row]
            return exact, magnitude
        for (r, c), weight in self.weights.items():
            for z in range(self.batch):
                product = weight * self.input[c * self.batch + z]
                exact[r * self.batch + z] += product
                magnitude[r * self.batch + z] += abs(product)
        return exact, magnitude


def run(chaos):
    """Run random layers and compare their forward results with the reference."""
    while chaos.goes_on():
        folder, layer = chaos.new_folder(), Layer(chaos)
        command = [chaos.program("sparse_fc_layer"), *layer.write(folder), *layer.words, "--output-dir", folder / "out", "-q"]
        outcome = chaos.run(command)
        chaos.expect_documented_end(outcome, (0, 2, 4))
        if outcome.code != 0:
            continue
        shape, got = read_npy(folder / "out" / "q.npy")
        chaos.expect(shape == (layer.rows, layer.batch), f"results have the shape {shape}", outcome)
        exact, magnitude = layer.products()
        # Sums are single precision; a few dozen partial sums may be added to one result per input.
        sums = (layer.cols + 100) * UNIT["float"]
        wrong = sum(not abs(g - e) <= sums * m + UNIT[layer.type] * abs(e) * 1.01 + 1e-7
                    for g, e, m in zip(got, exact, magnitude))
        chaos.expect(wrong == 0, f"{wrong} results are beyond their bound", outcome)

"""Entries a second of SciPy's COO to CSR (sorted columns): scipy_rate.py ENTRIES SIDE GAP.

The entries are the places 0 .. SIDE * SIDE - 1 in steps of GAP, moved by less than GAP and shuffled.
"""
import sys
import time

import numpy
import scipy.sparse

entries, side, gap = (int(argument) for argument in sys.argv[1:4])
random = numpy.random.default_rng(1)
places = numpy.arange(entries, dtype=numpy.int64) * gap + random.integers(0, gap, entries)
random.shuffle(places)
rows = (places // side).astype(numpy.int32)
columns = (places % side).astype(numpy.int32)
matrix = scipy.sparse.coo_matrix((numpy.ones(entries, numpy.float32), (rows, columns)), (side, side))
times = []
for _ in range(3):
    begin = time.process_time()
    csr = matrix.tocsr()
    csr.sort_indices()
    times.append(time.process_time() - begin)
print(scipy.__version__, entries / min(times))

"""Seconds of SciPy's product of a CSR matrix and a dense one: scipy_product.py SIDE DENSITY BATCH RUNS.

The matrix has SIDE x SIDE elements of float, equally many in each row at random columns. The median of
RUNS processor times follows the version.
"""
import sys
import time

import numpy
import scipy.sparse

side, batch, runs = int(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])
random = numpy.random.default_rng(1)
in_row = max(1, round(side * float(sys.argv[2])))
columns = numpy.concatenate([numpy.sort(random.choice(side, in_row, replace=False)) for _ in range(side)])
begin = numpy.arange(side + 1, dtype=numpy.int32) * in_row
values = random.standard_normal(side * in_row, dtype=numpy.float32)
matrix = scipy.sparse.csr_matrix((values, columns.astype(numpy.int32), begin), (side, side))
dense = random.standard_normal((side, batch), dtype=numpy.float32)
times = []
for _ in range(runs + 1):
    start = time.process_time()
    result = matrix @ dense
    times.append(time.process_time() - start)
print(scipy.__version__, sorted(times[1:])[runs // 2])

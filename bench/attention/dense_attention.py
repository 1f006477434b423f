"""Seconds of dense attention by the fastest libraries here: dense_attention.py SEQUENCE HEAD RUNS.

One head of floats on one thread: scores Q * K^T, softmax of the rows, output P * V. The products are those
of torch and of NumPy's OpenBLAS, the softmax is torch's; each part is timed alone, in turns, and the median
processor time of the faster library of each part is printed: versions, scores, softmax, output, and the
whole of torch's own call of attention, or 0 if it has none.
"""
import os
import sys
import time

os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")  # 0.3.21 does not know newer processors
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy  # noqa: E402  the variables come first
import torch  # noqa: E402

torch.set_num_threads(1)
sequence, head, runs = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
random = numpy.random.default_rng(1)
q, k, v = (random.standard_normal((sequence, head), dtype=numpy.float32) for _ in range(3))
tq, tk, tv = (torch.from_numpy(a) for a in (q, k, v))
scores, output = numpy.empty((sequence, sequence), numpy.float32), numpy.empty_like(q)
tscores, toutput = torch.from_numpy(scores), torch.from_numpy(output)
scale = head ** -0.5
probabilities = torch.softmax(tq @ tk.T * scale, 1)
array = probabilities.numpy()
soft = torch.empty_like(tscores)
whole = getattr(torch.nn.functional, "_scaled_dot_product_attention", None)

bodies = {
    "scores torch": lambda: torch.addmm(tscores, tq, tk.T, beta=0, alpha=scale, out=tscores),
    "scores numpy": lambda: numpy.matmul(q, k.T, out=scores),
    "softmax torch": lambda: torch._softmax(tscores, 1, False, out=soft),  # torch.softmax allocates
    "output torch": lambda: torch.mm(probabilities, tv, out=toutput),
    "output numpy": lambda: numpy.matmul(array, v, out=output),
}
if whole is not None:
    bodies["whole torch"] = lambda: whole(tq[None], tk[None], tv[None])
times = {name: [] for name in bodies}
for run in range(runs + 1):
    for name, body in bodies.items():
        start = time.process_time()
        body()
        if run > 0:
            times[name].append(time.process_time() - start)


def fastest(part):
    medians = [sorted(t)[len(t) // 2] for name, t in times.items() if name.startswith(part)]
    return min(medians, default=0)


print(f"torch-{torch.__version__}+numpy-{numpy.__version__}", *(fastest(p) for p in ("scores", "softmax", "output", "whole")))

"""Sparse fully connected layers: fast on this computer, and modelled on machines of many tiles.

    import numpy as np, scipy.sparse as sp, tessera as ts
    w = sp.random(1024, 784, 0.1, "csr", np.float32)
    layer = ts.Layer(w, batch=128)
    q = layer @ s                        # s is [784, 128], q is [1024, 128]

`help(ts.Layer)` describes the layer. `tessera.torch` has modules for PyTorch.
"""

from tessera import _core  # before all others: it refuses subinterpreters, in which NumPy of Python 3.13 aborts
from tessera import train
from tessera._core import (
    BadInput,
    CheckFailed,
    Error,
    HostPlan,
    Internal,
    InvalidArgument,
    LimitExceeded,
    Machine,
    NoSolution,
    Plan,
    Run,
    __version__,
)
from tessera._layer import Layer, PassTimes, Rounding
from tessera._machines import plan, read, simulate, write
from tessera._models import Model, TensorInfo, read_model, write_model
from tessera._products import matmul, sddmm, spmm
from tessera._study import Crossover, advise, crossover, sweep, verdict

__all__ = [
    "BadInput",
    "CheckFailed",
    "Crossover",
    "Error",
    "HostPlan",
    "Internal",
    "InvalidArgument",
    "Layer",
    "LimitExceeded",
    "Machine",
    "Model",
    "NoSolution",
    "PassTimes",
    "Plan",
    "Rounding",
    "Run",
    "TensorInfo",
    "advise",
    "crossover",
    "matmul",
    "plan",
    "read",
    "read_model",
    "sddmm",
    "simulate",
    "spmm",
    "sweep",
    "train",
    "verdict",
    "write",
    "write_model",
]

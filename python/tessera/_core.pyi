import os
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
import numpy as np

class Error(Exception): ...
class InvalidArgument(Error, ValueError): ...
class BadInput(Error, ValueError): ...
class LimitExceeded(Error, MemoryError): ...
class NoSolution(Error, RuntimeError):
    plan: Plan | None
    remedies: Sequence[str]

class CheckFailed(Error, RuntimeError): ...
class Internal(Error, RuntimeError): ...

class Layer:
    def __init__(
        self,
        indptr: NDArray[Any],
        indices: NDArray[Any],
        data: NDArray[Any],
        rows: int,
        cols: int,
        batch: int,
        threads: int,
        dtype: str,
        batch_first: bool,
        grad_input: bool,
        grad_weights: bool,
    ) -> None: ...
    def forward(self, s: Any, out: Any = ..., bias: Any = ...) -> Any: ...
    def grad_input(self, dq: Any, out: Any = ...) -> Any: ...
    def grad_weights(self, dq: Any, s: Any, out: Any = ...) -> Any: ...
    def set_values(self, values: Any) -> None: ...
    # Addresses and sizes (src/layer.hpp).
    def _train_forward(
        self,
        batch: int,
        x: int,
        row_stride: int,
        col_stride: int,
        s: int,
        q: int,
        bias: int,
        values: int,
        count: int,
        /,
    ) -> None: ...
    def _train_backward(
        self,
        batch: int,
        dq: int,
        row_stride: int,
        col_stride: int,
        dq_rows: int,
        s: int,
        dx: int,
        gradients: int,
        bias_gradients: int,
        count: int,
        /,
    ) -> None: ...
    def _values(self) -> NDArray[np.float32]: ...
    def _arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]: ...
    def _update(
        self,
        removed_rows: NDArray[Any],
        removed_cols: NDArray[Any],
        added_rows: NDArray[Any],
        added_cols: NDArray[Any],
    ) -> None: ...
    def _set_weights(
        self, indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], rows: int, cols: int
    ) -> None: ...
    def _rewire(
        self,
        method: str,
        fraction: float,
        dq: list[Any],
        s: list[Any],
        seed: int,
        pool: str,
        exclude: str,
        factor: float,
    ) -> NDArray[np.int64]: ...
    def _rounding(self, call: str) -> tuple[float, float, int]: ...
    def _times(self) -> tuple[float, float, float]: ...
    @property
    def nnz(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def block(self) -> tuple[int, int]: ...
    @property
    def batch(self) -> int: ...
    @property
    def threads(self) -> int: ...

def _rewire_fraction(step: int, fraction: float, begin: int, end: int, every: int) -> float: ...
def _check_method(method: str, pool: str, exclude: str, factor: float) -> None: ...
def _carried(origin: NDArray[np.int64], numbers: Any, count: int, area: int) -> NDArray[np.float32]: ...
def _random_pattern(
    rows: int, cols: int, block_rows: int, block_cols: int, density: float, seed: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]: ...

def _spmm(
    format: str,
    arrays: tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]],
    rows: int,
    cols: int,
    b: Any,
    out: Any,
    alpha: float,
    beta: float,
    bias: Any,
    activation: str,
    threads: int,
) -> None: ...
def _sddmm(
    format: str,
    arrays: tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]],
    rows: int,
    cols: int,
    a: Any,
    b: Any,
    out: Any,
    alpha: float,
    beta: float,
    threads: int,
) -> None: ...

class Machine:
    def __init__(self, name: str) -> None: ...
    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Machine: ...
    @staticmethod
    def from_json(text: str) -> Machine: ...
    @staticmethod
    def names() -> list[str]: ...
    def to_json(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def tiles(self) -> int: ...
    @property
    def clock_hz(self) -> float: ...
    @property
    def tile_memory_bytes(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]

class Plan:
    def explain(self) -> str: ...
    def explanation_json(self) -> str: ...
    def to_json(self) -> str: ...
    def _repr_html_(self) -> str: ...
    @property
    def request(self) -> str: ...
    @property
    def cycles(self) -> int: ...
    @property
    def is_dense(self) -> bool: ...
    @property
    def dense_cycles(self) -> int | None: ...
    @property
    def tile_bytes(self) -> int: ...
    @property
    def tiles(self) -> int: ...
    @property
    def partition(self) -> dict[str, int]: ...
    @property
    def machine(self) -> Machine: ...

class Run:
    def table(self) -> str: ...
    def to_json(self) -> str: ...
    def to_csv(self) -> str: ...
    def to_html(self, path: str | os.PathLike[str]) -> None: ...
    def _repr_html_(self) -> str: ...
    @property
    def cycles(self) -> int: ...
    @property
    def pass_cycles(self) -> dict[str, int]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def ok(self) -> bool: ...
    @property
    def tile_bytes(self) -> int: ...
    @property
    def request(self) -> str: ...
    @property
    def machine(self) -> Machine: ...
    @property
    def results(self) -> dict[str, NDArray[Any]]: ...

def _plan(
    groups: int,
    rows: int,
    cols: int,
    batch: int,
    block: tuple[int, int],
    density: float,
    dtype: str,
    backward: bool,
    machine: Machine,
    options: str,
) -> Plan: ...
def _dense_cycles(
    rows: int, cols: int, batch: int, dtype: str, backward: bool, machine: Machine, options: str
) -> int: ...
def _simulate(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[Any],
    rows: int,
    cols: int,
    s: Any,
    dq: Any,
    dtype: str,
    machine: Machine,
    options: str,
    threads: int,
) -> Run: ...
def _read(
    path: str,
) -> tuple[tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]], tuple[int, int]]: ...
def _write(
    path: str, indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], rows: int, cols: int
) -> None: ...

class _Trainer:
    def __init__(
        self,
        x: NDArray[np.uint8],
        y: NDArray[np.uint8],
        test_x: NDArray[np.uint8],
        test_y: NDArray[np.uint8],
        sizes: list[int],
        method: str,
        density: float,
        distribution: str,
        block: int,
        batch: int,
        epochs: int,
        rate: float,
        fraction: float,
        every: int,
        seed: int,
        threads: int,
    ) -> None: ...
    def epoch(self) -> dict[str, Any]: ...
    def setup_seconds(self) -> float: ...
    def layers(self) -> int: ...
    def layer(
        self, index: int
    ) -> tuple[
        tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]], tuple[int, int], NDArray[np.float32]
    ]: ...

import os
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
import numpy as np

__version__: str

# A matrix as the arrays of its library: Matrix of _weights.py.
_Matrix = tuple[str, NDArray[Any], NDArray[Any], NDArray[np.float32], tuple[int, int]]

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
        matrix: _Matrix,
        batch: int,
        threads: int,
        dtype: str,
        batch_first: bool,
        grad_input: bool,
        grad_weights: bool,
    ) -> None: ...
    def forward(self, s: Any, out: Any = ..., bias: Any = ..., activation: str | None = ...) -> Any: ...
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
        relu: bool,
        values: int,
        count: int,
        stamp: int,
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
        q: int,
        values: int,
        count: int,
        stamp: int,
        /,
    ) -> None: ...
    def _forward_with(self, s: Any, out: Any, bias: Any, values: int, count: int, stamp: int, /) -> Any: ...
    def _grad_input_with(self, dq: Any, out: Any, values: int, count: int, stamp: int, /) -> Any: ...
    def _values(self) -> NDArray[np.float32]: ...
    def _arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]: ...
    def _update(
        self,
        removed_rows: NDArray[Any],
        removed_cols: NDArray[Any],
        added_rows: NDArray[Any],
        added_cols: NDArray[Any],
    ) -> None: ...
    def _set_weights(self, matrix: _Matrix, /) -> None: ...
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
        search: str,
        blocks: int,
        min_per_neuron: int,
        constant_fan_in: bool,
        rule: str,
        numbers: list[float],
        steps: int,
    ) -> tuple[NDArray[np.int64], list[NDArray[np.float32]]]: ...
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
def _check_method(method: str, pool: str, exclude: str, factor: float, search: str) -> None: ...
def _scheduled_density(
    step: int,
    first: float,
    last: float,
    begin: int,
    end: int,
    curve: str,
    first_rewire: int,
    last_rewire: int,
    every: int,
) -> float: ...
def _carried(origin: NDArray[np.int64], numbers: Any, count: int, area: int) -> NDArray[np.float32]: ...
def _erdos_renyi(sizes: list[tuple[int, int]], block: tuple[int, int], density: float) -> list[float]: ...
def _random_pattern(
    rows: int,
    cols: int,
    block_rows: int,
    block_cols: int,
    density: float,
    seed: int,
    min_per_neuron: int = 0,
    constant_fan_in: bool = False,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]: ...

def _spmm(
    matrix: _Matrix,
    a_transposed: bool,
    b: Any,
    b_transposed: bool,
    out: Any,
    out_transposed: bool,
    alpha: float,
    beta: float,
    bias: Any,
    activation: str,
    threads: int,
) -> Any: ...
def _sddmm(
    matrix: _Matrix, a: Any, b: Any, out: Any, alpha: float, beta: float, threads: int
) -> Any: ...

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

class _Question:
    def __init__(
        self,
        sizes: list[int],
        block: tuple[int, int],
        density: float,
        dtype: str,
        backward: bool,
        machine: Machine | None,
        options: str,
    ) -> None: ...

def _verdict(question: _Question) -> str: ...
def _crossover(question: _Question) -> tuple[float, int]: ...
def _advise_file(path: str, tensor: str, question: _Question) -> str: ...
def _advise_matrix(weights: _Matrix, question: _Question) -> str: ...
def _sweep(question: _Question, over: list[tuple[str, list[float]]]) -> str: ...
def _simulate(
    matrix: _Matrix,
    s: Any,
    dq: Any,
    dtype: str,
    machine: Machine,
    options: str,
    threads: int,
) -> Run: ...
def _read(
    path: str | os.PathLike[str],
) -> tuple[tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]], tuple[int, int]]: ...
def _write_tensors(path: str | os.PathLike[str], tensors: list[tuple[str, str, list[int], bytes]]) -> None: ...
def _list_tensors(file: Any, name: str) -> list[tuple[str, str, tuple[int, ...], int, int]]: ...
def _write(path: str | os.PathLike[str], matrix: _Matrix) -> None: ...

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

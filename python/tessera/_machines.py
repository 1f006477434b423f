"""Layers on modelled machines of many tiles: plans and runs; files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

import numpy as np

from tessera import _core
from tessera._core import InvalidArgument, Machine
from tessera._options import (
    block_shape, core_dtype, number, options_text, require_one_of, seed_number, size, text, thread_count,
)
from tessera._text import html_table, si_bytes
from tessera._weights import read_matrix, within_memory

_NUMPY = {"float32": np.float32, "float16": np.float16}
_PASSES = {"all": True, "fwd": False}


def _backward(passes: str) -> bool:
    require_one_of("passes", passes, tuple(_PASSES))
    return _PASSES[passes]


def _machine(machine: str | Machine) -> Machine:
    return machine if isinstance(machine, Machine) else Machine(text("machine", machine))


def _machine_or_host(machine: str | Machine, options: Mapping[str, Any] | None) -> Machine | None:
    """Return the machine, or None for this computer, which has no options of plans."""
    if not (isinstance(machine, str) and machine == "host"):
        try:
            return _machine(machine)
        except InvalidArgument as error:
            raise InvalidArgument(f'{error}, or "host", which is this computer') from None
    if options:
        raise InvalidArgument("options are those of plans for modelled machines; this computer has none: leave them out")
    return None


def _sizes(outputs: int, inputs: int, batch: int) -> tuple[int, int, int]:
    return size("outputs", outputs), size("inputs", inputs), size("batch", batch)


@overload  # "host" is a str, too; the first signature that suits a call decides
def plan(  # type: ignore[misc]
    outputs: int, inputs: int, *, batch: int, density: float, block: int | tuple[int, int] = 1, groups: int = 1,
    dtype: str | None = None, passes: str = "all", machine: Literal["host"], options: None = None,
) -> _core.HostPlan: ...
@overload
def plan(
    outputs: int, inputs: int, *, batch: int, density: float, block: int | tuple[int, int] = 1, groups: int = 1,
    dtype: str | None = None, passes: str = "all", machine: str | Machine = "gc200",
    options: Mapping[str, Any] | None = None,
) -> _core.Plan: ...
def plan(
    outputs: int,
    inputs: int,
    *,
    batch: int,
    density: float,
    block: int | tuple[int, int] = 1,
    groups: int = 1,
    dtype: str | None = None,
    passes: str = "all",
    machine: str | Machine = "gc200",
    options: Mapping[str, Any] | None = None,
) -> _core.Plan | _core.HostPlan:
    """Plan a layer: how it is cut, and what each step costs.

    machine   "gc200", "bow", "mk1" or a ts.Machine; "host", which is this computer
    dtype     "float16" by default, "float32" on this computer
    passes    "all", or "fwd" for inference
    options   PopSparse's, for example {"availableMemoryProportion": 0.5}, of machines of tiles

    print(plan) shows passes and steps, plan.to_json() keeps it, and plan.explain() says what binds on a machine of
    tiles. Raises ts.NoSolution, whose `remedies` are changes that would give a plan and whose `plan` is the nearest
    one. Ctrl-C ends it.

    The ts.HostPlan of this computer has forecasts in seconds: plan.cells is the cut of each pass for the caches, and
    plan.forms has the passes of each form of the weights, as given, in larger blocks and dense, with the method that
    reads them. No pass is run.
    """
    sizes = size("groups", groups), *_sizes(outputs, inputs, batch)
    on = _machine_or_host(machine, options)
    if dtype is None:
        dtype = "float16" if on else "float32"
    layer = sizes, block_shape(block), number("density", density), core_dtype(dtype), _backward(passes)
    return _core._plan(*layer, on, options_text(options)) if on else _core._plan_on_host(*layer)


def simulate(
    weights: Any,
    s: Any = None,
    *,
    dq: Any = None,
    batch: int = 64,
    dtype: str | None = None,
    passes: str = "all",
    machine: str | Machine = "gc200",
    options: Mapping[str, Any] | None = None,
    threads: int = 1,
    seed: int = 0,
) -> _core.Run:
    """Plan, encode and run a layer on a modelled machine; every result is checked.

    weights   as of ts.Layer, float32; rounded to dtype, whose range they must not exceed
    s, dq     [inputs, batch] and [outputs, batch]; random +1 and -1 if they are None
    dtype     of the operands: "float32", "float16" or "bfloat16"; that of s by default

    run.cycles, run.seconds and run.pass_cycles are modelled; run.table() is a report, and
    run.results["fwd"], ["grad_a"] and ["grad_w"] are the results. Ctrl-C ends it.
    """
    backward = _backward(passes)
    matrix, batch = read_matrix(weights), size("batch", batch)
    if dtype is None:
        dtype = "float16" if s is None else str(getattr(s, "dtype", "float32")).rpartition(".")[2]
    kind = core_dtype(dtype)
    rng = np.random.default_rng(seed_number(seed))
    if s is None:
        s = _signs(rng, (matrix.shape[1], batch), dtype)
    if dq is None and backward:
        shape: Any = getattr(s, "shape", ())
        dq = _signs(rng, (matrix.shape[0], shape[1] if len(shape) == 2 else batch), dtype)
    return _core._simulate(
        matrix, s, dq if backward else None, kind, _machine(machine), options_text(options), thread_count(threads)
    )


def _signs(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> Any:
    with within_memory(f"operands of {shape[0]} x {shape[1]} do not fit into memory"):
        signs = rng.choice(np.array([-1, 1], np.float32), shape)
    if dtype == "bfloat16":
        return (signs.view(np.uint32) >> 16).astype(np.uint16)
    return signs.astype(_NUMPY[dtype])


def read(path: str | os.PathLike[str]) -> Any:
    """Return the matrix of a file as scipy.sparse.csr_matrix in float32.

    Formats by their endings: .smtx and .txt (a mask), whose values are 1, .mtx, .npz (SciPy's
    save_npz), .npy and .safetensors#TENSOR (dense; zeros are not stored). Numbers become the nearest
    float32; finite ones beyond them are BadInput. Places that are given twice are added up; in a file
    of a pattern, which has no values, they are one place.
    """
    import scipy.sparse

    (indptr, indices, data), shape = _core._read(path)
    return scipy.sparse.csr_matrix((data, indices, indptr), shape)


def write(path: str | os.PathLike[str], weights: Any) -> None:
    """Write a matrix, as a whole or not at all: .smtx (the pattern), .mtx or .npz."""
    _core._write(path, read_matrix(weights))


def _plan_facts(found: _core.Plan) -> dict[str, str]:
    facts = {
        "layer": found.request,
        "machine": f"{found.machine.name}, {found.tiles:,} of {found.machine.tiles:,} tiles",
        "cycles": f"{found.cycles:,}",
        "memory": f"{si_bytes(found.tile_bytes)} on the fullest tile",
    }
    if found.is_dense:
        facts["weights"] = "dense (the option planConstraints useDense False keeps them sparse)"
    if found.dense_cycles is not None:
        facts["dense"] = f"{found.dense_cycles:,} cycles"
    return facts


def _host_plan_facts(found: _core.HostPlan) -> dict[str, str]:
    return {
        "layer": found.request,
        "machine": f"{found.cpu}, {found.threads} threads",
        **{f"forecast of {name}": f"{sum(p['seconds'] for p in form.values()) * 1e3:.3g} ms" for name, form in found.forms.items()},
        "fastest": found.fastest,
    }


def _run_facts(run: _core.Run) -> dict[str, str]:
    facts = {
        "layer": run.request,
        "machine": run.machine.name,
        "cycles": f"{run.cycles:,} ({run.seconds * 1e6:.3g} us)",
        "memory": f"{si_bytes(run.tile_bytes)} on the fullest tile",
    }
    facts.update({f"cycles of {name}": f"{cycles:,}" for name, cycles in run.pass_cycles.items()})
    facts["results"] = "within their rounding bounds" if run.ok else "WRONG"
    return facts


def _machine_facts(machine: _core.Machine) -> dict[str, str]:
    return {
        "name": machine.name,
        "tiles": f"{machine.tiles:,}",
        "clock": f"{machine.clock_hz / 1e9:.3g} GHz",
        "memory": f"{si_bytes(machine.tile_memory_bytes)} a tile",
    }


def _text(kind: str, facts: dict[str, str]) -> str:
    return f"{kind}(" + "; ".join(f"{name} {fact}" for name, fact in facts.items()) + ")"


def _add_text(kind: type, facts_of: Callable[[Any], dict[str, str]]) -> None:
    """Give a class of the module in C++ its text, which is written in Python, where the other text is."""

    def text(self: Any) -> str:
        return _text(kind.__name__, facts_of(self))

    def html(self: Any) -> str:
        return html_table(kind.__name__, facts_of(self))

    setattr(kind, "__repr__", text)
    setattr(kind, "_repr_html_", html)


_add_text(_core.Machine, _machine_facts)
_add_text(_core.Plan, _plan_facts)
_add_text(_core.HostPlan, _host_plan_facts)
_add_text(_core.Run, _run_facts)

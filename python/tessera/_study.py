"""Does sparse pay: verdicts, advice, break-even densities and sweeps, the same as those of the commands."""

from __future__ import annotations

import copy
import json
import os
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tessera import _core
from tessera._core import InvalidArgument, Machine
from tessera._layer import Layer
from tessera._machines import _backward, _machine, _machine_or_host, _sizes
from tessera._models import Model, read_model, write_model
from tessera._options import (
    block_shape, core_dtype, mapping, number, options_dict, options_text, path_text, size, text,
)
from tessera._weights import is_sparse, read_matrix, within_memory

_GRID = '{"density": [0.01, 0.1]}'


def _question(
    sizes: tuple[int, int, int],
    machine: str | Machine,
    *,
    block: int | tuple[int, int] = 1,
    density: float = 1,
    dtype: str,
    passes: str,
    options: Mapping[str, Any] | None = None,
) -> _core._Question:
    return _core._Question(
        (1, *sizes), block_shape(block), number("density", density), core_dtype(dtype), _backward(passes),
        _machine_or_host(machine, options), options_text(_sparse_only(options)),
    )


def verdict(
    outputs: int,
    inputs: int,
    *,
    batch: int,
    density: float,
    block: int | tuple[int, int] = 1,
    dtype: str = "float32",
    passes: str = "fwd",
    machine: str | Machine = "host",
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return whether a random sparse layer pays beside the dense one, and what would win if it does not.

    machine   "host", which is this computer and forecast, or those of ts.plan, which are modelled
    options   those of ts.plan, of modelled machines

    "better" is "sparse", "dense", or "about equal" within the error that is stated for such costs; "text" is a
    sentence for people, and the other keys are those of a verdict in a report.
    """
    asked = _question(
        _sizes(outputs, inputs, batch), machine, block=block, density=density, dtype=dtype, passes=passes,
        options=options,
    )
    return json.loads(_core._verdict(asked))


def advise(
    weights: Any,
    *,
    batch: int,
    tensor: str = "",
    dtype: str = "float32",
    passes: str = "fwd",
    machine: str | Machine = "host",
    options: Mapping[str, Any] | None = None,
    measure: bool = False,
) -> dict[str, Any]:
    """Return the best form for weights: blocks of a size, or dense.

    weights   as of ts.Layer; the path of a file: every matrix of a .safetensors file, or `tensor` of it; what
              ts.read_model reads, or its path: a folder, shards, .onnx, compressed weights; a module of torch; or
              matrices by name, such as a state_dict
    measure   True: this computer runs every form, a second or more for each matrix, where it is else forecast

    The result is that of `tessera advise --json`: result["machines"][0]["layers"] has an entry for each matrix. A model
    and matrices by name are copied to a temporary file, dense.
    """
    asked = _question((1, 1, size("batch", batch)), machine, dtype=dtype, passes=passes, options=options)
    asked = asked.measured() if measure else asked
    if isinstance(weights, (str, os.PathLike)):
        weights = _model_or_path(path_text(weights))
    elif hasattr(weights, "named_modules"):  # a module of torch
        from tessera.torch import densify

        # A layer itself is not inside a module that could take a dense one in its place.
        weights = weights.to_dense() if hasattr(weights, "to_dense") else densify(copy.deepcopy(weights))
        weights = weights.state_dict()
    if isinstance(weights, Mapping) and not is_sparse(weights):  # as SciPy's dictionary of keys is
        return _advise_matrices(weights, text("tensor", tensor), asked)
    if isinstance(weights, str):
        return json.loads(_core._advise_file(weights, text("tensor", tensor), asked))
    return json.loads(_core._advise_matrix(read_matrix(weights), asked))


def _model_or_path(path: str) -> Any:
    """Return the model that a path has; the path if the library reads the file by itself, as it lies there."""
    if os.path.isdir(path) or path.endswith((".index.json", ".onnx", ".pt", ".pth", ".bin", ".ckpt")):
        return read_model(path)
    if not path.endswith(".safetensors") or not os.path.isfile(path):
        return path
    model = read_model(path)
    return model if any(t.form != "dense" or f"{t.name}_scale" in model for t in model.tensors) else path


def _dense_matrix(given: Mapping[str, Any], name: str) -> Any:
    """Return a matrix of a model, or of those by name, as a dense array or tensor."""
    if not isinstance(given, Model) and not is_sparse(given[name]):
        return given[name]
    matrix = given.matrix(name) if isinstance(given, Model) else Layer(given[name], dtype="float32", passes="fwd").weights
    rows, cols = matrix.shape
    with within_memory(f"{name} is {rows} x {cols}, which does not fit into memory dense; pass this sparse matrix alone"):
        return matrix.toarray()


def _advise_matrices(given: Mapping[str, Any], tensor: str, asked: _core._Question) -> dict[str, Any]:
    """Return the advice for the matrices of a model, of which a temporary copy is written, because the library reads files."""
    import tempfile  # with all it loads, a tenth of the time of `import tessera`

    if isinstance(given, Model):
        names = [name for name in given if (name == tensor if tensor else given.is_matrix(name))]
    else:
        names = [name for name in given if (name == tensor or not tensor) and len(getattr(given[name], "shape", ())) == 2]
    if not names:
        what = f"no matrix {tensor!r}" if tensor else "no matrix"
        raise InvalidArgument(f"there is {what} among {', '.join(map(str, list(given)[:20])) or 'no tensors'}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        write_model(path, {name: _dense_matrix(given, name) for name in names})
        advice: dict[str, Any] = json.loads(_core._advise_file(path, "", asked))
    advice["file"] = str(getattr(given, "path", ""))
    left_out = {*advice.get("left_out", ()), *(name for name in given if name not in names)}
    advice["left_out"] = [name for name in given if name in left_out]
    return advice


def sweep(
    over: Mapping[str, Sequence[float]],
    *,
    outputs: int = 1,
    inputs: int = 1,
    batch: int = 1,
    density: float = 0.1,
    block: int | tuple[int, int] = 1,
    dtype: str = "float32",
    passes: str = "fwd",
    machine: str | Machine = "host",
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Compare a layer with the dense one at all points of a grid, for example {"density": [0.01, 0.1]}.

    over      figures of the layer (density, block, batch, inputs, outputs) or of a modelled machine, and values
    machine   "host", which is this computer and measured, or those of ts.plan, which are modelled

    The result is that of `tessera sweep --json`; result["points"] has the figures of every point. Ctrl-C ends it.
    """
    asked = _question(
        _sizes(outputs, inputs, batch), machine, block=block, density=density, dtype=dtype, passes=passes,
        options=options,
    )
    axes = [(text("over", figure), _values(figure, values)) for figure, values in mapping("over", over, _GRID).items()]
    return json.loads(_core._sweep(asked, axes))


def _values(figure: str, values: Any) -> list[float]:
    try:
        listed = None if isinstance(values, (str, bytes, bytearray)) else iter(values)
    except TypeError:  # an array without dimensions as well
        listed = None
    if listed is None:
        raise TypeError(f"over: {figure} has {reprlib.repr(values)}; it has a list of numbers: {_GRID}")
    return [number(figure, value) for value in listed]


class Crossover(NamedTuple):
    """Where sparse stops to pay."""

    density: float  # the largest density, in thousandths, at which the sparse plan costs less
    dense_cycles: int  # of the dense plan of the same passes


def crossover(
    outputs: int,
    inputs: int,
    *,
    batch: int,
    block: int | tuple[int, int] = 1,
    dtype: str = "float16",
    passes: str = "all",
    machine: str | Machine = "gc200",
    options: Mapping[str, Any] | None = None,
) -> Crossover:
    """Return the density up to which a random sparse layer takes fewer cycles than the dense one.

    options are those of ts.plan and hold for every sparse plan; the dense one has the same share of
    memory. A batch that has no sparse plan as a whole is planned in equal parts. Raises ts.NoSolution if the dense
    layer has no plan.
    """
    asked = _question(
        _sizes(outputs, inputs, batch), _machine(machine), block=block, dtype=dtype, passes=passes, options=options
    )
    return Crossover(*_core._crossover(asked))


def _sparse_only(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options with the constraint that no plan multiplies the zeros."""
    asked = options_dict(options)
    constraints = asked.get("planConstraints", {})
    if not isinstance(constraints, Mapping):
        raise InvalidArgument(f"options: planConstraints is {reprlib.repr(constraints)}; it must be an object")
    if constraints.get("useDense") in (True, "true"):
        raise InvalidArgument(
            "options: planConstraints.useDense is true; a crossover is between sparse plans and the dense one: "
            "leave it out"
        )
    asked["planConstraints"] = {**constraints, "useDense": False}
    return asked

"""ONNX files: the dense and sparse initialisers of a graph, and how its products read them."""

from __future__ import annotations

import math
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessera._core import BadInput
from tessera._models import Model, TensorInfo, is_layer
from tessera._options import path_text
from tessera._weights import as_float32, check_claim, within_memory

_NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}


class OnnxModel(Model):
    """The initialisers of an ONNX file by their names. model[name] has the shape that the file gives.

    matrix(name) is the weight [outputs, inputs] of the products that read the initialiser: it is transposed where a
    MatMul, or a Gemm without transB, has it on the right, and multiplied by the alpha of a Gemm.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path_text(path))
        self._graph = _graph_of(self.path)
        self._dense = {tensor.name: tensor for tensor in self._graph.initializer}
        self._sparse = {tensor.values.name: tensor for tensor in self._graph.sparse_initializer}
        if len(self._dense.keys() | self._sparse.keys()) != len(self._graph.initializer) + len(self._graph.sparse_initializer):
            raise BadInput(f"{self.path}: two initialisers have the same name")
        self._infos = {info.name: info for info in self._described()}

    def _described(self) -> Iterator[TensorInfo]:
        from onnx import TensorProto

        for form, tensors in (("dense", self._dense), ("sparse", self._sparse)):
            for name, tensor in tensors.items():
                numbers = tensor if form == "dense" else tensor.values
                try:
                    kind = TensorProto.DataType.Name(numbers.data_type).lower().replace("double", "float64")
                except ValueError:
                    raise BadInput(f"{self.path}: {name!r} has the type {numbers.data_type}, which ONNX does not have") from None
                kind = "float32" if kind == "float" else kind
                if min(tensor.dims, default=0) < 0 or math.prod(tensor.dims) >= 2**63:
                    raise BadInput(f"{self.path}: {name!r} has the shape {list(tensor.dims)}")
                yield TensorInfo(name, _NAMES.get(kind, kind), tuple(tensor.dims), form, str(self.path))

    def __getitem__(self, name: str) -> NDArray[Any]:
        if self._info(name).form == "dense":
            numbers = self._numbers(name, self._dense[name])
            return numbers.astype(np.float32) if numbers.dtype == np.float16 else numbers
        values, places = self._stored_places(name)
        shape = self._infos[name].shape
        with within_memory(f"{self.path}: {name!r} is {list(shape)}, which does not fit into memory; matrix() keeps it sparse"):
            dense = np.zeros(shape, values.dtype)
        dense[tuple(places)] = values
        return dense

    def is_matrix(self, name: str) -> bool:
        """Return True for a matrix of floats: whole numbers have no scale in these files."""
        info = self._info(name)
        return is_layer(info.shape) and info.dtype in _NAMES.values()

    def matrix(self, name: str) -> Any:
        """Return a weight as scipy.sparse.csr_matrix in float32, [outputs, inputs]; its zeros are not stored."""
        import scipy.sparse

        info = self._matrix_info(name)
        if info.dtype not in _NAMES.values():
            raise BadInput(f"{info.file}: {name!r} is {info.dtype}; weights are floats: save the model in floats")
        turned, factor = self._use(name)
        if info.form == "dense":
            made = scipy.sparse.csr_matrix(as_float32(self[name], f"{info.file}: {name!r}"))
        else:
            values, places = self._stored_places(name)
            check_claim(info.shape, values.nbytes + places.nbytes, f"{info.file}: {name!r}")
            made = scipy.sparse.coo_matrix((as_float32(values, f"{info.file}: {name!r}"), places), info.shape)
        weight = ((made.T if turned else made) * np.float32(factor)).tocsr()
        weight.eliminate_zeros()  # which a sparse initialiser may store, and a factor of 0 makes
        return weight

    def _use(self, name: str) -> tuple[bool, float]:
        """Return whether the products of the graph need the transpose of an initialiser as W, and its factor."""
        uses = {use for node in self._graph.node if (use := _use_in(node, name)) is not None}
        if len(uses) > 1:
            raise BadInput(f"{self.path}: {name!r} is read by products in several ways; take model[{name!r}] and turn it yourself")
        return uses.pop() if uses else (False, 1.0)

    def _stored_places(self, name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the values of a sparse initialiser and their places, one row for each dimension."""
        tensor, shape = self._sparse[name], self._infos[name].shape
        values = self._numbers(name, tensor.values).reshape(-1)
        indices = self._numbers(name, tensor.indices).astype(np.int64)
        if indices.ndim == 1:
            inside = bool(((indices >= 0) & (indices < math.prod(shape))).all())
            places = np.array(np.unravel_index(indices, shape)) if inside else np.empty((len(shape), 0), np.int64)
        else:
            places = indices.T
            inside = places.shape[0] == len(shape) and bool(((places >= 0) & (places < np.array(shape)[:, None])).all())
        if not inside or indices.shape[0] != len(values):
            raise BadInput(
                f"{self.path}: {name!r} has {len(values)} values and indices {list(indices.shape)}; there must be one for each "
                f"value, inside {list(shape)}"
            )
        if len(np.unique(np.ravel_multi_index(tuple(places), shape))) != len(values):
            raise BadInput(f"{self.path}: {name!r} has two values at one place")
        return values, places

    def _numbers(self, name: str, tensor: Any) -> NDArray[Any]:
        """Return the numbers of a tensor, of this file or of one beside it."""
        from onnx import checker, numpy_helper

        for entry in tensor.external_data:
            if entry.key == "location" and pathlib.PurePath(entry.value).name != entry.value:
                raise BadInput(f"{self.path}: {name!r} is in {entry.value!r}; data is read from files of the same folder only")
        try:
            return np.array(numpy_helper.to_array(tensor, str(self.path.parent)))
        except (OSError, KeyError, TypeError, ValueError, checker.ValidationError) as error:
            raise BadInput(f"{self.path}: the numbers of {name!r} cannot be read ({error})") from None


def _use_in(node: Any, name: str) -> tuple[bool, float] | None:
    """Return how a node multiplies an initialiser: whether its transpose is W, and by which factor; None if it does not."""
    if node.op_type not in ("MatMul", "Gemm") or name not in list(node.input)[:2]:
        return None
    options = {a.name: a.f if a.name in ("alpha", "beta") else a.i for a in node.attribute}
    is_right = node.input[1] == name
    turned = bool(options.get("transB" if is_right else "transA", 0))
    return turned != is_right, options.get("alpha", 1.0)


def _graph_of(path: pathlib.Path) -> Any:
    try:
        import onnx
    except ImportError:
        raise ImportError(f"{path}: ONNX files are read by the package onnx (python3-onnx), which is not installed") from None
    try:
        return onnx.load(str(path), load_external_data=False).graph
    except Exception as error:  # protobuf has exceptions of its own
        raise BadInput(f"{path}: {getattr(error, 'strerror', None) or f'no ONNX file ({error})'}") from None

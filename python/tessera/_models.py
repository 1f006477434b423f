"""Checkpoints of whole models: files of safetensors, folders of them, and compressed sparse weights in them."""

from __future__ import annotations

import json
import os
import pathlib
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tessera import _core
from tessera._core import BadInput, InvalidArgument
from tessera._options import MOST_SIZE, mapping, path_text
from tessera._text import html_table
from tessera._weights import array_of, as_float32, is_sparse, is_torch

_INDEX = "model.safetensors.index.json"
_TYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16, "I64": np.int64, "I32": np.int32,
    "I16": np.int16, "I8": np.int8, "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip
_FLOATS = ("F64", "F32", "F16", "BF16")
_PARTS = ("compressed", "bitmask", "shape", "row_offsets")  # of a compressed weight; 2:4 has no row_offsets


class TensorInfo(NamedTuple):
    """A tensor of a model; `form` is "dense", or that of a compressed weight."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    form: str
    file: str


class _Stored(NamedTuple):
    dtype: str
    shape: tuple[int, ...]
    file: str
    begin: int
    end: int


class Model(Mapping[str, Any]):
    """The tensors of a checkpoint by their names, read when they are asked for.

    model[name]         a NumPy array; float32 for float16 and bfloat16. Weights in whole numbers are
                        multiplied by their scale (NAME_scale: one number, one for each row, or
                        [1, columns]), and refused if the file has none
    model.matrix(name)  a scipy.sparse.csr_matrix in float32, whose zeros are not stored; is_matrix(name) tells
                        if there is one
    model.state_dict()  tensors of torch, for load_state_dict() of the dense model or a sparsified one
    model.tensors       a TensorInfo for each, in the order of the file

    Weights in the forms sparse-bitmask and sparse-24-bitmask have the name of the weight that they stand for.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path_text(path))
        self._files: dict[str, NDArray[np.uint8]] = {}
        self._stored: dict[str, _Stored] = {}
        for file in _files_of(self.path):
            self._add(file)
        _check_map(self.path, self._stored)
        self._infos = {info.name: info for info in self._described()}

    def _add(self, path: pathlib.Path) -> None:
        memory, name = _mapped(path), str(path)
        self._files[name] = memory
        for tensor, dtype, shape, begin, end in _core._list_tensors(memory, path):
            if tensor in self._stored:
                raise BadInput(f"{name}: the tensor {tensor!r} is in {self._stored[tensor].file} as well")
            self._stored[tensor] = _Stored(dtype, tuple(shape), name, begin, end)

    def _described(self) -> Iterator[TensorInfo]:
        layers = self._compressed_layers()
        for name, stored in self._stored.items():
            layer, _, part = name.rpartition(".")
            if layer not in layers or part not in _PARTS:
                yield TensorInfo(name, stored.dtype, stored.shape, "dense", stored.file)
            elif part == "compressed":
                form = "sparse-bitmask" if len(stored.shape) == 1 else "sparse-24-bitmask"
                yield TensorInfo(f"{layer}.weight", stored.dtype, self._shape(layer), form, stored.file)

    def _compressed_layers(self) -> set[str]:
        """Return the layers that have a compressed weight. Refuse one that lacks a part, and a dense weight beside it."""
        layers = set()
        for name, stored in self._stored.items():
            layer, _, part = name.rpartition(".")
            parts = {known for known in _PARTS if f"{layer}.{known}" in self._stored}
            # Tensors may have the names of one part or of two by chance, but hardly those of bits and their values.
            if not layer or part not in _PARTS or not ({"compressed", "bitmask"} <= parts or len(parts) > 2):
                continue
            if missing := [f"{layer}.{known}" for known in _PARTS[:3] if known not in parts]:
                raise BadInput(
                    f"{stored.file}: {name!r} is a part of a compressed weight, but there is no {' and no '.join(missing)}: add what "
                    "is missing, or save the model dense"
                )
            if f"{layer}.weight" in self._stored:
                raise BadInput(
                    f"{stored.file}: {layer + '.weight'!r} is given twice, dense, and compressed by {layer}.compressed; remove one of the two"
                )
            layers.add(layer)
        return layers

    def _shape(self, layer: str) -> tuple[int, int]:
        name = f"{layer}.shape"
        place, given = self._stored[name].file, self._raw(name).reshape(-1)
        if given.dtype.kind not in "iu" or len(given) != 2:
            raise BadInput(f"{place}: {name!r} has {len(given)} numbers of {given.dtype}; it has two sides, which are whole numbers")
        rows, cols = map(int, given)
        require_layer((rows, cols), f"{place}: {layer}")
        return rows, cols

    def _raw(self, name: str) -> NDArray[Any]:
        stored = self._stored[name]
        data = self._files[stored.file][stored.begin : stored.end]
        try:
            numbers: NDArray[Any] = data.view(_TYPES[stored.dtype]).reshape(stored.shape)
        except ValueError:  # sides of an empty tensor may be any
            raise BadInput(f"{stored.file}: {name!r} has the shape {list(stored.shape)}, which no array has") from None
        if stored.dtype == "BF16":
            return (numbers.astype(np.uint32) << 16).view(np.float32)
        return numbers.astype(np.float32) if stored.dtype == "F16" else numbers

    @property
    def tensors(self) -> list[TensorInfo]:
        """A TensorInfo for each tensor."""
        return list(self._infos.values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)

    def __getitem__(self, name: str) -> NDArray[Any]:
        info = self._info(name)
        if info.form != "dense":
            return _spread(*self._places(info))
        return self._scaled(info) if self._is_quantised(info) else self._raw(name)

    def _is_quantised(self, info: TensorInfo) -> bool:
        """Return True for whole numbers that a scale turns into weights, or whose name says that they are weights."""
        part = info.name.rpartition(".")[2]
        is_weight = part == "weight" or (part.startswith("weight") and len(info.shape) == 2)
        return info.dtype not in _FLOATS and (is_weight or f"{info.name}_scale" in self._stored)

    def _scaled(self, info: TensorInfo) -> NDArray[np.float32]:
        """Return weights that are stored in whole numbers, times their scale."""
        factor = self._factor(info)
        with np.errstate(over="ignore"):
            made: NDArray[np.float32] = np.asarray(self._raw(info.name).astype(np.float32) * factor)
        if np.isinf(made).any():
            raise BadInput(f"{info.file}: {info.name!r} times '{info.name}_scale' is beyond the numbers of float32, about 3.4e38")
        return made

    def _factor(self, info: TensorInfo) -> NDArray[np.float32]:
        """Return the scale of weights that are stored in whole numbers, in their dimensions."""
        scale = f"{info.name}_scale"
        if info.name.endswith("_packed"):
            raise BadInput(f"{info.file}: {info.name!r} is packed, several numbers in one; it is not read: save it as floats")
        if scale not in self._stored or f"{info.name}_zero_point" in self._stored:
            raise BadInput(
                f"{info.file}: {info.name!r} is {info.dtype}, whole numbers without a scale ({scale}) alone; they are not the "
                "weights: save the model in floats"
            )
        stored = self._stored[scale]
        if stored.dtype not in _FLOATS:
            raise BadInput(f"{stored.file}: {scale!r} is {stored.dtype}; a scale is floats: save the model in floats")
        factor = _along_one_side(as_float32(self._raw(scale), f"{stored.file}: {scale!r}"), info.shape)
        if factor is None:
            raise BadInput(
                f"{stored.file}: {scale!r} is {list(stored.shape)}, and the weights are {list(info.shape)}; a scale is one "
                "number, one for each of the rows ([rows] or [rows, 1]), or one for each of the columns ([1, columns]); "
                "scales of groups are not read: save the model in floats"
            )
        if not np.isfinite(factor).all():
            raise BadInput(f"{stored.file}: {scale!r} has numbers that are not finite; a scale is finite: save the model in floats")
        return factor

    def matrix(self, name: str) -> Any:
        """Return a tensor of two dimensions as scipy.sparse.csr_matrix in float32; its zeros are not stored."""
        import scipy.sparse

        info = self._matrix_info(name)
        if info.form == "dense":
            numbers = self[name] if info.dtype in _FLOATS else self._scaled(info)
            return scipy.sparse.csr_matrix(as_float32(numbers, f"{info.file}: {name!r}"))
        flags, values = self._places(info)
        indptr = np.concatenate([[0], np.cumsum(flags.sum(1))])
        return scipy.sparse.csr_matrix((values, np.nonzero(flags)[1], indptr), info.shape)

    def state_dict(self) -> dict[str, Any]:
        """Return all tensors as torch's, for load_state_dict()."""
        import torch

        return {name: torch.from_numpy(np.array(self[name])) for name in self}

    def is_matrix(self, name: str) -> bool:
        """Return True for a tensor that matrix() reads as weights: floats, or whole numbers with a scale that is read; no scale is one."""
        info = self._info(name)
        is_scale = name.endswith("_scale") and name[: -len("_scale")] in self._infos
        if not is_layer(info.shape) or is_scale:
            return False
        if info.dtype in _FLOATS or info.form != "dense":
            return info.dtype in _FLOATS
        try:
            self._factor(info)
        except BadInput:
            return False
        return True

    def _info(self, name: str) -> TensorInfo:
        if name not in self._infos:
            shown = ", ".join(list(self._infos)[:20])
            raise KeyError(f"{self.path} has no tensor {name!r}; it has {shown}{', ...' if len(self) > 20 else ''}")
        return self._infos[name]

    def _matrix_info(self, name: str) -> TensorInfo:
        info = self._info(name)
        if len(info.shape) != 2:
            raise InvalidArgument(f"{name!r} has the shape {list(info.shape)}; a matrix has two sides")
        require_layer(info.shape, f"{info.file}: {name!r}")
        return info

    def _places(self, info: TensorInfo) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """Return which places of a compressed weight are stored, and the values row by row."""
        layer, (rows, cols) = info.name.rpartition(".")[0], info.shape

        def check(holds: bool, text: str) -> None:
            if not holds:
                raise BadInput(f"{info.file}: {layer}: {text}")

        bits, values = self._raw(f"{layer}.bitmask"), self._raw(f"{layer}.compressed").reshape(-1)
        wanted = (rows, -(-cols // 8))
        check(bits.dtype == np.uint8 and bits.shape == wanted, f"bitmask is {bits.dtype} {list(bits.shape)}, not uint8 {list(wanted)}")
        check(info.dtype in _FLOATS, f"compressed is {info.dtype}; values are floats")
        flags = np.unpackbits(bits, axis=1, bitorder="little").astype(np.bool_)
        check(not flags[:, cols:].any(), f"bits behind the last column, {cols - 1}, are set")
        flags = flags[:, :cols]
        counts = flags.sum(1)
        check(int(counts.sum()) == len(values), f"{counts.sum()} bits are set, but there are {len(values)} values")
        if info.form == "sparse-24-bitmask":
            check(cols % 4 == 0, f"there are {cols} columns, which are no groups of four")
            of_groups = flags.reshape(rows, -1, 4).sum(2)
            check(bool((of_groups == 2).all()), "not every group of four columns has two values")
        elif f"{layer}.row_offsets" in self._stored:
            offsets = self._raw(f"{layer}.row_offsets").reshape(-1)
            check(np.array_equal(offsets, np.cumsum(counts) - counts), "row_offsets are not those of the bits")
        return flags, as_float32(values, f"{info.file}: {layer}.compressed")

    def __repr__(self) -> str:
        lines = [f"Model({str(self.path)!r}, {len(self)} tensors)"]
        return "\n".join(lines + [f"  {i.name}  {i.dtype}  {list(i.shape)}  {i.form}" for i in self.tensors])

    def _repr_html_(self) -> str:
        return html_table("Model", {i.name: f"{i.dtype} {list(i.shape)} {i.form}" for i in self.tensors})


def read_model(path: str | os.PathLike[str]) -> Model:
    """Return the tensors of a checkpoint: a .safetensors file, a folder with one or several, the index of shards, or .onnx.

    Raises ts.BadInput for files that break the rules of their format, and ImportError for ONNX without the package onnx.
    Files of safetensors are mapped, and read as needed.
    """
    if path_text(path).endswith(".onnx"):
        from tessera._onnx import OnnxModel

        return OnnxModel(path)
    return Model(path)


def write_model(path: str | os.PathLike[str], tensors: Mapping[str, Any]) -> None:
    """Write arrays or tensors by their names, such as a state_dict, as one .safetensors file, whole or not at all."""
    if not path_text(path).endswith(".safetensors"):
        raise InvalidArgument(f"{path}: the ending is that of no format for models; use .safetensors")
    named = mapping("tensors", tensors, '{"fc.weight": w}, or a state_dict')
    _core._write_tensors(path, [_encoded(name, given) for name, given in named.items()])


def _encoded(name: str, given: Any) -> tuple[str, str, list[int], bytes]:
    kind = ""
    if name == "__metadata__":
        raise InvalidArgument("__metadata__ is no name of a tensor: a .safetensors file keeps its texts under it; take another")
    if is_sparse(given):
        dense = f"{name}.to_dense()" if is_torch(given) else f"{name}.toarray()"
        raise TypeError(f"{name} is sparse, and tensors of a .safetensors file are dense: pass {dense}, or ts.write(path, {name})")
    if str(getattr(given, "dtype", "")) == "torch.bfloat16":
        import torch

        kind, given = "BF16", given.detach().cpu().contiguous().view(torch.int16)
    array = array_of(given, name)
    kind = kind or next((text for text, dtype in _TYPES.items() if array.dtype == dtype and text != "BF16"), "")
    if not kind:
        raise TypeError(f"{name} is {array.dtype}, which a .safetensors file cannot have; convert it")
    return name, kind, list(array.shape), np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()


def is_layer(shape: Sequence[int]) -> bool:
    """Return True for the shape of a matrix that a layer may have."""
    return len(shape) == 2 and 1 <= min(shape) and max(shape) <= MOST_SIZE


def require_layer(shape: Sequence[int], place: str) -> None:
    """Refuse other sides. A file may claim any where one of them is 0, and rows take memory even then."""
    if not is_layer(shape):
        sides = " x ".join(map(str, shape))
        raise BadInput(f"{place} is {sides}; a matrix of a model needs at least 1 x 1, and a side is at most {MOST_SIZE}")


def _along_one_side(factor: NDArray[np.float32], shape: tuple[int, ...]) -> NDArray[np.float32] | None:
    """Return a scale in the dimensions of its weights; None if its shape names no one side that it belongs to."""
    if factor.size == 1:
        return factor.reshape(())
    sides = [axis for axis, side in enumerate(factor.shape) if side != 1]
    if len(sides) != 1 or factor.ndim > len(shape):
        return None
    if factor.ndim == len(shape):
        return factor if factor.shape[sides[0]] == shape[sides[0]] else None
    # A scale of fewer dimensions belongs to the rows. NumPy would count its sides from the last one of the weights: a scale
    # that suits these as well says too little.
    as_numpy = shape[len(shape) - factor.ndim]
    is_of_rows = sides[0] == 0 and len(factor) == shape[0] and (factor.ndim == 1 or len(factor) != as_numpy)
    return factor.reshape(-1, *[1] * (len(shape) - 1)) if is_of_rows else None


def _spread(flags: NDArray[np.bool_], values: NDArray[np.float32]) -> NDArray[np.float32]:
    dense = np.zeros(flags.shape, np.float32)
    dense[flags] = values
    return dense


def _files_of(path: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of a checkpoint."""
    if os.path.isdir(path):
        if os.path.exists(path / _INDEX):
            return _files_of(path / _INDEX)
        files = sorted(path.glob("*.safetensors"))
        if not files:
            raise BadInput(f"{path}: there is no .safetensors file in this folder")
        return files
    if path.name.endswith(".index.json"):
        return [path.parent / name for name in sorted(set(_weight_map(path).values()))]
    if path.suffix in (".pt", ".pth", ".bin", ".ckpt"):
        line = f'ts.write_model("model.safetensors", torch.load({path.name!r}, map_location="cpu"))'
        raise BadInput(f"{path}: a pickle of torch may run any code, so it is not read; convert it: {line}")
    return [path]


def _weight_map(index: pathlib.Path) -> dict[str, str]:
    try:
        found = json.loads(index.read_bytes())
    except OSError as error:
        raise BadInput(f"{index}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{index}: no index of shards: it is no JSON that can be read ({error})") from None
    names = found.get("weight_map") if isinstance(found, dict) else None
    if not isinstance(names, dict) or not names or not all(isinstance(file, str) for file in names.values()):
        raise BadInput(f'{index}: no index of shards; it needs "weight_map", which names the file of each tensor')
    for file in names.values():
        if not file or pathlib.PurePath(file).name != file:
            raise BadInput(f"{index}: weight_map names {file!r}; shards are files of the same folder")
    return names


def _check_map(path: pathlib.Path, stored: dict[str, _Stored]) -> None:
    """Refuse an index that does not agree with the shards."""
    index = path / _INDEX if os.path.isdir(path) else path
    if not index.name.endswith(".index.json") or not os.path.exists(index):
        return
    for tensor, file in _weight_map(index).items():
        if tensor not in stored or pathlib.Path(stored[tensor].file).name != file:
            raise BadInput(f"{index}: weight_map says that {tensor!r} is in {file}; it is not")


def _mapped(path: pathlib.Path) -> NDArray[np.uint8]:
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode) or info.st_size == 0:
            raise BadInput(f"{path}: it is no plain file, or it is empty")
        return np.memmap(path, np.uint8, mode="r")
    except BadInput:
        raise
    except (OSError, ValueError) as error:  # of a shard, whose name may be any text
        place = str(path).encode(errors="backslashreplace").decode()
        raise BadInput(f"{place}: {getattr(error, 'strerror', error)}") from None

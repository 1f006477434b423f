"""The sparse layer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tessera import _core
from tessera._core import InvalidArgument
from tessera._options import DTYPES, number, operand_type, require_one_of, seed_number, size, text, thread_count, whole_number
from tessera._text import html_table, si_bytes
from tessera._transpose import Transpose
from tessera._weights import Arrays, index_array, is_bare, is_sparse, read_matrix

_ORDERS = ("features_first", "batch_first")
# grad_input and grad_weights of each choice.
_PASSES = {"all": (True, True), "fwd": (False, False), "fwd+grad_weights": (False, True)}
_NO_PLACES: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


class PassTimes(NamedTuple):
    """Measured times of the last pass, in seconds. A sparse one of fewer than 2**11 multiplications is all in kernel_seconds."""

    seconds: float  # from call to return
    copy_seconds: float  # the part that copies an operand into panels
    kernel_seconds: float  # in kernels, all threads together


class Rounding(NamedTuple):
    """The figures that bound the error of a result q = sum(a[i] * b[i]) of n products.

    |q - exact| <= (1 + unit) * e + unit * |exact| + smallest
    e = (n + partials + 2) * 2**-24 * sum(|a[i] * b[i]|) + (n + partials + 1) * 2**-149
    """

    unit: float  # half the distance from 1 to the next number of the result's type
    smallest: float  # the smallest number above 0 of that type
    partials: int  # partial sums that are added up at the end

    def bound(self, terms: Any, magnitudes: Any, exact: Any) -> Any:
        """Return the bound for results of `terms` products; magnitudes is sum(|a[i] * b[i]|)."""
        n = terms + self.partials
        error = (n + 2) * 2.0**-24 * magnitudes + (n + 1) * 2.0**-149
        return (1 + self.unit) * error + self.unit * np.abs(exact) + self.smallest


class Layer(_core.Layer):
    """A sparse fully connected layer Q = W @ S on this computer.

    weights   W [outputs, inputs], float32: any format of scipy.sparse (a BSR matrix keeps its
              blocks), a sparse tensor of torch, an array of pydata/sparse, (indptr, indices, data),
              (data, (rows, columns)), `arrays` of another layer, or a NumPy array, of which zeros are
              not stored. Copied, sorted; places given twice are added up.
    batch     the width of S that the layer is cut for. Passes take any other width as well.
    threads   threads of a pass; 0: one for each core. Results have the same bits for any number.
    dtype     of the operands: "float32", "float16" or "bfloat16", or that dtype of NumPy or torch. Sums
              are float32. If it is given, weights of other real types are converted to float32;
              by default it is float32, and they are a TypeError.
    order     "features_first": operands are [features, batch], as in W @ S.
              "batch_first": operands are [batch, features], as in torch.nn.Linear.
    passes    "all"; "fwd+grad_weights" for a first layer, whose input needs no gradient; or "fwd"
              for inference. Each takes less memory and time to make than the one before.
    shape     (outputs, inputs), for (indptr, indices, data) whose last columns are empty.

    layer @ s            the product                                    [outputs, batch]
    layer @ v            that of a vector [inputs]                      [outputs]
    layer.T @ dq         grad_input(dq); dq.T @ layer is its transpose
    layer.grad_input(dq)         W.T @ dQ                               [inputs, batch]
    layer.grad_weights(dq, s)    dQ @ S.T where W has non-zeros         as layer.values
    layer.values = v             new values, in the order of layer.weights.data
    layer.update(...)            new pattern: places removed and added
    layer.weights                W as scipy.sparse csr (bsr for blocks)

    Operands are never copied or converted: another dtype is a TypeError. Any number of threads may
    use one layer; their calls take turns. Passes release the interpreter lock.

    scipy.sparse.linalg.aslinearoperator(layer) serves SciPy's solvers, whose vectors are converted.

    Errors: TypeError for another dtype, ts.InvalidArgument (a ValueError) for another shape,
    ts.BadInput (a ValueError) for arrays that are no legal matrix. The layer is then unchanged.
    """

    def __init__(
        self,
        weights: Any,
        batch: int = 128,
        *,
        threads: int = 1,
        dtype: Any = None,
        order: str = "features_first",
        passes: str = "all",
        shape: tuple[int, int] | None = None,
    ) -> None:
        casts, dtype = dtype is not None, operand_type("float32" if dtype is None else dtype)
        require_one_of("order", order, _ORDERS)
        require_one_of("passes", passes, tuple(_PASSES))
        super().__init__(
            read_matrix(weights, shape, casts=casts),
            size("batch", batch),
            thread_count(threads),
            DTYPES[dtype],
            order == "batch_first",
            *_PASSES[passes],
        )
        self._dtype, self._order, self._passes = dtype, order, passes

    def __matmul__(self, s: Any) -> Any:
        """Return layer.forward(s)."""
        return self.forward(s)

    __call__ = __matmul__

    # NumPy's arrays leave `array @ layer` to this class.
    __array_ufunc__ = None

    def __rmatmul__(self, left: Any) -> Any:
        """Return left @ W for left [rows, outputs], or a vector [outputs]."""
        if not hasattr(left, "ndim"):
            return NotImplemented
        if is_sparse(left):
            raise TypeError(f"a {type(left).__name__} @ layer: a layer multiplies dense operands; pass its toarray() or to_dense()")
        if left.ndim > 2 or left.shape[-1:] != (self.shape[0],):
            outputs = self.shape[0]
            raise InvalidArgument(f"the left operand has the shape {list(left.shape)}; this layer needs [rows, {outputs}] or [{outputs}]")
        first = self._order == "batch_first"
        return self.grad_input(left) if first or left.ndim == 1 else self.grad_input(left.T).T

    @property
    def T(self) -> Transpose:
        """W.T, for products: layer.T @ dq is grad_input(dq)."""
        return Transpose(self)

    @property
    def ndim(self) -> int:
        """2, as that of a matrix."""
        return 2

    def matvec(self, x: Any) -> Any:
        """Return W @ x as SciPy's linear operators call it: a vector or one column of any real type."""
        return self._converted(self.forward, x)

    def rmatvec(self, x: Any) -> Any:
        """Return W.T @ x as SciPy's linear operators call it."""
        return self._converted(self.grad_input, x)

    matmat, rmatmat = matvec, rmatvec

    def _converted(self, call: Any, x: Any) -> Any:
        array = np.asarray(x)
        if self._dtype != "float32":
            raise InvalidArgument(f"linear operators are float32; this layer has {self._dtype}: make it with dtype=\"float32\"")
        turned = self._order == "batch_first" and array.ndim == 2
        given = np.ascontiguousarray(array, np.float32)
        return call(given.T).T if turned else call(given)

    @property
    def dtype(self) -> str:
        """The type of the operands."""
        return self._dtype

    @property
    def order(self) -> str:
        """Either "features_first" or "batch_first"."""
        return self._order

    @property
    def density(self) -> float:
        """Stored values / all of W."""
        outputs, inputs = self.shape
        return self.nnz / (outputs * inputs) if outputs * inputs else 0.0

    @property
    def values(self) -> NDArray[np.float32]:
        """A copy of the stored values: [nnz], or [blocks, rows, columns]. Assigning sets new ones."""
        return self._values()

    @values.setter
    def values(self, values: Any) -> None:
        self.set_values(values)

    @property
    def arrays(self) -> Arrays:
        """Copies of (indptr, indices, data, shape), for programs without SciPy; ts.Layer takes them."""
        return Arrays(*self._arrays(), self.shape)

    @property
    def weights(self) -> Any:
        """W as a new scipy.sparse.csr_matrix, or bsr_matrix for blocks."""
        import scipy.sparse

        indptr, indices, data, shape = self.arrays
        if self.block == (1, 1):
            return scipy.sparse.csr_matrix((data, indices, indptr), shape)
        return scipy.sparse.bsr_matrix((data, indices, indptr), shape, blocksize=self.block)

    def to_torch(self) -> Any:
        """Return W as a new sparse CSR (BSR for blocks) tensor of torch."""
        import torch

        indptr, indices, data, shape = self.arrays
        make = torch.sparse_csr_tensor if self.block == (1, 1) else torch.sparse_bsr_tensor
        return make(torch.from_numpy(indptr), torch.from_numpy(indices), torch.from_numpy(data), shape)

    def set_weights(self, weights: Any, shape: tuple[int, int] | None = None) -> None:
        """Take another matrix of the same shape and block; the pattern may be any."""
        if shape is None and is_bare(weights):
            shape = self.shape
        self._set_weights(read_matrix(weights, shape))

    def update(self, removed: Any = _NO_PLACES, added: Any = _NO_PLACES) -> None:
        """Remove and add places of the pattern: (rows, columns) each, counted in blocks.

        Values that stay are kept, added ones are 0. Raises ts.InvalidArgument, which names the place,
        if a removed one is not stored, an added one is, or one is given twice.
        """
        self._update(*_places(removed, "removed"), *_places(added, "added"))

    def rewire(
        self,
        method: str = "rigl",
        *,
        fraction: float = 0.3,
        dq: Any = None,
        s: Any = None,
        seed: int = 0,
        pool: str = "sum",
        exclude: str = "kept",
        factor: float | None = None,
        density: float | None = None,
        min_per_neuron: int = 0,
        constant_fan_in: bool = False,
    ) -> NDArray[np.int64]:
        """Drop the smallest blocks and grow as many, as training with a changing pattern does.

        method    "rigl": where |dQ @ S.T| is largest; "sampled": the same among factor times as many
                  random places as blocks are stored, twice if factor is None; "set": at random places;
                  "prune": nowhere, for a lower density
        fraction  share of the stored blocks that moves
        dq, s     operands of grad_weights, float32, or lists of them; for rigl and sampled
        pool      how |gradients| of a block become one score: "sum", "max" or "mean"
        exclude   "kept": a block that was just dropped may come back; "original": it may not
        density   of the new pattern: more or fewer blocks grow than are dropped; None: as it is
        min_per_neuron  blocks that each row and column of blocks keeps, its largest ones
        constant_fan_in  True: each row of blocks has as many as the others, and changes by itself; not for "sampled"

        Return, for each block of the new pattern, its position in the old one, or -1 if it is new:
        what belongs to weights, such as an optimiser's momentum, moves by it.
        """
        if method == "top-k":
            raise InvalidArgument("top-k compares places with an optimiser's step: use tessera.torch.TopK or tessera train")
        return self._rewired(
            method, fraction=fraction, dq=dq, s=s, seed=seed, pool=pool, exclude=exclude, factor=factor, density=density,
            min_per_neuron=min_per_neuron, constant_fan_in=constant_fan_in,
        )[0]

    def _rewired(
        self,
        method: str,
        *,
        fraction: float = 0.3,
        dq: Any = None,
        s: Any = None,
        seed: int = 0,
        pool: str = "sum",
        exclude: str = "kept",
        factor: float | None = None,
        search: str = "exact",
        density: float | None = None,
        min_per_neuron: int = 0,
        constant_fan_in: bool = False,
        rule: tuple[str, list[float], int] = ("", [], 0),
    ) -> tuple[NDArray[np.int64], list[NDArray[np.float32]]]:
        """Return what rewire() does, and what an optimiser's state has at new places; rule is its name, numbers and steps."""
        all_dq, all_s = ([] if x is None else list(x) if isinstance(x, (list, tuple)) else [x] for x in (dq, s))
        if len(all_dq) != len(all_s) or (method in ("rigl", "sampled", "top-k") and not all_dq):
            raise InvalidArgument(f"{method} needs dq and s, one of each for every batch")
        return self._rewire(
            text("method", method), number("fraction", fraction), all_dq, all_s, seed_number(seed), text("pool", pool),
            text("exclude", exclude), factor if factor is None else number("factor", factor), text("search", search), self._blocks_at(density),
            whole_number("min_per_neuron", min_per_neuron, 0), bool(constant_fan_in), *rule,
        )

    def _blocks_at(self, density: float | None) -> int:
        """Return how many blocks a density stores; -1, which means as many as now, for None."""
        if density is None:
            return -1
        if not 0 < number("density", density) <= 1:
            raise InvalidArgument(f"density is {density}; it must be above 0 and at most 1")
        blocks = -(-self.shape[0] // self.block[0]) * -(-self.shape[1] // self.block[1])
        return max(1, round(density * blocks))

    @property
    def times(self) -> PassTimes:
        """Seconds of the last pass and of its parts."""
        return PassTimes(*self._times())

    def rounding(self, call: str = "forward") -> Rounding:
        """Return what bounds the rounding of a call: forward, grad_input or grad_weights."""
        return Rounding(*self._rounding(text("call", call)))

    def _facts(self) -> dict[str, str]:
        outputs, inputs = self.shape
        return {
            "size": f"{outputs} x {inputs}",
            "density": f"{self.density:.3g} ({self.nnz:,} values)",
            "block": f"{self.block[0]} x {self.block[1]}",
            "operands": f"{self.dtype}, {self.order}, batch {self.batch}",
            "threads": str(self.threads or "all cores"),
            "memory": si_bytes(self.memory_bytes),
        }

    def __repr__(self) -> str:
        facts = self._facts()
        size = facts.pop("size")
        return f"Layer({size}, " + ", ".join(f"{name} {fact}" for name, fact in facts.items()) + ")"

    def _repr_html_(self) -> str:
        return html_table("Layer", self._facts())

    def __reduce__(self) -> Any:
        settings = {
            "batch": self.batch,
            "threads": self.threads,
            "dtype": self._dtype,
            "order": self._order,
            "passes": self._passes,
        }
        return _rebuild, (type(self), self.arrays, settings), self.__dict__.copy()

    def __copy__(self) -> Layer:
        """Return a copy that shares nothing of the weights, because values of a layer change."""
        rebuild, arguments, attributes = self.__reduce__()
        made: Layer = rebuild(*arguments)
        made.__dict__.update(attributes)
        return made


def _rebuild(kind: type[Layer], arrays: Arrays, settings: dict[str, Any]) -> Layer:
    made = kind.__new__(kind)  # a class of the user's may have another __init__
    Layer.__init__(made, arrays, **settings)
    return made


def _places(places: Any, name: str) -> tuple[Any, Any]:
    try:
        rows, cols = places
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} is not a pair of (rows, columns)") from None
    return index_array(rows, name), index_array(cols, name)

"""The sparse linear layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from tessera._core import InvalidArgument
from tessera._layer import Layer
from tessera._options import block_shape, require_one_of, size, thread_count, whole_number
from tessera._weights import index_array
from tessera.torch import _patterns as patterns
from tessera.torch._autograd import needs_gradient
from tessera.torch._operator import is_traced, traced_product
from tessera.torch._optimisers import rule_of
from tessera.torch._passes import Passes, Product
from tessera.torch._rows import look_up
from tessera.torch._tensors import FLOATS, Seen, Weight, autocast_dtype, operand_dtype, require_plain

_ACTIVATIONS = ("none", "relu", "gelu")
_PATTERN = ("indptr", "indices")


def _gelu(q: Tensor) -> Tensor:
    """Return GELU by tanh of a tensor of any type; in 16 bits it is computed in float."""
    kind = torch.float32 if q.dtype in (torch.float16, torch.bfloat16) else q.dtype
    return functional.gelu(q.to(kind), approximate="tanh").to(q.dtype)


class SparseLinear(Passes, nn.Module):
    """As torch.nn.Linear(in_features, out_features, bias), with a sparse weight, on the CPU.

    density   stored blocks / all blocks, 0.1 by default; or sparsity, 1 - density. The first pattern is
              random, by torch's generator
    block     1, a side, or (rows, columns); sizes are whole numbers of blocks
    dtype     of the input: torch.float32, float16, bfloat16, or float64, which torch itself computes at
              the speed of a dense layer, for checks such as torch.autograd.gradcheck
    threads   threads of a pass; 0: one for each core
    batch     the batch that the layer is cut for; any other one works as well
    min_per_neuron  blocks that each row and column of blocks has at least in the first pattern
    constant_fan_in  True: each row of blocks has as many as the others in the first pattern
    activation  "relu" is applied in the same pass, and its derivative in the backward pass; "gelu" (by tanh) in the
              same pass where no gradient is needed, else by torch; "none"

    values    nn.Parameter [nnz], float32, in the order of a CSR matrix (BSR for blocks)
    bias      nn.Parameter [out_features] or None, float32
    indptr, indices   buffers with the pattern, which are in the state_dict
    weight    the dense weight [out, in], made from `values` at each look and connected to them by autograd

    state_dicts load where the pattern differs, and those of a torch.nn.Linear as well. The values and the pattern
    may be written in place and replaced; only a write to `.data` in eval mode needs a call of refresh(). An input
    must not be written before the backward pass, as with torch.nn.Linear. to(), half() and float() choose dtype,
    and values and bias stay float32 (float64 after double()). Under autocast, inputs are cast to dtype and results
    to autocast's type. Any number of threads may use one module.
    """

    values: nn.Parameter
    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        density: float | None = None,
        sparsity: float | None = None,
        block: int | tuple[int, int] = 1,
        dtype: torch.dtype | None = None,
        threads: int = 1,
        batch: int = 128,
        activation: str | None = "none",
        device: Any = None,
        min_per_neuron: int = 0,
        constant_fan_in: bool = False,
    ) -> None:
        super().__init__()
        if device is not None and torch.device(device).type != "cpu":
            raise InvalidArgument(f"device is {device}; a SparseLinear runs on the CPU: leave device out")
        self.dtype, self.threads = operand_dtype(dtype), thread_count(threads)
        self.activation = "none" if activation is None else activation
        require_one_of("activation", self.activation, _ACTIVATIONS)
        self.in_features = whole_number("in_features", in_features)
        self.out_features = whole_number("out_features", out_features)
        self.block = block_shape(block)
        self.batch = size("batch", batch)
        share = patterns.share_of(density, sparsity, 0.1)
        assert share is not None
        indptr, indices, count = patterns.drawn(
            self.out_features, self.in_features, self.block, share, whole_number("min_per_neuron", min_per_neuron, 0), bool(constant_fan_in)
        )
        self.register_buffer("indptr", indptr)
        self.register_buffer("indices", indices)
        kind = torch.float64 if self.dtype == torch.float64 else torch.float32
        self.values = nn.Parameter(patterns.first_values(indptr, count, self.block).to(kind))
        if bias:
            self.bias = nn.Parameter(torch.zeros(self.out_features, dtype=kind))
        else:
            self.register_parameter("bias", None)
        self._forget()

    def reset_parameters(self) -> None:
        """Draw values of He's deviation, by the inputs that each output really has; the bias becomes 0."""
        with torch.no_grad():
            self.values.copy_(patterns.first_values(self.indptr, self.values.numel(), self.block))
            if self.bias is not None:
                self.bias.zero_()

    def decay_parameters(self) -> list[nn.Parameter]:
        """Return the parameters that weight decay is meant for: `values`, though they have one dimension."""
        return [self.values]

    def _current_layer(self) -> Layer:
        """Return the layer with the values of now."""
        if self.dtype == torch.float64:
            raise TypeError("this SparseLinear is in double precision, which the layers in C++ do not have: call float()")
        require_plain("values", self.values)
        layer = self._made_for(self.values, False).layer
        layer.set_values(self.values.detach())
        return layer

    def refresh(self) -> None:
        """Read values and pattern again, after their `.data` was written in eval mode."""
        self._made = self._stamped = None

    def forward(self, x: Tensor) -> Tensor:
        """Return activation(x @ W.T + bias) for x [..., in_features]."""
        if not isinstance(x, Tensor):
            raise TypeError(f"x is a {type(x).__name__}; pass a tensor of torch, as torch.as_tensor(x)")
        if x.is_nested:
            raise TypeError("x is a nested tensor; pass padded ones: nn.TransformerEncoder(..., enable_nested_tensor=False)")
        if x.layout is not torch.strided:
            raise TypeError(f"x has the layout {x.layout}; pass a dense tensor: x.to_dense()")
        traced = is_traced()  # where a size is no number that could be compared
        if not traced and x.shape[-1:] != (self.in_features,):
            raise InvalidArgument(f"x has the shape {list(x.shape)}; this layer needs [..., {self.in_features}]")
        cast = autocast_dtype() if x.dtype in FLOATS else None
        if cast is not None and self.dtype != torch.float64:
            x = x.to(self.dtype)
        if x.dtype != self.dtype:
            convert = f", or convert the layer by to({x.dtype})" if x.dtype in (*FLOATS, torch.float64) else ""
            raise TypeError(f"x is {x.dtype}; this layer needs {self.dtype}: pass x.to({self.dtype}){convert}")
        if not x.is_cpu:
            raise TypeError(f"x is on {x.device}; this layer runs on the CPU: pass x.cpu()")
        if self.dtype == torch.float64:
            return self._double(x)
        flat = x if x.dim() == 2 else x.reshape(-1, self.in_features)
        values = self.values
        is_kept = traced or needs_gradient(flat, values, self.bias)
        if traced:
            q = traced_product(self, flat, values, self.bias)
        else:
            q = Product.apply(flat, values, self.bias, self, is_kept)
        if is_kept and self.activation == "gelu":
            q = _gelu(q)
        if cast is not None:
            q = q.to(cast)
        return q if x.dim() == 2 else q.reshape(*x.shape[:-1], self.out_features)

    def rows(self, ids: Tensor) -> Tensor:
        """Return rows of the weight, [..., in_features] for ids [...] in 0 .. out_features - 1: an embedding.

        It is what torch.nn.Embedding returns for this weight, in dtype, without bias and activation, and its gradient
        goes to `values`. A layer that has its own rows for embedding and forward() for the last scores is tied. The
        time is that of the result and of the stored values of the rows, and backward() writes a gradient of all values.
        Methods that change patterns see it; in such a step a lookup takes memory for out_features x different ids floats.
        Raises TypeError for ids that are no whole numbers, ts.InvalidArgument for one outside, RuntimeError in graphs.
        """
        return look_up(self, ids)

    def _double(self, x: Tensor) -> Tensor:
        """Return forward() in double precision, by functions of torch."""
        q = functional.linear(x, self._dense(), self.bias)
        return q.relu() if self.activation == "relu" else _gelu(q) if self.activation == "gelu" else q

    @property
    def density(self) -> float:
        """Stored values / all of the weight."""
        return self.values.numel() / max(self.in_features * self.out_features, 1)

    @property
    def weight(self) -> Tensor:
        """The dense weight [out, in], which torch's own blocks compute with: attention, encoder layers.

        It is made at each look, in dtype, and connected to `values` by autograd, so that a block which reads it
        trains them. A write to it is refused. The layer itself does not use it.
        """
        weight: Tensor = self._dense().to(self.dtype).as_subclass(Weight)
        return weight

    @weight.setter
    def weight(self, value: Any) -> None:
        self.register_parameter("weight", value)

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Register a parameter as any module does. `weight` is refused: it is made from the values."""
        if name == "weight":
            raise InvalidArgument(
                "the weight of a SparseLinear is made from its values, so it cannot be set or shared: write layer.values, "
                "use from_dense(), or share values, indptr and indices of another SparseLinear"
            )
        super().register_parameter(name, param)

    def _dense(self) -> Tensor:
        if not is_traced():  # where numbers are not known
            patterns.require_inside(self.indptr, self.indices, self.in_features // self.block[1])
        shape = self.out_features, self.in_features
        return patterns.spread(self.values, self.indptr, self.indices, shape, self.block)

    def to_torch(self) -> Tensor:
        """Return the weight as a sparse CSR (BSR for blocks) tensor of torch: a copy."""
        tensor: Tensor = self._current_layer().to_torch()
        return tensor

    def _take(self, arrays: Any, values: Tensor) -> None:
        """Take another pattern with its values; the parameter stays the same object."""
        self.indptr, self.indices = torch.from_numpy(arrays[0]), torch.from_numpy(arrays[1])
        kind = self.values.dtype
        if values.numel() != self.values.numel():
            # A graph that is alive, such as that of the last loss, holds the node that adds up the gradients of the old
            # length. torch makes another one for another type.
            self.values.data = torch.empty(0, dtype=torch.float32 if kind == torch.float64 else torch.float64)
        self.values.data = values.to(kind)
        self.values.grad = None
        self._changes += 1
        self.refresh()

    def rewire(self, optimiser: torch.optim.Optimizer | None, method: str, **options: Any) -> NDArray[np.int64]:
        """Change the pattern by a method of ts.Layer.rewire, or "top-k", and move the optimiser's slots along.

        Every slot of one dimension that is as long as the values is carried, new places are 0, or those of their first
        step with "top-k", for which the optimiser has just made its step. Return what ts.Layer.rewire returns.
        """
        layer, made = self._current_layer(), self._made
        area = self.block[0] * self.block[1]
        count = self.values.numel()
        if method == "top-k":
            rule = rule_of(optimiser, self.values)
            origin, first = layer._rewired(method, rule=rule[:3], **options)
        else:
            origin, rule, first = layer.rewire(method, **options), None, []
        indptr, indices, data = layer._arrays()

        slots: dict[str, Any] = dict(optimiser.state.get(self.values, {})) if optimiser else {}
        for name, slot in slots.items():
            if isinstance(slot, Tensor) and slot.dim() == 1 and slot.numel() == count:
                optimiser.state[self.values][name] = patterns.carried(slot, origin, area)  # type: ignore[union-attr]
        new = torch.from_numpy(np.flatnonzero(origin < 0))
        for name, numbers in zip(rule.slots if rule else (), first):
            slot = optimiser.state[self.values][name]  # type: ignore[union-attr]
            slot[new] = torch.from_numpy(numbers).to(slot.dtype)
        self._take((indptr, indices), torch.from_numpy(data).reshape(-1))
        if made is not None and made.layer is layer:  # which has the new pattern
            self._made = made._replace(indptr=Seen(self.indptr), indices=Seen(self.indices))
        return origin

    @classmethod
    def from_dense(
        cls,
        linear: nn.Linear | nn.Embedding,
        *,
        density: float | None = None,
        sparsity: float | None = None,
        mask: Any = None,
        block: int | tuple[int, int] = 1,
        threads: int = 1,
        dtype: torch.dtype | None = None,
        batch: int = 128,
        activation: str | None = "none",
    ) -> SparseLinear:
        """Return the sparse form of a dense layer, or of a torch.nn.Embedding, whose lookup is rows().

        density, or sparsity = 1 - density, keeps the blocks of largest sum of |weight|; mask [out, in] keeps the
        blocks that contain a place that is set. Without them the blocks that are not zero are kept, as those of a
        pruned layer. dtype is that of the dense layer by default; other options are those of SparseLinear.
        """
        share = patterns.share_of(density, sparsity)
        if share is not None and mask is not None:
            raise InvalidArgument("from_dense: give density, sparsity or mask, not both")
        if isinstance(linear, SparseLinear):
            raise TypeError("from_dense: a SparseLinear is no dense layer; pass a torch.nn.Linear")
        weight = patterns.dense_weight_of(linear)
        bias = getattr(linear, "bias", None)
        made = cls(
            weight.shape[1], weight.shape[0], bias is not None, density=0.0, block=block, threads=threads,
            dtype=weight.dtype if dtype is None else dtype, batch=batch, activation=activation,
        )
        weight = weight.to(made.values.dtype)
        if mask is not None:
            keep = patterns.masked(weight, made.block, mask)
        elif share is not None:
            blocks = patterns.in_blocks(weight, made.block).shape[:2].numel()
            keep = patterns.largest(weight, made.block, round(share * blocks))
        else:
            keep = patterns.not_zero(weight, made.block)
            if keep.numel() and bool(keep.all()):
                raise InvalidArgument("from_dense: the weight has no zeros; give density, sparsity or mask")
        made._take(*patterns.cut(weight, made.block, keep))
        if made.bias is not None and bias is not None:
            made.bias.data = bias.detach().cpu().to(made.bias.dtype).resolve_neg().clone()
        return made.train(linear.training)

    def to_dense(self) -> nn.Linear:
        """Return a torch.nn.Linear with the same weight, of the type of the values. It has no activation."""
        dense = nn.Linear(self.in_features, self.out_features, self.bias is not None, dtype=self.values.dtype)
        dense.weight.data = self._dense().detach()
        if self.bias is not None:
            dense.bias.data = self.bias.detach().clone()
        return dense

    def extra_repr(self) -> str:
        kind = "" if self.dtype == torch.float32 else f", dtype={self.dtype}"
        activation = "" if self.activation == "none" else f", activation={self.activation!r}"
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, density={self.density:.3g}, block={self.block}, "
            f"threads={self.threads}{kind}{activation}"
        )

    def __getstate__(self) -> dict[str, Any]:
        made = ("_made", "_stamped", "_changes", "_watched", "_operands")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"activation": "none", **state})  # type: ignore[misc]
        self._forget()

    def _apply(self, fn: Any, *rest: Any) -> SparseLinear:
        """Let to(), half() and the like choose the type of the operands; values and bias stay float32, or float64."""
        dtype = fn(torch.empty(0, dtype=self.dtype)).dtype
        if dtype in (*FLOATS, torch.float64):
            self.dtype = dtype
        kind = torch.float64 if self.dtype == torch.float64 else torch.float32

        def moved(tensor: Tensor) -> Tensor:
            given: Tensor = fn(tensor)
            wanted = kind if tensor.is_floating_point() else tensor.dtype
            return given if given.dtype == wanted else tensor.to(given.device, wanted)

        super()._apply(moved, *rest)  # type: ignore[misc]
        return self

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        if isinstance(state_dict.get(prefix + "weight"), Tensor) and prefix + "values" not in state_dict:
            state_dict[prefix + "indptr"], state_dict[prefix + "indices"], state_dict[prefix + "values"] = self._cut(
                state_dict.pop(prefix + "weight")
            )
        given = [state_dict.get(prefix + name) for name in (*_PATTERN, "values")]
        if all(isinstance(tensor, Tensor) for tensor in given):
            indptr, indices = (index_array(given[i].cpu(), _PATTERN[i]).copy() for i in range(2))
            values = given[2].detach().cpu().resolve_neg().to(self.values.dtype, copy=True)
            if values.dim() != 1:
                raise InvalidArgument(f"values have the shape {list(values.shape)}; they have one dimension")
            # A layer of its own checks the pattern before this one is changed.
            shape = self.out_features, self.in_features
            Layer((indptr, indices, self._data(values.to(torch.float32))), passes="fwd", shape=shape)
            self._take((indptr, indices), values)
        super()._load_from_state_dict(state_dict, prefix, *rest)  # type: ignore[misc]

    def _cut(self, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return pattern and values of a dense weight: its blocks that are not zero if it is pruned, else the
        largest ones, as many as are stored now."""
        if weight.shape != (self.out_features, self.in_features):
            shape = [self.out_features, self.in_features]
            raise InvalidArgument(f"weight has the shape {list(weight.shape)}; this layer needs {shape}")
        weight = weight.detach().cpu().to(self.values.dtype).resolve_neg()
        keep = patterns.not_zero_or_largest(weight, self.block, len(self.indices))
        (indptr, indices), values = patterns.cut(weight, self.block, keep)
        return torch.from_numpy(indptr), torch.from_numpy(indices), values

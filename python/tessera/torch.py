"""Sparse layers for PyTorch: a module like torch.nn.Linear, and methods that change its pattern.

    net = nn.Sequential(SparseLinear(784, 1024, density=0.1), nn.ReLU(), nn.Linear(1024, 10))
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    rigl = RigL(net, opt, every=100, end=3000, fraction=0.3)
    for x, y in batches:
        loss = F.cross_entropy(net(x), y); opt.zero_grad(); loss.backward()
        if not rigl.step(): opt.step()
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tessera import _core
from tessera._core import InvalidArgument
from tessera._layer import Layer
from tessera._options import DTYPES, MOST_SIZE, block_shape, number, seed_number, text, thread_count, whole_number
from tessera._tensors import Seen, Weight, require_plain
from tessera._weights import array_of, index_array

__all__ = ["Rewiring", "RigL", "SET", "Sampled", "SparseLinear", "Static"]

_SEEDS = 2**62
_STAMPS = itertools.count(1)  # one for each content of values that a layer may have
_FLOATS = tuple(getattr(torch, name) for name in DTYPES)


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).rpartition(".")[2]


def _address(bias: Tensor | None, count: int) -> int:
    """Return the address of the bias, 0 for None."""
    if bias is None:
        return 0
    require_plain("bias", bias)
    if bias.numel() != count:
        raise TypeError(f"bias has {bias.numel()} numbers; pass {count}")
    return bias.data_ptr()


class _Made(NamedTuple):
    """A layer, with what it was made from."""

    layer: Layer
    settings: tuple[Any, ...]
    has_grad_input: bool
    indptr: Seen
    indices: Seen


def _transpose_or_room(matrix: Tensor) -> Tensor:
    """Return the transpose if its rows are contiguous, else a new tensor that can receive it."""
    if matrix.stride(0) == 1:
        transpose = matrix.detach().t()
        if transpose.is_contiguous():
            return transpose
    return matrix.new_empty((matrix.shape[1], matrix.shape[0]))


class _Product(torch.autograd.Function):
    """x [batch, inputs] -> x @ W.T + bias. Results are contiguous, as those of torch.nn.Linear are: the
    layer writes them as fast, and a function of two operands, such as the derivative of a ReLU, takes
    many times as long if their strides differ. Operands are transposed once in a step: x for forward() and
    the gradient of the values, which keeps the copy, and dq for both gradients."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, x: Tensor, values: Tensor, bias: Tensor | None, module: SparseLinear, trains: bool
    ) -> Tensor:
        require_plain("values", values)
        made = module._made_for(values, trains and ctx.needs_input_grad[0])
        content = values.data_ptr(), values.numel(), module._stamp_of(values)
        bias_address = _address(bias, module.out_features)
        x = x.resolve_neg()
        batch = x.shape[0]
        # Not a view of another tensor: functions in place, as nn.ReLU(inplace=True), may follow.
        q = x.new_empty((batch, module.out_features))
        if trains and x.dtype == torch.float32:
            s = _transpose_or_room(x)
            made.layer._train_forward(
                batch, x.data_ptr(), x.stride(0), x.stride(1), s.data_ptr(), q.data_ptr(), bias_address, *content
            )
        else:
            s = x.detach().t()
            made.layer._forward_with(s, q.t(), None if bias is None else bias.detach(), *content)
        ctx.save_for_backward(s, values)
        ctx.module, ctx.made, ctx.stamp, ctx.changes = module, made, content[2], module._changes
        return q

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[misc]
    def backward(ctx: Any, dq: Tensor) -> Any:
        module: SparseLinear = ctx.module
        made: _Made = ctx.made
        if module._changes != ctx.changes or made.indptr.is_written() or made.indices.is_written():
            raise InvalidArgument(
                "the pattern changed after forward(); call backward() before a rewire or load_state_dict()"
            )
        s, values = ctx.saved_tensors
        require_plain("values", values)
        content = values.data_ptr(), values.numel(), ctx.stamp
        needs_x, needs_values, needs_bias = ctx.needs_input_grad[:3]
        dq = dq.resolve_neg()
        batch = dq.shape[0]
        dx = s.new_empty((batch, module.in_features)) if needs_x else None
        dvalues = torch.empty_like(values) if needs_values else None
        if s.dtype == torch.float32:
            dbias = s.new_empty(module.out_features) if needs_bias else None
            rows = _transpose_or_room(dq)
            made.layer._train_backward(
                batch,
                dq.data_ptr(),
                dq.stride(0),
                dq.stride(1),
                rows.data_ptr(),
                s.data_ptr(),
                0 if dx is None else dx.data_ptr(),
                0 if dvalues is None else dvalues.data_ptr(),
                0 if dbias is None else dbias.data_ptr(),
                *content,
            )
        else:
            dbias = dq.sum(0, dtype=torch.float32) if needs_bias else None
            rows = dq.t()
            if dx is not None:
                made.layer._grad_input_with(rows, dx.t(), *content)
            if dvalues is not None:
                made.layer.grad_weights(rows, s, dvalues)
        module._remember(rows, s)
        return dx, dvalues, dbias, None, None


class SparseLinear(nn.Module):
    """As torch.nn.Linear(in_features, out_features, bias), with a sparse weight, on the CPU.

    density   stored blocks / all blocks; the first pattern is random, by torch's generator
    block     1, a side, or (rows, columns); sizes are whole numbers of blocks
    dtype     of the input: torch.float32, float16 or bfloat16; values and bias are float32
    threads   threads of a pass; 0: one for each core
    batch     the batch that the layer is cut for; any other one works as well

    values    nn.Parameter [nnz], float32, in the order of a CSR matrix (BSR for blocks)
    bias      nn.Parameter [out_features] or None, float32
    indptr, indices   buffers with the pattern, which are in the state_dict
    weight    the dense weight [out, in], made from `values` at each look and connected to them by autograd

    state_dicts load where the pattern differs. The values and the pattern may be written in place and replaced;
    only a write to `.data` in eval mode needs a call of refresh(). to(), half() and float() choose dtype, and
    values and bias stay float32. Under autocast, inputs are cast to dtype and results to autocast's type. Any
    number of threads may use one module.
    """

    values: nn.Parameter
    bias: nn.Parameter | None
    indptr: Tensor
    indices: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        density: float = 0.1,
        block: int | tuple[int, int] = 1,
        dtype: torch.dtype = torch.float32,
        threads: int = 1,
        batch: int = 128,
    ) -> None:
        super().__init__()
        if dtype not in _FLOATS:
            raise InvalidArgument(
                f"dtype is {dtype}; SparseLinear(dtype=...) is torch.float32, float16 or bfloat16: pass one of these"
            )
        self.in_features = whole_number("in_features", in_features)
        self.out_features = whole_number("out_features", out_features)
        self.block = block_shape(block)
        self.dtype, self.threads = dtype, thread_count(threads)
        self.batch = whole_number("batch", batch, 1, MOST_SIZE)
        density = number("density", density)
        seed = int(torch.randint(_SEEDS, ()))
        indptr, indices, data = _core._random_pattern(
            self.out_features, self.in_features, *self.block, density, seed
        )
        self.register_buffer("indptr", torch.from_numpy(indptr))
        self.register_buffer("indices", torch.from_numpy(indices))
        # He's deviation with the fan-in that is really there.
        deviation = math.sqrt(2 / max(in_features * density, 1))
        self.values = nn.Parameter(torch.randn(data.size) * deviation)
        if bias:
            self.bias = nn.Parameter(torch.zeros(out_features))
        else:
            self.register_parameter("bias", None)
        self._forget()

    def _forget(self) -> None:
        """Drop what is made from the parameters and buffers."""
        self._made: _Made | None = None
        self._stamped: tuple[Seen, int] | None = None
        self._changes = 0  # of the pattern that the parameter belongs to
        self._watched = False
        self._operands: list[tuple[Tensor, Tensor]] = []

    def _remember(self, dq: Tensor, s: Tensor) -> None:
        """Keep the operands of the weight gradient if a method asked for those of this step."""
        if self._watched:
            self._operands.append((dq.detach(), s))

    def _data(self, values: Tensor) -> Any:
        numpy = values.detach().numpy()
        if self.block == (1, 1):
            return numpy
        if numpy.size % (self.block[0] * self.block[1]):
            raise InvalidArgument(f"there are {numpy.size} values, which are no whole blocks of {self.block}")
        return numpy.reshape(-1, *self.block)

    def _made_for(self, values: Tensor, needs_input: bool) -> _Made:
        """Return the layer of this pattern. Its values are set by the pass.

        It has the gradient of its input from the first pass on that needs it. Several threads may make one at the
        same time: each uses its own.
        """
        made, settings = self._made, (self.dtype, self.threads, self.batch, self.block)
        if (
            made is not None
            and (made.has_grad_input or not needs_input)
            and made.settings == settings
            and made.indptr.is_content_of(self.indptr)
            and made.indices.is_content_of(self.indices)
        ):
            return made
        needs_input = needs_input or (made is not None and made.has_grad_input)
        seen = Seen(self.indptr), Seen(self.indices)
        layer = Layer(
            (self.indptr, self.indices, self._data(values)),
            self.batch,
            threads=self.threads,
            dtype=_dtype_name(self.dtype),
            passes="all" if needs_input else "fwd+grad_weights",
            shape=(self.out_features, self.in_features),
        )
        made = self._made = _Made(layer, settings, needs_input, *seen)
        return made

    def _stamp_of(self, values: Tensor) -> int:
        """Return a number that names the content of the values.

        In training it is a new one in every forward pass, because a write to values.data shows in no version of
        the tensor.
        """
        if self.training:
            return next(_STAMPS)
        stamped = self._stamped
        if stamped is None or not stamped[0].is_content_of(values):
            stamped = self._stamped = (Seen(values), next(_STAMPS))
        return stamped[1]

    def _current_layer(self) -> Layer:
        """Return the layer with the values of now."""
        require_plain("values", self.values)
        layer = self._made_for(self.values, False).layer
        layer.set_values(self.values.detach())
        return layer

    def refresh(self) -> None:
        """Read values and pattern again, after their `.data` was written in eval mode."""
        self._made = self._stamped = None

    def forward(self, x: Tensor) -> Tensor:
        """Return x @ W.T + bias for x [..., in_features]."""
        if x.is_nested:
            raise TypeError("x is a nested tensor; pass padded ones: nn.TransformerEncoder(..., enable_nested_tensor=False)")
        if x.shape[-1:] != (self.in_features,):
            raise InvalidArgument(f"x has the shape {list(x.shape)}; this layer needs [..., {self.in_features}]")
        autocast = torch.is_autocast_cpu_enabled() and x.dtype in _FLOATS
        if autocast:
            x = x.to(self.dtype)
        if x.dtype != self.dtype:
            raise TypeError(
                f"x is {x.dtype}; this layer needs {self.dtype}: pass x.to({self.dtype}), or make it another "
                "SparseLinear(dtype=...) of torch.float32, float16 or bfloat16"
            )
        if not x.is_cpu:
            raise TypeError(f"x is on {x.device}; this layer runs on the CPU: pass x.cpu()")
        flat = x if x.dim() == 2 else x.reshape(-1, self.in_features)
        values = self.values
        trains = torch.is_grad_enabled() and (flat.requires_grad or values.requires_grad)
        q: Tensor = _Product.apply(flat, values, self.bias, self, trains)
        if autocast:
            q = q.to(torch.get_autocast_cpu_dtype())
        return q if x.dim() == 2 else q.reshape(*x.shape[:-1], self.out_features)

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

    def _dense(self) -> Tensor:
        height, width = self.block
        heads = torch.repeat_interleave(torch.arange(len(self.indptr) - 1), self.indptr.diff().to(torch.int64))
        rows = heads[:, None, None] * height + torch.arange(height)[:, None]
        cols = self.indices.to(torch.int64)[:, None, None] * width + torch.arange(width)
        places = (rows * self.in_features + cols).reshape(-1)
        dense = self.values.new_zeros(self.out_features * self.in_features)
        return dense.index_put((places,), self.values, accumulate=True).reshape(self.out_features, self.in_features)

    def to_torch(self) -> Tensor:
        """Return the weight as a sparse CSR (BSR for blocks) tensor of torch: a copy."""
        tensor: Tensor = self._current_layer().to_torch()
        return tensor

    def _take(self, arrays: Any, values: Tensor) -> None:
        """Take another pattern with its values; the parameter stays the same object."""
        self.indptr, self.indices = torch.from_numpy(arrays[0]), torch.from_numpy(arrays[1])
        self.values.data = values
        self.values.grad = None
        self._changes += 1
        self.refresh()

    def rewire(self, optimiser: torch.optim.Optimizer | None, method: str, **options: Any) -> None:
        """Change the pattern by a method of ts.Layer.rewire, and move the optimiser's slots along.

        Every slot of one dimension that is as long as the values is carried, new places are 0.
        """
        layer, made = self._current_layer(), self._made
        area = self.block[0] * self.block[1]
        count = self.values.numel()
        origin = layer.rewire(method, **options)
        indptr, indices, data = layer._arrays()

        def carried(old: Tensor) -> Tensor:
            if old.dtype == torch.float32:
                return torch.from_numpy(_core._carried(origin, old, count, area))
            blocks = torch.from_numpy(origin)
            moved = old.reshape(-1, area)[blocks.clamp(min=0)]
            return torch.where(blocks[:, None] < 0, torch.zeros((), dtype=old.dtype), moved).reshape(-1)

        slots: dict[str, Any] = dict(optimiser.state.get(self.values, {})) if optimiser else {}
        for name, slot in slots.items():
            if isinstance(slot, Tensor) and slot.dim() == 1 and slot.numel() == count and count:
                optimiser.state[self.values][name] = carried(slot)  # type: ignore[union-attr]
        self._take((indptr, indices), torch.from_numpy(data).reshape(-1))
        if made is not None and made.layer is layer:  # which has the new pattern
            self._made = made._replace(indptr=Seen(self.indptr), indices=Seen(self.indices))

    @classmethod
    def from_dense(
        cls,
        linear: nn.Linear,
        *,
        density: float | None = None,
        mask: Any = None,
        block: int | tuple[int, int] = 1,
        threads: int = 1,
        dtype: torch.dtype | None = None,
    ) -> SparseLinear:
        """Return the sparse form of a dense layer.

        density keeps the blocks of largest sum of |weight|; mask [out, in] keeps the blocks that
        contain a place that is set. Give one of the two. dtype is that of the dense layer by default.
        """
        if (density is None) == (mask is None):
            raise InvalidArgument("from_dense: give density or mask, not both")
        given = getattr(linear, "weight", None)
        if not isinstance(given, Tensor) or given.dim() != 2 or isinstance(linear, SparseLinear):
            raise TypeError(f"from_dense: a {type(linear).__name__} is no dense layer; pass a torch.nn.Linear")
        made = cls(
            given.shape[1], given.shape[0], getattr(linear, "bias", None) is not None, density=0.0, block=block, threads=threads,
            dtype=given.dtype if dtype is None else dtype,
        )
        weight = given.detach().cpu().to(torch.float32).resolve_neg()
        height, width = made.block

        def in_blocks(matrix: Tensor) -> Tensor:
            return matrix.reshape(matrix.shape[0] // height, height, -1, width).transpose(1, 2)

        cut = in_blocks(weight)
        if mask is not None:
            flags = array_of(mask, "mask")
            if flags.shape != weight.shape:
                raise InvalidArgument(f"mask is {list(flags.shape)}; it has the shape of the weight: {list(weight.shape)}")
            keep = in_blocks(torch.from_numpy(flags != 0)).flatten(2).any(2)
        else:
            density = number("density", density)
            if not 0 <= density <= 1:
                raise InvalidArgument(f"density is {density}; it must be in 0..1")
            sums = cut.abs().sum((2, 3)).reshape(-1)
            chosen = torch.topk(sums, round(density * sums.numel())).indices
            keep = torch.zeros(sums.numel(), dtype=torch.bool).index_fill(0, chosen, True).reshape(cut.shape[:2])
        rows, cols = torch.nonzero(keep, as_tuple=True)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(keep)))]).astype(np.int32)
        made._take((indptr, cols.numpy().astype(np.int32)), cut[rows, cols].reshape(-1).clone())
        if made.bias is not None:
            made.bias.data = linear.bias.detach().cpu().to(torch.float32).resolve_neg().clone()
        return made

    def to_dense(self) -> nn.Linear:
        """Return a torch.nn.Linear with the same weight."""
        dense = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        dense.weight.data = self._dense().detach()
        if self.bias is not None:
            dense.bias.data = self.bias.detach().clone()
        return dense

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, density={self.density:.3g}, block={self.block}, "
            f"threads={self.threads}"
        )

    def __getstate__(self) -> dict[str, Any]:
        made = ("_made", "_stamped", "_changes", "_watched", "_operands")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._forget()

    def _apply(self, fn: Any, *rest: Any) -> SparseLinear:
        """Let to(), half() and the like choose the type of the operands; values and bias stay float32."""
        dtype = fn(torch.empty(0, dtype=self.dtype)).dtype
        if dtype in _FLOATS:
            self.dtype = dtype

        def moved(tensor: Tensor) -> Tensor:
            given: Tensor = fn(tensor)
            return given if given.dtype == tensor.dtype else tensor.to(given.device)

        super()._apply(moved, *rest)  # type: ignore[no-untyped-call]
        return self

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        given = [state_dict.get(prefix + name) for name in ("indptr", "indices", "values")]
        if all(isinstance(tensor, Tensor) for tensor in given):
            indptr, indices = (index_array(given[i].cpu(), ("indptr", "indices")[i]).copy() for i in range(2))
            values = given[2].detach().cpu().to(torch.float32).resolve_neg().clone()
            if values.dim() != 1:
                raise InvalidArgument(f"values have the shape {list(values.shape)}; they have one dimension")
            # A layer of its own checks the pattern before this one is changed.
            Layer((indptr, indices, self._data(values)), passes="fwd", shape=(self.out_features, self.in_features))
            self._take((indptr, indices), values)
        super()._load_from_state_dict(state_dict, prefix, *rest)  # type: ignore[no-untyped-call]


class Rewiring:
    """The common part of RigL, SET, Sampled and Static.

    Rewires all SparseLinear modules of a network at each multiple of `every` in begin .. end.

    end       the last step at which patterns change, begin or later; 0.75 * steps is usual
    fraction  share of the blocks that moves at first; it falls to 0 as a cosine
    seed      of random growth
    """

    _method = "static"
    _legal: tuple[str, ...] = ()  # options of ts.Layer.rewire that the method reads
    _reads_gradients = False
    _steps_too = False  # the optimiser makes its step before the pattern changes

    def __init__(
        self,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        *,
        end: float,
        every: int = 100,
        fraction: float = 0.3,
        begin: int = 1,
        seed: int = 0,
        **options: Any,
    ) -> None:
        self.layers = [module for module in network.modules() if isinstance(module, SparseLinear)]
        if not self.layers:
            raise InvalidArgument("the network has no SparseLinear")
        self._check_options(options)
        begin = whole_number("begin", begin)
        if not begin <= number("end", end) < 2.0**63:
            raise InvalidArgument(
                f"end is {end}; it is the last step at which patterns change, {begin} or later: 0.75 * steps is usual"
            )
        self.optimiser, self.seed, self.options = optimiser, seed_number(seed), options
        self.schedule = (number("fraction", fraction), begin, int(end), whole_number("every", every))
        self.steps = 0
        self.fraction_at(1)  # checks the schedule
        self._watch()

    def _check_options(self, options: dict[str, Any]) -> None:
        unknown = sorted(set(options) - set(self._legal))
        if unknown:
            legal = ", ".join(("end", "every", "fraction", "begin", "seed", *self._legal))
            raise TypeError(f"{type(self).__name__} has no option {unknown[0]}; its options are {legal}")
        given: dict[str, Any] = {"pool": "sum", "exclude": "kept", "factor": 2.0, **options}
        _core._check_method(
            self._method, text("pool", given["pool"]), text("exclude", given["exclude"]), number("factor", given["factor"])
        )

    def fraction_at(self, step: int) -> float:
        """Return the share of blocks that moves at a step, counted from 1; 0 if none does."""
        return _core._rewire_fraction(whole_number("step", step), *self.schedule)

    def _watch(self) -> None:
        due = self._reads_gradients and self.fraction_at(self.steps + 1) > 0
        for layer in self.layers:
            layer._watched = due
            layer._operands.clear()

    def step(self) -> bool:
        """Call after backward() and before the optimiser's step.

        Return True if the pattern changed; the optimiser then makes no step of its own. Raises
        ts.InvalidArgument, and changes nothing, if a rewire is due and a layer had no backward().
        """
        fraction = self.fraction_at(self.steps + 1)
        changes = fraction > 0 and self._method != "static"
        if changes:
            self._require_backward()
        self.steps += 1
        if changes:
            if self._steps_too:
                self.optimiser.step()
            for i, layer in enumerate(self.layers):
                self._rewire(layer, fraction, self.seed + self.steps * len(self.layers) + i)
        self._watch()
        return changes

    def _require_backward(self) -> None:
        for i, layer in enumerate(self.layers):
            if not layer._operands if self._reads_gradients else layer.values.grad is None:
                raise InvalidArgument(
                    f"step() needs a backward() through every SparseLinear since the last step(); number {i} of "
                    f"{len(self.layers)} had none"
                )

    def _rewire(self, layer: SparseLinear, fraction: float, seed: int) -> None:
        operands = [(dq.float(), s.float()) for dq, s in layer._operands]
        layer.rewire(
            self.optimiser,
            self._method,
            fraction=fraction,
            dq=[dq for dq, _ in operands],
            s=[s for _, s in operands],
            seed=seed,
            **self.options,
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps, which is all that a resumed run needs."""
        return {"steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue at the number of steps of state_dict()."""
        self.steps = whole_number("steps", state["steps"])
        self._watch()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._watch()  # copies of layers forget who asked for their operands


class Static(Rewiring):
    """The pattern never changes: the same shape as the others, for comparisons."""


class SET(Rewiring):
    """Drops the smallest blocks and grows random ones, after a step of the optimiser.

    Options are those of Rewiring, and exclude of ts.Layer.rewire.
    """

    _method, _steps_too, _legal = "set", True, ("exclude",)


class RigL(Rewiring):
    """Drops the smallest blocks and grows those of largest gradient, instead of a step.

    pool="sum" | "max" | "mean" makes one score of a block's gradients. Gradients are those of all
    backward passes since the last step(). Other options are those of Rewiring, and exclude of
    ts.Layer.rewire.
    """

    _method, _reads_gradients, _legal = "rigl", True, ("pool", "exclude")


class Sampled(Rewiring):
    """RigL with gradients at a random sample of the free places: factor * stored blocks."""

    _method, _reads_gradients, _legal = "sampled", True, ("pool", "exclude", "factor")

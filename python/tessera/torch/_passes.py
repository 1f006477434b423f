"""The passes of a SparseLinear: one autograd function, and what it keeps between calls."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tessera._core import InvalidArgument
from tessera._layer import Layer
from tessera.torch._autograd import differentiable_once
from tessera.torch._tensors import Seen, dtype_name, require_plain

_STAMPS = itertools.count(1)  # one for each content of values that a layer may have


def next_stamp() -> int:
    """Return a number that no content of values has had."""
    return next(_STAMPS)


class Made(NamedTuple):
    """A layer, with what it was made from."""

    layer: Layer
    settings: tuple[Any, ...]
    has_grad_input: bool
    indptr: Seen
    indices: Seen


class Passes:
    """The layer in C++ of a pattern, and what tells whether it still belongs to the pattern and the values.

    A class that has the attributes below computes by Product. Any number of threads may use an object.
    """

    in_features: int
    out_features: int
    block: tuple[int, int]
    dtype: torch.dtype
    threads: int
    batch: int
    activation: str
    training: bool
    indptr: Tensor
    indices: Tensor

    def _forget(self) -> None:
        """Drop what is made from the parameters and buffers."""
        self._made: Made | None = None
        self._stamped: tuple[Seen, int] | None = None
        self._changes = 0  # of the pattern that the parameter belongs to
        self._watched = False
        self._operands: list[tuple[Tensor, Tensor]] = []

    def _data(self, values: Tensor) -> Any:
        numpy = values.detach().numpy()
        if self.block == (1, 1):
            return numpy
        if numpy.size % (self.block[0] * self.block[1]):
            raise InvalidArgument(f"there are {numpy.size} values, which are no whole blocks of {self.block}")
        return numpy.reshape(-1, *self.block)

    def _made_for(self, values: Tensor, needs_input: bool) -> Made:
        """Return the layer of this pattern. Its values are set by the pass.

        It has the gradient of its input from the first pass on that needs it. Several threads may make one at the
        same time: each uses its own.
        """
        made, settings = self._made, (self.dtype, self.threads, self.batch, self.block)
        indptr, indices = self.indptr, self.indices
        if (
            made is not None
            and (made.has_grad_input or not needs_input)
            and made.settings == settings
            and made.indptr.is_content_of(indptr)
            and made.indices.is_content_of(indices)
        ):
            return made
        needs_input = needs_input or (made is not None and made.has_grad_input)
        seen = Seen(indptr), Seen(indices)
        layer = Layer(
            (indptr, indices, self._data(values)),
            self.batch,
            threads=self.threads,
            dtype=dtype_name(self.dtype),
            passes="all" if needs_input else "fwd+grad_weights",
            shape=(self.out_features, self.in_features),
        )
        made = self._made = Made(layer, settings, needs_input, *seen)
        return made

    def _stamp_of(self, values: Tensor) -> int:
        """Return a number that names the content of the values.

        In training it is a new one in every forward pass, because a write to values.data shows in no version of
        the tensor.
        """
        if self.training:
            return next_stamp()
        stamped = self._stamped
        if stamped is None or not stamped[0].is_content_of(values):
            stamped = self._stamped = (Seen(values), next_stamp())
        return stamped[1]


def fused_activation(activation: str, is_kept: bool) -> str:
    """Return the activation that a pass applies: where a backward pass follows, GELU is torch's, which keeps its input."""
    return "none" if activation == "gelu" and is_kept else activation


def _address(bias: Tensor | None, count: int) -> int:
    """Return the address of the bias, 0 for None."""
    if bias is None:
        return 0
    require_plain("bias", bias)
    if bias.numel() != count:
        raise TypeError(f"bias has {bias.numel()} numbers; pass {count}")
    return bias.data_ptr()


# Numbers and rows from which passes read a matrix with the batch first as fast as a transposed copy: the copy would
# be in no cache when it is read, and its memory would come from the system anew in each step. Few rows fill no vectors.
_LARGE, _MANY = 1 << 20, 256


def _is_large(matrix: Tensor) -> bool:
    return matrix.numel() >= _LARGE and matrix.shape[0] >= _MANY


def is_read_as_given(matrix: Tensor) -> bool:
    """Return True if passes read the transpose of a matrix as fast as a contiguous copy, and it can be kept."""
    if matrix.is_inference():  # torch saves none for a backward pass
        return False
    is_in_rows = matrix.stride(1) == 1 and matrix.stride(0) >= matrix.shape[1]
    return (_is_large(matrix) and is_in_rows) or (matrix.stride(0) == 1 and matrix.t().is_contiguous())


def _room_for_transpose(matrix: Tensor) -> Tensor:
    """Return a new tensor for the transpose, in the order in which passes read it fastest."""
    batch, features = matrix.shape
    return matrix.new_empty((batch, features)).t() if _is_large(matrix) else matrix.new_empty((features, batch))


def _transpose_or_room(matrix: Tensor) -> Tensor:
    """Return the transpose if it is read as it is, else a new tensor that can receive it."""
    if is_read_as_given(matrix):
        return matrix.detach().t()
    return matrix.new_empty((matrix.shape[1], matrix.shape[0]))


def forward_pass(
    module: Passes, x: Tensor, values: Tensor, bias: Tensor | None, needs_x: bool, is_kept: bool
) -> tuple[Tensor, Tensor | None, Made, int]:
    """Return (result [batch, outputs], the transpose of x if it is kept, the layer, the stamp of the values).

    The activation is applied as fused_activation() says.
    """
    require_plain("values", values)
    made = module._made_for(values, needs_x)
    stamp = module._stamp_of(values)
    content = values.data_ptr(), values.numel(), stamp
    batch, activation = x.shape[0], fused_activation(module.activation, is_kept)
    address = _address(bias, module.out_features)
    # Not a view of another tensor: functions in place, as nn.ReLU(inplace=True), may follow.
    q = x.new_empty((batch, module.out_features))
    if x.dtype == torch.float32:
        s = _transpose_or_room(x) if is_kept else None
        made.layer._train_forward(batch, *_place(x), *_place(s), q.data_ptr(), address, activation, *content)
        return q, s, made, stamp
    s = x.detach().t()
    made.layer._forward_with(s, q.t(), None if bias is None else bias.detach(), activation, *content)
    return q, s, made, stamp


def backward_pass(
    made: Made, stamp: int, dq: Tensor, s: Tensor, values: Tensor, q: Tensor | None, needs: tuple[bool, bool, bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor]:
    """Return the gradients of x, values and bias, those that are needed, and dq with rows of outputs.

    q is the result of a forward pass with ReLU, else None.
    """
    require_plain("values", values)
    content = values.data_ptr(), values.numel(), stamp
    batch, (outputs, inputs) = dq.shape[0], made.layer.shape
    dx = s.new_empty((batch, inputs)) if needs[0] else None
    dvalues = torch.empty_like(values) if needs[1] else None
    if s.dtype == torch.float32:
        dbias = s.new_empty(outputs) if needs[2] else None
        rows = _transpose_or_room(dq) if q is None else _room_for_transpose(dq)
        made.layer._train_backward(
            batch, *_place(dq), *_place(rows), *_place(s), _memory(dx), _memory(dvalues), _memory(dbias), _memory(q),
            *content,
        )
        return dx, dvalues, dbias, rows
    if q is not None:
        dq = dq.masked_fill(q <= 0, 0)
    dbias = dq.sum(0, dtype=torch.float32) if needs[2] else None
    rows = dq.t()
    if dx is not None:
        made.layer._grad_input_with(rows, dx.t(), *content)
    if dvalues is not None:
        made.layer.grad_weights(rows, s, dvalues)
    return dx, dvalues, dbias, rows


class Product(torch.autograd.Function):
    """x [batch, inputs] -> activation(x @ W.T + bias), in one node of the graph; fused_activation() says which.

    Results are contiguous, as those of torch.nn.Linear are: the layer writes them as fast, and a function of two
    operands, such as the derivative of a ReLU, takes many times as long if their strides differ. In float32, small
    operands are transposed once in a step: x for forward() and the gradient of the values, which keeps the copy, and dq
    for both gradients; the derivative of a ReLU is taken on the way. A large x is kept as it is, as by torch.nn.Linear:
    who writes it before the backward pass gets an error.
    """

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, x: Tensor, values: Tensor, bias: Tensor | None, module: Passes, is_kept: bool
    ) -> Tensor:
        x = x.resolve_neg() if x.is_neg() else x
        q, s, made, stamp = forward_pass(module, x, values, bias, is_kept and ctx.needs_input_grad[0], is_kept)
        if is_kept:
            ctx.save_for_backward(s, values, q if module.activation == "relu" else None)
            ctx.keeps_x = _memory(s) == x.data_ptr()
            ctx.module, ctx.made, ctx.stamp, ctx.changes = module, made, stamp, module._changes
        return q

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, dq: Tensor) -> Any:
        module, made = ctx.module, ctx.made
        if module._changes != ctx.changes or made.indptr.is_written() or made.indices.is_written():
            raise InvalidArgument(
                "the pattern changed after forward(); call backward() before a rewire or load_state_dict()"
            )
        s, values, q = ctx.saved_tensors
        dq = dq.resolve_neg() if dq.is_neg() else dq
        *gradients, rows = backward_pass(made, ctx.stamp, dq, s, values, q, ctx.needs_input_grad[:3])
        if module._watched:  # a method asked for the operands of the weight gradient of this step
            # The caller may write memory that is his before the method reads it.
            rows = rows.clone() if rows.data_ptr() == dq.data_ptr() else rows
            module._operands.append((rows.detach(), s.clone() if ctx.keeps_x else s))
        return *gradients, None, None


def _memory(tensor: Tensor | None) -> int:
    """Return the address of a tensor, 0 for None."""
    return 0 if tensor is None else tensor.data_ptr()


def _place(matrix: Tensor | None) -> tuple[int, int, int]:
    """Return the address and the strides of a matrix, zeros for None."""
    return (0, 0, 0) if matrix is None else (matrix.data_ptr(), matrix.stride(0), matrix.stride(1))

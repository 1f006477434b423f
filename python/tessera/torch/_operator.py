"""The product as an operator of torch, tessera::sparse_linear, for graphs: torch.jit.trace, compile and export.

Outside graphs a SparseLinear calls its autograd function directly, which takes less time. The operator has everything
in its arguments, so that a saved graph runs in a program that only imports tessera.torch.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor

from tessera.torch._autograd import needs_gradient
from tessera.torch._passes import Passes, Product, backward_pass, forward_pass, fused_activation, is_read_as_given, next_stamp

_PATTERN = "Tensor indptr, Tensor indices, int in_features, int[] block, int threads, int batch, str activation"
_KEPT = 64  # layers that graphs may use in turn without making them again
_is_compiling: Any = getattr(getattr(torch, "compiler", None), "is_compiling", None)  # torch 2.1 and later
_HAS_AUTOGRAD = hasattr(torch.library, "register_autograd")  # torch 2.4 and later


class _Functional(Passes):
    """The layer of a pattern that a graph holds."""

    training = True  # values are read in every call

    def __init__(self, indptr: Tensor, settings: tuple[Any, ...]) -> None:
        self.in_features, self.block, self.threads, self.batch, self.activation, self.dtype = settings
        self.out_features = (len(indptr) - 1) * self.block[0]
        self._forget()


_layers: OrderedDict[tuple[Any, ...], _Functional] = OrderedDict()
_lock = threading.Lock()


def _layer_of(x: Tensor, indptr: Tensor, indices: Tensor, in_features: int, block: Any, *rest: Any) -> _Functional:
    settings = in_features, tuple(block), *rest, x.dtype
    key = indptr.data_ptr(), indices.data_ptr(), settings
    with _lock:
        layer = _layers.pop(key, None) or _Functional(indptr, settings)
        _layers[key] = layer
        if len(_layers) > _KEPT:
            _layers.popitem(last=False)
        layer.indptr, layer.indices = indptr, indices  # whose content is compared by the pass
    return layer


def _forward(x: Tensor, values: Tensor, bias: Tensor | None, *pattern: Any) -> Tensor:
    return forward_pass(_layer_of(x, *pattern), x.resolve_neg(), values, bias, False, False)[0]


def _backward(dq: Tensor, x: Tensor, q: Tensor, values: Tensor, needs: Any, *pattern: Any) -> Any:
    layer = _layer_of(x, *pattern)
    made = layer._made_for(values, needs[0])
    x = x.resolve_neg()
    s = x.t() if x.dtype != torch.float32 or is_read_as_given(x) else x.t().contiguous()
    kept = q if layer.activation == "relu" else None
    found = backward_pass(made, next_stamp(), dq.resolve_neg(), s, values, kept, (needs[0], needs[1], needs[2]))
    return tuple(x.new_empty(0) if gradient is None else gradient for gradient in found[:3])


def _through_autograd(x: Tensor, values: Tensor, bias: Tensor | None, *pattern: Any) -> Any:
    return Product.apply(x, values, bias, _layer_of(x, *pattern), needs_gradient(x, values, bias))


def _remember(ctx: Any, inputs: Any, output: Any) -> None:
    x, values, _, indptr, indices, *ctx.settings = inputs
    ctx.save_for_backward(x, values, indptr, indices, output)


def _differentiate(ctx: Any, dq: Tensor) -> Any:
    x, values, indptr, indices, q = ctx.saved_tensors
    needs = list(ctx.needs_input_grad[:3])
    found = torch.ops.tessera.sparse_linear_backward(dq, x, q, values, needs, indptr, indices, *ctx.settings)
    return *(gradient if need else None for gradient, need in zip(found, needs)), *[None] * 7


def _fake_forward(x: Tensor, values: Tensor, bias: Any, indptr: Tensor, indices: Tensor, n: int, block: Any, *_: Any) -> Tensor:
    return x.new_empty((x.shape[0], (indptr.shape[0] - 1) * block[0]))


def _fake_backward(dq: Tensor, x: Tensor, q: Tensor, values: Tensor, needs: Any, *_: Any) -> Any:
    shapes = x.new_empty(x.shape), torch.empty_like(values), values.new_empty(dq.shape[1])
    return tuple(made if need else x.new_empty(0) for made, need in zip(shapes, needs))


def _register() -> Any:
    library = torch.library.Library("tessera", "DEF")
    library.define(f"sparse_linear(Tensor x, Tensor values, Tensor? bias, {_PATTERN}) -> Tensor")
    library.define(
        f"sparse_linear_backward(Tensor dq, Tensor x, Tensor q, Tensor values, bool[] needs, {_PATTERN})"
        " -> (Tensor, Tensor, Tensor)"
    )
    library.impl("sparse_linear", _forward, "CPU")
    library.impl("sparse_linear_backward", _backward, "CPU")
    if _HAS_AUTOGRAD:
        torch.library.register_fake("tessera::sparse_linear", _fake_forward, lib=library)
        torch.library.register_fake("tessera::sparse_linear_backward", _fake_backward, lib=library)
        torch.library.register_autograd("tessera::sparse_linear", _differentiate, setup_context=_remember, lib=library)
    else:
        library.impl("sparse_linear", _through_autograd, "AutogradCPU")
    return library


_library = _register()  # the operators live as long as this object


def is_traced() -> bool:
    """Return True inside torch.compile, torch.export and torch.jit.trace."""
    if _is_compiling is not None and _is_compiling():
        return True
    return torch._C._get_tracing_state() is not None


def traced_product(module: Passes, x: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
    """Return the product by the operator, for a graph that is being recorded, as for a pass that keeps its operands."""
    if not _HAS_AUTOGRAD and torch._C._get_tracing_state() is None:
        raise RuntimeError(
            f"torch.compile and torch.export with a SparseLinear need torch 2.4 or later; this is {torch.__version__}: "
            "call the network without them, or record it by torch.jit.trace"
        )
    q: Tensor = torch.ops.tessera.sparse_linear(
        x, values, bias, module.indptr, module.indices, module.in_features, list(module.block), module.threads,
        module.batch, fused_activation(module.activation, True),
    )
    return q

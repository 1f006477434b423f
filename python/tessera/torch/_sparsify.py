"""Whole models: linear layers and attention blocks swapped for sparse ones where it pays, and back."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tessera._core import InvalidArgument
from tessera._options import block_shape, number, require_one_of
from tessera._text import html_table
from tessera.torch import _patterns as patterns
from tessera.torch._attention import PROJECTIONS, SparseAttention, dense_projections, unsupported
from tessera.torch._linear import SparseLinear
from tessera.torch._rewiring import erk

_REPEATS = 9
_DISTRIBUTIONS = ("erk", "uniform")
_Call = tuple[tuple[Any, ...], dict[str, Any]]  # the arguments of a call


class Swap(NamedTuple):
    """What sparsify() did with one layer."""

    name: str
    shape: tuple[int, int]  # outputs, inputs
    density: float  # of the sparse layer, swapped or not
    ms_dense: float | None  # a forward and a backward pass; the forward pass alone in eval mode
    ms_sparse: float | None
    swapped: bool
    why: str


class SwapTable(tuple[Swap, ...]):
    """What sparsify() did, a Swap for each layer; prints as a table."""

    def __repr__(self) -> str:
        head = ("name", "shape", "density", "ms dense", "ms sparse", "swapped", "why")
        rows = [head, *(_cells(swap) for swap in self)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        return html_table("sparsify", {swap.name: ", ".join(_cells(swap)[1:]) for swap in self})


def _cells(swap: Swap) -> tuple[str, ...]:
    times = ("" if ms is None else f"{ms:.3g}" for ms in (swap.ms_dense, swap.ms_sparse))
    shape = f"{swap.shape[0]} x {swap.shape[1]}"
    return swap.name, shape, f"{swap.density:.3g}", *times, "yes" if swap.swapped else "no", swap.why


def sparsify(
    model: nn.Module,
    sample: Any = None,
    *,
    density: float | None = None,
    sparsity: float | None = None,
    distribution: str = "erk",
    skip: str | Iterable[str] = (),
    at_least: float = 1.1,
    block: int | tuple[int, int] = 1,
    threads: int | None = None,
    batch: int | None = None,
) -> SwapTable:
    """Swap the torch.nn.Linear and MultiheadAttention modules of a model for sparse ones, in place.

    sample      an input of the model, or a tuple or dict of its arguments: each layer is then measured beside its
                dense form on what reaches it, and swapped only if it is at_least times as fast, forward and
                backward (forward alone if the model is in eval mode). None: all are swapped
    density     of the weights together, or sparsity; None: the model is pruned, so zeros are left out
    distribution  "erk" gives narrow layers more, "uniform" gives all layers the same
    skip        names, or patterns such as "head*", of modules to leave dense
    threads     of a pass; None: as many as torch uses now
    batch       that layers are cut for; None: that of the sample, or 128

    Return a table with a Swap for each layer, swapped or not, and why. Make the optimiser after it: parameters are
    new. densify() is the way back, and state_dicts load both ways.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is of type {type(model).__name__}; pass a module of torch, whose layers are swapped in place")
    share = patterns.share_of(density, sparsity)
    require_one_of("distribution", distribution, _DISTRIBUTIONS)
    ratio, shape = number("at_least", at_least), block_shape(block)
    found = {name: module for name, module in model.named_modules() if _is_layer(module, model)}
    reasons = {name: _reason(name, module, model, share, shape) for name, module in found.items()}
    _skip(reasons, [skip] if isinstance(skip, str) else list(skip), model)
    shares = _shares({n: m for n, m in found.items() if reasons[n] is None}, share, distribution, shape)
    calls = {} if sample is None else _record(model, sample, [found[n] for n in shares])
    swaps = []
    for name, module in found.items():
        reason = reasons[name]
        if reason is not None:
            swaps.append(Swap(name, _shape(module), 1.0, None, None, False, reason))
            continue
        call = calls.get(module)
        used = torch.get_num_threads() if threads is None else threads
        options = {"block": shape, "batch": _rows(call) if batch is None else batch, "threads": used}
        twin = _twin(module, shares[name], options)
        pays, why = True, "not measured"
        times: tuple[float | None, float | None] = (None, None)
        if sample is not None:
            pays, times, why = _judge(module, twin, call, ratio, model.training)
        if pays:
            _replace(model, module, twin)
        swaps.append(Swap(name, _shape(module), _density(twin), times[0], times[1], pays, why))
    return SwapTable(swaps)


def _judge(
    module: nn.Module, twin: nn.Module, call: _Call | None, ratio: float, trains: bool
) -> tuple[bool, tuple[float | None, float | None], str]:
    """Return whether a sparse layer pays, the times of the dense and the sparse one, and why."""
    if call is None:
        return False, (None, None), "the sample does not reach it"
    dense, sparse = _milliseconds(module, twin, *call, trains=trains)
    gain = dense / sparse
    why = f"{gain:.2f} times as fast"
    return gain >= ratio, (dense, sparse), why if gain >= ratio else f"{why}, less than {ratio:g}"


def densify(model: nn.Module) -> nn.Module:
    """Swap the sparse layers of a model for dense ones with the same weights, in place, and return the model."""
    if isinstance(model, (SparseLinear, SparseAttention)):
        raise InvalidArgument("densify() swaps the layers inside a model; of a layer itself call to_dense()")
    for module in list(model.modules()):
        if isinstance(module, SparseAttention):
            dense: nn.Module = module.to_dense().to(module.q_proj.dtype)
        elif isinstance(module, SparseLinear) and not _is_inside_attention(module, model):
            dense = module.to_dense().to(module.dtype).train(module.training)
            after = {"relu": nn.ReLU(), "gelu": nn.GELU(approximate="tanh")}.get(module.activation)
            dense = dense if after is None else nn.Sequential(dense, after)
        else:
            continue
        _replace(model, module, dense)
    return model


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return two groups for an optimiser: matrices and the values of sparse layers with decay, all others without.

    Filters by dimensions alone take `values`, which has one, for a bias.
    """
    meant = {id(p) for m in model.modules() if isinstance(m, SparseLinear) for p in m.decay_parameters()}
    decayed: list[Any] = []
    others: list[Any] = []
    for parameter in model.parameters():
        (decayed if parameter.dim() > 1 or id(parameter) in meant else others).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def _is_layer(module: nn.Module, model: nn.Module) -> bool:
    if not isinstance(module, (nn.Linear, nn.MultiheadAttention)):
        return False
    if module is model:
        raise InvalidArgument(f"sparsify() swaps the layers inside a model; of a {type(module).__name__} itself call from_dense()")
    return not _is_inside_attention(module, model)


def _is_inside_attention(module: nn.Module, model: nn.Module) -> bool:
    blocks = (m for m in model.modules() if isinstance(m, (nn.MultiheadAttention, SparseAttention)))
    return any(module is child for block in blocks for child in block.children())


def _weights(module: nn.Module) -> dict[str, nn.Linear]:
    """Return the matrices of a layer, each as a linear layer."""
    return dense_projections(module) if isinstance(module, nn.MultiheadAttention) else {"": module}  # type: ignore[dict-item]


def _shape(module: Any) -> tuple[int, int]:
    if isinstance(module, nn.MultiheadAttention):
        return 4 * module.embed_dim, module.embed_dim
    return module.out_features, module.in_features


def _reason(name: str, module: Any, model: nn.Module, share: float | None, block: tuple[int, int]) -> str | None:
    """Return why a layer stays dense, None if it may be swapped."""
    if isinstance(module, nn.MultiheadAttention):
        if (reason := unsupported(module)) is not None:
            return reason
    elif type(module) is not nn.Linear:
        return f"a {type(module).__name__} may compute something else than torch.nn.Linear"
    own = {id(p) for p in module.parameters()}
    others = (p for m in model.modules() if m is not module and m not in list(module.children()) for p in m.parameters(False))
    if any(id(parameter) in own for parameter in others):
        return "its weight is shared with another module"
    if any("forward" in m.__dict__ for m in module.modules()):
        return "its forward was replaced, which a swap would lose"
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values(), *module._backward_hooks.values()]
    if any(not isinstance(hook, nn.utils.prune.BasePruningMethod) for hook in hooks):
        return "it has hooks, which a swap would lose"
    for linear in _weights(module).values():
        weight = patterns.dense_weight_of(linear)
        if weight.shape[0] % block[0] or weight.shape[1] % block[1]:
            return f"{weight.shape[0]} x {weight.shape[1]} is not cut into blocks of {block[0]} x {block[1]}"
        if weight.numel() == 0:
            return "it has no weights"
        if share is None and patterns.not_zero(weight, block).float().mean() > patterns.PRUNED:
            return "it is not pruned: more than half of its blocks are not zero; give density"
    return None


def _skip(reasons: dict[str, str | None], names: list[str], model: nn.Module) -> None:
    everything = [name for name, _ in model.named_modules()]
    for pattern in names:
        if not any(fnmatchcase(name, pattern) for name in everything):
            raise InvalidArgument(f"skip: no module has the name {pattern!r}; there are {', '.join(reasons) or 'none'}")
        for name in reasons:
            if fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*"):
                reasons[name] = "skipped"


def _shares(found: dict[str, nn.Module], share: float | None, distribution: str, block: tuple[int, int]) -> dict[str, Any]:
    """Return the density of each layer, four for attention, None for one whose zeros are left out."""
    sizes = [(w.out_features, w.in_features) for m in found.values() for w in _weights(m).values()]
    each: list[Any] = [share] * len(sizes)
    if share is not None and distribution == "erk" and 0 < share and sizes:
        each = erk(sizes, share, block)
    shares, at = {}, 0
    for name, module in found.items():
        count = len(PROJECTIONS) if isinstance(module, nn.MultiheadAttention) else 1
        shares[name] = each[at : at + count] if count > 1 else each[at]
        at += count
    return shares


def _twin(module: Any, share: Any, options: dict[str, Any]) -> nn.Module:
    twin: nn.Module
    if isinstance(module, nn.MultiheadAttention):
        twin = SparseAttention.from_dense(module, share, **options)
        if not any(parameter.requires_grad for parameter in module.parameters()):
            twin.requires_grad_(False)
        return twin
    twin = SparseLinear.from_dense(module, density=share, **options)
    for own, name in ((twin.values, "weight"), (twin.bias, "bias")):
        given = getattr(module, f"{name}_orig", getattr(module, name))  # torch's pruning keeps the parameter under this name
        if own is not None:
            own.requires_grad_(given.requires_grad)
    return twin


def _density(module: Any) -> float:
    layers = [m for m in module.modules() if isinstance(m, SparseLinear)]
    return sum(m.values.numel() for m in layers) / max(sum(m.in_features * m.out_features for m in layers), 1)


def _replace(model: nn.Module, old: nn.Module, new: nn.Module) -> None:
    for parent in list(model.modules()):
        for name, child in list(parent._modules.items()):
            if child is old:
                setattr(parent, name, new)


def _record(model: nn.Module, sample: Any, layers: list[nn.Module]) -> dict[nn.Module, _Call]:
    """Return the arguments of the first call of each layer, when the model is given the sample in eval mode."""
    calls: dict[nn.Module, _Call] = {}

    def recording(layer: nn.Module, forward: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.setdefault(layer, (args, kwargs))
            return forward(*args, **kwargs)

        return call

    modes = {module: module.training for module in model.modules()}
    args, kwargs = ((), sample) if isinstance(sample, dict) else (sample if isinstance(sample, tuple) else (sample,), {})
    try:
        for layer in layers:
            layer.forward = recording(layer, layer.forward)
        model.eval()
        with torch.enable_grad():  # with gradients torch's fused paths do not pass by the layers
            model(*args, **kwargs)
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)
        for module, mode in modes.items():
            module.training = mode
    return calls


def _rows(call: _Call | None) -> int:
    """Return the batch of a call, 128 for none."""
    if call is None:
        return 128
    x = next((t for t in (*call[0], *call[1].values()) if isinstance(t, Tensor)), None)
    return 128 if x is None or x.dim() < 2 else max(1, x.shape[:-1].numel())


def _milliseconds(dense: nn.Module, sparse: nn.Module, args: Any, kwargs: Any, trains: bool) -> tuple[float, float]:
    """Return the lower quartiles of the times of a call of two modules, run in turns.

    Other programs can only make a call slower, so the upper half says more about them than about the modules.
    """
    needs = {id(t): t.requires_grad for t in (*args, *kwargs.values()) if isinstance(t, Tensor)}

    def own(value: Any) -> Any:
        return value.detach().requires_grad_(trains and needs[id(value)]) if isinstance(value, Tensor) else value

    times: dict[nn.Module, list[float]] = {dense: [], sparse: []}
    for turn in range(_REPEATS + 1):
        for module, kept in times.items():
            given, named = [own(a) for a in args], {name: own(value) for name, value in kwargs.items()}
            begin = time.perf_counter()
            with torch.set_grad_enabled(trains):
                result = module(*given, **named)
                result = result[0] if isinstance(result, tuple) else result
                if result.requires_grad:
                    parameters = [p for p in (*module.parameters(), *given, *named.values()) if isinstance(p, Tensor) and p.requires_grad]
                    torch.autograd.grad(result, parameters, torch.ones_like(result), allow_unused=True)
            if turn > 0:  # the first one warms up
                kept.append(1e3 * (time.perf_counter() - begin))
    first, second = (statistics.quantiles(kept, n=4)[0] for kept in times.values())
    return first, second

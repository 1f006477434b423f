"""What top-k needs to know about an optimiser of torch: its rule, by which new places make their first step."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn

from tessera._core import InvalidArgument


class RuleOf(NamedTuple):
    """The rule of an optimiser for a parameter, as the module in C++ takes it."""

    name: str
    numbers: list[float]
    steps: int  # that the state counts
    slots: tuple[str, ...]  # the names of the state's arrays, in the order of the module


def rule_of(optimiser: torch.optim.Optimizer | None, parameter: nn.Parameter) -> RuleOf:
    """Return the rule by which an optimiser has just changed a parameter.

    Raises ts.InvalidArgument for optimisers other than Adam, AdamW and SGD, for options of theirs that change the rule,
    and for a parameter that the optimiser does not have or has not stepped.
    """
    group = next((g for g in optimiser.param_groups for p in g["params"] if p is parameter), None) if optimiser else None
    if optimiser is None or group is None:
        raise InvalidArgument("top-k: the optimiser has no such parameter; make it after the layers, with net.parameters()")
    kind, state = type(optimiser), optimiser.state.get(parameter, {})
    for option in ("amsgrad", "maximize", "nesterov", "dampening"):
        if group.get(option):
            raise InvalidArgument(f"top-k: {kind.__name__} with {option} is not supported; leave it out")
    rate, decay = float(group["lr"]), float(group["weight_decay"])
    if kind in (torch.optim.Adam, torch.optim.AdamW):
        if "step" not in state:
            raise InvalidArgument("top-k: the optimiser has made no step on this layer; call backward() through it first")
        numbers = [rate, *map(float, group["betas"]), float(group["eps"]), decay]
        return RuleOf("adam" if kind is torch.optim.Adam else "adamw", numbers, int(state["step"]), ("exp_avg", "exp_avg_sq"))
    if kind is torch.optim.SGD:
        return RuleOf("sgd", [rate, float(group["momentum"]), decay], 1, ("momentum_buffer",) if group["momentum"] else ())
    raise InvalidArgument(f"top-k: a {kind.__name__} is not supported; use torch.optim.Adam, AdamW or SGD")

"""Methods that change the patterns of a network while it is trained: RigL, SET, Sampled, Prune, TopK and Static."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tessera import _core
from tessera._core import InvalidArgument
from tessera._options import block_shape, number, seed_number, text, whole_number
from tessera.torch._linear import SparseLinear


class Change(NamedTuple):
    """A rewire of one layer, as `history` has it."""

    step: int
    layer: str  # its name in the network
    moved: int  # blocks that are at new places
    density: float
    ever_active: float  # share of all blocks that the layer has stored so far, at any time
    seconds: float


def erk(sizes: Sequence[tuple[int, int]], density: float, block: int | tuple[int, int] = 1) -> list[float]:
    """Return the density of each layer (outputs, inputs) by Erdos, Renyi and kernels, as RigL's authors share it out.

    The layers together have `density`; narrow ones keep more, none more than all.
    """
    pairs = [(whole_number("outputs", rows, 1), whole_number("inputs", cols, 1)) for rows, cols in sizes]
    return _core._erdos_renyi(pairs, block_shape(block), number("density", density))


def _bar(name: str, steps: int) -> Any:
    """Return a bar of tqdm for so many steps."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ImportError("progress=True needs tqdm (python3-tqdm); history has the same numbers") from None
    return tqdm(total=steps, desc=name, unit="step")


class Density(NamedTuple):
    """Densities of a run: every layer goes from `first`, up to step `begin`, to `last`, from step `end` on.

    curve  "linear", "cubic" (fast first, as magnitude pruning usually is) or "exponential"
    """

    last: float
    end: int
    first: float = 1.0
    begin: int = 0
    curve: str = "cubic"


class _Places:
    """The blocks that a layer has stored at any time."""

    def __init__(self, layer: SparseLinear) -> None:
        self.columns = layer.in_features // layer.block[1]
        self.flags = np.zeros((len(layer.indptr) - 1) * self.columns, np.bool_)
        self.count = 0
        self.add(layer, np.arange(len(layer.indices)))

    def add(self, layer: SparseLinear, positions: NDArray[np.int64]) -> None:
        """Add the blocks at these positions of the pattern."""
        rows = np.searchsorted(layer.indptr.numpy(), positions, "right") - 1
        keys = rows * self.columns + layer.indices.numpy()[positions]
        self.count += int(np.count_nonzero(~self.flags[keys]))
        self.flags[keys] = True

    def share(self) -> float:
        return self.count / max(self.flags.size, 1)


class Rewiring:
    """The common part of RigL, SET, Sampled, Prune, TopK and Static.

    Rewires all SparseLinear modules of a network at each multiple of `every` in begin .. end.

    end       the last step at which patterns change, begin or later; 0.75 * steps is usual
    fraction  share of the blocks that moves at first; it falls to 0 as a cosine
    seed      of random growth
    density   a Density: the layers' densities change with the rewires; None: they stay
    min_per_neuron  blocks that each row and column of blocks of a layer keeps, its largest ones
    constant_fan_in  True: rows of blocks of a layer have equal numbers, and change one by one; of RigL, SET and Prune
    progress  True: a bar of tqdm up to `end`, with the last rewire beside it

    history   a Change for each layer and rewire; plot() draws it

    A RuntimeWarning tells when neurons die: outputs of a layer without a weight, which dead_neurons() counts.
    """

    _method = "static"
    _legal: tuple[str, ...] = ()  # options of ts.Layer.rewire that the method reads
    _reads_gradients = False
    _steps_too = False  # the optimiser makes its step before the pattern changes
    _ignores_fraction = False  # a rewire that is due changes patterns whatever its fraction

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
        density: Density | None = None,
        min_per_neuron: int = 0,
        constant_fan_in: bool = False,
        progress: bool = False,
        **options: Any,
    ) -> None:
        named = [(name, module) for name, module in network.named_modules() if isinstance(module, SparseLinear)]
        if not named:
            raise InvalidArgument("the network has no SparseLinear; make some, or call tessera.torch.sparsify(network)")
        self.names, self.layers = [name for name, _ in named], [layer for _, layer in named]
        self._check_options(options)
        begin = whole_number("begin", begin)
        if not begin <= number("end", end) < 2.0**63:
            raise InvalidArgument(
                f"end is {end}; it is the last step at which patterns change, {begin} or later: 0.75 * steps is usual"
            )
        self.optimiser, self.seed, self.options = optimiser, seed_number(seed), options
        self.schedule = (number("fraction", fraction), begin, int(end), whole_number("every", every))
        self.density, self.min_per_neuron = density, whole_number("min_per_neuron", min_per_neuron, 0)
        self.constant_fan_in = bool(constant_fan_in)
        if self.constant_fan_in and (self.min_per_neuron > 0 or self._method in ("sampled", "top-k")):
            raise InvalidArgument("constant_fan_in is kept by RigL, SET and Prune without min_per_neuron; leave it out")
        self.steps = 0
        self.history: list[Change] = []
        self._dead = self.dead_neurons()
        self._ever: dict[int, _Places] = {}  # the blocks that each layer has stored
        self.fraction_at(1)  # checks the schedule
        self._check_density()
        self.density_at(1)
        self._bar = _bar(type(self).__name__, int(end)) if progress else None
        self._watch()

    def _check_options(self, options: dict[str, Any]) -> None:
        unknown = sorted(set(options) - set(self._legal))
        if unknown:
            legal = ", ".join(("end", "every", "fraction", "begin", "seed", "density", "min_per_neuron", "constant_fan_in", "progress", *self._legal))
            raise TypeError(f"{type(self).__name__} has no option {unknown[0]}; its options are {legal}")
        given: dict[str, Any] = {"pool": "sum", "exclude": "kept", "search": "exact", **options}
        factor = given.get("factor")
        _core._check_method(
            self._method, text("pool", given["pool"]), text("exclude", given["exclude"]),
            factor if factor is None else number("factor", factor), text("search", given["search"]),
        )

    def _check_density(self) -> None:
        if not isinstance(self.density, Density | None):
            raise InvalidArgument(f"density is {self.density!r}; it is Density(last, end), or None for layers that keep theirs")
        if self.density is not None and self._method == "static":
            raise InvalidArgument("Static changes no density; use Prune, RigL, SET, Sampled or TopK")
        if self._method == "prune" and (self.density is None or self.density.last > self.density.first):
            raise InvalidArgument("Prune needs a density that falls: pass density=Density(last, end)")

    def fraction_at(self, step: int) -> float:
        """Return the share of blocks that moves at a step, counted from 1; 0 if none does."""
        return _core._rewire_fraction(whole_number("step", step), *self.schedule)

    def density_at(self, step: int) -> float | None:
        """Return the density of the layers from a step on, counted from 1; None if it does not change."""
        if self.density is None:
            return None
        last, end, first, begin, curve = self.density
        return _core._scheduled_density(
            whole_number("step", step), number("first", first), number("last", last), whole_number("begin", begin),
            whole_number("end", end), text("curve", curve), *self.schedule[1:],
        )

    def dead_neurons(self) -> int:
        """Return how many outputs of the layers have no weight, so that they read nothing."""
        return sum(int((layer.indptr.diff() == 0).sum()) * layer.block[0] for layer in self.layers)

    def _is_due(self, step: int) -> bool:
        """Return True if patterns change at a step."""
        _, begin, end, every = self.schedule
        is_time = begin <= step <= end and step % every == 0 and self._method != "static"
        return is_time and (self.fraction_at(step) > 0 or self.density is not None or self._ignores_fraction)

    def _watch(self) -> None:
        due = self._reads_gradients and self._is_due(self.steps + 1)
        for layer in self.layers:
            layer._watched = due
            layer._operands.clear()

    def step(self) -> bool:
        """Call after backward() and before the optimiser's step.

        Return True if the pattern changed; the optimiser then makes no step of its own. Raises
        ts.InvalidArgument, and changes nothing, if a rewire is due and a layer had no backward().
        """
        fraction, changes = self.fraction_at(self.steps + 1), self._is_due(self.steps + 1)
        if changes:
            self._require_backward()
        self.steps += 1
        if changes:
            if self._steps_too:
                self.optimiser.step()
            for i in range(len(self.layers)):
                self._rewire(i, fraction)
            self._warn_of_dead_neurons()
        self._watch()
        self._show(changes)
        return changes

    def _warn_of_dead_neurons(self) -> None:
        dead = self.dead_neurons()
        if dead > self._dead:
            advice = "min_per_neuron=1 keeps one for each"
            warnings.warn(f"step {self.steps}: {dead} neurons have no weight to read by; {advice}", RuntimeWarning, stacklevel=3)
        self._dead = dead

    def _show(self, changed: bool) -> None:
        """Move the bar by a step, and close it at the last one."""
        if self._bar is None:
            return
        self._bar.update()
        if changed:
            recent = self.history[-len(self.layers) :]
            ever = statistics.fmean(change.ever_active for change in recent)
            self._bar.set_postfix(moved=sum(change.moved for change in recent), ever_active=f"{ever:.1%}")
        self._close_bar_at_end()

    def _close_bar_at_end(self) -> None:
        if self._bar is not None and self.steps >= self.schedule[2]:
            self._bar.close()
            self._bar = None

    def _require_backward(self) -> None:
        for i, layer in enumerate(self.layers):
            if not layer._operands if self._reads_gradients else layer.values.grad is None:
                raise InvalidArgument(
                    f"step() needs a backward() through every SparseLinear since the last step(); number {i} of "
                    f"{len(self.layers)} had none"
                )

    def _rewire(self, index: int, fraction: float) -> None:
        layer, begin = self.layers[index], time.perf_counter()
        if index not in self._ever:
            self._ever[index] = _Places(layer)
        ever = self._ever[index]
        origin = layer.rewire(
            self.optimiser,
            self._method,
            fraction=fraction,
            dq=[dq.float() for dq, _ in layer._operands],
            s=[s.float() for _, s in layer._operands],
            seed=self.seed + self.steps * len(self.layers) + index,
            density=self.density_at(self.steps),
            min_per_neuron=self.min_per_neuron,
            constant_fan_in=self.constant_fan_in,
            **self.options,
        )
        new = np.flatnonzero(origin < 0)
        ever.add(layer, new)
        seconds = time.perf_counter() - begin
        self.history.append(Change(self.steps, self.names[index], len(new), layer.density, ever.share(), seconds))

    def plot(self, accuracy: Sequence[tuple[int, float]] | None = None, axes: Any = None) -> Any:
        """Draw the density and the ever active share of each layer, and an accuracy given as (step, share).

        Return the axes of matplotlib, on which it is drawn: those given, or new ones.
        """
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ImportError("plot() needs matplotlib; history has the same numbers") from None
        axes = pyplot.subplots()[1] if axes is None else axes
        for name in dict.fromkeys(change.layer for change in self.history):
            changes = [change for change in self.history if change.layer == name]
            steps = [change.step for change in changes]
            axes.plot(steps, [change.density for change in changes], label=f"{name}: density")
            axes.plot(steps, [change.ever_active for change in changes], "--", label=f"{name}: ever active")
        if accuracy is not None:
            axes.plot(*zip(*accuracy), "k", label="accuracy")
        axes.set_xlabel("step")
        axes.set_ylabel("share")
        if axes.lines:
            axes.legend()
        return axes

    def __repr__(self) -> str:
        fraction, begin, end, every = self.schedule
        return (
            f"{type(self).__name__}({len(self.layers)} layers, step {self.steps}, every {every} from {begin} to {end}, "
            f"fraction {fraction:g}, {len(self.history)} changes)"
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps, which is all that a resumed run needs."""
        return {"steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue at the number of steps of state_dict()."""
        self.steps = whole_number("steps", state["steps"])
        if self._bar is not None:
            self._bar.update(min(self.steps, self.schedule[2]) - self._bar.n)
            self._bar.refresh()
            self._close_bar_at_end()
        self._watch()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_bar": None}  # a copy does not draw

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


class Prune(Rewiring):
    """Magnitude pruning: drops the smallest blocks as `density` falls, after a step of the optimiser; nothing grows."""

    _method, _steps_too, _ignores_fraction = "prune", True, True


class TopK(Rewiring):
    """Keeps the largest weights of a step in which all places take part, as training with masks keeps them.

    After the optimiser's step, every `every` steps, places that are not stored make their first step, with a fresh state:
    by the learning rate with Adam. Of all weights the largest magnitudes stay. Optimisers are Adam, AdamW and SGD.

    search  "exact": all places; "shortlist": a matrix of rank 32 that is nearly the gradient finds factor times as many
            places as are stored, whose gradients are then exact; "sampled": as many random places; factor is 4 if not given
    Layers store single weights (block 1). Other options are those of Rewiring; `fraction` is not read.
    """

    _method, _reads_gradients, _legal = "top-k", True, ("search", "factor")
    _steps_too, _ignores_fraction = True, True


class RigL(Rewiring):
    """Drops the smallest blocks and grows those of largest gradient, instead of a step.

    pool="sum" | "max" | "mean" makes one score of a block's gradients. Gradients are those of all
    backward passes since the last step(). Other options are those of Rewiring, and exclude of
    ts.Layer.rewire.
    """

    _method, _reads_gradients, _legal = "rigl", True, ("pool", "exclude")


class Sampled(Rewiring):
    """RigL with gradients at a random sample of the free places: factor * stored blocks; factor is 2 if not given."""

    _method, _reads_gradients, _legal = "sampled", True, ("pool", "exclude", "factor")

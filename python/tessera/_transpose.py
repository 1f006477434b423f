"""The transpose of a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessera._layer import Layer


class Transpose:
    """The transpose of a layer: layer.T @ dq is layer.grad_input(dq), and layer.T.T is the layer."""

    ndim = 2
    __array_ufunc__ = None

    def __init__(self, layer: Layer) -> None:
        self.T = layer

    @property
    def shape(self) -> tuple[int, int]:
        """(inputs, outputs)"""
        outputs, inputs = self.T.shape
        return inputs, outputs

    @property
    def dtype(self) -> str:
        """The type of the operands."""
        return self.T.dtype

    def __matmul__(self, dq: Any) -> Any:
        return self.T.grad_input(dq)

    def __rmatmul__(self, left: Any) -> Any:
        """Return left @ W.T for left [rows, inputs], or a vector [inputs]."""
        if not hasattr(left, "ndim"):
            return NotImplemented
        first = self.T.order == "batch_first"
        return self.T.forward(left) if first or left.ndim == 1 else self.T.forward(left.T).T

    def matvec(self, x: Any) -> Any:
        """Return W.T @ x as SciPy's linear operators call it."""
        return self.T.rmatvec(x)

    def rmatvec(self, x: Any) -> Any:
        """Return W @ x as SciPy's linear operators call it."""
        return self.T.matvec(x)

    def __repr__(self) -> str:
        return f"Transpose({self.T!r})"

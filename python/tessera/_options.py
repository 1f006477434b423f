"""Options that several classes take, and their checks."""

from __future__ import annotations

import operator
from typing import Any

from tessera._core import InvalidArgument

# The types of operands by the names that users of NumPy and torch write, with the library's own.
DTYPES = {"float32": "float", "float16": "half", "bfloat16": "bfloat16"}


def require_one_of(name: str, value: Any, legal: tuple[str, ...]) -> None:
    """Raise ts.InvalidArgument, which names the legal values, for any other."""
    if value not in legal:
        raise InvalidArgument(f"{name} is {value!r}; it is one of {', '.join(legal)}")


def whole_number(name: str, value: Any) -> int:
    """Return the value as int. Raise TypeError for what is no whole number, such as 2.0 or a text."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it is a whole number") from None


def core_dtype(dtype: str) -> str:
    """Return the library's own name of a type of operands."""
    require_one_of("dtype", dtype, tuple(DTYPES))
    return DTYPES[dtype]


def block_shape(block: Any) -> tuple[int, int]:
    """Return (rows, columns) of a block that is given as a side or as this pair."""
    try:
        rows, cols = block if hasattr(block, "__len__") else (block, block)
        return operator.index(rows), operator.index(cols)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"block is {block!r}; it is a whole number, the side of a square, or (rows, columns)"
        ) from None

"""Options that several classes take, and their checks: what passes them suits the module in C++."""

from __future__ import annotations

import json
import math
import operator
import os
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tessera import _core
from tessera._core import MOST_THREADS, InvalidArgument

# The types of operands by the names that users of NumPy and torch write, with the library's own.
DTYPES = {"float32": "float", "float16": "half", "bfloat16": "bfloat16"}

MOST_SIZE = 2**31 - 1
_MOST_SEED = 2**64 - 1


def require_one_of(name: str, value: Any, legal: tuple[str, ...]) -> None:
    """Raise ts.InvalidArgument, which names the legal values, for any other."""
    if not isinstance(value, str) or value not in legal:
        raise InvalidArgument(f"{name} is {reprlib.repr(value)}; it is one of {', '.join(legal)}")


def whole_number(name: str, value: Any, least: float = -(2**63), most: float = 2**63 - 1) -> int:
    """Return the value as int. Raise TypeError for what is no whole number, such as 2.0 or a text."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {reprlib.repr(value)}; it is a whole number") from None
    if not least <= number <= most:
        raise InvalidArgument(f"{name} is {number}; it is {least} .. {most}")
    return number


def size(name: str, value: Any) -> int:
    """Return a number of rows, columns or the like as int."""
    return whole_number(name, value, 1, MOST_SIZE)


def thread_count(value: Any) -> int:
    """Return a number of threads as int. Raise ts.InvalidArgument for one that no call takes."""
    threads: int = value if type(value) is int and 0 <= value <= MOST_THREADS else whole_number("threads", value, -math.inf, math.inf)
    if not 0 <= threads <= MOST_THREADS:
        raise InvalidArgument(f"{threads} threads; use 1 to {MOST_THREADS}, or 0 for all cores")
    return threads


def seed_number(value: Any) -> int:
    """Return a seed of random numbers as int."""
    return whole_number("seed", value, 0, _MOST_SEED)


def number(name: str, value: Any) -> float:
    """Return the value as float. Raise TypeError for what is no number; NaN is one."""
    if type(value) is float:
        return value
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise TypeError(f"{name} is {reprlib.repr(value)}; it is a number")


def flag(name: str, value: Any) -> bool:
    """Return the value as bool. Raise TypeError for what is none, such as "no", which Python counts as true."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError(f"{name} is {reprlib.repr(value)}; it is True or False")


def text(name: str, value: Any) -> str:
    """Return the value, which must be a text that UTF-8 can say, without NUL, at which C would cut it."""
    if isinstance(value, str) and "\0" not in value and (value.isascii() or _is_utf8(value)):
        return value
    raise TypeError(f"{name} is {reprlib.repr(value)}; it is a text without NUL or lone surrogates")


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def path_text(path: str | os.PathLike[str]) -> str:
    """Return a path as text. Raise ts.InvalidArgument for one that no file has: with NUL, or a lone surrogate."""
    return os.fsdecode(_core._path(path))


def options_dict(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return PopSparse's options, or a part of them, as a new dict."""
    try:
        return {} if options is None else dict(options)
    except (TypeError, ValueError) as error:
        raise _no_options(error) from None


def options_text(options: Mapping[str, Any] | None) -> str:
    """Return PopSparse's options as JSON."""
    given = options_dict(options)
    try:
        made = json.dumps(given, ensure_ascii=False)
        made.encode()
        return made
    except (TypeError, ValueError, RecursionError) as error:
        raise _no_options(error) from None


def _no_options(error: Exception) -> TypeError:
    return TypeError(f"options are no mapping of texts to values of JSON ({error}); pass a dict")


def mapping(name: str, value: Any, example: str) -> Mapping[Any, Any]:
    """Return the value, which must be a mapping."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is {reprlib.repr(value)}; it is a mapping, such as {example}")
    return value


def dtype_text(dtype: Any) -> str:
    """Return the name of a type: of a text, a dtype of NumPy or torch, or a class such as np.float32."""
    if isinstance(dtype, str):
        return dtype
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype)
    return name.rpartition(".")[2] if isinstance(name, str) else reprlib.repr(dtype)


def operand_type(dtype: Any) -> str:
    """Return the name of a type of operands, one of DTYPES, which may be given as a dtype of NumPy or torch."""
    name = dtype_text(dtype)
    require_one_of("dtype", name, tuple(DTYPES))
    return name


def core_dtype(dtype: Any) -> str:
    """Return the library's own name of a type of operands."""
    return DTYPES[operand_type(dtype)]


def block_shape(block: Any) -> tuple[int, int]:
    """Return (rows, columns) of a block that is given as a side or as this pair."""
    try:
        rows, cols = block if hasattr(block, "__len__") else (block, block)
        return whole_number("block", rows), whole_number("block", cols)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"block is {reprlib.repr(block)}; it is a whole number, the side of a square, or (rows, columns)"
        ) from None

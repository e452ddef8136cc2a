"""Stored results: nested values with arrays and exceptions, as JSON and raw bytes that are compressed together.

No pickles: any version of NumPy and Python reads the files, and they run no code. Equal results give equal files.
"""

from __future__ import annotations

import builtins
import hashlib
import json
import lzma
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Refusal", "Result", "differs", "digest", "read", "refusal", "stored", "write"]

Array = npt.NDArray[Any]

MOST = 600_000
"""Bytes of an answer: larger ones are not for git."""
CLOSE = 1e-5
"""Part of an array's largest value by which floats of two machines may differ; all else is equal."""


@dataclass(frozen=True)
class Result:
    """One output: an array per sample, and the layout."""

    samples: list[Array]
    layout: str


class Refusal(NamedTuple):
    """An exception: the names of its class and of the bases, and its message."""

    classes: tuple[str, ...]
    message: str

    def exception(self) -> Exception:
        """Return the exception, of the nearest built-in class."""
        return _find_builtin(self.classes)(self.message)


def _find_builtin(names: Iterable[str]) -> type[Exception]:
    """Return the first built-in class that can be created from a message."""
    kinds = (getattr(builtins, name, None) for name in names)
    return next(kind for kind in kinds if kind is not None and not issubclass(kind, UnicodeError))


def _classes(kind: type[BaseException]) -> tuple[str, ...]:
    return tuple(base.__name__ for base in kind.__mro__)


def refusal(error: BaseException) -> Refusal:
    """Describe an exception, without file positions and addresses."""
    text = str(error).rpartition("encountered:")[2].partition("Stacktrace")[0]
    lines = re.sub(r"\[/[^\]]*\]|File .*|0x\w+", "", text).strip().splitlines()
    message = lines[0].strip()[:160] if lines and "/" not in lines[0] else ""
    return Refusal(_classes(type(error)), message)


def digest(question: Any) -> str:
    """Return a hash of nested values: dtypes and bytes of arrays, keys in any order, names of functions.

    Raises:
        TypeError: A value's contents are unknown.
    """
    sha = hashlib.sha256()
    for part in _parts(question):
        sha.update(part)
    return sha.hexdigest()[:24]


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, (np.ndarray, np.generic)):
        little = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        yield f"array {little.dtype.str} {np.shape(value)} ".encode() + little.tobytes()
    elif isinstance(value, (list, tuple)):
        yield f"{type(value).__name__} {len(value)} ".encode()
        for each in value:
            yield from _parts(each)
    elif isinstance(value, Mapping):
        yield f"dict {len(value)} ".encode()
        for key in sorted(value, key=repr):
            yield from _parts((key, value[key]))
    elif value is None or isinstance(value, (bool, int, float, str, bytes)):
        yield f"{value!r} ".encode()
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _parts((type(value).__name__, vars(value)))
    elif hasattr(value, "__qualname__"):
        yield f"{value.__qualname__} ".encode()
    else:
        raise TypeError(f"a question to the real DALI holds {value!r}, whose contents are not known")


def differs(one: Any, other: Any) -> bool:
    """Return True if results differ: numbers and types must be equal, floats close, exceptions of one class."""
    if isinstance(one, Refusal) or isinstance(other, Refusal):
        return type(one) is not type(other) or one.classes != other.classes
    if isinstance(one, Result) and isinstance(other, Result):
        return one.layout != other.layout or differs(one.samples, other.samples)
    if isinstance(one, (np.ndarray, np.generic)):
        return type(one) is not type(other) or not _same(np.asarray(one), np.asarray(other))
    if isinstance(one, float) and isinstance(other, float):
        return not (math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE) or one != one != other != other)
    if isinstance(one, Mapping):
        return type(one) is not type(other) or one.keys() != other.keys() or any(differs(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return type(one) is not type(other) or len(one) != len(other) or any(map(differs, one, other))
    return type(one) is not type(other) or bool(one != other)


def _same(one: Array, other: Array) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    a, b = one.astype(np.float64), other.astype(np.float64)
    level = CLOSE * np.abs(a[np.isfinite(a)]).max(initial=0.0)
    return np.allclose(a, b, rtol=0, atol=max(level, 1e-30), equal_nan=True)


def stored(answer: Any) -> Any:
    """Return a result in the form that is read from a file.

    Raises:
        TypeError: It contains a value that cannot be stored.
        ValueError: It is too large.
    """
    data = bytearray()
    text = json.dumps(_packed(answer, data))
    if len(text) + len(data) > MOST:
        raise ValueError(f"an answer of the real DALI has {len(text) + len(data)} bytes: take smaller inputs, or mark the test `parity`")
    return _unpacked(json.loads(text), bytes(data))


def write(path: Path, answers: Mapping[str, Any]) -> None:
    """Write results by the hashes of their calls."""
    data = bytearray()
    index = {key: _packed(answers[key], data) for key in sorted(answers)}
    text = json.dumps(index, separators=(",", ":")).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text + b"\n" + data, preset=9))


def read(path: Path) -> dict[str, Any]:
    """Return the results in a file; an empty dictionary if the file doesn't exist."""
    if not path.exists():
        return {}
    text, _, data = lzma.decompress(path.read_bytes()).partition(b"\n")
    return {key: _unpacked(value, data) for key, value in json.loads(text).items()}


def _packed(value: Any, data: bytearray) -> Any:
    """Return a value for JSON; other types become a list that starts with a word, and bytes are appended to ``data``."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf":
        kind = "array" if isinstance(value, np.ndarray) else "number"
        little = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        place = len(data)
        data += _planes(little)
        return [kind, little.dtype.str, np.shape(value), place]
    if isinstance(value, Refusal):
        return ["refusal", *value]
    if isinstance(value, type) and issubclass(value, Exception):
        return ["class", *_classes(value)]
    if isinstance(value, Result):
        return ["result", _packed(value.samples, data), value.layout]
    if isinstance(value, Mapping):
        return ["dict", *([_packed(k, data), _packed(v, data)] for k, v in value.items())]
    if type(value) in (list, tuple):
        return [type(value).__name__, *(_packed(each, data) for each in value)]
    raise TypeError(f"an answer of the real DALI holds {value!r}, which cannot be stored: mark the test `parity`")


def _unpacked(value: Any, data: bytes) -> Any:
    if not isinstance(value, list):
        return value
    kind, *rest = value
    if kind in ("array", "number"):
        array = _array(*rest, data)
        return array if kind == "array" else array[()]
    if kind == "refusal":
        return Refusal(tuple(rest[0]), rest[1])
    if kind == "class":
        return _find_builtin(rest)
    if kind == "result":
        return Result(_unpacked(rest[0], data), rest[1])
    if kind == "dict":
        return {_unpacked(k, data): _unpacked(v, data) for k, v in rest}
    return {"list": list, "tuple": tuple}[kind](_unpacked(each, data) for each in rest)


def _planes(array: Array) -> bytes:
    """Return the bytes of an array, first the first bytes of all elements: similar bytes compress better."""
    return np.frombuffer(array.tobytes(), np.uint8).reshape(-1, array.itemsize).T.tobytes()


def _array(dtype: str, shape: list[int], place: int, data: bytes) -> Array:
    kind = np.dtype(dtype)
    size = math.prod(shape)
    planes = np.frombuffer(data, np.uint8, size * kind.itemsize, place).reshape(kind.itemsize, size)
    return np.frombuffer(planes.T.tobytes(), kind).reshape(shape).copy()

"""Bodies of operators for several samples in one call, and the values of arguments that were given per sample."""

from __future__ import annotations

import inspect
import itertools
import operator
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from torchdali.tensors.arrays import Arrays

__all__ = [
    "Batched",
    "BundledBody",
    "Column",
    "MOST_BYTES",
    "Lifted",
    "Pieces",
    "Shapes",
    "each_of",
    "per_sample",
    "read_batched",
    "shaped",
    "truth",
]

Shapes: TypeAlias = list[tuple[int, ...]]
"""Annotates an input of a batched body of which only the shapes of the samples count."""


class Column(Sequence[Any]):
    """The values of an argument that was given per sample: an array, and its numbers as Python has them.

    Either form is made of the other when it is asked for first, and kept.

    Args:
        values: ``(N, ...)``, or a list of numbers or (nested) lists of them, whose lengths may differ.

    Attributes:
        per_frame: Each value is a list of values, one for each frame of the sample.
        uploaded: The values as they were given, as a tensor on a device, where they are there already.
    """

    __slots__ = ("_given", "_values", "per_frame", "uploaded")

    def __init__(self, values: npt.NDArray[Any] | torch.Tensor | Sequence[Any]) -> None:
        self._given: npt.NDArray[Any] | torch.Tensor | None = None
        self._values: list[Any] | None = None
        self.per_frame = False
        self.uploaded: torch.Tensor | None = None
        if isinstance(values, (np.ndarray, torch.Tensor)):
            self._given = values
        else:
            self._values = list(values)

    @classmethod
    def of(cls, values: torch.Tensor) -> Column:
        """Return the values of a tensor ``(N, ...)``."""
        if values.is_cpu and values.dtype != torch.bfloat16:
            return cls(values)
        return cls(values.tolist())

    @property
    def _array(self) -> npt.NDArray[Any] | None:
        if isinstance(self._given, torch.Tensor):  # which a body on a device may have there already
            self._given = self._given.detach().numpy()
        return self._given

    @property
    def values(self) -> list[Any]:
        """The values as Python numbers and lists. Do not change them."""
        if self._values is None:
            assert self._array is not None
            self._values = self._array.tolist()
        return self._values

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Type of the array; None where there is none, as for lists of different lengths."""
        return None if self._array is None else self._array.dtype

    def rows(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a new array of the values, a row a sample.

        Raises:
            RuntimeError: their shapes differ.
        """
        if self._array is not None:
            return self._array.astype(dtype)
        try:
            return np.array(self._values, dtype)
        except ValueError:
            shapes = {np.shape(value) for value in self.values}
            if len(shapes) < 2:
                raise
            raise RuntimeError(
                "an argument has values of different shapes in one batch: " + ", ".join(map(str, sorted(shapes)))
            ) from None

    def shaped(self, axes: int | None, name: str) -> Column:
        """Return the values with the number of axes that the argument declares.

        For a number, samples of one element and any number of axes are that number; for a list, a number is a list of
        one element.

        Args:
            axes: See `schema.Argument`.
            name: Of the argument, for errors.

        Raises:
            RuntimeError: a sample of several elements, or none, where a number belongs.
        """
        one_number = self._given is not None and self._given.ndim == 1
        if axes is None or self.per_frame or (axes == 0 and one_number):
            return self
        if self._array is None:
            return Column([shaped(value, axes, name, i) for i, value in enumerate(self.values)])
        if one_number:
            return Column(self._array[:, None])
        if axes == 0:
            if self._array.size != len(self._array):
                raise _no_number(name, self._array.shape[1:])
            return Column(self._array.reshape(-1))
        return self

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return Column(self.values[i] if self._array is None else self._array[i])
        return self.values[i]

    def __len__(self) -> int:
        return len(self.values) if self._given is None else self._given.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = self._values if self._array is None else self._array
        return np.array(values, dtype) if copy else np.asarray(values, dtype)

    def __repr__(self) -> str:
        return f"Column({self.values})"


def shaped(value: Any, axes: int | None, name: str, sample: int | None = None) -> Any:
    """Do for one value, a number or nested lists, what `Column.shaped` does for all."""
    if axes == 1:
        return value if value is None or isinstance(value, list) else [value]
    if axes == 0 and isinstance(value, list):
        elements = np.asarray(value)
        if elements.size != 1:
            raise _no_number(name, elements.shape, sample)
        return elements.reshape(()).tolist()
    return value


def _no_number(name: str, shape: tuple[int, ...], sample: int | None = None) -> RuntimeError:
    where = "" if sample is None else f" of sample {sample}"
    return RuntimeError(f"argument {name!r} is one number a sample, and the value{where} has the shape {tuple(shape)}")


def per_sample(value: Any, size: int) -> Sequence[Any]:
    """Return one value a sample, of an argument that may be the same for all."""
    return value.values if isinstance(value, Column) else [value] * size


def each_of(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the arguments of each sample; one dictionary where they are the same for all."""
    drawn = {k: v for k, v in arguments.items() if isinstance(v, Column)}
    rows = zip(*drawn.values(), strict=True)
    return [{**arguments, **dict(zip(drawn, row, strict=True))} for row in rows] if drawn else [dict(arguments)]


@dataclass(frozen=True)
class Batched:
    """A body for several samples of one shape in one call.

    Attributes:
        body: Takes and returns tensors ``(N, ...)``; NotImplemented where it has no better way than sample by sample.
        by_shape: It takes a list of the shapes of the samples, which may differ.
        writes: It takes ``out``.
        allocates: It takes ``empty``, which gives memory for its results, and with it samples of any size.
    """

    body: Callable[..., Any]
    by_shape: bool
    writes: bool
    allocates: bool
    _defaults: Mapping[str, Any]
    _named: frozenset[str]
    _columns: frozenset[str]
    _rest: bool  # arguments that it does not name may be columns, too

    def takes(self, per_sample: Mapping[str, Any]) -> bool:
        """Return True if the body takes all these arguments as `Column`s."""
        return all(name in self._columns or (self._rest and name not in self._named) for name in per_sample)

    def bound(self, constants: Mapping[str, Any]) -> dict[str, Any]:
        """Return constants with the operator's defaults for the other arguments that the body names."""
        return {**self._defaults, **constants}


class Pieces(Sequence[torch.Tensor]):
    """Samples that follow one another in the rows of one tensor; they are made when somebody asks for them.

    Args:
        rows: ``(n, ...)``.
        counts: Rows of each sample; None: a sample is a row.
        turned: A sample is the transpose of its rows, which have two axes.
        shapes: Of each sample, of which the rows are the elements.
    """

    def __init__(
        self,
        rows: torch.Tensor,
        counts: list[int] | None = None,
        turned: bool = False,
        shapes: list[tuple[int, ...]] | None = None,
    ) -> None:
        self.rows, self.counts, self.turned, self.shapes = rows, counts, turned, shapes

    def straight(self) -> Pieces:
        """Return transposes as elements in their own order."""
        if not self.turned or self.counts is None:
            return self
        given, width = self.rows.numpy(), self.rows.shape[1]
        made, at = np.empty(given.size, given.dtype), 0
        for count in self.counts:
            part = made[at * width : (at + count) * width]
            part.reshape(width, count)[...] = given[at : at + count].T
            at += count
        sizes = [count * width for count in self.counts]
        return Pieces(torch.from_numpy(made), sizes, shapes=[(width, count) for count in self.counts])

    def __iter__(self) -> Iterator[torch.Tensor]:
        if self.counts is None:
            return iter(self.rows.unbind())
        parts = self.rows.split_with_sizes(self.counts)
        if self.shapes is not None:
            return map(torch.Tensor.view, parts, self.shapes)
        return (part.t() for part in parts) if self.turned else iter(parts)

    def __getitem__(self, i: Any) -> Any:
        return list(self)[i]

    def __len__(self) -> int:
        return len(self.rows if self.counts is None else self.counts)


class Lifted:
    """An operator on lists of samples: its body for several of any shapes, or its own for each.

    Args:
        single: The operator on one sample.
        together: Takes and returns sequences of samples, which may be `Pieces`, or NotImplemented; None without one.
        dtypes: Of the first input, for which ``together`` was made; all, if there are none.
        several: The operator returns a tuple.
        small: ``together`` is for `MOST_BYTES` of the first input at most.

    Attributes:
        bytes: Of the first input, of a sample of the last call on average.
    """

    def __init__(
        self,
        single: Callable[..., Any],
        together: Callable[..., Any] | None = None,
        dtypes: Sequence[torch.dtype] = (),
        several: bool = False,
        small: bool = True,
    ) -> None:
        self._single, self._together, self._several = single, together, several
        self._small, self.bytes = small, 0
        self._dtypes = frozenset(dtypes)

    @property
    def gains(self) -> bool:
        """Return whether there is a body for several."""
        return self._together is not None

    def __call__(self, *inputs: Sequence[torch.Tensor] | None, **arguments: Sequence[Any]) -> Any:
        """Do several samples.

        Args:
            inputs: Of each input a sample each; None for one that is not there.
            arguments: A value for each sample.
        """
        if self._together is not None:
            data = inputs[0]
            assert data is not None
            if self._fit(data):
                found = self._together(data)
                if found is not NotImplemented:
                    return found
        columns = [itertools.repeat(None) if each is None else each for each in inputs]
        if arguments:
            count = len(inputs)
            rows = [
                self._single(*row[:count], **dict(zip(arguments, row[count:], strict=True)))
                for row in zip(*columns, *arguments.values(), strict=False)
            ]
        else:
            rows = list(map(self._single, *columns))
        return tuple(map(list, zip(*rows, strict=True))) if self._several else rows

    def _fit(self, data: Sequence[torch.Tensor]) -> bool:
        if isinstance(data, Pieces):
            return not self._dtypes or data.rows.dtype in self._dtypes
        memory = data.arrays if isinstance(data, Arrays) else data
        total = sum(map(_bytes_of, memory))
        self.bytes = total // max(1, len(data))  # a plain store: several threads say about the same
        if self._small and total > MOST_BYTES:
            return False
        kinds = [data.dtype] if isinstance(data, Arrays) else map(_dtype_of, data)
        return not self._dtypes or self._dtypes.issuperset(kinds)


_bytes_of, _dtype_of = operator.attrgetter("nbytes"), operator.attrgetter("dtype")


MOST_BYTES = 1 << 22
"""Bytes of samples that one call for several works on: what fits into cache."""


class BundledBody(Protocol):
    """A body for several encoded samples in one call."""

    def __call__(
        self,
        sources: Sequence[torch.Tensor | str | None],
        outs: Sequence[torch.Tensor | None],
        rngs: Sequence[Any] | None,
        mirrors: Sequence[Any] | None,
    ) -> Sequence[torch.Tensor | None]:
        """Return the results; None for samples that are to be done one by one, where what fails raises.

        Args:
            sources: Encoded bytes, paths of files that hold them, or None for samples to leave out.
            outs: Where to write results that fit.
            rngs: Random numbers of each sample; None if the operator is not random.
            mirrors: Values of the argument ``mirror``, if they are given per sample; the only such argument.
        """
        ...


def read_batched(body: Callable[..., Any], defaults: Mapping[str, Any]) -> Batched:
    """Read the signature of a batched body.

    Args:
        body: See `Batched`.
        defaults: Of the operator's arguments.
    """
    parameters = inspect.signature(body).parameters
    hints = typing.get_type_hints(body)
    columns = {name for name, hint in hints.items() if _names(hint, Column)}
    rest = next((n for n, p in parameters.items() if p.kind is p.VAR_KEYWORD), None)
    return Batched(
        body,
        by_shape=Shapes in hints.values(),
        writes="out" in parameters,
        allocates="empty" in parameters,
        _defaults={name: defaults[name] for name in parameters if name in defaults},
        _named=frozenset(parameters),
        _columns=frozenset(columns),
        _rest=rest in columns,
    )


def _names(hint: Any, wanted: type) -> bool:
    return hint is wanted or any(_names(each, wanted) for each in typing.get_args(hint))


def truth(value: Any) -> bool:
    """Return the truth of a condition's value; numbers are true when they are not 0.

    Raises:
        RuntimeError: it is not a scalar.
    """
    if isinstance(value, list):
        raise RuntimeError(
            "Conditions inside `if` statements are restricted to scalar (0-d tensors) inputs, that are placed on CPU. "
            f"Got a {_depth(value)}-d input as a condition of the `if` statement. "
            "Index it: the label of a reader is label[0]."
        )
    return bool(value)


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, list):
        depth, value = depth + 1, value[0] if value else None
    return depth

"""Read the schemas of operators from the signatures of Python functions.

In a signature, inputs are before ``/`` and arguments are after ``*``. The annotations have these meanings:

=====================================  =================================================================
``image: Image``                       an input; its layout is checked and it arrives channel-last
``data: Data``                         an input in any layout, unchanged
``data: Data | None = None``           an optional input; ``*data: Data`` accepts any number of inputs
``angle: PerSample[float]``            an argument that may differ per sample (an edge of the graph)
``hue: PerFrame[float] = 0.0``         like `PerSample`; `fn.per_frame` may also pass one value per frame
``angle: AllFrames[float]``            like `PerFrame`; the implementation gets the values of all frames
``indices: PerSample[SampleIndices]``   indices of samples in the batch, for example in `permute_batch`
``matrix: PerSample[ListOrMatrix]``      a list of numbers; a per-sample value may also be a matrix
``root: FilePath``                     a str or a path object; the implementation gets a str
``mode: Annotated[str, one_of(MODES)]``  one of the strings in ``MODES``; the implementation checks it
``dtype: DType | None = None``         a dtype of DALI, torch or NumPy; converted to a ``torch.dtype``
``rng: Rng``                           random numbers, not passed by the user; adds the argument ``seed``
``layout: Layout``                     layout of the first input, not passed by the user; "" if unset
``size: BatchSize``                    batch size, not passed by the user (only for operators over a batch)
``out: Out = None``                    memory for the result or None, not passed by the user
``features: Features``                 a class whose method ``from_argument`` converts the argument
``**window: Annotated[Any, shares(f)]``  the keyword-only arguments of ``f``, which operators can share
``-> Image``, ``-> tuple[Data, Data]``   number of outputs
``-> BatchOutput``                     one output of an operator over the batch
``-> Annotated[Dataset, OutputCount(2)]``  a reader or source with two outputs
=====================================  =================================================================
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import types as pytypes
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated, Any, TypeAlias, TypeVar

import numpy as np
import torch

from torchdali import rng as _rng
from torchdali.declaration.batching import Arguments, Column, per_sample, split_arguments
from torchdali.tensors import TensorList, dtypes

__all__ = [
    "STATE", "AllFrames", "Argument", "Arguments", "BatchOutput", "BatchSize", "Choices", "Column", "DType", "Data",
    "FilePath", "Image", "InputSpec", "Layout", "ListOrMatrix", "Out", "OutputCount", "PerFrame", "PerSample",
    "SampleIndices", "Schema", "InputConstraints", "split_arguments", "one_of", "per_sample", "plain_list", "shares",
    "split", "to_dtype",
]  # fmt: skip

T = TypeVar("T")

IMAGE_LAYOUTS = ("HWC", "FHWC", "CHW", "FCHW", "CFHW", "DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW")


@dataclass(frozen=True)
class PerSampleMark:
    """Mark of an argument that may be passed per sample, or per frame.

    Attributes:
        per: "sample"; "frame" if values may also be passed per frame; or "frames" if the implementation receives the
            values of all frames together.
    """

    per: str


@dataclass(frozen=True)
class InputConstraints:
    """Layouts and dtypes that an input accepts.

    Args:
        layouts: Allowed layouts; empty for any layout. If the input's layout is unset, the operator assumes the first
            of these layouts that has as many letters as the input has axes.
        dtypes: Allowed dtypes; empty for any dtype.
        channel_last: True to move the channel axis to the end for the implementation, and back in the result.
        sets_layout: True if an assumed layout also becomes the layout of the outputs, as in DALI's image operators.
        repeats_samples: True to repeat a sample without frames if an argument has one value per frame. The output then
            has one frame per value.
        every_axis: True if the implementation processes all axes in the same way if the layout is unset, including the
            last axis.
    """

    layouts: tuple[str, ...] = ()
    dtypes: tuple[torch.dtype, ...] = ()
    channel_last: bool = False
    sets_layout: bool = True
    repeats_samples: bool = False
    every_axis: bool = False


@dataclass(frozen=True)
class Choices:
    """Mark of an argument with a few allowed values."""

    values: tuple[Any, ...]


def one_of(*tables: Iterable[Any]) -> Choices:
    """Mark an argument that must be one of the values in the tables. The implementation checks the value."""
    return Choices(tuple(dict.fromkeys(value for table in tables for value in table)))


@dataclass(frozen=True)
class _SharedArguments:
    source: Callable[..., Any]


def shares(source: Callable[..., Any]) -> _SharedArguments:
    """Mark a parameter ``**name`` that represents a function's keyword-only arguments or a dataclass's fields."""
    return _SharedArguments(source)


PerSample: TypeAlias = Annotated[T, PerSampleMark("sample")]
PerFrame: TypeAlias = Annotated[T, PerSampleMark("frame")]
AllFrames: TypeAlias = Annotated[T, PerSampleMark("frames")]
Data: TypeAlias = Annotated[torch.Tensor, InputConstraints()]
Image: TypeAlias = Annotated[torch.Tensor, InputConstraints(IMAGE_LAYOUTS, channel_last=True)]


BatchOutput: TypeAlias = TensorList | Sequence[torch.Tensor] | torch.Tensor
"""An output of an operator over the batch: a `TensorList`, a list of tensors, or one tensor ``(N, ...)``."""


@dataclass(frozen=True)
class OutputCount:
    """Mark of a return annotation: the number of outputs of a reader or source."""

    count: int


class Layout(str):
    """The layout of the first input, for example ``HWC``; empty if the input has no layout."""

    __slots__ = ()


class BatchSize(int):
    """The number of samples in the batch: the length of the first input or per-sample argument."""


Out: TypeAlias = Annotated[torch.Tensor | None, "out"]
DType: TypeAlias = Annotated[torch.dtype, "dtype"]
FilePath: TypeAlias = Annotated[str, "path"]
SampleIndices: TypeAlias = Annotated[list[int], "samples"]
ListOrMatrix: TypeAlias = Annotated[list[float], "matrix"]
REQUIRED = inspect.Parameter.empty

COMMON = {"bytes_per_sample_hint": [0], "preserve": False}
"""Arguments of every operator, with their defaults.

With ``preserve``, the operator runs even if no output of the pipeline needs it. ``bytes_per_sample_hint`` is ignored.
"""

STATE = "_random_state"
"""Hidden argument of random operators: a generator's state, instead of a seed. It can't be passed in a pipeline."""


@dataclass(frozen=True)
class InputSpec:
    """One input of an operator."""

    name: str
    constraints: InputConstraints
    optional: bool = False
    variadic: bool = False


@dataclass(frozen=True)
class Argument:
    """One argument of an operator.

    Attributes:
        convert: Function that converts a passed value.
        default: Default value; `REQUIRED` for a required argument.
        edge: "sample", "frame" or "frames" (see `PerSampleMark`); None if the argument can't be passed per sample.
        annotation: The annotation in the signature.
        hidden: True if the public signature doesn't contain the argument.
        axes: Number of axes of a value: 0 for a number, 1 for a list of numbers, 2 for `ListOrMatrix`; None if it may
            vary.
        has_sample_indices: True if values are indices of samples in the batch.
        is_path: True if the argument is the location of data: a `FilePath`, or a list of `FilePath`.
    """

    name: str
    convert: Callable[[Any], Any]
    default: Any
    edge: str | None
    annotation: Any
    hidden: bool = False
    axes: int | None = None
    has_sample_indices: bool = False
    is_path: bool = False

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def dali_default(self) -> Any:
        """The default as DALI shows it: with DALI's data types, and floats rounded to six decimal places."""
        if isinstance(self.default, torch.dtype):
            return dtypes.from_torch_dtype(self.default)
        if isinstance(self.default, list):
            return [round(v, 6) if isinstance(v, float) else v for v in self.default]
        return self.default


@dataclass(frozen=True)
class Schema:
    """The declaration of an operator, read from the signature of a function."""

    name: str
    inputs: tuple[InputSpec, ...]
    arguments: Mapping[str, Argument]
    outputs: int
    random: bool = False
    needs_layout: bool = False
    accepts_out: bool = False
    needs_size: bool = False
    deprecated: Mapping[str, str | None] = field(default_factory=dict)
    shared: tuple[Callable[..., Any], ...] = ()  # the arguments of `shares` in the signature

    @property
    def paths(self) -> frozenset[str]:
        """The names of the arguments that are locations of data."""
        return frozenset(argument.name for argument in self.arguments.values() if argument.is_path)

    @property
    def defaults(self) -> dict[str, Any]:
        """The default of each argument that has one."""
        return {a.name: a.default for a in self.arguments.values() if not a.required}

    @property
    def variadic(self) -> bool:
        return bool(self.inputs) and self.inputs[-1].variadic

    @property
    def input_range(self) -> tuple[int, int]:
        """Smallest and largest allowed number of inputs."""
        smallest = sum(not (i.optional or i.variadic) for i in self.inputs)
        return smallest, 999 if self.variadic else len(self.inputs)

    def input(self, index: int) -> InputSpec:
        """Return the declaration of an input. All inputs in ``*inputs`` have the same declaration."""
        return self.inputs[min(index, len(self.inputs) - 1)]

    def check_inputs(self, inputs: Sequence[Any]) -> None:
        """Raise ValueError for a wrong number of inputs, and TypeError if a required input is None."""
        count, (smallest, largest) = len(inputs), self.input_range
        if not smallest <= count <= largest:
            expected = (
                f"{smallest} input{'s' * (smallest != 1)}"
                if smallest == largest
                else f"from {smallest} to {largest} inputs"
            )
            hint = "; pass arguments by name" if count > largest and self.arguments else ""
            raise ValueError(f"operator {self.name!r} expects {expected}, but received {count}{hint}")
        for i, value in enumerate(inputs):
            if value is None and not self.input(i).optional:
                raise TypeError(f"input {i} of operator {self.name!r} is None")

    def check_names(self, arguments: Mapping[str, Any]) -> None:
        """Raise KeyError for an unknown argument, and RuntimeError for a missing one."""
        self.check_known(arguments)
        missing = [
            name for name, argument in self.arguments.items()
            if argument.required and arguments.get(name) is None
        ]  # fmt: skip
        if missing:
            raise RuntimeError(
                f"not all required arguments were specified for operator {self.name!r}: "
                f"missing {', '.join(map(repr, missing))}"
            )

    def check_known(self, names: Iterable[str]) -> None:
        """Raise KeyError for an unknown argument."""
        for name in names:
            if name not in self.arguments and name not in self.deprecated and name not in COMMON:
                raise KeyError(self._unknown(name))

    def _unknown(self, name: str) -> str:
        names = [*self.arguments, *COMMON]
        matches = difflib.get_close_matches(name, names, 1) or [n for n in names if n[:5] == name[:5]]
        accepted = ", ".join(a.name for a in self.arguments.values() if not a.hidden)
        hint = f'; did you mean "{matches[0]}"?' if matches else f"; it takes {accepted}" if accepted else ""
        # Use only double quotes: a KeyError shows its text as a literal, in which single quotes would be escaped.
        return f'argument "{name}" is not defined for operator "{self.name}"{hint}'

    def signature(self) -> inspect.Signature:
        """Return the public signature, including the arguments that every operator has."""
        kinds = inspect.Parameter
        params = [
            kinds(i.name, kinds.VAR_POSITIONAL) if i.variadic
            else kinds(i.name, kinds.POSITIONAL_ONLY, default=None if i.optional else kinds.empty)
            for i in self.inputs
        ]  # fmt: skip
        keyword = {
            a.name: (a.dali_default, _remove_marks(a.annotation)) for a in self.arguments.values() if not a.hidden
        }
        keyword |= {name: (default, Any) for name, default in COMMON.items()}
        keyword |= {"device": (None, "str | None"), "name": (None, "str | None")}
        params += [
            kinds(name, kinds.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (default, annotation) in sorted(keyword.items())
        ]
        return inspect.Signature(params)


def _remove_marks(annotation: Any) -> Any:
    """Remove the marks from an annotation, for the public signature."""
    base, _, optional = split(annotation)
    return base | None if optional else base


def read(implementation: Callable[..., Any], name: str, deprecated: Mapping[str, str | None]) -> Schema:
    """Read the signature of an operator's implementation.

    Raises:
        TypeError: The signature isn't a valid schema.
    """
    hints = _read_hints(implementation, name)
    signature = _Signature()
    for parameter in inspect.signature(implementation).parameters.values():
        _read_parameter(signature, parameter, hints.get(parameter.name, Any), name)
    if signature.random:
        signature.arguments["seed"] = Argument("seed", int, -1, None, int)
    outputs = _count_outputs(hints.get("return", torch.Tensor))
    return Schema(
        name, tuple(signature.inputs), signature.arguments, outputs, signature.random,
        signature.layout, signature.out, signature.size, dict(deprecated), tuple(signature.shared),
    )  # fmt: skip


def _read_hints(implementation: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(implementation, include_extras=True)
    except NameError as error:
        code = implementation.__code__
        raise NameError(
            f"operator {name!r}: {error}, but an annotation of the operator's function uses this name; import it\n"
            f'  File "{code.co_filename}", line {code.co_firstlineno}'
        ) from None


def _count_outputs(returns: Any) -> int:
    marks = split(returns)[1]
    declared = next((mark.count for mark in marks if isinstance(mark, OutputCount)), None)
    if declared is not None:
        return declared
    return len(typing.get_args(returns)) if typing.get_origin(returns) is tuple else 1


class _Signature:
    def __init__(self) -> None:
        self.inputs: list[InputSpec] = []
        self.arguments: dict[str, Argument] = {}
        self.random = self.layout = self.out = self.size = False
        self.shared: list[Callable[..., Any]] = []


def _read_parameter(signature: _Signature, parameter: inspect.Parameter, hint: Any, name: str) -> None:
    base, marks, optional = split(hint)
    if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
        constraints = next((m for m in marks if isinstance(m, InputConstraints)), InputConstraints())
        variadic = parameter.kind is parameter.VAR_POSITIONAL
        signature.inputs.append(InputSpec(parameter.name, constraints, optional, variadic))
    elif parameter.kind is parameter.VAR_KEYWORD:
        for mark in marks:
            if isinstance(mark, _SharedArguments):
                signature.shared.append(mark.source)
                _read_shared(signature, mark.source)
    elif parameter.kind is not parameter.KEYWORD_ONLY:
        raise TypeError(
            f"{name}: {parameter.name!r} must be an input, as in {name}({parameter.name}, /), or an argument, as in "
            f"{name}(image, /, *, {parameter.name}): inputs are before / and arguments after *"
        )
    elif base in (_rng.Rng, _rng.BatchRng):
        signature.random = True
    elif base is Layout:
        signature.layout = True
    elif base is BatchSize:
        signature.size = True
    elif "out" in marks:
        signature.out = True
    else:
        signature.arguments[parameter.name] = _read_argument(parameter, hint)


def _read_shared(signature: _Signature, source: Callable[..., Any]) -> None:
    for argument in _read_shared_arguments(source):
        signature.arguments.setdefault(argument.name, argument)  # the operator's own declarations have priority


@functools.cache
def _read_shared_arguments(source: Callable[..., Any]) -> tuple[Argument, ...]:
    hints = typing.get_type_hints(source.__init__ if inspect.isclass(source) else source, include_extras=True)
    return tuple(
        _read_argument(parameter, hints.get(parameter.name, Any))
        for parameter in inspect.signature(source).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY or inspect.isclass(source)
    )


def _read_argument(parameter: inspect.Parameter, hint: Any) -> Argument:
    base, marks, _ = split(hint)
    edge = next((m.per for m in marks if isinstance(m, PerSampleMark)), None)
    hidden = parameter.name.startswith("_")
    return Argument(
        parameter.name,
        _converter(base, marks),
        parameter.default,
        edge,
        hint,
        hidden,
        2 if "matrix" in marks else _axes_of(base),
        "samples" in marks,
        "path" in marks or any("path" in split(element)[1] for element in typing.get_args(base)),
    )


def _axes_of(base: Any) -> int | None:
    """Return the number of axes of a type: 0 for a number, 1 for a list of numbers, None for other types."""
    if base in (float, int, bool):
        return 0
    element = typing.get_args(base) if typing.get_origin(base) in (list, Sequence) else ()
    return 1 if element and element[0] in (float, int, bool) else None


def plain_list(base: Any) -> Any:
    """Replace a subclass of list by its base class, for example ``list[int]``. Return other types unchanged."""
    if inspect.isclass(base) and issubclass(base, list) and base is not list:
        return base.__orig_bases__[0]  # type: ignore[attr-defined]
    return base


def split(hint: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """Split a type hint into its base type, the marks of ``Annotated``, and whether it includes ``| None``."""
    marks: tuple[Any, ...] = ()
    optional = False
    while True:
        origin = typing.get_origin(hint)
        if origin is Annotated:
            marks += hint.__metadata__
            hint = hint.__origin__
        elif origin in (typing.Union, pytypes.UnionType):
            rest = [a for a in typing.get_args(hint) if a is not type(None)]
            optional |= len(rest) < len(typing.get_args(hint))
            if len(rest) != 1:
                return typing.Union[tuple(rest)], marks, optional  # noqa: UP007
            hint = rest[0]
        else:
            return hint, marks, optional


def _converter(base: Any, marks: tuple[Any, ...]) -> Callable[[Any], Any]:
    if "dtype" in marks:
        return to_dtype
    if "path" in marks:
        return _to_path
    origin = typing.get_origin(base)
    if base in (float, int, bool):
        return _scalar_converter(base)
    if origin in (list, Sequence):
        (element,) = typing.get_args(base) or (Any,)
        return _sequence_converter(*split(element)[:2])
    if inspect.isclass(base) and issubclass(base, IntEnum):
        return _enum_converter(base)
    if hasattr(base, "from_argument"):
        convert: Callable[[Any], Any] = base.from_argument
        return convert
    if base is str or (inspect.isclass(base) and issubclass(base, int)):
        return base
    return _to_array if base is Any and any(isinstance(mark, PerSampleMark) for mark in marks) else _identity


def to_dtype(value: Any) -> torch.dtype:
    """Convert an argument to a torch dtype.

    Args:
        value: A `DALIDataType` or its integer value, a torch dtype, or a NumPy dtype or scalar type.

    Raises:
        TypeError: The value has another type. Python types and names of dtypes aren't accepted, because their meaning
            differs between NumPy and DALI: ``float`` is float64 in NumPy.
    """
    if type(value) is int and value in dtypes.DALIDataType.__members__.values():
        value = dtypes.DALIDataType(value)
    scalar = isinstance(value, type) and issubclass(value, np.generic)
    if scalar or isinstance(value, (dtypes.DALIDataType, torch.dtype, np.dtype)):
        return dtypes.to_torch_dtype(value)
    raise TypeError(
        "pass a type from torchdali.types (types.FLOAT, types.UINT8 ...) or a torch dtype (torch.float32 ...)"
    )


def _enum_converter(kind: type[IntEnum]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        try:
            return kind(value)
        except ValueError:
            names = ", ".join(f"types.{name}" for name in kind.__members__)
            raise ValueError(f"pass one of {names}") from None

    return convert


def _to_path(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, os.PathLike) else str(value)


def _identity(value: Any) -> Any:
    return value


def _scalar_converter(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        value = _flatten(value)
        if isinstance(value, (list, tuple)):
            if len(value) != 1:
                raise TypeError(f"expected one value, got {len(value)}")
            value = value[0]
        if kind is bool and isinstance(value, str):
            raise TypeError("pass True or False; every non-empty string is true in Python")
        return kind(value)

    return convert


def _flatten(value: Any) -> Any:
    """Return the elements of a tensor or array as a flat list. Return other values unchanged."""
    if isinstance(value, torch.Tensor):
        return value.reshape(-1).tolist()
    if hasattr(value, "__array__"):
        return np.asarray(value).reshape(-1).tolist()
    return value


def _to_array(value: Any) -> Any:
    """Convert numbers to an array with its own memory, and a single number to a Python number."""
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, (list, tuple)):
        value = [_to_array(each) for each in value]
    elif isinstance(value, torch.Tensor):
        is_short = value.is_floating_point() and value.dtype != torch.float64  # NumPy lacks some short float types
        value = (value.float() if is_short else value).numpy(force=True)
    array = np.asarray(value)
    copied = array.astype(array.dtype.newbyteorder("="), order="C")  # because the user may change the original
    return copied if copied.ndim else copied.item()


def _sequence_converter(kind: Any, marks: tuple[Any, ...] = ()) -> Callable[[Any], list[Any]]:
    convert_element = _converter(kind, marks)

    def convert(value: Any) -> list[Any]:
        value = _flatten(value)
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            return [convert_element(value)]
        return [convert_element(v) for v in value]

    return convert

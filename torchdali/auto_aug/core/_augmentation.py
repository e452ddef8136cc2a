"""Augmentations: functions of samples and a parameter, and the conversion of a magnitude to the parameter.

A magnitude is the strength of an augmentation. The range of an augmentation's magnitudes is divided into bins. Callers
pass the index of a bin, and the bin determines the magnitude.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from torchdali import types
from torchdali.auto_aug.core._signed_bin import SignedBin, signed_bin
from torchdali.declaration.registry import lookup
from torchdali.graph.conditionals import convert
from torchdali.graph.nodes import DataNode

__all__ = ["Augmentation", "augmentation", "check_arguments"]

MagnitudeRange = tuple[float, float] | npt.NDArray[Any]
Parameter = Callable[[float], Any]
Bin = int | DataNode | SignedBin
A = TypeVar("A", bound="Augmentation")


class _Unchanged:
    """Sentinel for an option that `Augmentation.augmentation` doesn't change."""

    def __repr__(self) -> str:
        return "<unchanged>"


_UNCHANGED: Any = _Unchanged()


class Augmentation:
    """A function ``op(samples, parameter, ...)``, and the conversion of a magnitude bin to the parameter.

    The decorator `augmentation` creates augmentations, and documents the options.
    """

    def __init__(
        self,
        op: Callable[..., DataNode],
        mag_range: MagnitudeRange | None = None,
        randomly_negate: bool | None = None,
        mag_to_param: Parameter | None = None,
        param_device: str | None = None,
        name: str | None = None,
    ) -> None:
        self._op, self._mag_range, self._randomly_negate = op, mag_range, randomly_negate
        self._mag_to_param, self._param_device, self._name = mag_to_param, param_device, name
        _check_signature(self)

    def __repr__(self) -> str:
        options = [f"{k}={v!r}" for k, v in self._options().items() if v is not None]
        return f"Augmentation({', '.join([repr(self._op), *options])})"

    def _options(self) -> dict[str, Any]:
        return {
            "mag_range": self._mag_range,
            "mag_to_param": self._mag_to_param,
            "randomly_negate": self._randomly_negate,
            "param_device": self._param_device,
            "name": self._name,
        }

    @property
    def op(self) -> Callable[..., DataNode]:
        """The decorated function."""
        return self._op

    @property
    def mag_range(self) -> MagnitudeRange | None:
        """Magnitudes of the first and the last bin, or an array with the magnitude of each bin.

        None if the augmentation has no magnitudes.
        """
        return self._mag_range

    @property
    def randomly_negate(self) -> bool:
        """True if magnitudes get a random sign."""
        return bool(self._randomly_negate)

    @property
    def mag_to_param(self) -> Parameter:
        """Function that converts a magnitude to the parameter."""
        return self._mag_to_param or np.asarray

    @property
    def param_device(self) -> str:
        """Device of the parameter: ``"cpu"``, ``"gpu"``, or ``"auto"`` for the device of the samples."""
        return self._param_device or "cpu"

    @property
    def name(self) -> str:
        """Name in policies and messages; by default the function's name."""
        return self._name or str(getattr(self._op, "__name__", type(self._op).__name__))

    def augmentation(
        self,
        mag_range: MagnitudeRange | None = _UNCHANGED,
        randomly_negate: bool | None = _UNCHANGED,
        mag_to_param: Parameter | None = _UNCHANGED,
        param_device: str | None = _UNCHANGED,
        name: str | None = _UNCHANGED,
        augmentation_cls: type[Augmentation] | None = None,
    ) -> Augmentation:
        """Return a copy with changed options; None resets an option to its default."""
        options = {
            "mag_range": mag_range,
            "randomly_negate": randomly_negate,
            "mag_to_param": mag_to_param,
            "param_device": param_device,
            "name": name,
        }
        changed = {k: v for k, v in options.items() if v is not _UNCHANGED}
        return (augmentation_cls or type(self))(self._op, **{**self._options(), **changed})

    def __call__(
        self,
        data: DataNode,
        *,
        magnitude_bin: Bin | None = None,
        num_magnitude_bins: int | None = None,
        **kwargs: Any,
    ) -> DataNode:
        """Apply the augmentation to samples.

        Args:
            data: The samples.
            magnitude_bin: Index of a bin, from 0 to ``num_magnitude_bins - 1``: a number, one number per sample, or the
                result of `signed_bin`. Required if the augmentation has a `mag_range`.
            num_magnitude_bins: Number of bins into which `mag_range` is divided.
            kwargs: Arguments of the function; arguments that the function does not have are ignored.

        Raises:
            ValueError: an argument is missing, or ``num_magnitude_bins`` isn't the length of the array `mag_range`.
            IndexError: the bin is out of range.
        """
        arguments, missing = self.arguments(kwargs)
        if missing:
            raise ValueError(self._missing_message(missing))
        device = self._device(data)
        parameter = self._parameter(magnitude_bin, num_magnitude_bins, device)
        result: DataNode = convert(self._op)(data, parameter, **arguments)
        return result

    def _missing_message(self, missing: Sequence[str]) -> str:
        names = ", ".join(f"`{name}`" for name in missing)
        return (
            f"The augmentation `{self.name}` requires {names} {_plural('argument', missing)}, "
            f"not provided to the call: {', '.join(missing)}"
        )

    def arguments(self, passed: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Select the arguments that the function accepts, and find required arguments that `passed` doesn't contain."""
        parameters = list(inspect.signature(self._op).parameters.values())[2:]
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            arguments = dict(passed)
        else:
            arguments = {p.name: passed[p.name] for p in parameters if p.name in passed}
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        required = [p.name for p in parameters if p.default is p.empty and p.kind in kinds]
        return arguments, [name for name in required if name not in passed]

    # ------------------------------------------------------------ from the bin to the parameter

    def _device(self, data: Any) -> str:
        if self.param_device == "auto":
            return getattr(data, "device", "cpu")
        if self.param_device not in ("cpu", "gpu"):
            raise ValueError(
                f"`param_device` of the augmentation `{self.name}` must be 'cpu', 'gpu' or 'auto', got "
                f"{self.param_device!r}"
            )
        return self.param_device

    def _parameter(self, magnitude_bin: Bin | None, bins: int | None, device: str) -> Any:
        if self._mag_range is None:
            return None
        if magnitude_bin is None:
            raise ValueError(
                f"the augmentation `{self.name}` needs `magnitude_bin` to select a magnitude from its `mag_range`"
            )
        magnitudes = self._magnitudes(bins)
        if self.randomly_negate:
            row, magnitudes = self._signed_row(magnitude_bin, magnitudes)
        else:
            row = magnitude_bin.bin if isinstance(magnitude_bin, SignedBin) else magnitude_bin
        if isinstance(row, DataNode):
            signed = self.randomly_negate
            return _move_to_device(lookup("_row")(row, table=self._table(magnitudes), signed=signed), device)
        return types.Constant(self._table([magnitudes[row]])[0], device=device)

    def _magnitudes(self, bins: int | None) -> npt.NDArray[Any]:
        if isinstance(self._mag_range, np.ndarray):
            if bins is not None and bins != len(self._mag_range):
                raise ValueError(
                    f"`num_magnitude_bins` must be {len(self._mag_range)} for the augmentation `{self.name}`, the "
                    f"length of its `mag_range`, got {bins}"
                )
            return self._mag_range
        if bins is None:
            raise ValueError(f"the augmentation `{self.name}` needs `num_magnitude_bins` with `magnitude_bin`")
        if not isinstance(self._mag_range, (tuple, list)) or len(self._mag_range) != 2:
            raise ValueError(
                f"`mag_range` of the augmentation `{self.name}` must be a tuple (minimum, maximum) or an array, got "
                f"{self._mag_range!r}"
            )
        return np.linspace(*self._mag_range, bins, dtype=np.float32)

    def _signed_row(self, magnitude_bin: Bin, magnitudes: npt.NDArray[Any]) -> tuple[Any, npt.NDArray[Any]]:
        """Return the table row of each sample, and the table, in which each magnitude is followed by its negative.

        If all samples have the same bin, the table contains only this bin's magnitude and its negative.
        """
        if not isinstance(magnitude_bin, SignedBin):
            warnings.warn(
                f"the augmentation `{self.name}` negates magnitudes at random, but unsigned `magnitude_bin` was passed "
                "to the augmentation call: the augmentation draws the signs itself. If samples are divided among "
                "several augmentations, call `signed_bin(magnitude_bin)` once before, which is faster.",
                stacklevel=4,
            )
            magnitude_bin = signed_bin(magnitude_bin)
        signed = np.stack([magnitudes, -magnitudes], 1)
        if isinstance(magnitude_bin.bin, DataNode):
            return magnitude_bin.index, signed.reshape(-1)
        return magnitude_bin.sign, signed[magnitude_bin.bin]

    def _table(self, magnitudes: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the parameters of magnitudes, one per row, with a dtype that the graph supports."""
        rows = [self._row(magnitude) for magnitude in magnitudes]
        first = rows[0]
        for magnitude, row in zip(magnitudes, rows, strict=True):
            if row.shape != first.shape or row.dtype != first.dtype:
                raise ValueError(
                    f"`mag_to_param` of the `{self.name}` augmentation must return the arrays of the same type and "
                    f"shape for all magnitudes: the array for {magnitudes[0]} has shape {first.shape} and type "
                    f"{first.dtype}, the array for {magnitude} has shape {row.shape} and type {row.dtype}."
                )
        if first.dtype.kind not in "biuf":
            raise TypeError(
                f"`mag_to_param` of the augmentation `{self.name}` must return numbers or arrays of numbers, got "
                f"{first.dtype}"
            )
        narrow = {"f": np.float32, "i": np.int32}.get(first.dtype.kind)
        table = np.stack(rows)
        return table.astype(narrow) if narrow is not None and first.itemsize == 8 else table

    def _row(self, magnitude: Any) -> npt.NDArray[Any]:
        parameter = self.mag_to_param(magnitude)
        if isinstance(parameter, DataNode):
            raise TypeError(
                f"`mag_to_param` of the augmentation `{self.name}` returned a DataNode: the callback must return "
                "parameter that is `np.ndarray` or a number, because it runs while the pipeline is built"
            )
        return np.asarray(parameter)


def _plural(noun: str, names: Sequence[str]) -> str:
    return noun if len(names) == 1 else f"{noun}s"


def _move_to_device(node: DataNode, device: str) -> DataNode:
    return node.gpu() if device == "gpu" else node


def _check_signature(instance: Augmentation) -> None:
    if not callable(instance.op):
        raise TypeError(f"`@augmentation` must decorate a function, got {instance.op!r}")
    if isinstance(instance.op, Augmentation):
        raise TypeError(
            f"The `@augmentation` was applied to already decorated Augmentation. To change its options, call "
            f"`{instance.op.name}.augmentation(...)`, or decorate `{instance.op.name}.op`"
        )
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(p.kind in kinds for p in inspect.signature(instance.op).parameters.values())
    if count < 2:
        raise TypeError(
            f"{instance.op!r} accepts {count} positional argument(s), but the functions decorated with `@augmentation` "
            "take at least two: the samples and the parameter"
        )


@overload
def augmentation(function: Callable[..., Any]) -> Augmentation: ...
@overload
def augmentation(
    function: None = None,
    *,
    mag_range: MagnitudeRange | None = None,
    randomly_negate: bool | None = None,
    mag_to_param: Parameter | None = None,
    param_device: str | None = None,
    name: str | None = None,
    augmentation_cls: type[Augmentation] | None = None,
) -> Callable[[Callable[..., Any]], Augmentation]: ...
def augmentation(
    function: Callable[..., Any] | None = None,
    *,
    mag_range: MagnitudeRange | None = None,
    randomly_negate: bool | None = None,
    mag_to_param: Parameter | None = None,
    param_device: str | None = None,
    name: str | None = None,
    augmentation_cls: type[Augmentation] | None = None,
) -> Any:
    """Create an augmentation from a function ``op(samples, parameter, ...)`` that receives and returns nodes.

    ``parameter = mag_to_param(±linspace(*mag_range, num_magnitude_bins)[magnitude_bin])``

    Args:
        mag_range: Magnitudes of the first and the last bin, or an array with the magnitude of each bin. With None, the
            parameter is None, and magnitudes are ignored.
        randomly_negate: True to negate the magnitude at random, separately for each sample.
        mag_to_param: Function that converts a magnitude (float32) to the parameter (a number or an array), while the
            pipeline is defined. With None, the magnitude itself is the parameter.
        param_device: Device of the parameter: ``"cpu"`` (the default), ``"gpu"``, or ``"auto"`` for the device of the
            samples.
        name: Name in policies and messages; the function's name by default.
        augmentation_cls: Class of the augmentation, with the constructor of `Augmentation`.

    Raises:
        TypeError: the function has fewer than two positional arguments, or is already an augmentation.
    """

    def decorate(op: Callable[..., Any]) -> Augmentation:
        cls = augmentation_cls or Augmentation
        return cls(op, mag_range, randomly_negate, mag_to_param, param_device, name)

    return decorate if function is None else decorate(function)


def check_arguments(augmentations: Sequence[Augmentation], arguments: Mapping[str, Any], caller: str) -> None:
    """Check the arguments of a call for all augmentations.

    Raises:
        ValueError: no augmentation accepts an argument, or an augmentation's argument is missing.
    """
    names = {name for a in augmentations for name in a.arguments(arguments)[0]}
    unused = [name for name in arguments if name not in names]
    if unused:
        raise ValueError(
            f"The {_plural('kwarg', unused)} `{', '.join(unused)}` {'is' if len(unused) == 1 else 'are'} not used by "
            f"any of the augmentations. They were passed to the `{caller}` call"
        )
    for each in augmentations:
        if missing := each.arguments(arguments)[1]:
            raise ValueError(
                f"{each._missing_message(missing)}; provide it as `{missing[0]}` argument to `{caller}` call"
            )

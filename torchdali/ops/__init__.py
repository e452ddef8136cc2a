"""The operators and DALI's class API.

Each module of this package contains a family of operators. For each operator, there is also a class:
``ops.Resize(size=[224, 224])(images)`` is equivalent to ``fn.resize(images, size=[224, 224])``. The classes are created
from the operators' declarations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torchdali.calls.namespaces import publish
from torchdali.declaration.registry import Operator
from torchdali.errors import strip_internal_frames
from torchdali.ops import (  # noqa: F401  each module declares its operators
    _arithmetic,
    _audio,
    _augmenting,
    _box_crop,
    _boxes,
    _caching,
    _color,
    _control,
    _coordinates,
    _crop,
    _debayer,
    _decode_chain,
    _decoders,
    _dump_image,
    _equalize,
    _erase,
    _external_source,
    _filters,
    _flip,
    _generic,
    _inflate,
    _io,
    _jpeg_distortion,
    _legacy,
    _levels,
    _mixed,
    _multi_paste,
    _noise,
    _normalize,
    _optical_flow,
    _pad,
    _paste,
    _perspective,
    _pictures,
    _python,
    _random,
    _random_crop,
    _reductions,
    _reshape,
    _resize,
    _resize_and_normalize,
    _segmentation,
    _sequence,
    _shape,
    _slice,
    _spectra,
    _subscript,
    _tables,
    _transforms,
    _video,
    _video_input,
    _vision,
    _warp,
)
from torchdali.ops._compose import Compose, cpu_ops, gpu_ops, mixed_ops  # noqa: F401
from torchdali.ops._python import POSITIONAL_ARGUMENTS
from torchdali.ops._readers import (  # noqa: F401
    caffe,
    coco,
    dataset,
    file,
    fits,
    mds,
    mixture,
    mxnet,
    nemo_asr,
    numpy,
    stream,
    table,
    tfrecord,
    video,
    webdataset,
)


class OperatorClass:
    """Base class of the class API: the constructor takes an operator's arguments, and a call takes its inputs.

    Args:
        device: Device that the operator runs on, ``"cpu"`` (the default), ``"gpu"`` or ``"mixed"``.
        name: Name of the node.
    """

    operator: Operator

    def __init__(self, *values: Any, device: str | None = None, name: str | None = None, **arguments: Any) -> None:
        if values:
            bound = self._bind_positional(values, {"device": device, **arguments})
            device, arguments = bound.pop("device", device), {**arguments, **bound}
        names = arguments.keys() - {"seed"}  # in older versions, every operator accepted a seed
        try:
            self.operator.schema.check_known(names)
        except Exception as error:
            strip_internal_frames(error)
            raise
        self._arguments = {"device": device, "name": name, **arguments}
        self.device, self.name = device or "cpu", name

    def _bind_positional(self, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the positional arguments by their names. Only Python function operators have positional arguments.

        Raises:
            TypeError: an argument was also passed by name, or there are too many positional arguments.
        """
        names = POSITIONAL_ARGUMENTS.get(self.operator.name, ())
        bound = dict(zip(names, values, strict=False))
        twice = [name for name in bound if named.get(name) is not None]
        if twice:
            raise TypeError(f"ops.{self.operator.class_name}() got multiple values for {twice[0]}")
        if len(values) > len(names):
            allowed = f"at most {', '.join(names)}" if names else "none"
            raise TypeError(
                f"ops.{self.operator.class_name}() got too many positional arguments: it accepts "
                f"{allowed}; pass the other arguments by name"
            )
        return bound

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Apply the operator to the inputs. Arguments with the value None are ignored.

        Raises:
            ValueError: an argument was already passed to the constructor.
        """
        values = {name: value for name, value in arguments.items() if value is not None}
        twice = [name for name in values if self._arguments.get(name) is not None]
        if twice:
            raise ValueError(
                f"ops.{self.operator.class_name}: the argument {twice[0]!r} was already passed to the constructor"
            )
        return self.operator.function(*inputs, **{**self._arguments, **values})


def _name_of_class(operator: Operator) -> str:
    namespace = operator.name.rpartition(".")[0]
    has_custom_class = hasattr(operator.function, "operator_class")
    return f"{namespace}.{operator.class_name}" if namespace and not has_custom_class else operator.class_name


def _class_of(operator: Operator) -> type[OperatorClass]:
    if hasattr(operator.function, "operator_class"):
        custom_class: type[OperatorClass] = operator.function.operator_class
        return custom_class
    members = {"operator": operator, "__doc__": operator.function.__doc__, "__module__": __name__}
    return type(operator.class_name, (OperatorClass,), members)


publish(__name__, _name_of_class, _class_of)

"""Check that a program runs a pipeline in only one style: `run`, `schedule_run` with `outputs`, or an iterator."""

from __future__ import annotations

from contextlib import AbstractContextManager

from torchdali.errors import strip_internal_frames
from torchdali.types import PipelineAPIType

__all__ = ["ApiCheck"]


class ApiCheck:
    """Raises an error if a program mixes the styles of running a pipeline, which count batches differently.

    Attributes:
        enabled: True to raise errors; False to allow mixing.
        first_api: The style of the first call; None before the first call.
    """

    def __init__(self) -> None:
        self.enabled = True
        self.first_api: PipelineAPIType | None = None
        self._is_nested = False

    def driven_by(self, api: PipelineAPIType) -> AbstractContextManager[None]:
        """Return a context for the code of a method that runs batches; see `Pipeline.driven_by`."""
        return _NESTED if self._is_nested else _ApiContext(self, api)


class _NestedContext(AbstractContextManager[None]):
    """A context for nested calls, which does nothing."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        return None


_NESTED = _NestedContext()


class _ApiContext(AbstractContextManager[None]):
    """A context that checks and records the style of a call."""

    __slots__ = ("_api", "_check")

    def __init__(self, check: ApiCheck, api: PipelineAPIType) -> None:
        self._check, self._api = check, api

    def __enter__(self) -> None:
        check, api = self._check, self._api
        check.first_api = check.first_api or api
        if check.first_api is not api and check.enabled:
            raise RuntimeError(
                f"Mixing pipeline API type. Currently used: {check.first_api}, but trying to use {api}; "
                "use either run(), or schedule_run() with outputs(), or an iterator"
            )
        check._is_nested = True

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._check._is_nested = False
        if isinstance(error, (Exception, KeyboardInterrupt)):
            strip_internal_frames(error)

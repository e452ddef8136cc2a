"""`pipeline_def`: turn a function that defines a graph into a factory of pipelines."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, cast, overload

from torchdali.errors import strip_internal_frames
from torchdali.graph.conditionals import convert
from torchdali.pipeline._options import NAMES, PipelineOptions
from torchdali.pipeline._pipeline import Pipeline
from torchdali.reading.user_random import TracedDraws

__all__ = ["pipeline_def"]


Options = ParamSpec("Options")


class _PipelineDecorator(Protocol[Options]):
    """A decorator that may be used directly, or called with options."""

    @overload
    def __call__(
        self, fn: Callable[..., Any], /, *args: Options.args, **options: Options.kwargs
    ) -> Callable[..., Pipeline]: ...
    @overload
    def __call__(
        self, fn: None = None, /, *args: Options.args, **options: Options.kwargs
    ) -> Callable[[Callable[..., Any]], Callable[..., Pipeline]]: ...


def _set_signature(options: Callable[Options, Any]) -> Callable[[Callable[..., Any]], _PipelineDecorator[Options]]:
    """Set a decorator's signature to the fields of an options class, for type checkers."""
    return lambda decorator: cast("_PipelineDecorator[Options]", decorator)


@dataclass(frozen=True, kw_only=True)
class _PipelineKeywords(PipelineOptions):
    enable_conditionals: bool = False
    debug: bool = False


@_set_signature(_PipelineKeywords)
def pipeline_def(
    fn: Any = None,
    /,
    *,
    enable_conditionals: bool = False,
    debug: bool = False,
    **pipeline_kwargs: Any,
) -> Any:
    """Turn a function that defines a graph into a factory of pipelines.

    The factory accepts the arguments of the function and of `Pipeline`. Arguments of the factory override the arguments
    of `pipeline_def`. If the function and `Pipeline` have an argument of the same name, the factory passes the argument
    to the function. The function returns one output, or a tuple of outputs.

    Args:
        fn: The function; None if the decorator is called only with options.
        enable_conditionals: True to allow nodes as conditions of ``if``, ``and``, ``or`` and ``not`` in the function;
            the conditions apply sample by sample. You can override this when you call the factory.
        debug: True to run the function again for every batch, so that you can step through it and print its nodes. You
            can override this when you call the factory.
        pipeline_kwargs: Arguments of `Pipeline`.

    Raises:
        ValueError: The function is marked with `do_not_convert`.
        AssertionError: The factory is called with an argument that neither the function nor `Pipeline` has.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Pipeline]:
        if hasattr(function, "_do_not_convert"):
            raise ValueError(
                f"pipeline {function.__name__!r}: the function that defines a pipeline cannot be marked with "
                f"@do_not_convert, which is for the functions that it calls"
            )
        parameters = inspect.signature(function).parameters
        has_var_keywords = any(p.kind is p.VAR_KEYWORD for p in parameters.values())

        @functools.wraps(function)
        def create(*args: Any, **arguments: Any) -> Pipeline:
            kwargs = dict(arguments)
            is_debug = kwargs.pop("debug", debug) if "debug" not in parameters else debug
            rewrites = enable_conditionals
            if "enable_conditionals" not in parameters:
                rewrites = kwargs.pop("enable_conditionals", enable_conditionals)
            pipeline_arguments = {k: v for k, v in kwargs.items() if k in NAMES - parameters.keys()}
            function_arguments = {k: v for k, v in kwargs.items() if k not in pipeline_arguments}
            unknown = [k for k in function_arguments if k not in parameters and not has_var_keywords]
            assert not unknown, (
                f"unknown argument {unknown[0]!r} of pipeline {function.__name__!r}: neither the function nor "
                f"Pipeline has this argument"
            )
            pipe = _pipeline_class(is_debug)(**{**pipeline_kwargs, **pipeline_arguments})
            pipe._builder.function_title = _describe_function(function)
            pipe.factory = functools.partial(create, *args, **arguments)
            definition = convert(function, always=True) if rewrites else function
            pipe._builder.tracer.converts = bool(rewrites)
            if is_debug:
                pipe._builder.function = functools.partial(definition, *args, **function_arguments)
                return pipe
            try:
                with pipe, _watch_draws(pipe, function):
                    result = definition(*args, **function_arguments)
            except Exception as error:
                strip_internal_frames(error)
                raise
            if result is not None:
                pipe.set_outputs(*(result if isinstance(result, tuple) else (result,)))
            return pipe

        vars(create)["_is_pipeline_def"] = True
        return create

    return decorate if fn is None else decorate(fn)


def _pipeline_class(is_debug: bool) -> type[Pipeline]:
    if not is_debug:
        return Pipeline
    from torchdali.dali.debug import DebugPipeline

    return DebugPipeline


@contextlib.contextmanager
def _watch_draws(pipe: Pipeline, function: Callable[..., Any]) -> Iterator[None]:
    """Warn if the function draws random numbers from global generators, for example Python's `random`."""
    draws, tracer = TracedDraws(function.__name__), pipe._builder.tracer
    tracer.draws = draws
    try:
        yield
        draws.warn()
    finally:
        tracer.draws = None


def _describe_function(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    name = getattr(function, "__name__", repr(function))
    return f'{name!r} (File "{code.co_filename}", line {code.co_firstlineno})' if code else name

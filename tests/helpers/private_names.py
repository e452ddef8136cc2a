"""Methods with private names and ``if``s, like `conditional_programs`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


class Private:
    """Names with two underscores, which Python mangles in a class."""

    __factor = 3
    __table__ = 5
    __counts: ClassVar[dict[str, Any]] = {"a": 2}

    def __init__(self) -> None:
        self.__own = 2
        self.__value = 0

    def method(self, x: Any) -> Any:
        return self.__positive(x)

    def __positive(self, x: Any) -> Any:
        if x < 0:
            x = -x
        return x

    def attribute(self, x: Any) -> Any:
        if x > 0:
            x = x * self.__own
        return x

    def set_attribute(self, x: Any) -> Any:
        self.__value = 1
        if x > 0:
            self.__value = x * 2
        return self.__value

    def add_to_attribute(self, x: Any) -> Any:
        self.__value = x
        if x > 0:
            self.__value += 10
            self.__value: Any = self.__value * 2
        return self.__value

    def make_attribute(self, x: Any) -> Any:
        if x > 0:
            self.__made = x
        else:
            self.__made = x - 1
        return self.__made

    def of_the_class(self, x: Any) -> Any:
        if x > 0:
            x = x * Private.__factor + self.__table__
        return x

    def variable(self, x: Any) -> Any:
        __y = 1
        if x > 0:
            __y = x * 2
        return __y

    def parameter(self, __x: Any) -> Any:
        if __x > 0:
            __x = __x * 2
        return __x

    def element(self, x: Any) -> Any:
        counts = dict(self.__counts)
        if x > 0:
            counts["a"] += x
        return counts["a"]

    def returns(self, x: Any) -> Any:
        if x > 0:
            return self.__positive(x) + self.__own
        return self.__positive(x)

    def inner(self, x: Any) -> Any:
        __k = 4

        def add(a: Any) -> Any:
            if a > 0:
                a = a + __k + self.__own
            return a

        return add(x)

    def by_lambda(self, x: Any) -> Any:
        __k = 4
        step = lambda a: a * self.__own + __k if isinstance(a, str) else a + self.__own  # noqa: E731
        if x > 0:
            x = step(x)
        return x

    def by_super(self, x: Any) -> Any:
        return type(self).__name__ and self.__positive(x)

    @classmethod
    def __f(cls, x: Any) -> Any:
        if x > 0:
            x = x + cls.__factor
        return x

    @classmethod
    def of_a_class(cls, x: Any) -> Any:
        return cls.__f(x)

    @staticmethod
    def __g(x: Any) -> Any:
        if x > 0:
            x = x + Private.__factor
        return x

    @staticmethod
    def without_self(x: Any) -> Any:
        return Private.__g(x)

    def __call__(self, x: Any) -> Any:
        if x > 0:
            x = self.__positive(x) * self.__own
        return x

    class Nested:
        __own = 7

        def method(self, x: Any) -> Any:
            if x > 0:
                x = x * self.__own
            return self.__down(x)

        def __down(self, x: Any) -> Any:
            if x > 10:
                x = x - 10
            return x


class Derived(Private):
    """A class with its own and inherited private names."""

    def __init__(self) -> None:
        super().__init__()
        self.__own = 100

    def add(self, x: Any) -> Any:
        if x > 0:
            x = super().attribute(x) + self.__own
        return x

    def __call__(self, x: Any) -> Any:
        if x > 0:
            x = super().__call__(x) + self.__own
        return x


class _Hidden:
    """Python strips the leading underscores of the class name."""

    def __init__(self) -> None:
        self.__own = 3

    def method(self, x: Any) -> Any:
        if x > 0:
            x = self.__times(x)
        return x

    def __times(self, x: Any) -> Any:
        if x > 5:
            x = x + 1
        return x * self.__own


class __:
    """A class name of underscores only: Python mangles no names in it."""

    def __init__(self) -> None:
        self.__own = 3

    def method(self, x: Any) -> Any:
        if x > 0:
            x = x * self.__own
        return x


@dataclasses.dataclass
class Counter:
    total: Any = 0

    def __add(self, x: Any) -> Any:
        if x > 0:
            self.total += x
        return self.total

    def twice(self, x: Any) -> Any:
        self.total = 0
        self.__add(x)
        return self.__add(x)


def in_a_function() -> Any:
    class Local:
        __own = 6

        def method(self, x: Any) -> Any:
            if x > 0:
                x = self.__step(x)
            return x

        def __step(self, x: Any) -> Any:
            return x + self.__own

    return Local()


for _name in (
    "method", "attribute", "set_attribute", "add_to_attribute", "make_attribute", "of_the_class", "variable", "parameter",
    "element", "returns", "inner", "by_lambda", "by_super", "of_a_class", "without_self", "__call__",
):  # fmt: skip
    PROGRAMS[_name] = getattr(Private(), _name)
for _title, _function in {
    "nested": Private.Nested().method, "inherited": Derived().method, "derived": Derived().add,
    "derived, called": Derived(), "hidden class": _Hidden().method, "class of underscores": __().method,
    "dataclass": Counter().twice, "class in a function": in_a_function().method, "called": Private(),
    "partial": functools.partial(Private.attribute, Private()),
}.items():  # fmt: skip
    PROGRAMS[_title] = _function

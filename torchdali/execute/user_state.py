"""State that operators of the user read from outside, and how other processes learn that it has changed.

An operator may read globals of its module, attributes of modules and classes, values that it closes over, defaults, and
attributes of an object that it is given. A replica has them as they were when it was forked, or as a new interpreter
imports them. So the process of the user looks, in the user's thread, whether they have changed: at the beginning of
an epoch at all, before each batch at those that are compared quickly. Replicas are sent what has changed.

*Changed* means bound to something else, or another pickle. Of what has no pickle, or one of more than `_LARGEST` bytes,
only the binding counts.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import io
import math
import pickle
import sys
import types
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from torchdali import pickling
from torchdali.errors import is_installed, warn
from torchdali.graph.nodes import Node

__all__ = ["Update", "UserState"]

_LARGEST = 4 << 20  # bytes of a pickle that is compared at the beginning of an epoch
_QUICK = 1 << 12  # the same, before each batch
_FOLLOWED = 10_000  # elements of containers, which may be functions
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype)
_BY_NAME = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
_OF_FUNCTION = ("__defaults__", "__kwdefaults__")
_MISSING = object()


class Update(NamedTuple):
    """The variables that have changed: title, number among those of this title, and pickled value of each."""

    values: tuple[tuple[str, int, bytes], ...]


class UserState:
    """The variables that operators read.

    Args:
        nodes: Those of the graph that run.

    Attributes:
        version: Number of times that a look found some of them changed.
        functions: What was followed to find them, with the name of the operator that calls it.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        walk = _Walk()
        for node in nodes:
            walk.follow(node)
        self.functions, self._variables, self.version = walk.functions, walk.variables, 0
        self._keys: dict[_Key, types.FunctionType] = {}
        for function in self.functions:
            name = function.__module__, function.__qualname__
            self._keys[(*name, sum(key[:2] == name for key in self._keys))] = function

    @property
    def is_empty(self) -> bool:
        """True if nothing is read from outside."""
        return not self._variables

    def look(self, thorough: bool = False) -> int:
        """Compare the variables with what they were at the last look, and return the version.

        Args:
            thorough: Compare those that take long, too.
        """
        changed = [each for each in self._variables if each.has_changed(thorough)]
        self.version += bool(changed)
        for each in changed:
            each.version = self.version
        return self.version

    def since(self, version: int) -> Update:
        """Return what has changed since a version; what cannot be sent is warned of, once.

        Args:
            version: Or -1, for a process that has imported the user's modules anew, where values may differ.
        """
        sent = []
        for title, number, variable in self._numbered():
            if variable.version > max(0, version) or (version < 0 and variable.is_small):
                data = self._pickled(variable, warns=version >= 0)
                sent += [] if data is None else [(title, number, data)]
        return Update(tuple(sent))

    def _pickled(self, variable: _Variable, warns: bool) -> bytes | None:
        target = io.BytesIO()
        try:
            _Sending(target, {f: key for key, f in self._keys.items()}).dump(variable.value)
        except Exception as error:
            if warns:
                variable.warn(error)
            return None
        return target.getvalue()

    def apply(self, update: Update) -> None:
        """Take over what has changed in the process of the user; in another one."""
        known = {(title, number): variable for title, number, variable in self._numbered()}
        for title, number, data in update.values:
            variable = known.get((title, number))
            if variable is not None:
                try:
                    variable.value = _Receiving(io.BytesIO(data), self._keys).load()
                except Exception as error:
                    variable.warn(error)

    def _numbered(self) -> Iterator[tuple[str, int, _Variable]]:
        counts: dict[str, int] = {}
        for variable in self._variables:
            number = counts[variable.title] = counts.get(variable.title, -1) + 1
            yield variable.title, number, variable


_Key = tuple[str, str, int]
"""Module and qualified name of a function, and its number among those of this name."""


class _Sending(pickling.Pickler):
    """A pickler for processes that know some functions, which go as their keys: they are to be the other's own."""

    def __init__(self, target: io.BytesIO, known: dict[types.FunctionType, _Key]) -> None:
        super().__init__(target, pickle.HIGHEST_PROTOCOL)
        self._known = known

    def persistent_id(self, obj: Any) -> _Key | None:
        """Return the key of a function."""
        return self._known.get(obj) if isinstance(obj, types.FunctionType) else None


class _Receiving(pickle.Unpickler):
    def __init__(self, source: io.BytesIO, known: dict[_Key, types.FunctionType]) -> None:
        super().__init__(source)
        self._known = known

    def persistent_load(self, pid: _Key) -> types.FunctionType:
        """Return the function of a key."""
        return self._known[pid]


class _Variable:
    """A variable: an entry of a dictionary, an attribute, the content of a cell, or all attributes of an object.

    Args:
        owner: The dictionary, cell, class, function or object.
        name: Of the entry or attribute.
        title: For messages.
        reader: Name of an operator that reads it.
    """

    def __init__(self, owner: Any, name: str, title: str, reader: str) -> None:
        self._owner, self._name, self.title, self._reader = owner, name, title, reader
        self.version, self._was_warned = 0, False
        self._note(self.value, *_digest(self.value))

    @property
    def value(self) -> Any:
        """The present value, `_MISSING` if there is none."""
        return _value_of(self._owner, self._name)

    @value.setter
    def value(self, value: Any) -> None:
        if isinstance(self._owner, dict):
            self._owner[self._name] = value
        elif isinstance(self._owner, types.CellType):
            self._owner.cell_contents = value
        elif self._name == "__dict__":
            vars(self._owner).clear()
            vars(self._owner).update(value)
        else:
            setattr(self._owner, self._name, value)

    def _note(self, value: Any, digest: bytes, size: float) -> None:
        try:
            self._seen: Any = weakref.ref(value)
        except TypeError:
            self._seen = (value,)
        self._digest, self._size = digest, size

    def _is_bound_to(self, value: Any) -> bool:
        if isinstance(self._seen, tuple):
            return self._seen[0] is value
        return value is not None and self._seen() is value

    @property
    def is_small(self) -> bool:
        """True for a value that takes no time to send, and that did not come with the plan."""
        return self._size <= _LARGEST and self._name != "__dict__"

    def has_changed(self, thorough: bool) -> bool:
        """Return whether the value is another one than at the last look."""
        value, is_same = self.value, self._is_bound_to(self.value)
        if value is _MISSING or (
            is_same and (isinstance(value, _PLAIN + _BY_NAME) or self._size > (_LARGEST if thorough else _QUICK))
        ):
            return False
        try:
            digest, size = _digest(value)
        except RuntimeError:  # a thread of the pipeline changes it just now
            return False
        changed = digest != self._digest or not (digest or is_same)
        self._note(value, digest, size)
        return changed

    def warn(self, error: Exception) -> None:
        """Warn, once, that the present value could not be brought to another process."""
        if not self._was_warned:
            self._was_warned = True
            warn(
                f"operator {self._reader!r} reads {self.title}, which has changed since worker processes were started, "
                f"and cannot be brought to them ({type(error).__name__}: {error}): they go on with the old value. Give "
                "the pipeline num_processes=1, or the operator an argument"
            )


def _value_of(owner: Any, name: str) -> Any:
    if isinstance(owner, dict):
        return owner.get(name, _MISSING)
    if isinstance(owner, types.CellType):
        return owner.cell_contents if _is_filled(owner) else _MISSING
    if name in _OF_FUNCTION:
        return getattr(owner, name)
    return vars(owner) if name == "__dict__" else vars(owner).get(name, _MISSING)


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


# ---------------------------------------------------------------- comparing


class _TooLarge(Exception):
    pass


class _Hash:
    """A file that keeps a digest of what is written."""

    def __init__(self) -> None:
        self.size, self._hash = 0, hashlib.blake2b(digest_size=16)

    def write(self, data: Any) -> None:
        self.size += memoryview(data).nbytes
        if self.size > _LARGEST:
            raise _TooLarge
        self._hash.update(data)

    def digest(self) -> bytes:
        return self._hash.digest()


class _Comparing(pickling.Pickler):
    """A pickler whose pickles are only compared."""

    def reducer_override(self, obj: Any) -> Any:
        """Let large arrays be too large at once, and tensors be their bytes."""
        if isinstance(obj, (np.ndarray, torch.Tensor)) and obj.nbytes > _LARGEST:
            raise _TooLarge
        if isinstance(obj, types.FunctionType):
            return int, (id(obj),)
        if type(obj) is torch.Tensor and obj.device.type == "cpu" and obj.layout is torch.strided:
            flat = obj.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
            return torch.Tensor, (
                str(obj.dtype),
                tuple(obj.shape),
                flat.view(torch.uint8).numpy() if obj.numel() else 0,
            )
        return super().reducer_override(obj)


def _digest(value: Any) -> tuple[bytes, float]:
    """Return a digest of the pickle of a value, and its size; nothing and infinity if it has no small one.

    Raises:
        RuntimeError: another thread changes it meanwhile.
    """
    target = _Hash()
    if isinstance(value, _BY_NAME) or value is _MISSING:
        return b"", math.inf
    try:
        _Comparing(target, pickle.HIGHEST_PROTOCOL).dump(value)
    except RuntimeError as error:
        if "during iteration" in str(error):
            raise
        return b"", math.inf
    except Exception:
        return b"", math.inf
    return target.digest(), target.size


# ---------------------------------------------------------------- finding them


class _Walk:
    """Follows functions to all that they read and call, as far as it is the user's.

    Attributes:
        functions: Those that were followed, each with the name of an operator.
        variables: What they read.
    """

    def __init__(self) -> None:
        self.functions: dict[types.FunctionType, str] = {}
        self.variables: list[_Variable] = []
        self._packages: set[str] = set()  # of the operators
        self._seen: set[Any] = set()
        self._left = _FOLLOWED

    def follow(self, node: Node) -> None:
        """Follow what a node calls that may be the user's: its bodies, and functions and objects that it is given."""
        if node.operator.kind == "source":
            return
        reader, body = node.operator.name, node.operator.body
        self._packages.add(body.__module__.partition(".")[0])
        for each in (body, *node.operator.chunks.values()):
            self._value(each, reader)
        values = (getattr(value, "users_dataset", value) for value in node.constants.values())  # also a data set
        for each in values:
            if callable(each) or (node.operator.kind == "reader" and hasattr(type(each), "__getitem__")):
                self._value(each, reader)
                self._object(each, reader)

    def _object(self, value: Any, reader: str) -> None:
        """Note the attributes of an object that is called, or of a data set."""
        value = value.__self__ if isinstance(value, types.MethodType) else value
        if not isinstance(value, (*_BY_NAME, functools.partial)) and hasattr(value, "__dict__"):
            self._variable(value, "__dict__", f"the attributes of a {type(value).__name__}", reader, frozenset())

    def _value(self, value: Any, reader: str) -> None:
        if isinstance(value, functools.partial):
            for each in (value.func, *value.args, *value.keywords.values()):
                self._value(each, reader)
        elif isinstance(value, types.MethodType):
            self._value(value.__func__, reader)
            self._value(value.__self__, reader)
        elif isinstance(value, (staticmethod, classmethod)):
            self._value(value.__func__, reader)
        elif isinstance(value, property):
            self._value(value.fget, reader)
        elif isinstance(value, types.FunctionType):
            self._function(getattr(value, "body", value), reader)
        elif isinstance(value, (dict, list, tuple, set)):
            self._elements(value, reader)
        else:
            for owner in (value if isinstance(value, type) else type(value)).__mro__:
                if owner not in self._seen and self._is_users(owner.__module__):
                    self._seen.add(owner)
                    for each in vars(owner).values():
                        if isinstance(each, (types.FunctionType, staticmethod, classmethod, property)):
                            self._value(each, reader)

    def _elements(self, container: Any, reader: str) -> None:
        if id(container) in self._seen:
            return
        self._seen.add(id(container))
        for each in list(container.values() if isinstance(container, dict) else container):
            self._left -= 1
            if self._left > 0 and not isinstance(each, _PLAIN):
                self._value(each, reader)

    def _function(self, function: types.FunctionType, reader: str) -> None:
        if function in self.functions or not self._is_users(function.__module__):
            return
        self.functions[function] = reader
        names = frozenset(pickling.names_of(function.__code__))
        for name in dict.fromkeys(_globals_of(function.__code__)):
            self._variable(function.__globals__, name, f"the global {name!r} of {function.__module__}", reader, names)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._variable(cell, name, f"{name!r}, which {function.__qualname__} closes over", reader, names)
        for name in _OF_FUNCTION:
            if getattr(function, name):
                self._variable(function, name, f"defaults of {function.__qualname__}", reader, frozenset())

    def _variable(self, owner: Any, name: str, title: str, reader: str, names: frozenset[str]) -> None:
        """Note a variable, follow its value, and note those attributes of it that a function may read."""
        if (id(owner), name, names) in self._seen:
            return
        self._seen.add((id(owner), name, names))
        value = _value_of(owner, name)
        if value is _MISSING:
            return
        if (id(owner), name) not in self._seen:
            self._seen.add((id(owner), name))
            self._value(value, reader)
            if not isinstance(value, (types.ModuleType, type)):
                self.variables.append(_Variable(owner, name, title, reader))
        self._attributes(value, reader, names)

    def _attributes(self, value: Any, reader: str, names: frozenset[str]) -> None:
        """Note those attributes of a module, class or function of the user that a function may read."""
        if isinstance(value, types.ModuleType) and self._is_users(value.__name__):
            for name in sorted(names & vars(value).keys()):
                self._variable(vars(value), name, f"the global {name!r} of {value.__name__}", reader, names)
        elif isinstance(value, (type, types.FunctionType)) and self._is_users(value.__module__):
            for name in sorted(names & vars(value).keys()):
                if not name.startswith("__") and not hasattr(vars(value)[name], "__get__"):
                    self._variable(value, name, f"{value.__name__}.{name}", reader, names)

    def _is_users(self, name: str | None) -> bool:
        """Return True for a module that is neither this package's, nor installed."""
        package = (name or "").partition(".")[0]
        if package == "torchdali":
            return False
        if package in self._packages or package == "__main__":
            return True
        file = getattr(sys.modules.get(name or ""), "__file__", None)
        return file is not None and not is_installed(file)


def _globals_of(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals that code and the functions in it look up."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals_of(constant)

"""`Checkpoint`: the states of readers and random generators, by name."""

from __future__ import annotations

import glob
import json
import os
import re
from typing import Any

from torchdali.formats.shared_folder import write_atomically

__all__ = ["Checkpoint"]

_VERSION = 1


class Checkpoint:
    """The states of readers and random generators (`random.RNG`), by name.

    To save: `register` the objects, `collect` their states, and `save` the states to a file. To resume in a new
    process: `load` the file, and register the same objects under the same names. Registering then restores each
    object's state.
    """

    def __init__(self) -> None:
        self._objects: dict[str, Any] = {}
        self._states: dict[str, dict[str, str]] = {}
        self._loaded = False

    def register(self, op: Any, name: str | None = None) -> str:
        """Add an object, and return its name; after `load`, also restore the object's state.

        Args:
            op: A reader or a generator.
            name: Name of the object; by default ``"__op_0"``, ``"__op_1"`` ... in the order of registration.

        Raises:
            TypeError: The object lacks ``get_state`` or ``set_state``, or the loaded state belongs to another class.
            RuntimeError: The name is already used, or the object is registered under another name.
            KeyError: A loaded checkpoint has no state with this name.
        """
        if not (hasattr(op, "get_state") and hasattr(op, "set_state")):
            raise TypeError(f"{type(op).__name__} must have the methods get_state and set_state")
        registered_name = next((key for key, each in self._objects.items() if each is op), None)
        if registered_name is not None:
            if name in (None, registered_name):
                return registered_name
            raise RuntimeError(f"cannot register the object as {name!r}: it is registered as {registered_name!r}")
        name = f"__op_{len(self._objects)}" if name is None else name
        if name in self._objects:
            raise RuntimeError(f"the name {name!r} is taken by another object")
        if self._loaded:
            self._restore_state(op, name)
        self._objects[name] = op
        return name

    def _restore_state(self, op: Any, name: str) -> None:
        entry = self._states.get(name)
        if entry is None:
            raise KeyError(f"the loaded checkpoint has no state of {name!r}")
        if entry["type"] != type(op).__name__:
            raise TypeError(
                f"the state of {name!r} belongs to a {entry['type']}, but the registered object is a "
                f"{type(op).__name__}"
            )
        op.set_state(entry["state"])

    def collect(self) -> None:
        """Collect the states of all registered objects."""
        self._states = {
            name: {"state": str(op.get_state()), "type": type(op).__name__} for name, op in self._objects.items()
        }
        self._loaded = False

    def restore(self) -> None:
        """Restore the states of all registered objects.

        Raises:
            RuntimeError: A state has no registered object.
            KeyError: An object has no state.
        """
        missing = sorted(self._states.keys() - self._objects.keys())
        if missing:
            raise RuntimeError(f"the checkpoint has states of objects that are not registered: {missing}")
        for name, op in self._objects.items():
            self._restore_state(op, name)

    def clear(self) -> None:
        """Remove all objects and states."""
        self._objects.clear()
        self._states.clear()
        self._loaded = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the registered objects."""
        return tuple(self._objects)

    @property
    def is_loaded(self) -> bool:
        """True if the states come from `load` or `deserialize`."""
        return self._loaded

    @property
    def is_complete(self) -> bool:
        """True if there is exactly one state per registered object."""
        return bool(self._states) and self._states.keys() == self._objects.keys()

    def get_state(self, name: str) -> str:
        """Return the state with this name; raise KeyError for an unknown name."""
        if name not in self._states:
            raise KeyError(f"the checkpoint contains no state of {name!r}")
        return self._states[name]["state"]

    def set_state(self, name: str, value: Any, op_type: str | None = None) -> None:
        """Set the state with this name, without changing the object.

        Args:
            name: Name of the object.
            value: The state.
            op_type: Name of the object's class; by default, the class of the object registered under this name.

        Raises:
            KeyError: No object has this name, and ``op_type`` is None.
        """
        if op_type is None:
            if name not in self._objects:
                raise KeyError(f"no object is registered as {name!r}")
            op_type = type(self._objects[name]).__name__
        self._states[name] = {"state": str(value), "type": op_type}

    def serialize(self) -> str:
        """Return the states as JSON text."""
        return json.dumps({"version": _VERSION, "states": self._states})

    def deserialize(self, data: str | bytes) -> None:
        """Read states from the result of `serialize`.

        Registered objects get their states immediately, other objects when they are registered.

        Raises:
            ValueError: The text isn't a checkpoint.
        """
        self._states = _read(data)
        self._loaded = True
        for name, op in self._objects.items():
            self._restore_state(op, name)

    def save(self, filename: str | os.PathLike[str]) -> str:
        """Write the states to a file, and return its path; an existing file is replaced atomically.

        Args:
            filename: Path of the file. ``{seq}`` in the path is a counter: `str.format` replaces it with the largest
                number of the existing files plus 1.
        """
        pattern = os.fspath(filename)
        target = pattern.format(seq=_last_number(pattern) + 1) if "{seq" in pattern else pattern
        write_atomically(target, [self.serialize().encode()], durable=True)
        return target

    def load(self, filename: str | os.PathLike[str]) -> str:
        """Read states from a file, and return its path. If the path contains ``{seq}``, read the newest file.

        The newest file is the file with the largest number.

        Raises:
            FileNotFoundError: The file does not exist.
            ValueError: The file isn't a checkpoint.
        """
        pattern = os.fspath(filename)
        target = pattern
        if "{seq" in pattern:
            number = _last_number(pattern)
            if number < 0:
                raise FileNotFoundError(f"no checkpoint matches {pattern}")
            target = pattern.format(seq=number)
        with open(target, encoding="utf-8") as file:
            self.deserialize(file.read())
        return target

    def __contains__(self, name: object) -> bool:
        return name in self._objects

    def __len__(self) -> int:
        return len(self._objects)


def _read(data: str | bytes) -> dict[str, dict[str, str]]:
    try:
        read = json.loads(data)
        if read["version"] != _VERSION:
            raise ValueError(f"version must be {_VERSION}, got {read['version']!r}")
        return {
            str(name): {"state": str(entry["state"]), "type": str(entry["type"])}
            for name, entry in read["states"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a checkpoint of the dynamic mode: {error}") from None


_FIELD = re.compile(r"\{seq(?::[^}]*)?\}")


def _last_number(pattern: str) -> int:
    """Return the largest number in the names of files that match a pattern, or -1."""
    before, after = _FIELD.split(pattern, maxsplit=1)
    numbered = re.compile(re.escape(before) + r"(\d+)" + re.escape(after))
    names = glob.glob(glob.escape(before) + "*" + glob.escape(after))
    return max((int(m[1]) for name in names if (m := numbered.fullmatch(name))), default=-1)

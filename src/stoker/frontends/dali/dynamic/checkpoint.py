# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of the imperative mode: states of readers and generators, by name."""

from __future__ import annotations

import json
import os
import re
import string
from typing import Any

from ....contract.errors import ArgumentError, StateError
from ....contract.text import brief
from ..errors import error_class, raises_as_dali

_VERSION = 1
_RESERVED = "__op_"


class Checkpoint:
    """States of readers and generators (objects with ``get_state`` and ``set_state``) by name.

    ``collect`` takes the states of all registered objects, ``restore`` sets them. ``save`` and ``load`` keep them in a
    file. A loaded state is set when an object is registered under its name.
    """

    def __init__(self) -> None:
        self._objects: dict[str, Any] = {}
        self._states: dict[str, tuple[str, str]] = {}  # name -> class, state
        self._loaded: set[str] = set()  # names whose loaded states have not been set yet
        self._was_loaded = False

    def clear(self) -> None:
        """Forget all objects and states."""
        self.__init__()  # type: ignore[misc]

    @property
    def is_complete(self) -> bool:
        """Return whether every registered object has a state here."""
        return set(self._objects) <= set(self._states) and bool(self._states)

    @property
    def is_loaded(self) -> bool:
        """Return whether the states were loaded."""
        return self._was_loaded

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all objects and states."""
        return tuple(dict.fromkeys([*self._objects, *self._states]))

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    @raises_as_dali
    def register(self, op: Any, name: str | None = None) -> str:
        """Add an object and return its name. A loaded state of this name is set.

        Args:
            op: a reader or a generator.
            name: its name; by default a number of its own, or its earlier name.
        """
        if not (callable(getattr(op, "get_state", None)) and callable(getattr(op, "set_state", None))):
            raise ArgumentError(f"`Checkpoint.register`: expected a reader or an RNG, got {brief(op)}")
        if name is None:
            name = next((key for key, known in self._objects.items() if known is op), None)
            name = f"{_RESERVED}{sum(key.startswith(_RESERVED) for key in self._objects)}" if name is None else name
        elif not isinstance(name, str) or name.startswith(_RESERVED):
            raise ArgumentError(f"`Checkpoint.register`: expected a name that is not {_RESERVED}*, got {brief(name)}")
        self._objects[name] = op
        if name in self._loaded:
            self._set(name)
        return name

    def _set(self, name: str) -> None:
        kind, state = self._states[name]
        op = self._objects[name]
        if kind and kind != type(op).__name__:
            raise StateError(f"`Checkpoint`: expected {kind!r} for the state {name!r}, got {type(op).__name__!r}")
        op.set_state(state)
        self._loaded.discard(name)

    @raises_as_dali
    def get_state(self, name: str) -> str:
        """Return a state.

        Args:
            name: its name.
        """
        if name not in self._states:
            raise StateError(f"`Checkpoint.get_state`: there is no state {brief(name)}; call `collect` or `load` first")
        return self._states[name][1]

    @raises_as_dali
    def set_state(self, name: str, value: Any, op_type: Any = None) -> None:
        """Keep a state, for `restore`.

        Args:
            name: its name.
            value: the state, from ``get_state`` of a reader or a generator.
            op_type: the class, or its name, that the state belongs to.
        """
        kind = op_type if isinstance(op_type, str) else getattr(op_type, "__name__", "")
        self._states[name] = (kind.rpartition(".")[2], str(value))
        self._loaded.add(name)

    @raises_as_dali
    def collect(self) -> None:
        """Take the states of all registered objects."""
        self._states = {name: (type(op).__name__, str(op.get_state())) for name, op in self._objects.items()}
        self._loaded.clear()

    @raises_as_dali
    def restore(self) -> None:
        """Set the states of all registered objects."""
        missing = sorted(set(self._objects) - set(self._states))
        if missing:
            raise StateError(f"`Checkpoint.restore`: expected a state of {missing[0]!r}, got none")
        for name in self._objects:
            self._set(name)

    @raises_as_dali
    def serialize(self) -> str:
        """Return all states as JSON."""
        if not self._states:
            raise StateError("`Checkpoint.serialize`: there are no states; call `collect` first")
        states = {name: {"type": kind, "state": state} for name, (kind, state) in self._states.items()}
        return json.dumps({"version": _VERSION, "states": states})

    @raises_as_dali
    def deserialize(self, data: str) -> None:
        """Take states from JSON. Those of registered objects are set.

        Args:
            data: the result of `serialize`.
        """
        try:
            parsed = json.loads(data)
            version = parsed["version"]
            states = {str(name): (str(s["type"]), str(s["state"])) for name, s in parsed["states"].items()}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StateError("`Checkpoint.deserialize`: expected the text of `serialize`") from error
        if version != _VERSION:
            raise StateError(f"`Checkpoint.deserialize`: expected version {_VERSION}, got {brief(version)}")
        self._states, self._loaded, self._was_loaded = states, set(states), True
        for name in [name for name in self._objects if name in states]:
            self._set(name)

    @raises_as_dali
    def save(self, filename: str) -> str:
        """Write the states to a file and return its path.

        Args:
            filename: the path; ``{seq}`` becomes a number that no such file has yet.
        """
        text, path = self.serialize(), filename
        if _has_number(filename):
            numbers = [number for number, _ in _matching(filename)]
            number = max(numbers, default=-1) + 1
            path = filename.format(seq=number)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".tmp", path)
        return path

    @raises_as_dali
    def load(self, filename: str) -> str:
        """Read states from a file and return its path.

        Args:
            filename: the path; with ``{seq}`` the file of the highest number.
        """
        path = filename
        if _has_number(filename):
            found = _matching(filename)
            if not found:
                raise error_class(StateError)(f"`Checkpoint.load`: there is no file {brief(filename)}")
            path = max(found)[1]
        with open(path, encoding="utf-8") as file:
            self.deserialize(file.read())
        return path


def _has_number(pattern: str) -> bool:
    fields = [field for _, field, _, _ in string.Formatter().parse(pattern) if field is not None]
    if fields not in ([], ["seq"]):
        raise ArgumentError(f"expected a path with at most one field, {{seq}}, got {brief(pattern)}")
    return bool(fields)


def _matching(pattern: str) -> list[tuple[int, str]]:
    """Return the numbers and paths of the files that a pattern names."""
    folder, name = os.path.split(pattern)
    parts = [
        re.escape(text) + ("" if field is None else r"(\d+)") for text, field, _, _ in string.Formatter().parse(name)
    ]
    expression = re.compile("".join(parts))
    if not os.path.isdir(folder or "."):
        return []
    found = ((expression.fullmatch(file), os.path.join(folder, file)) for file in os.listdir(folder or "."))
    return [(int(match[1]), path) for match, path in found if match]

# SPDX-License-Identifier: Apache-2.0
"""Random generators of the imperative mode."""

from __future__ import annotations

import os
import threading
from typing import Any

from ....contract.errors import ArgumentError, StateError
from ....contract.random import philox
from ....contract.text import brief
from ....contract.whole_number import as_whole_number
from ..errors import error_class

_PREFIX = "Philox"
_DOMAIN = 0x64796E616D6963  # "dynamic"


class RNG:
    """Generator that gives every call of a random operator its seed. The same seed gives the same results.

    The generator is a counter, so states are short, and it may skip any number of draws.

    Attributes:
        state: seed and number of draws, as text; may be set.
    """

    def __init__(self, seed: int | None = None, state: str | None = None) -> None:
        """Begin at a seed or a state.

        Args:
            seed: from 0 to 2**64 - 1; by default a random one.
            state: a state of another generator.
        """
        self._seed, self._drawn = 0, 0
        if state is not None:
            self.state = state
        elif seed is None:
            self._seed = int.from_bytes(os.urandom(8), "little")
        else:
            self.seed = seed

    def __call__(self) -> int:
        """Draw 32 random bits."""
        word = philox(self._seed, self._drawn, _DOMAIN)[0]
        self._drawn += 1
        return word

    def _set_seed(self, value: int) -> None:
        number = as_whole_number(value)
        if number is None or not 0 <= number < 1 << 64:
            raise error_class(ArgumentError)(f"`RNG`: expected a seed from 0 to 2**64 - 1, got {brief(value)}")
        self._seed, self._drawn = number, 0

    seed = property(None, _set_seed, doc="Begin with a seed. It cannot be read, as in DALI.")

    def advance(self, n: int) -> None:
        """Skip draws.

        Args:
            n: number of draws.
        """
        number = as_whole_number(n)
        if number is None or number < 0:
            raise error_class(ArgumentError)(f"`RNG.advance`: expected a number that is not negative, got {brief(n)}")
        self._drawn += number

    def clone(self) -> RNG:
        """Return a generator that will draw the same."""
        return RNG(state=self.state)

    @property
    def state(self) -> str:
        return f"{_PREFIX}_{self._seed:016x}_{self._drawn:x}"

    @state.setter
    def state(self, value: str) -> None:
        parts = value.split("_") if isinstance(value, str) else []
        try:
            name, seed, drawn = parts
            numbers = int(seed, 16), int(drawn, 16)
        except ValueError:
            name, numbers = "", (0, 0)
        if name != _PREFIX or not 0 <= numbers[0] < 1 << 64 or numbers[1] < 0:
            raise error_class(StateError)(f"`RNG`: expected the state of a generator, got {brief(value)}")
        self._seed, self._drawn = numbers

    def get_state(self, *, cuda_stream: Any = None) -> str:
        """Return the state.

        Args:
            cuda_stream: has no effect.
        """
        return self.state

    def set_state(self, value: str) -> None:
        """Set the state.

        Args:
            value: a state of a generator.
        """
        self.state = value

    def __repr__(self) -> str:
        return f"RNG(state={self.state!r})"


class _OfThread(threading.local):
    rng: RNG | None = None


_of_thread = _OfThread()


def get_default_rng() -> RNG:
    """Return this thread's generator, for operators without ``rng``."""
    if _of_thread.rng is None:
        _of_thread.rng = RNG()
    return _of_thread.rng


def set_seed(seed: int) -> None:
    """Begin this thread's generator again, with a seed.

    Args:
        seed: from 0 to 2**64 - 1.
    """
    get_default_rng().seed = seed

# SPDX-License-Identifier: Apache-2.0
"""Devices, modes of evaluation, and contexts of the imperative mode."""

from __future__ import annotations

import threading
from enum import Enum, auto
from typing import Any

from ....contract.errors import ArgumentError, UnsupportedError
from ....contract.text import brief
from ....contract.whole_number import as_whole_number
from ....settings import default_threads
from ..errors import error_class
from .checkpoint import Checkpoint


class Device:
    """Device of tensors: the CPU. Others are refused.

    Attributes:
        device_type: "cpu".
        device_id: None.
    """

    def __init__(self, name: str, device_id: int | None = None) -> None:
        """Take a device by name.

        Args:
            name: "cpu".
            device_id: None.
        """
        if not isinstance(name, str) or name.split(":")[0] not in ("cpu", "gpu", "mixed"):
            raise error_class(ArgumentError)(f'expected a device, "cpu", got {brief(name)}')
        if name != "cpu" or device_id is not None:
            text = f"the imperative mode computes on the CPU, got the device {brief(name)}. Use a pipeline for a GPU"
            raise error_class(UnsupportedError)(text)
        self.device_type, self.device_id = name, device_id

    @staticmethod
    def current() -> Device:
        """Return the device of new tensors."""
        return CPU

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device)

    def __hash__(self) -> int:
        return hash("cpu")

    def __str__(self) -> str:
        return "cpu"

    def __repr__(self) -> str:
        return 'Device(device_type="cpu")'


CPU = Device("cpu")


def device(obj: Any, id: int | None = None) -> Device:
    """Return a device.

    Args:
        obj: a device or its name.
        id: None.
    """
    return obj if isinstance(obj, Device) else Device(obj, id)


class EvalMode(Enum):
    """Mode of evaluation, for ``with``. Operators compute before they return in every mode."""

    deferred = auto()
    eager = auto()
    sync_cpu = auto()
    sync_full = auto()
    default = eager

    def __enter__(self) -> EvalMode:
        _of_thread.modes.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _of_thread.modes.pop()

    @staticmethod
    def current() -> EvalMode:
        """Return the mode of the innermost block of this thread."""
        return _of_thread.modes[-1]


class EvalContext:
    """Settings of operators and readers, for ``with``.

    Attributes:
        num_threads: threads of readers that are opened within the block.
        device_id: None.
        cuda_stream: None.
        checkpoint: a checkpoint of the context's own.
    """

    def __init__(self, *, num_threads: int | None = None, device_id: int | None = None, cuda_stream: Any = None,
                 thread_pool: ThreadPool | None = None) -> None:  # fmt: skip
        """Take the settings.

        Args:
            num_threads: number of threads; by default that of `get_num_threads`.
            device_id: None.
            cuda_stream: None.
            thread_pool: a pool whose number of threads is taken.
        """
        if device_id is not None or cuda_stream is not None:
            raise error_class(UnsupportedError)("the imperative mode computes on the CPU. Use a pipeline for a GPU")
        given = thread_pool.num_threads if thread_pool is not None else num_threads
        self.num_threads = get_num_threads() if given is None else _threads(given)
        self.device_id = self.cuda_stream = None
        self.checkpoint = Checkpoint()

    @staticmethod
    def current() -> EvalContext:
        """Return the innermost context of this thread, or its default."""
        return _of_thread.contexts[-1] if _of_thread.contexts else EvalContext.default()

    @staticmethod
    def default() -> EvalContext:
        """Return the context of this thread outside of all blocks."""
        if _of_thread.default is None:
            _of_thread.default = EvalContext()
        return _of_thread.default

    def evaluate_all(self) -> None:
        """Return immediately: every operator has computed before it returned."""

    def __enter__(self) -> EvalContext:
        _of_thread.contexts.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _of_thread.contexts.pop()


class ThreadPool:
    """Number of threads for contexts.

    Attributes:
        num_threads: the number.
        device_id: None.
    """

    def __init__(self, num_threads: int | None = None, *, device_id: int | None = None) -> None:
        """Take the number.

        Args:
            num_threads: number of threads; by default that of `get_num_threads`.
            device_id: None.
        """
        self.num_threads = get_num_threads() if num_threads is None else _threads(num_threads)
        self.device_id = device_id


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.modes = [EvalMode.default]
        self.contexts: list[EvalContext] = []
        self.default: EvalContext | None = None


_of_thread = _OfThread()
_number_of_threads: int | None = None


def _threads(n: Any) -> int:
    number = as_whole_number(n)
    if number is None or not 1 <= number <= 4096:
        raise error_class(ArgumentError)(f"expected 1 to 4096 threads, got {brief(n)}")
    return number


def get_num_threads() -> int:
    """Return the number of threads of new contexts: as set, or that of the process's processors."""
    return default_threads() if _number_of_threads is None else _number_of_threads


def set_num_threads(n: int) -> None:
    """Set the number of threads of new contexts.

    Args:
        n: the number.
    """
    global _number_of_threads
    _number_of_threads = _threads(n)

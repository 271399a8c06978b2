# SPDX-License-Identifier: Apache-2.0
"""Program with a device of torch that is written in Python: a loader's batches arrive there, with the CPU's values.

A backend of torch can be registered once per process, so `test_other_devices.py` runs this file as a program.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

import torch  # noqa: E402
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend  # noqa: E402

_setup_privateuseone_for_python_backend("npu")


class OnDevice(torch.Tensor):
    """Tensor of the device; ``memory`` is in the memory of the CPU."""

    @staticmethod
    def __new__(cls, size: Any, dtype: torch.dtype) -> Any:
        """Return a new tensor."""
        made: Any = torch._C._acc.create_empty_tensor(size, dtype)  # type: ignore[attr-defined]
        made.__class__ = OnDevice
        return made

    def __init__(self, size: Any, dtype: torch.dtype) -> None:
        self.memory = torch.zeros(tuple(size), dtype=dtype)


def _empty(size: Any, *strides: Any, dtype: Any = None, **options: Any) -> Any:
    return OnDevice(torch.Size(size), dtype or torch.float32)


_waiting: list[tuple[Any, Any]] = []  # copies in the background, which have not begun
_pinned: set[int] = set()  # addresses of memory that represents page-locked memory
_counts = {"in the background": 0, "blocking": 0}


def _finish_copies() -> None:
    while _waiting:
        to, source = _waiting.pop()
        to.memory.copy_(source)


def _copy(source: Any, to: Any, non_blocking: bool = False) -> Any:
    """Copy immediately, or as late as a device may that copies in the background: before its values are read."""
    if isinstance(source, OnDevice):
        _finish_copies()
    elif non_blocking and source.untyped_storage().data_ptr() in _pinned:
        _counts["in the background"] += 1
        _waiting.append((to, source))
        return to
    else:
        _counts["blocking"] += 1
    (to.memory if isinstance(to, OnDevice) else to).copy_(source.memory if isinstance(source, OnDevice) else source)
    return to


torch.library.impl("aten::empty.memory_format", "privateuseone")(_empty)
torch.library.impl("aten::empty_strided", "privateuseone")(_empty)
torch.library.impl("aten::_copy_from", "privateuseone")(_copy)


def _check(expected: Any, ours: Any) -> int:
    """Compare two batches; return the number of tensors on the device."""
    if isinstance(expected, torch.Tensor):
        assert expected.dtype == ours.dtype and expected.shape == ours.shape
        assert torch.equal(expected, ours.cpu().as_subclass(torch.Tensor))
        return int(ours.device.type == "npu")
    assert type(expected) is type(ours)
    return sum(_check(x, y) for x, y in zip(expected, ours, strict=True))


def _add_page_locked_memory() -> None:
    """Let torch allocate memory that represents page-locked memory, which no backend in Python has."""
    allocate = torch.empty

    def empty(*size: Any, pin_memory: bool = False, **options: Any) -> Any:
        made = allocate(*size, **options)
        if pin_memory:
            _pinned.add(made.untyped_storage().data_ptr())
        return made

    torch.empty = empty
    torch.Tensor.is_pinned = lambda x, *_: x.untyped_storage().data_ptr() in _pinned  # type: ignore[method-assign, assignment]


def main(root: str, workers: int, memory: str) -> None:
    """Compare the loaders of two scripts, and the choice of the backend by name."""
    import stoker.torchvision
    from tests.takeover.declared import torchvision
    from tests.takeover.scripts import classification, erasing, run

    if memory == "page-locked":
        _add_page_locked_memory()
    for script in (classification, erasing):
        expected = run(script(root, workers))
        with stoker.torchvision.enabled("npu"):
            ours = run(script(root, workers))
        assert sum(map(_check, expected, ours)) == len(expected) > 1, "the images of every batch, and no labels"
    in_background = memory == "page-locked" and workers > 0
    assert (_counts["in the background"] > 0) == in_background, _counts
    assert (_counts["blocking"] == 0) == in_background, _counts
    stoker.torchvision.enable("npu")
    torchvision.set_image_backend("stoker")
    assert run(classification(root, workers))[0][0].device.type == "npu", "the device stays chosen"
    torchvision.set_image_backend("PIL")
    assert run(classification(root, workers))[0][0].device.type == "cpu"
    print("equal")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])

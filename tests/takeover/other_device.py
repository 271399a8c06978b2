# SPDX-License-Identifier: Apache-2.0
"""Program with a device of torch that is written in Python: a loader's batches arrive there, with the CPU's values.

A backend of torch can be registered once per process, so `test_other_devices.py` runs this file as a program.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
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

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function in the memory of the device, if the device has it."""
        kwargs = kwargs or {}
        name = func.__name__
        if func in _BY_TORCH:
            return super().__torch_function__(func, types, args, kwargs)
        if name in _lacking:
            raise NotImplementedError(f"Could not run {name!r} with arguments from the 'npu' backend.\nMore lines.")
        _finish_copies()
        _ran[name] += 1
        return _on_device(func(*map(_in_memory, args), **{key: _in_memory(x) for key, x in kwargs.items()}))


# Queries, and the copies of the backend below.
_BY_TORCH = {
    *(getattr(torch.Tensor, name).__get__ for name in ("device", "dtype", "shape")),
    *(torch.Tensor.to, torch.Tensor.cpu, torch.Tensor.as_subclass),
}
_lacking: set[str] = set()  # functions that the device does not have
_ran: Counter[str] = Counter()  # functions that ran on the device


def _in_memory(x: Any) -> Any:
    if isinstance(x, OnDevice):
        return x.memory
    return type(x)(map(_in_memory, x)) if type(x) in (list, tuple) else x


def _on_device(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    made = OnDevice(x.shape, x.dtype)
    made.memory = x
    return made


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


def _second_generation(root: str, workers: int) -> Any:
    """Return a script with frames and turns after its resize, and bytes as results."""
    from torchvision.transforms import v2

    steps = [v2.Resize((40, 30)), v2.Pad((3, 5, 1, 2), fill=(9, 8, 7)), v2.RandomVerticalFlip(), v2.PILToTensor()]
    return _loader(root, workers, v2.Compose([v2.RandomHorizontalFlip(), *steps]))


def _gray(root: str, workers: int) -> Any:
    """Return a script with gray images of three channels, and another brightness for each."""
    from torchvision.transforms import v2

    steps = [v2.Grayscale(), v2.CenterCrop(40), v2.Grayscale(3), v2.ToImage(), v2.ColorJitter(brightness=0.4)]
    return _loader(root, workers, v2.Compose([*steps, v2.ToDtype(torch.float32, scale=True)]))


def _loader(root: str, workers: int, transform: Any) -> Any:
    from torchvision.datasets import ImageFolder

    return torch.utils.data.DataLoader(ImageFolder(root, transform), 4, shuffle=True, num_workers=workers)


def _mixed(root: str, workers: int) -> Any:
    """Return a script whose collation mixes its images, which the CPU computes."""

    def mix(rows: Any) -> Any:
        images, labels = torch.utils.data.default_collate(rows)
        return images * 0.75 + images.roll(1, 0) * 0.25, labels

    from tests.takeover.scripts import classification

    return classification(root, workers, collate_fn=mix)


def _check_steps(root: str, workers: int, *, in_background: bool) -> None:
    """Compare scripts whose last steps run on the device."""
    import stoker.torchvision
    from tests.takeover.scripts import classification, erasing, run

    scripts = {
        classification: {"__getitem__", "long"},
        erasing: {"__setitem__"},
        _second_generation: {"flip"},
        _gray: {"__getitem__"},
        _mixed: set(),
    }
    for script, functions in list(scripts.items())[:: 2 if workers else 1]:  # starting workers takes most of the time
        expected = run(script(root, workers))
        _ran.clear()
        with stoker.torchvision.enabled("npu", device_steps=True):
            ours = run(script(root, workers))
        assert sum(map(_check, expected, ours)) == len(expected) > 1
        assert functions <= set(_ran) and bool(functions) == bool(_ran), (script, _ran)
    assert not in_background or _counts["in the background"] > 0, _counts
    _lacking.add("long")
    expected = run(classification(root, workers))
    with stoker.torchvision.enabled("npu", device_steps=True), warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        first = run(classification(root, workers))
        _ran.clear()
        second = run(classification(root, workers))
    assert sum("device_steps" in str(x.message) for x in reported) == 1, "one warning names the missing operator"
    assert not _ran, "later batches do not try again"
    for ours in (first, second):
        assert sum(map(_check, expected, ours)) == len(expected)
    _lacking.clear()


def main(root: str, workers: int, memory: str) -> None:
    """Compare the loaders of scripts, and the choice of the backend by name."""
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
    assert not _ran, "no step runs on the device unless it is asked for"
    in_background = memory == "page-locked" and workers > 0
    assert (_counts["in the background"] > 0) == in_background, _counts
    assert (_counts["blocking"] == 0) == in_background, _counts
    _check_steps(root, workers, in_background=in_background)
    stoker.torchvision.enable("npu")
    torchvision.set_image_backend("stoker")
    assert run(classification(root, workers))[0][0].device.type == "npu", "the device stays chosen"
    torchvision.set_image_backend("PIL")
    assert run(classification(root, workers))[0][0].device.type == "cpu"
    print("equal")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])

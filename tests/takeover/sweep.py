# SPDX-License-Identifier: Apache-2.0
"""Sweep over all public functions that can receive a lazy tensor or image: outcomes equal those of plain objects.

    python -m tests.takeover.sweep [tensors|images] [--part 0/1] [--kinds mask,window]

prints the calls whose outcome differs: value, type, strides, shared memory, the argument afterwards, or the error.
"""

from __future__ import annotations

import argparse
import inspect
import io
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from photographs import photograph
from PIL import Image
from torch.overrides import get_ignored_functions, get_overridable_functions

import tests.takeover.declared  # noqa: F401
from tests.takeover.lazily import lazily

from torchvision import tv_tensors  # isort: skip
from torchvision.transforms import functional, v2  # isort: skip

Call = tuple[str, Callable[[Any], Any]]

_UNDEFINED = frozenset(  # values or addresses are arbitrary, or private
    [
        "data_ptr",
        "const_data_ptr",
        "__hash__",
        "_use_count",
        "empty_like",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize_as_",
        "new",
        "resize",
        "resize_as",
        "_make_subclass",
        "_version",
        "_cdata",
        "__weakref__",
        "_nested_view_from_buffer",
        "untyped_storage",
        "_typed_storage",
        "storage",
        "_base",
        "rrelu",
        "rrelu_",
        "record_stream",
        "empty_permuted",
        "module_load",
        "share_memory_",
        "is_shared",
        "_backward_hooks",
        "_post_accumulate_grad_hooks",
        "get_device_properties",
        "linalg_lstsq",  # of a plain tensor with itself, it differs from call to call in the last bits
        "fbgemm_pack_gemm_matrix_fp16",  # a handle: the result's bytes are an address
        "__new__",
    ]
)
_BYPASSING = frozenset({"set_"})  # torch calls them without `__torch_function__`: they change a copy of the tensor
_ADDRESS = re.compile(r"\d{12,}")  # the `id` of an object, in the texts of errors
_TEXTS = ("0x", "<built-in", "<bound method")  # of results that print addresses


def tensor_functions() -> Iterator[tuple[str, Any]]:
    """Yield the overridable functions of torch, with a name."""
    ignored = get_ignored_functions()
    for owner, functions in get_overridable_functions().items():
        for function in functions:
            name = getattr(function, "__name__", "")
            if name in _UNDEFINED | _BYPASSING or function in ignored:
                continue
            place = getattr(owner, "__name__", str(owner))
            if name in ("__get__", "__set__", "__delete__"):
                attribute = getattr(getattr(function, "__self__", None), "__name__", None)
                if attribute is None:
                    attribute = getattr(getattr(getattr(function, "__self__", None), "fget", None), "__name__", "?")
                if attribute not in _UNDEFINED and name == "__get__":
                    yield f"{place}.{attribute}", function
                continue
            yield f"{place}.{name}", function


def tensor_calls(name: str, function: Any) -> Iterator[Call]:
    """Yield calls of a function with a tensor first, by position and by keyword."""
    yield f"{name}(x)", lambda x: function(x)
    if function.__class__.__name__ == "method-wrapper":
        return
    yield f"{name}(x, x)", lambda x: function(x, x)
    yield f"{name}(x, 2)", lambda x: function(x, 2)
    yield f"{name}(x, 1, 0)", lambda x: function(x, 1, 0)
    yield f"{name}(x, 0.0)", lambda x: function(x, 0.0)
    yield f"{name}(x, (0, 1))", lambda x: function(x, (0, 1))
    yield f"{name}(input=x)", lambda x: function(input=x)
    yield f"{name}([x, x])", lambda x: function([x, x])
    yield f"{name}(input=x, dim=0)", lambda x: function(input=x, dim=0)
    yield f"{name}(y, x)", lambda x: function(torch.ones(3, 1, 1), x)


def image_calls() -> Iterator[Call]:
    """Yield accesses to all attributes of a Pillow image, and calls of its methods."""
    arguments: dict[str, tuple[Any, ...]] = {
        "alpha_composite": (Image.new("RGBA", (5, 5)),), "convert": ("L",), "crop": ((3, 4, 30, 50),),
        "draft": ("L", (20, 20)), "effect_spread": (0,), "filter": (_blur(),), "frombytes": (bytes(74 * 71 * 3),),
        "getchannel": (0,), "getpixel": ((3, 4),), "paste": ((1, 2, 3), (2, 3, 40, 50)), "point": (lambda v: 255 - v,),
        "putalpha": (77,), "putdata": ([(1, 2, 3)],), "putpalette": (bytes(range(256)) * 3,),
        "putpixel": ((3, 4), (7, 8, 9)),
        "quantize": (16,), "reduce": (2,), "remap_palette": ([1, 0],), "resize": ((40, 30),), "rotate": (30,),
        "save": (io.BytesIO(), "PNG"), "seek": (1,), "thumbnail": ((30, 30),),
        "transform": ((40, 40), 0, (1, 0, 3, 0, 1, 4)),
        "transpose": (2,), "tobytes": (), "show": None, "_show": None, "toqimage": None, "toqpixmap": None,
        "_dump": None, "tobitmap": (), "__setstate__": None, "__init_subclass__": None, "__subclasshook__": None,
        "__class__": (),
        "__init__": None, "__new__": None, "__del__": None, "__sizeof__": None, "__getattribute__": ("mode",),
        "__setattr__": ("x", 3), "__delattr__": ("x",), "__format__": ("",), "__reduce_ex__": None,
        "__exit__": (None, None, None),
        "__eq__": (3,), "__ne__": (3,), "__lt__": (3,), "__le__": (3,), "__gt__": (3,), "__ge__": (3,), "__dir__": None,
        "merge": (),
    }  # fmt: skip
    for name in sorted(set(dir(Image.Image)) - {"__dict__", "__weakref__", "__hash__", "__doc__", "__annotations__"}):
        given = arguments.get(name, ())
        if given is None:
            continue

        def call(x: Any, name: str = name, given: tuple[Any, ...] = given) -> Any:
            found = getattr(x, name)
            return found(*given) if inspect.ismethod(found) or inspect.isbuiltin(found) else found

        yield f"Image.{name}", call
        if given:
            yield (
                f"Image.{name}()",
                lambda x, name=name: (lambda found: found() if callable(found) else found)(getattr(x, name)),
            )


def _blur() -> Any:
    from PIL import ImageFilter

    return ImageFilter.SHARPEN


def describe(x: Any, like: Any = None, depth: int = 0) -> Any:
    """Return a comparable description of an outcome; ``like`` is the argument whose memory it may share."""
    if isinstance(x, torch.Tensor):
        if x.layout != torch.strided or x.device.type == "meta" or x.is_quantized:
            return str(x.layout), x.dtype, tuple(x.shape), x.__class__
        strides = [stride for stride, n in zip(x.stride(), x.shape, strict=True) if n > 1]
        shares = isinstance(like, torch.Tensor) and like.layout == torch.strided and _memory(x) == _memory(like)
        values = x.detach().as_subclass(torch.Tensor).resolve_conj().resolve_neg()
        data = values.contiguous().view(-1).view(torch.uint8).numpy().tobytes() if values.numel() else b""
        return x.__class__, x.dtype, tuple(x.shape), strides if x.numel() else [], shares, x.requires_grad, data
    if isinstance(x, Image.Image):
        return x.__class__, x.mode, x.size, x.info, x.getpalette(), x.tobytes()
    if isinstance(x, np.ndarray):
        return x.dtype, x.shape, x.tobytes()
    if isinstance(x, (tuple, list)) and depth < 4:
        return [describe(y, like, depth + 1) for y in x]
    if isinstance(x, dict) and depth < 4:
        return {str(key): describe(x[key], like, depth + 1) for key in sorted(x, key=str)}
    if isinstance(x, memoryview):  # the array interface of a lazy image shows its pixels without a copy
        return describe(bytes(x))
    if isinstance(x, (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device, torch.Size, type)):
        return type(x), repr(x).split("0x")[0]
    text = repr(x)
    if "PixelAccess" in type(x).__name__:  # a proxy, which has no public class
        return "PixelAccess", x[3, 4]
    return (type(x).__name__, None) if any(part in text for part in _TEXTS) else (type(x).__name__, text)


def _memory(x: torch.Tensor) -> int:
    return x.untyped_storage().data_ptr()


def outcome(call: Callable[[Any], Any], x: Any) -> Any:
    """Return a description of the result or error of a call, and of its argument afterwards."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    try:
        result = describe(call(x), x)
    except Exception as error:
        result = type(error), _ADDRESS.sub("an address", str(error).split("0x")[0])
    try:
        return result, describe(x)
    except Exception as error:
        return result, (type(error), str(error))


def _file() -> io.BytesIO:
    file = io.BytesIO()
    Image.fromarray(photograph(3, 71, 74)).save(file, "JPEG", quality=90)
    return file


def _mask() -> tv_tensors.Mask:
    """Return three masks, which are large enough to be recorded."""
    return tv_tensors.Mask(torch.from_numpy(photograph(3, 71, 78).transpose(2, 0, 1).copy()))


def _points(dtype: torch.dtype) -> Any:
    """Return key points, three groups of four."""
    values = torch.from_numpy(photograph(3, 12, 2)[..., 0].astype(np.float32)).view(3, 4, 2) / 4
    return tv_tensors.KeyPoints(values.to(dtype), canvas_size=(71, 74))


TENSORS: dict[str, Callable[[io.BytesIO], Any]] = {
    "floats": lambda file: functional.to_tensor(Image.open(file)),
    "bytes": lambda file: functional.pil_to_tensor(Image.open(file)),
    "image": lambda file: v2.functional.to_image(Image.open(file)),
    "mask": lambda _: v2.functional.horizontal_flip(_mask()),
    "window": lambda _: v2.functional.crop(v2.functional.vertical_flip(_mask()), 3, 4, 60, 70),
    "numbers": lambda _: v2.functional.vertical_flip(_mask()).to(torch.int64),
}
if hasattr(tv_tensors, "KeyPoints"):
    TENSORS |= {
        "points": lambda _: v2.functional.horizontal_flip(_points(torch.float32)),
        "whole points": lambda _: v2.functional.resize(v2.functional.vertical_flip(_points(torch.int64)), [90, 80]),
        "pure points": lambda _: v2.functional.horizontal_flip(_points(torch.float32)).as_subclass(torch.Tensor),
    }
IMAGES: dict[str, Callable[[io.BytesIO], Any]] = {
    "file": Image.open,
    "step": lambda file: Image.open(file).convert("L").transpose(1),
    "read": lambda file: (image := Image.open(file), image.load())[0],
    "array": lambda file: Image.fromarray(photograph(3, 71, 74)),
}


def differences(what: str, part: int = 0, parts: int = 1, kinds: str | None = None) -> Iterator[str]:
    """Yield the differing calls; ``part`` of ``parts`` selects every n-th function, ``kinds`` some of the objects."""
    made = TENSORS if what == "tensors" else IMAGES
    made = made if kinds is None else {kind: made[kind] for kind in kinds.split(",")}
    groups: list[list[Call]] = (
        [list(tensor_calls(*found)) for found in tensor_functions()]
        if what == "tensors"
        else [[call] for call in image_calls()]
    )
    file = _file().getvalue()
    for at, calls in enumerate(groups):
        if at % parts != part:
            continue
        for kind, make in made.items():
            for name, call in calls:
                expected = outcome(call, make(io.BytesIO(file)))
                with lazily():
                    found = outcome(call, make(io.BytesIO(file)))
                if found != expected:
                    yield f"{kind}: {name}: expected {str(expected)[:300]}, got {str(found)[:300]}"


def main() -> None:
    """Print the differing calls."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["tensors", "images"])
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--kinds", help="names of the objects, with commas; all by default")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    torch.set_num_threads(1)
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for what in options.what:
            for difference in differences(what, part, parts, options.kinds):
                count += 1
                print(difference, flush=True)
    print(f"{count} differences")
    sys.exit(bool(count))


if __name__ == "__main__":
    main()

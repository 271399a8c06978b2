# SPDX-License-Identifier: Apache-2.0
"""Switching the take-over on and off: every change to another library is made here, and undone here."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from types import ModuleType
from typing import Any

import torch
from PIL import Image, ImageEnhance, ImageOps, JpegImagePlugin
from torch.utils.data import _utils
from torch.utils.data.dataloader import DataLoader

from . import (
    augmix,
    backend,
    counts,
    decoders,
    delivery,
    files,
    functional,
    grids,
    image,
    kernels,
    kinds,
    loader,
    retry,
    told,
)
from .images import lazy_image_class
from .later import Later, reduce_later
from .mixing import LazySum, reduce_sum
from .tensor import IMAGES, LazyTensor
from .unmade import with_made

_undo: list[Callable[[], None]] = []


def enable(device: str = "cpu", *, without_gpu: str | None = None) -> None:
    """Let images of torchvision scripts be recorded, and made by Stoker when their batch is put together.

    Afterwards the same script gives the same samples, in the same order, with the same augmentation. Calling it twice
    does no harm; the last call says where batches are delivered.

    Args:
        device: where batches are delivered: "cpu", "cuda" (torch's current GPU when a loop begins) or "cuda:1". On a
            GPU, tensors that are still recorded when their batch is put together come out in its memory, and
            ``pin_memory=True`` concerns the others alone.
        without_gpu: "error", or "cpu": on a machine without a GPU batches are delivered on the CPU, and one warning
            says so. By default what STOKER_WITHOUT_GPU says, else "error".

    Raises:
        ArgumentError: another device.
        DeviceError: there is no such GPU that torch can use.
        ImportError: torchvision is not installed.
    """
    delivery.choose(device, without_gpu)
    enable_here()


def enable_here() -> None:
    """What :func:`enable` does, also in a worker process."""
    if _undo:
        return
    import torchvision.transforms as transforms
    import torchvision.transforms.functional as v1

    _take_over_formats()
    for owner, name, function in (
        (v1, "to_tensor", functional.to_tensor),
        (v1, "pil_to_tensor", functional.pil_to_tensor),
        (v1, "normalize", functional.normalize),
        (transforms.ToTensor, "__call__", functional.call_to_tensor),
        (transforms.PILToTensor, "__call__", functional.call_pil_to_tensor),
        (v1.F_pil, "to_grayscale", functional.to_grayscale),
        (v1.F_pil, "adjust_hue", functional.adjust_hue),
        (v1.F_pil, "pad", functional.pad),
        (v1.F_t, "_gen_affine_grid", grids.affine_grid),
        (v1.F_t, "_perspective_grid", grids.perspective_grid),
        (v1.F_t, "_apply_grid_transform", grids.apply_first_grid),
        (v1, "to_pil_image", functional.to_pil_image),
        (v1, "gaussian_blur", functional.gaussian_blur),
        (v1, "elastic_transform", functional.elastic_v1),
        (Image, "fromarray", functional.fromarray),
        (Image, "blend", functional.blend),
        (ImageOps, "expand", functional.expand),
        (ImageOps, "autocontrast", functional.autocontrast),
        (ImageOps, "equalize", functional.equalize),
        (_utils.fetch._MapDatasetFetcher, "fetch", loader.fetch),
        (_utils.fetch._IterableDatasetFetcher, "fetch", loader.fetch_stream),
    ):
        _replace(owner, name, function)
    for name in kernels.FIRST_GENERATION:
        _replace(v1.F_t, name, kernels.first_generation(name))
    _take_over_loaders()
    _take_over_tensors()
    _take_over_v2()
    _take_over_decoders()
    for name in functional.ENHANCERS:
        _put(ImageEnhance, name, functional.enhancer(vars(ImageEnhance)[name]))
    _take_over_collation()
    _take_over_packages()
    ForkingPickler.register(LazyTensor, loader.reduce_lazy)
    ForkingPickler.register(LazySum, reduce_sum)
    ForkingPickler.register(Later, reduce_later)


def _take_over_tensors() -> None:
    """What looks at a tensor's class or memory before it calls a function of torch's: it gets tensors that are made."""
    for name in ("_create_function_from_trace", "_create_function_from_trace_with_dict", "_create_graph_by_tracing"):
        _replace(torch._C, name, with_made)  # where `torch.jit.trace` and the like end
    for name in ("_create_method_from_trace", "_create_method_from_trace_with_dict"):
        _replace(torch._C.ScriptModule, name, with_made)
    for owner, name in ((torch.nn.Parameter, "__new__"), (torch.nn.Module, "register_buffer")):
        _replace(owner, name, with_made)


def _take_over_formats() -> None:
    """Pillow's registry: images that it opens record."""

    def register(name: str, factory: Callable[..., Any]) -> None:
        opened = Image.OPEN[name]
        Image.register_open(name, factory, opened[1])
        _undo.append(lambda: Image.register_open(name, *opened))

    register(JpegImagePlugin.JpegImageFile.format, files.open_jpeg)
    for name in files.formats():
        register(name, functools.partial(files.open_file, Image.OPEN[name][0]))


def _take_over_v2() -> None:
    """The second generation of transforms, where torchvision has it."""
    try:
        import torchvision.transforms.v2.functional as v2
        from torchvision import tv_tensors
        from torchvision.transforms.v2.functional import _geometry, _type_conversion
        from torchvision.transforms.v2.functional import _utils as _utils_v2
    except ImportError:
        return
    lazy = lazy_image_class()
    for owner in (v2, _type_conversion):
        _replace(owner, "pil_to_tensor", functional.pil_to_tensor)
        _replace(owner, "to_image", functional.to_image)
        _replace(owner, "to_pil_image", functional.to_pil_image)
    _replace(tv_tensors, "wrap", functional.wrap)
    _replace(_geometry, "_affine_grid", grids.affine_grid)
    _replace(_geometry, "_perspective_grid", grids.perspective_grid)
    _replace(_geometry, "_apply_grid_transform", grids.apply_grid)
    registry = getattr(_utils_v2, "_KERNEL_REGISTRY", {})
    for name, function in _IMAGE_KERNELS.items():
        known = registry.get(getattr(v2, name, None), {})
        if Image.Image in known:  # which holds the function itself, as it was when it was registered
            _register(known, image._Recording, functools.partial(function, known[Image.Image]))
    for name, record in kernels.KERNELS.items():
        known = registry.get(getattr(v2, name, None), {})
        if torch.Tensor in known and tv_tensors.Image in known:
            _register(known, LazyTensor, kernels.kernel(known[torch.Tensor], known[tv_tensors.Image], record))
    ForkingPickler.register(lazy, loader.reduce_lazy)
    _take_over_kinds()


def _take_over_kinds() -> None:
    """Where transforms v2 look something up by an input's exact class."""
    import torchvision.transforms.v2 as v2

    for module in list(vars(v2).values()):
        if isinstance(module, ModuleType):
            _replace(module, "_get_fill", kinds.get_fill)
    for name in ("transform", "_transform"):  # as it is called now, and was
        _replace(v2.ToDtype, name, kinds.to_dtype)


def _take_over_decoders() -> None:
    """The operators of ``torchvision.io``, where torchvision's native library is."""
    for name in decoders.OPERATORS:
        original = getattr(torch.ops.image, name, None)
        if original is None:
            continue
        function = functools.partial(decoders.decode, original)
        _put(torch.ops.image, name, function)
        with contextlib.suppress(AttributeError):  # scripted functions go on with the operator
            torch.jit._builtins._register_builtin(function, f"image::{name}")


_later: set[str] = set()  # modules that a script has imported, and that were taken over when a loop began


def _take_over_packages() -> None:
    """What packages bring that nothing of torchvision's or Pillow's comes by, once a script has imported them."""
    owner = getattr(sys.modules.get(augmix.MODULE), augmix.CLASS, None)
    if owner is not None and augmix.MODULE not in _later:
        _later.add(augmix.MODULE)
        _undo.append(lambda: _later.discard(augmix.MODULE))
        _replace(owner, augmix.METHOD, augmix.apply_basic)


def _get_iterator(original: Callable[[Any], Any], of: DataLoader[Any]) -> Any:
    _take_over_packages()
    return loader.get_iterator(enable_here, delivery.place, original, of)


def _take_over_loaders() -> None:
    """DataLoader and its subclasses with iterators of their own (torchdata's), those defined later too."""

    def take_over(kind: Any) -> None:
        _replace(kind, "_get_iterator", _get_iterator)
        for further in kind.__subclasses__():
            take_over(further)

    def init_subclass(kind: Any, /, **options: Any) -> None:
        super(DataLoader, kind).__init_subclass__(**options)
        if _undo:
            _replace(kind, "_get_iterator", _get_iterator)

    take_over(DataLoader)
    DataLoader.__init_subclass__ = classmethod(init_subclass)  # type: ignore[assignment]
    _undo.append(lambda: delattr(DataLoader, "__init_subclass__"))


_IMAGE_KERNELS: dict[str, Callable[..., Any]] = {
    "adjust_hue": functional.adjust_hue,
    "pad": functional.pad,
    "gaussian_blur": functional.gaussian_blur_v2,
    "elastic": functional.elastic_v2,
    "permute_channels": functional.permute_channels,
}


def _register(known: dict[Any, Any], kind: Any, kernel: Any) -> None:
    """A kernel for a type of its own; torchvision's stay."""
    known[kind] = kernel
    _undo.append(lambda: known.pop(kind, None) and None)


def _take_over_collation() -> None:
    known = _utils.collate.default_collate_fn_map
    original = known[torch.Tensor]
    # Exact types: a batch may begin with a plain tensor or with a lazy one.
    for kind in (torch.Tensor, *_lazy_kinds()):
        known[kind] = functools.partial(loader.collate, original)

    def undo() -> None:
        known[torch.Tensor] = original
        for kind in _lazy_kinds():
            del known[kind]

    _undo.append(undo)


def _lazy_kinds() -> list[Any]:
    return [LazyTensor, *(kind for kind in IMAGES if issubclass(kind, LazyTensor))]


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Put ``function(original, ...)`` in place of ``owner.name``, if there is one."""
    original = vars(owner).get(name)
    if original is None:
        return

    def replacement(*args: Any, **kwargs: Any) -> Any:
        return function(original, *args, **kwargs)

    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        with contextlib.suppress(AttributeError):
            setattr(replacement, attribute, getattr(original, attribute))
    replacement.__wrapped__ = original  # type: ignore[attr-defined]
    _put(owner, name, replacement)


def _put(owner: Any, name: str, value: Any) -> None:
    original = vars(owner)[name]
    setattr(owner, name, value)
    _undo.append(lambda: setattr(owner, name, original))


def disable() -> None:
    """Undo :func:`enable`. Images that are lazy already stay so, and become real when they are used."""
    while _undo:
        _undo.pop()()
    retry.forget()
    told.resume()
    delivery.close()


def _by_backend(on: bool) -> None:
    """What ``torchvision.set_image_backend`` asks for."""
    if not on:
        disable()
        return
    import torchvision

    enable()
    _put(torchvision, "_image_backend", backend.NAME)  # what `get_image_backend` tells


def is_enabled() -> bool:
    """Whether the take-over is on."""
    return bool(_undo)


@contextlib.contextmanager
def enabled(device: str = "cpu", *, without_gpu: str | None = None) -> Iterator[None]:
    """``with stoker.torchvision.enabled():`` the take-over is on within; the arguments are those of :func:`enable`."""
    was, before = is_enabled(), delivery.chosen()
    enable(device, without_gpu=without_gpu)
    try:
        yield
    finally:
        if was:
            delivery.restore(before)
        else:
            disable()


def report() -> counts.Report:
    """How many images stayed lazy to the end, and what was done step by step as without Stoker, with counts."""
    return counts.Report()


backend.offer(_by_backend)

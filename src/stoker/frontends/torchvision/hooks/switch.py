# SPDX-License-Identifier: Apache-2.0
"""Switch of the take-over: all changes to other libraries are made and undone here."""

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

from .. import counts
from ..collation.deferred import DeferredTensor, reduce_deferred
from ..loader import delivery, loader
from ..materialize import retry
from ..pillow import augmix, files, image
from ..tensors import grids
from ..tensors.images import lazy_image_class
from ..tensors.lazy_base import run_materialized
from ..tensors.mixing import LazySum, reduce_lazy_sum
from ..tensors.tensor import IMAGES, LazyTensor
from ..transport import file_refs
from . import backend, class_dispatch, decoders, functional, kernels

_undo: list[Callable[[], None]] = []


def enable(device: str = "cpu", *, without_gpu: str | None = None) -> None:
    """Record the images of torchvision scripts, and let Stoker materialize them when their batch is complete.

    Afterwards the same script gives the same samples, in the same order, with the same augmentation. Repeated calls are
    allowed; the last one decides where batches are delivered.

    Args:
        device: where batches are delivered: "cpu", "cuda" (torch's current GPU when a loop begins) or "cuda:1". On a
            GPU, tensors that are still recorded when their batch is complete are delivered in its memory, and
            ``pin_memory=True`` applies to the others only.
        without_gpu: "error", or "cpu": on a machine without a GPU batches are delivered on the CPU, with one warning.
            The default is STOKER_WITHOUT_GPU, or "error".

    Raises:
        ArgumentError: another device.
        DeviceError: there is no such GPU that torch can use.
        ImportError: torchvision is not installed.
    """
    delivery.choose(device, without_gpu)
    enable_here()


def enable_here() -> None:
    """Enable the take-over in this process, which may be a worker; part of :func:`enable`."""
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
        (v1.F_t, "_apply_grid_transform", grids.apply_grid_v1),
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
    for name in kernels.V1_KERNELS:
        _replace(v1.F_t, name, kernels.wrap_v1(name))
    _take_over_loaders()
    _take_over_tensors()
    _take_over_v2()
    _take_over_decoders()
    for name in functional.ENHANCERS:
        _put(ImageEnhance, name, functional.enhancer_class(vars(ImageEnhance)[name]))
    _take_over_collation()
    _take_over_packages()
    ForkingPickler.register(LazyTensor, loader.reduce_lazy)
    ForkingPickler.register(LazySum, reduce_lazy_sum)
    ForkingPickler.register(DeferredTensor, reduce_deferred)


def _take_over_tensors() -> None:
    """Patch functions that inspect a tensor's class or memory before they call torch: they get materialized tensors."""
    for name in ("_create_function_from_trace", "_create_function_from_trace_with_dict", "_create_graph_by_tracing"):
        _replace(torch._C, name, run_materialized)  # the internals of `torch.jit.trace` and similar functions
    for name in ("_create_method_from_trace", "_create_method_from_trace_with_dict"):
        _replace(torch._C.ScriptModule, name, run_materialized)
    for owner, name in ((torch.nn.Parameter, "__new__"), (torch.nn.Module, "register_buffer")):
        _replace(owner, name, run_materialized)


def _take_over_formats() -> None:
    """Patch Pillow's registry, so that opened images record."""

    def register(name: str, factory: Callable[..., Any]) -> None:
        opened = Image.OPEN[name]
        Image.register_open(name, factory, opened[1])
        _undo.append(lambda: Image.register_open(name, *opened))

    register(JpegImagePlugin.JpegImageFile.format, files.open_jpeg)
    for name in files.recorded_formats():
        register(name, functools.partial(files.open_file, Image.OPEN[name][0]))


def _take_over_v2() -> None:
    """Patch the second generation of transforms, if torchvision has it."""
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
        if Image.Image in known:  # the registry holds the function that was registered, not the module's attribute
            _register(known, image.RecordingImage, functools.partial(function, known[Image.Image]))
    for name, record in kernels.KERNELS.items():
        known = registry.get(getattr(v2, name, None), {})
        if torch.Tensor in known and tv_tensors.Image in known:
            _register(known, LazyTensor, kernels.wrap_kernel(known[torch.Tensor], known[tv_tensors.Image], record))
    ForkingPickler.register(lazy, loader.reduce_lazy)
    _take_over_class_dispatch()


def _take_over_class_dispatch() -> None:
    """Patch the lookups of transforms v2 by an input's exact class."""
    import torchvision.transforms.v2 as v2

    for module in list(vars(v2).values()):
        if isinstance(module, ModuleType):
            _replace(module, "_get_fill", class_dispatch.get_fill)
    for name in ("transform", "_transform"):  # the current name, and an older one
        _replace(v2.ToDtype, name, class_dispatch.to_dtype)


def _take_over_decoders() -> None:
    """Patch the operators of ``torchvision.io``, if torchvision's native library is installed."""
    for name in decoders.OPERATORS:
        original = getattr(torch.ops.image, name, None)
        if original is None:
            continue
        function = functools.partial(decoders.decode, original)
        _put(torch.ops.image, name, function)
        with contextlib.suppress(AttributeError):  # scripted functions keep the operator
            torch.jit._builtins._register_builtin(function, f"image::{name}")


_patched_packages: set[str] = set()  # modules that a script had imported, and that were patched when a loop began


def _take_over_packages() -> None:
    """Patch other packages' functions that bypass torchvision's and Pillow's, once a script has imported them."""
    owner = getattr(sys.modules.get(augmix.MODULE), augmix.CLASS, None)
    if owner is not None and augmix.MODULE not in _patched_packages:
        _patched_packages.add(augmix.MODULE)
        _undo.append(lambda: _patched_packages.discard(augmix.MODULE))
        _replace(owner, augmix.METHOD, augmix.apply_basic)


def _get_iterator(original: Callable[[Any], Any], of: DataLoader[Any]) -> Any:
    _take_over_packages()
    return loader.get_iterator(enable_here, delivery.destination, original, of)


def _take_over_loaders() -> None:
    """Patch DataLoader and its present and future subclasses with iterators of their own (torchdata's)."""

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
    """Register a kernel for an additional type; torchvision's kernels stay."""
    known[kind] = kernel
    _undo.append(lambda: known.pop(kind, None) and None)


def _take_over_collation() -> None:
    known = _utils.collate.default_collate_fn_map
    original = known[torch.Tensor]
    # collate looks up exact types: a batch may begin with a plain tensor or with a lazy one.
    for kind in (torch.Tensor, *_lazy_classes()):
        known[kind] = functools.partial(loader.collate, original)

    def undo() -> None:
        known[torch.Tensor] = original
        for kind in _lazy_classes():
            del known[kind]

    _undo.append(undo)


def _lazy_classes() -> list[Any]:
    return [LazyTensor, *(kind for kind in IMAGES if issubclass(kind, LazyTensor))]


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Replace ``owner.name`` by ``function(original, ...)``, if it exists."""
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
    """Undo :func:`enable`. Lazy images stay lazy, and are materialized when they are used."""
    while _undo:
        _undo.pop()()
    retry.forget_damaged()
    file_refs.resume()
    delivery.close()


def _follow_backend(on: bool) -> None:
    """Follow a call of ``torchvision.set_image_backend``."""
    if not on:
        disable()
        return
    import torchvision

    enable()
    _put(torchvision, "_image_backend", backend.NAME)  # the result of `get_image_backend`


def is_enabled() -> bool:
    """Return whether the take-over is enabled."""
    return bool(_undo)


@contextlib.contextmanager
def enabled(device: str = "cpu", *, without_gpu: str | None = None) -> Iterator[None]:
    """Return a context manager that enables the take-over: ``with stoker.torchvision.enabled():``.

    Args:
        device: where batches are delivered, as for :func:`enable`.
        without_gpu: policy for machines without a GPU, as for :func:`enable`.
    """
    was, before = is_enabled(), delivery.current_choice()
    enable(device, without_gpu=without_gpu)
    try:
        yield
    finally:
        if was:
            delivery.restore(before)
        else:
            disable()


def report() -> counts.Report:
    """Return the number of images that stayed lazy until delivery, and the steps that fell back, with counts."""
    return counts.Report()


backend.register(_follow_backend)

# SPDX-License-Identifier: Apache-2.0
"""Switch of the take-over: all changes to other libraries are made and undone here.

The DataLoader and torch's function that spawns processes are changed while the take-over is enabled. Pillow, torch and
torchvision are changed only while a DataLoader fetches a batch (`changes.py`).
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from PIL import Image, ImageEnhance, ImageOps, JpegImagePlugin
from torch.utils.data import _utils, get_worker_info
from torch.utils.data.dataloader import DataLoader

from ....contract.errors import UnsupportedError
from .. import counts, recording
from ..collation.deferred import DeferredTensor, reduce_deferred
from ..loader import delivery, loader
from ..loader.activity import activity_of, activity_of_fetcher
from ..materialize import retry
from ..pillow import augmix, files, image
from ..tensors import grids, planes
from ..tensors import points as lazy_points
from ..tensors.images import lazy_image_class
from ..tensors.lazy_base import run_materialized
from ..tensors.mixing import LazySum, reduce_lazy_sum
from ..tensors.tensor import IMAGES, LazyTensor
from ..transport import file_refs
from . import (
    backend,
    boxes,
    class_dispatch,
    decoders,
    functional,
    imports,
    kernels,
    masks,
    points,
    processors,
    spawned,
    templates,
)
from .changes import FetchChanges
from .type_checks import TypeChecks

_undo: list[Callable[[], None]] = []
_changes = FetchChanges()
type_checks = TypeChecks()  # of the script
functional.set_original_finder(_changes.original)


def enable(device: str = "cpu", *, without_gpu: str | None = None, device_steps: bool = False) -> None:
    """Record the images of torchvision scripts, and let Stoker materialize them when their batch is complete.

    Afterwards the same script gives the same samples, in the same order, with the same augmentation. Repeated calls are
    allowed; the last one decides where batches are delivered.

    Args:
        device: where batches are delivered: "cpu", "cuda" (torch's current GPU when a loop begins) or "cuda:1". On a
            GPU, tensors that are still recorded when their batch is complete are delivered in its memory, and
            ``pin_memory=True`` applies to the others only. "npu", "xpu", "mps" and other devices of torch: the CPU
            computes these tensors, and torch copies them to the device.
        without_gpu: "error", or "cpu": on a machine without a GPU batches are delivered on the CPU, with one warning.
            The default is STOKER_WITHOUT_GPU, or "error".
        device_steps: on "npu" and the like, torch computes the last steps of the images on the device: those that move
            bytes, and the lookup of values in tables. The bytes of the images are copied instead of their values. The
            bits are the same. If the device lacks an operator, the CPU computes these steps, with one warning.

    Raises:
        ArgumentError: another device, or `device_steps` with "cpu" or "cuda".
        DeviceError: there is no such GPU that torch can use.
        ImportError: torchvision is not installed.
        UnsupportedError: Python runs without the GIL.
    """
    _require_gil()
    delivery.choose(device, without_gpu, device_steps=device_steps)
    enable_here()


def _require_gil() -> None:
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise UnsupportedError(
            "`stoker.torchvision`: expected a Python with the GIL, got one that runs without it, where the take-over "
            "has not been tried. Start Python with `-X gil=1`, or use a pipeline with `stoker.torch.Loader`"
        )


def enable_here() -> None:
    """Enable the take-over in this process, which may be a worker; part of :func:`enable`."""
    if _undo:
        return
    import torchvision.transforms as transforms
    import torchvision.transforms.functional as v1

    _take_over_formats()
    for function, hook in (
        (v1.to_tensor, functional.to_tensor),
        (v1.pil_to_tensor, functional.pil_to_tensor),
        (v1.normalize, functional.normalize),
        (transforms.ToTensor.__call__, functional.call_to_tensor),
        (transforms.PILToTensor.__call__, functional.call_pil_to_tensor),
        (v1.F_pil.to_grayscale, functional.to_grayscale),
        (v1.F_pil.adjust_hue, functional.adjust_hue),
        (v1.F_pil.pad, functional.pad),
        (v1.F_t._gen_affine_grid, grids.affine_grid),
        (v1.F_t._perspective_grid, grids.perspective_grid),
        (v1.F_t._apply_grid_transform, grids.apply_grid_v1),
        (v1.to_pil_image, functional.to_pil_image),
        (v1.gaussian_blur, functional.gaussian_blur),
        (v1.elastic_transform, functional.elastic_v1),
        (Image.fromarray, functional.fromarray),
        (Image.blend, functional.blend),
        (ImageOps.expand, functional.expand),
        (ImageOps.autocontrast, functional.autocontrast),
        (ImageOps.equalize, functional.equalize),
    ):
        _changes.replace_body(function, hook)
    for name in kernels.V1_KERNELS:
        _changes.replace_body(getattr(v1.F_t, name), kernels.wrap_v1(name))
    _changes.add(type_checks.enter, type_checks.leave)
    _take_over_tensors()
    _take_over_v2()
    _take_over_decoders()
    for name in functional.ENHANCERS:
        _changes.put(ImageEnhance, name, functional.enhancer_class)
    _take_over_collation()
    _take_over_packages()
    _take_over_loaders()
    for name in processors.CLASSES:
        imports.after_import(name, _take_over_processors)
    for name in templates.PATCH_CLASSES:
        imports.after_import(name, _take_over_patches)
    start_processes = spawned.start_processes(_enable_in_process, delivery.current_choice)
    for module in (torch.multiprocessing, sys.modules["torch.multiprocessing.spawn"]):
        _replace(module, "start_processes", start_processes)
    ForkingPickler.register(LazyTensor, loader.reduce_lazy)
    ForkingPickler.register(LazySum, reduce_lazy_sum)
    ForkingPickler.register(DeferredTensor, reduce_deferred)


def _enable_in_process(choice: delivery.Choice) -> None:
    """Enable the take-over in a process that a script spawns, as in its parent process."""
    delivery.restore(choice)
    enable_here()


def enable_in_worker() -> None:
    """Enable the take-over in a worker process, which does nothing but fetch batches."""
    enable_here()
    if not recording.is_worker():
        recording.enter_worker()
        type_checks.scan(getattr(get_worker_info(), "dataset", None))
        _changes.enter()


@contextlib.contextmanager
def fetching() -> Iterator[None]:
    """Return a context manager around the fetch of one batch: images and tensors are lazy within it."""
    type_checks.scan_new_modules()
    _changes.enter()
    try:
        with recording.fetching():
            yield
    finally:
        _changes.leave()


def _take_over_tensors() -> None:
    """Change functions that inspect a tensor's class or memory before they call torch: they get plain tensors."""

    def materialized(original: Any) -> Any:
        return functools.update_wrapper(functools.partial(run_materialized, original), original)

    for module in (torch._C, torch.utils.dlpack, torch):
        for name in ("_to_dlpack", "to_dlpack"):
            if name in vars(module):
                _changes.put(module, name, materialized)
    for name in ("_create_function_from_trace", "_create_function_from_trace_with_dict", "_create_graph_by_tracing"):
        _changes.put(torch._C, name, materialized)  # the internals of `torch.jit.trace` and similar functions
    for owner, name in (
        (torch._C.ScriptModule, "_create_method_from_trace"),
        (torch._C.ScriptModule, "_create_method_from_trace_with_dict"),
    ):
        if name in vars(owner):
            _changes.put(owner, name, _wrapped_method)
    for function in (torch.nn.Parameter.__new__, torch.nn.Module.register_buffer):
        _changes.replace_body(function, run_materialized)


def _wrapped_method(original: Any) -> Any:
    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        return run_materialized(original, *args, **kwargs)

    return method


def _take_over_formats() -> None:
    """Change Pillow's registry, so that opened images record."""

    def register(name: str, factory: Callable[..., Any]) -> None:
        _changes.put_item(Image.OPEN, name, (factory, Image.OPEN[name][1]))

    name = JpegImagePlugin.JpegImageFile.format
    register(name, functools.partial(files.open_jpeg, Image.OPEN[name][0]))
    for name in files.recorded_formats():
        register(name, functools.partial(files.open_file, Image.OPEN[name][0]))


def _take_over_v2() -> None:
    """Change the second generation of transforms, if torchvision has it."""
    try:
        import torchvision.transforms.v2 as transforms
        import torchvision.transforms.v2.functional as v2
        from torchvision import tv_tensors
        from torchvision.transforms.v2 import _utils as _utils_transforms
        from torchvision.transforms.v2.functional import _geometry, _misc
        from torchvision.transforms.v2.functional import _utils as _utils_v2
    except ImportError:
        return
    lazy = lazy_image_class()
    hooked: tuple[tuple[Any, Callable[..., Any]], ...] = (
        (v2.to_image, functional.to_image),
        (tv_tensors.wrap, functional.wrap),
        (_geometry._affine_grid, grids.affine_grid),
        (_geometry._perspective_grid, grids.perspective_grid),
        (_geometry._apply_grid_transform, grids.apply_grid),
        (_geometry.resize_mask, masks.resize_mask),
        *((getattr(_geometry, name), hook) for name, hook in masks.HOOKS.items()),
        # transforms look up values by an input's exact class
        (_utils_transforms._get_fill, class_dispatch.get_fill),
        *((f, class_dispatch.to_dtype) for name, f in vars(transforms.ToDtype).items() if name in _TRANSFORM_NAMES),
        *((f, masks.sanitize) for n, f in vars(transforms.SanitizeBoundingBoxes).items() if n in _TRANSFORM_NAMES),
        *((f, boxes.iou_crop_params) for n, f in vars(transforms.RandomIoUCrop).items() if n in _DRAWING_NAMES),
        *((f, boxes.valid_boxes) for n, f in vars(_misc).items() if n == "_get_sanitize_bounding_boxes_mask"),
    )
    for function, hook in hooked:
        _changes.replace_body(function, hook)
    registry = getattr(_utils_v2, "_KERNEL_REGISTRY", {})
    for name, function in _IMAGE_KERNELS.items():
        known = registry.get(getattr(v2, name, None), {})
        if Image.Image in known:  # the registry holds the function that was registered, not the module's attribute
            _changes.put_item(known, image.RecordingImage, functools.partial(function, known[Image.Image]))
    for name, record in kernels.KERNELS.items():
        known = registry.get(getattr(v2, name, None), {})
        if torch.Tensor in known and tv_tensors.Image in known:
            kernel = kernels.wrap_kernel(known[torch.Tensor], known[tv_tensors.Image], record)
            _changes.put_item(known, LazyTensor, kernel)
    ForkingPickler.register(lazy, loader.reduce_lazy)
    for kind in (planes.LazyPlanes, *map(planes.lazy_class, (tv_tensors.Mask, tv_tensors.Video))):
        ForkingPickler.register(kind, loader.reduce_planes)
    if hasattr(tv_tensors, "KeyPoints"):
        _take_over_points(tv_tensors.KeyPoints, registry)


def _take_over_points(kind: Any, registry: Any) -> None:
    """Change the kernels for key points, which later releases of transforms v2 have."""
    import torchvision.transforms.v2.functional as v2
    from torchvision.transforms.v2.functional import _meta

    lazy = lazy_points.lazy_class(kind)
    for name in points.KERNELS:
        known = registry.get(getattr(v2, name, None), {})
        if kind in known:
            kernel = points.wrap_kernel(name, known[kind], kind)
            for its in (kind, lazy):
                _changes.put_item(known, its, kernel)
    if hasattr(_meta, "_clamp_keypoints"):
        _changes.replace_body(_meta._clamp_keypoints, points.clamp)
    for its in (lazy_points.LazyPoints, lazy):
        ForkingPickler.register(its, loader.reduce_points)


# The current names of v2's methods, and older ones.
_TRANSFORM_NAMES = ("transform", "_transform")
_DRAWING_NAMES = ("make_params", "_get_params")


def _take_over_decoders() -> None:
    """Change the decoders of ``torchvision.io``, if its native library is installed."""
    from torchvision.io import image as decoding

    for name, hook in decoders.HOOKS.items():
        if hasattr(decoding, name) and hasattr(torch.ops.image, name):
            _changes.replace_body(getattr(decoding, name), hook)


def _take_over_processors(module: Any) -> None:
    """Change the image processors of transformers, once a script has imported them."""
    name, conversion = processors.CLASSES[module.__name__]
    kind: Any = getattr(module, name, None)
    owner = None if kind is None or not _undo else processors.find_owner(kind)
    if owner is None or owner in _processor_owners or (conversion is not None and conversion not in vars(kind)):
        return
    _processor_owners.add(owner)  # a later release may keep an earlier name for the same class
    _undo.append(lambda: _processor_owners.discard(owner))

    def preprocess(original: Callable[..., Any], processor: Any, images: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(processor, kind) or torch.compiler.is_compiling():
            return original(processor, images, *args, **kwargs)
        return processors.preprocess(fetching, original, processor, images, *args, **kwargs)

    _replace(owner, "preprocess", preprocess)
    if conversion is not None:
        _changes.replace_body(vars(kind)[conversion], processors.process_image)
    if "_preprocess" in vars(kind):
        _changes.replace_body(vars(kind)["_preprocess"], templates.process_images)


def _take_over_patches(module: Any) -> None:
    """Change a processor of patches, once a script has imported it."""
    kind = getattr(module, templates.PATCH_CLASSES[module.__name__], None)
    if kind is None or not _undo or kind in _processor_owners or "_preprocess" not in vars(kind):
        return
    _processor_owners.add(kind)
    _undo.append(lambda: _processor_owners.discard(kind))
    _changes.replace_body(vars(kind)["_preprocess"], templates.process_patches)


_processor_owners: set[Any] = set()  # classes whose methods are replaced
_patched_packages: set[str] = set()  # modules that a script had imported, and that were patched when a loop began


def _take_over_packages() -> None:
    """Change other packages' functions that bypass torchvision's and Pillow's, once a script has imported them."""
    owner = getattr(sys.modules.get(augmix.MODULE), augmix.CLASS, None)
    method = None if owner is None else vars(owner).get(augmix.METHOD)
    if method is not None and augmix.MODULE not in _patched_packages:
        _patched_packages.add(augmix.MODULE)
        _undo.append(lambda: _patched_packages.discard(augmix.MODULE))
        _changes.replace_body(method, augmix.apply_basic)


def _get_iterator(original: Callable[[Any], Any], of: DataLoader[Any]) -> Any:
    _take_over_packages()
    activity = activity_of(of.dataset)
    activity.is_scanned = of.num_workers > 0 or not activity.is_idle
    if activity.is_scanned:
        type_checks.scan(of)
    return loader.get_iterator(enable_in_worker, delivery.destination, original, of)


def _begin_fetch(fetcher: Any) -> bool:
    """Return whether a fetch is recorded."""
    activity = activity_of_fetcher(fetcher)
    if not activity.begin_fetch():
        return False
    if not activity.is_scanned:
        type_checks.scan(fetcher.dataset, fetcher.collate_fn)
        activity.is_scanned = True
    return True


def _fetch(original: Callable[[Any, Any], Any], fetcher: Any, index: Any) -> Any:
    if not _begin_fetch(fetcher):
        return original(fetcher, index)
    with fetching():
        return loader.fetch(original, fetcher, index)


def _fetch_stream(original: Callable[[Any, Any], Any], fetcher: Any, index: Any) -> Any:
    if not _begin_fetch(fetcher):
        return original(fetcher, index)
    with fetching():
        return loader.fetch_stream(original, fetcher, index)


def _take_over_loaders() -> None:
    """Patch DataLoader, and its present and future subclasses with iterators of their own (torchdata's)."""

    def take_over(kind: Any) -> None:
        _replace(kind, "_get_iterator", _get_iterator)
        for further in kind.__subclasses__():
            take_over(further)

    def init_subclass(kind: Any, /, **options: Any) -> None:
        super(DataLoader, kind).__init_subclass__(**options)
        if _undo:
            _replace(kind, "_get_iterator", _get_iterator)

    _replace(_utils.fetch._MapDatasetFetcher, "fetch", _fetch)
    _replace(_utils.fetch._IterableDatasetFetcher, "fetch", _fetch_stream)
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


def _take_over_collation() -> None:
    known = _utils.collate.default_collate_fn_map
    collate = functools.partial(loader.collate, known[torch.Tensor])
    # collate looks up exact types: a batch may begin with a plain tensor or with a lazy one.
    of_images = (kind for kind in IMAGES if issubclass(kind, LazyTensor))
    for kind in (torch.Tensor, LazyTensor, planes.LazyPlanes, *planes.LAZY_CLASSES.values(), *of_images):
        _changes.put_item(known, kind, collate)


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Replace ``owner.name`` by ``function(original, ...)``, if it exists."""
    original = vars(owner).get(name)
    if original is None:
        return

    @functools.wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        return function(original, *args, **kwargs)

    _put(owner, name, replacement)


def _put(owner: Any, name: str, value: Any) -> None:
    original = vars(owner)[name]
    setattr(owner, name, value)
    _undo.append(lambda: setattr(owner, name, original))


def disable() -> None:
    """Undo :func:`enable`. Lazy images stay lazy, and are materialized when they are used."""
    _changes.clear()
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

    if not is_enabled():  # otherwise the device stays chosen
        enable()
    _put(torchvision, "_image_backend", backend.NAME)  # the result of `get_image_backend`


def is_enabled() -> bool:
    """Return whether the take-over is enabled."""
    return bool(_undo)


@contextlib.contextmanager
def enabled(device: str = "cpu", *, without_gpu: str | None = None, device_steps: bool = False) -> Iterator[None]:
    """Return a context manager that enables the take-over: ``with stoker.torchvision.enabled():``.

    Args:
        device: where batches are delivered, as for :func:`enable`.
        without_gpu: policy for machines without a GPU, as for :func:`enable`.
        device_steps: whether the last steps run on the device, as for :func:`enable`.
    """
    was, before = is_enabled(), delivery.current_choice()
    enable(device, without_gpu=without_gpu, device_steps=device_steps)
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

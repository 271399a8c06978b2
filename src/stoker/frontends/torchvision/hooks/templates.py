# SPDX-License-Identifier: Apache-2.0
"""Templates of an image processor's steps: images of one size get the steps that were recorded for the first of them.

Recording runs the processor's Python code. For small results this takes longer than the pixels do. The steps of one
image depend on its size and on the processor's settings only, if the processor's class is one of transformers, because
its base class then processes every image alone.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, NamedTuple

import torch

from .. import recording
from ..ir import recipe
from ..ir.recipe import Node
from ..ir.rows import LazyRow
from ..ir.tables import Table, identity_table
from ..tensors import rearranged
from ..tensors.tensor import LazyTensor

_MAX_TEMPLATES = 1024
PACKAGE = "transformers."
RESULT, _GRID = "pixel_values", "image_grid_thw"
# Processors whose result is the patches of their images, and the counts of patches along time, height and width.
PATCH_CLASSES = {"transformers.models.qwen2_vl.image_processing_qwen2_vl": "Qwen2VLImageProcessor"}
# Methods that the base class calls for each image.
_METHODS = ("resize", "center_crop", "rescale_and_normalize", "rescale", "normalize", "patchify")


class Template(NamedTuple):
    """Steps after the image of a file, and the table of the result's values."""

    steps: tuple[tuple[Any, tuple[int, int], int], ...]  # step, size, channels
    table: Table
    batch_class: Any  # of the processor's result
    shape: tuple[int, ...] = ()  # of an image's patches: count and values
    grid: torch.Tensor | None = None  # of an image's patches

    def apply(self, node: Node) -> LazyRow:
        """Return the result for the image of ``node``."""
        for step, size, channels in self.steps:
            node = Node(step, node, size, channels, node.source)
        return LazyRow(node, self.table)


_templates: dict[Any, Template | None] = {}


def process_images(original: Callable[..., Any], processor: Any, images: Any, *args: Any, **kwargs: Any) -> Any:
    """Replace the processing of all images of a call, which `TorchvisionBackend._preprocess` is."""
    found = _apply_templates(_record, original, processor, images, args, kwargs)
    rows = [row for _, row in found]
    if not rows or any(row.node.size != rows[0].node.size or row.table is not rows[0].table for row in rows):
        return original(processor, images, *args, **kwargs)
    values = LazyTensor(rows, (len(rows),))
    if _thread.keeps_latest:
        _thread.latest = values
    return found[0][0].batch_class(data={RESULT: values}, tensor_type="pt")


class _ThreadState(threading.local):
    keeps_latest = False
    latest: LazyTensor | None = None  # the latest result of :func:`process_images`


_thread = _ThreadState()


def keep_latest() -> None:
    """Keep the next result of :func:`process_images` on this thread until :func:`take_latest`."""
    _thread.keeps_latest, _thread.latest = True, None


def take_latest() -> LazyTensor | None:
    """Return the latest result of :func:`process_images` since :func:`keep_latest`, and forget it."""
    latest = _thread.latest
    _thread.keeps_latest, _thread.latest = False, None
    return latest


def process_patches(original: Callable[..., Any], processor: Any, images: Any, *args: Any, **kwargs: Any) -> Any:
    """Replace the processing of all images of a call whose result is the patches of each image, one after the other."""
    found = _apply_templates(_record_patches, original, processor, images, args, kwargs)
    widths = {template.shape[1] for template, _ in found}
    patches = None
    if len(found) > 1 and len(widths) == 1:  # the patches of one image are a view, which the processor makes itself
        count = sum(template.shape[0] for template, _ in found)
        patches = rearranged.arranged([row for _, row in found], (count, widths.pop()))
    if patches is None:
        return original(processor, images, *args, **kwargs)
    grids = torch.cat([template.grid for template, _ in found if template.grid is not None])
    return found[0][0].batch_class(data={RESULT: patches, _GRID: grids}, tensor_type="pt")


def _apply_templates(
    record: Callable[..., Template | None],
    original: Callable[..., Any],
    processor: Any,
    images: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> list[tuple[Template, LazyRow]]:
    """Return the template and the row of each image; nothing if the steps of an image cannot be shared."""
    code = original.__code__
    settings = dict(zip(code.co_varnames[2 : code.co_argcount], args, strict=False)) | kwargs
    state = _settings_key(processor, images, settings)
    found: list[tuple[Template, LazyRow]] = []
    if state is None:
        return found
    for image in images:
        node = image._rows[0].node
        key = (record, *state, node.size, node.channels, _layout_key(image))
        if key not in _templates:
            if len(_templates) >= _MAX_TEMPLATES:
                _templates.clear()
            _templates[key] = record(original, processor, image, settings)
        template = _templates[key]
        if template is None:
            return []
        found.append((template, template.apply(node)))
    return found


def _settings_key(processor: Any, images: Any, settings: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return a key of all that the steps depend on except the image; None if there is no such key."""
    if not recording.is_on() or settings.get("return_tensors") != "pt" or settings.get("do_pad"):
        return None
    if type(images) is not list or not images or not all(map(_is_new_image, images)):
        return None
    return processor_key(processor, settings)


def processor_key(processor: Any, settings: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return a key of a processor, the settings of a call and torch's defaults; None if there is no such key."""
    kind = type(processor)
    if not kind.__module__.startswith(PACKAGE) or not are_owned(getattr(kind, name, None) for name in _METHODS):
        return None
    state = vars(processor), settings
    return (kind, repr(state), torch.get_default_dtype()) if _is_plain(state) else None


def are_owned(methods: Iterable[Any]) -> bool:
    """Return whether all methods are those of transformers, or missing."""
    return all(str(getattr(method, "__module__", PACKAGE)).startswith(PACKAGE) for method in methods)


_PLAIN = frozenset({type(None), bool, int, float, str, torch.dtype, torch.device})


def _is_plain(x: Any) -> bool:
    """Return whether ``repr`` shows all of a value. That of arrays and tensors rounds, and leaves elements out."""
    kind = type(x)
    if kind in _PLAIN:
        return True
    if kind in (tuple, list):
        return all(map(_is_plain, x))
    if kind is dict:
        return all(map(_is_plain, x)) and all(map(_is_plain, x.values()))
    if issubclass(kind, Enum):
        return True
    is_record = dataclasses.is_dataclass(kind) and kind.__module__.startswith(PACKAGE)
    return is_record and all(map(_is_plain, vars(x).values()))


def _is_new_image(x: Any) -> bool:
    """Return whether ``x`` is one image without steps on its values."""
    if type(x) is not LazyTensor or x._materialized is not None or x._lead or len(x._rows) != 1:
        return False
    node, table, patches = x._rows[0]
    return not patches and node.op != recipe.RAW and table is identity_table(node.channels) and x._leaf_link is None


def _layout_key(x: LazyTensor) -> tuple[Any, ...]:
    return x._is_by_pixel, x._is_turned, x._is_view_in_torch, x._window_layout


def _record(original: Callable[..., Any], processor: Any, image: Any, settings: dict[str, Any]) -> Template | None:
    """Return the steps for one image; None if not all of them are recorded."""
    batch = original(processor, [image], **settings | {"return_tensors": None})
    results: Any = batch[RESULT] if list(batch) == [RESULT] else ()
    if len(results) != 1 or type(results[0]) is not LazyTensor or not _is_result(results[0]):
        return None
    row = results[0]._rows[0]
    steps = _steps_between(image._rows[0].node, row.node)
    return None if steps is None else Template(steps, row.table, type(batch))


def _record_patches(
    original: Callable[..., Any], processor: Any, image: Any, settings: dict[str, Any]
) -> Template | None:
    """Return the steps from one image to its patches; None if not all of them are recorded."""
    batch = original(processor, [image], **settings | {"return_tensors": None})
    if sorted(batch) != [_GRID, RESULT]:
        return None
    patches, grid = batch[RESULT], batch[_GRID]
    base = rearranged.whole_base(patches)
    if base is None or len(base._rows) != 1 or patches.ndim != 2:
        return None
    if type(grid) is not torch.Tensor or tuple(grid.shape) != (1, 3):
        return None
    row = base._rows[0]
    steps = _steps_between(image._rows[0].node, row.node)
    return None if steps is None else Template(steps, row.table, type(batch), tuple(patches.shape), grid)


def _steps_between(first: Node, node: Node) -> tuple[tuple[Any, tuple[int, int], int], ...] | None:
    """Return the steps that lead from ``first`` to ``node``; None if one of them takes another image too."""
    steps = []
    while node is not first:
        if node.parent is None or recipe.extra_inputs(node):
            return None
        steps.append((node.step, node.size, node.channels))
        node = node.parent
    return tuple(reversed(steps))


def _is_result(x: LazyTensor) -> bool:
    return x._materialized is None and not x._lead and len(x._rows) == 1 and not x._rows[0].patches

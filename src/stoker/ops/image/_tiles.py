# SPDX-License-Identifier: Apache-2.0
"""Tiles of images that blocks of a GPU compute in shared memory (native/device/own_plane.cuh)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...contract import expr as ex
from ...contract.expr import Scalar
from ...contract.step import LaunchPass

WIDTH = 128  # values of a tile's rows
_ROOM = 48 * 1024 - 256  # bytes of shared memory that every GPU has for a block, except those that all kernels use
_WINDOW_ROWS = (16, 32, 64)  # of tiles of windows
_LOADED_ROWS = 16  # of tiles whose values are loaded where windows read them
_WINDOW_ROOM = 47 * 1024  # bytes of shared memory for such a tile, without what the kernel keeps of its work
_RESIDENT = 1024  # threads of a multiprocessor

Axes = tuple[int, int, int, int]


def is_inner(axes: Axes) -> bool:
    """Return whether a pixel's channels are adjacent."""
    return axes[3] < 0 or axes[3] > axes[2]


def tiles(shape: Sequence[Scalar], axes: Axes, rows: Scalar) -> Scalar:
    """Return the number of tiles of ``rows`` rows. Adjacent channels share a tile."""
    frames, height, width, channels = (1 if axis < 0 else shape[axis] for axis in axes)
    planes, inner = (frames, channels) if is_inner(axes) else (frames * channels, 1)
    down = (height + rows - 1) // rows
    return planes * down * ((width * inner + WIDTH - 1) // WIDTH)


def window_passes(
    shape: Sequence[Scalar], axes: Axes, window: tuple[Scalar, Scalar], least_step: int
) -> tuple[LaunchPass, Scalar, Scalar]:
    """Return the pass that computes windows of any weights in tiles, the blocks of the pass for windows whose tiles do
    not fit (native/device/own_filter.cuh), and the rows of a tile, as many as fit.

    Args:
        shape: extents of the output.
        axes: its axes F, H, W and C (-1: none).
        window: height and width of the window in pixels.
        least_step: values per pixel, at least, that a row in shared memory has room for.
    """
    inner = shape[axes[3]] if axes[3] >= 0 and is_inner(axes) else 1
    height, width = window
    pitch = (WIDTH + (width - 1) * ex.maximum(inner, least_step) + 3) // 4 * 4

    def shared(rows: int) -> Any:
        return (rows - 1 + height) * (16 + 4 * pitch) + (height * width + 3) // 4 * 16

    rows: Scalar = 0
    shared_bytes: Scalar = 0
    for count in _WINDOW_ROWS:
        fits = shared(count) <= _WINDOW_ROOM
        rows, shared_bytes = ex.where(fits, count, rows), ex.where(fits, shared(count), shared_bytes)
    none = ex.equal(rows, 0)
    one = LaunchPass(
        ex.where(none, 0, tiles(shape, axes, ex.maximum(rows, 1))), shared_bytes=shared_bytes,
        max_shared_bytes=_WINDOW_ROOM, resident_threads=_RESIDENT,
    )  # fmt: skip
    return one, ex.where(none, tiles(shape, axes, _LOADED_ROWS), 0), rows


def separable_passes(
    shape: Sequence[Scalar], axes: Axes, window: tuple[Scalar, Scalar], rows: int, sizes: tuple[int, int],
    others: Scalar,
) -> tuple[LaunchPass, Scalar]:  # fmt: skip
    """Return the pass that computes rows and columns of tiles, and the blocks of each of the two passes if there is no
    room for a tile with its surroundings.

    Args:
        shape: extents of the image.
        axes: its axes F, H, W and C (-1: none).
        window: height and width of the window in pixels.
        rows: rows of a tile.
        sizes: bytes of a value in shared memory, before and after the rows' windows.
        others: blocks of each of the two passes.
    """
    inner = shape[axes[3]] if axes[3] >= 0 and is_inner(axes) else 1
    high, wide = rows - 1 + window[0], WIDTH + (window[1] - 1) * inner
    before = (high * wide * sizes[0] + 15) // 16 * 16
    shared = before + high * WIDTH * sizes[1]
    fits = shared <= _ROOM
    one = LaunchPass(
        ex.where(fits, tiles(shape, axes, rows), 0), shared_bytes=ex.where(fits, shared, 0), max_shared_bytes=_ROOM,
        resident_threads=_RESIDENT,
    )  # fmt: skip
    return one, ex.where(fits, 0, others)

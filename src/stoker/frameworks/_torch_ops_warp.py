# SPDX-License-Identifier: Apache-2.0
"""Parts of the operator ``warp_affine`` that do not depend on the device: its memory and its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

Tensor = torch.Tensor
Add = Callable[[Tensor, Tensor, Tensor], None]
Taps = list[tuple[Tensor, Tensor]]  # for each output pixel the number of a source pixel, int64, and its weight


def empty_images(images: Tensor, height: int, width: int) -> Tensor:
    """Return memory for warped images, in the memory format of the images."""
    last = images.is_contiguous(memory_format=torch.channels_last) and not images.is_contiguous()
    return torch.empty(
        (*images.shape[:2], height, width), dtype=images.dtype, device=images.device,
        memory_format=torch.channels_last if last else torch.contiguous_format,
    )  # fmt: skip


def warp_gradient(grad: Tensor, matrices: Tensor, linear: bool, filled: bool, shape: Sequence[int], add: Add) -> Tensor:
    """Add the gradient of each output pixel to the pixels that it was interpolated from, in the order of the output.

    Args:
        grad: gradient of the warped images (N, C, H, W), float32.
        matrices: (N, 2, 3).
        linear: the interpolation is linear, not nearest.
        filled: points outside have the fill value, not that of the nearest pixel of the border.
        shape: that of the images.
        add: ``add(sums, places, values)`` adds the columns of ``values`` (C, n) to columns ``places`` (n,) of ``sums``,
            one after the other.
    """
    count, channels, height, width = (int(n) for n in shape)
    result = grad.new_zeros((count, channels, height * width))
    numbers = matrices.detach().to(torch.float64)
    for i in range(count if height * width else 0):
        own = grad[i].reshape(channels, -1)
        size = (int(grad.shape[2]), int(grad.shape[3]))
        taps = _linear_taps if linear else _nearest_taps
        for places, weights in taps(numbers[i], filled, (height, width), size):
            add(result[i], places.flatten(), own * weights.flatten().to(own.dtype))
    return result.view(count, channels, height, width)


def _linear_taps(m: Tensor, filled: bool, source: tuple[int, int], size: tuple[int, int]) -> Taps:
    across = torch.arange(size[1], dtype=torch.float64, device=m.device) + 0.5
    down = (torch.arange(size[0], dtype=torch.float64, device=m.device) + 0.5)[:, None]
    rows, columns = (m[k, 0] * across + m[k, 1] * down + m[k, 2] for k in (1, 0))
    height, width = source
    inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    shown = inside.to(torch.float64) if filled else torch.ones_like(columns)
    pairs = []
    for at, extent in ((rows, height), (columns, width)):
        at = at.clamp(0, extent) - 0.5
        first = at.floor()
        share = at - first
        near = first.long()
        pairs.append(((near.clamp(min=0), 1 - share), ((near + 1).clamp(max=extent - 1), share)))
    return [(y * width + x, b * a * shown) for y, b in pairs[0] for x, a in pairs[1]]


def _nearest_taps(m: Tensor, filled: bool, source: tuple[int, int], size: tuple[int, int]) -> Taps:
    numbers = torch.arange(source[0] * source[1], dtype=torch.int32, device=m.device).view(1, 1, *source)
    fill = [-1.0] if filled else []
    places = torch.ops.stoker.warp_affine(numbers, m[None], *size, False, fill)[0, 0].long()
    return [(places.clamp(min=0), (places >= 0).to(torch.float64))]

# SPDX-License-Identifier: Apache-2.0
"""Detection on arrays: the kernels of ``stoker.torch.ops``."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

def nms(
    boxes: Array, scores: Array, labels: Array | None, threshold: float, rotated: bool
) -> npt.NDArray[np.int64]: ...
def soft_nms(
    boxes: Array, scores: Array, labels: Array | None, gaussian: bool, threshold: float, sigma: float, least: float
) -> tuple[npt.NDArray[np.int64], Array]: ...
def roi_align(
    features: Array, regions: Array, scale: float, samples: int, aligned: bool, out: Array, chosen: Array | None
) -> None: ...
def roi_align_backward(
    gradient: Array, regions: Array, chosen: Array | None, scale: float, samples: int, aligned: bool, out: Array
) -> None: ...
def roi_pool(features: Array, regions: Array, scale: float, out: Array, chosen: Array) -> None: ...
def roi_pool_backward(gradient: Array, regions: Array, chosen: Array, out: Array) -> None: ...
def warp_images(images: Array, matrices: Array, linear: bool, fill: Sequence[float], out: Array) -> None: ...

# SPDX-License-Identifier: Apache-2.0
"""``stoker.torch.ops``: operators for detection on tensors, with torchvision's results and repeatable gradients."""

from ..frameworks._torch_ops import batched_nms as batched_nms
from ..frameworks._torch_ops import nms as nms
from ..frameworks._torch_ops import nms_rotated as nms_rotated
from ..frameworks._torch_ops import roi_align as roi_align
from ..frameworks._torch_ops import roi_pool as roi_pool
from ..frameworks._torch_ops import soft_nms as soft_nms
from ..frameworks._torch_ops import warp_affine as warp_affine

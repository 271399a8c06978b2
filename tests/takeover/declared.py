# SPDX-License-Identifier: Apache-2.0
"""torchvision beside a CPU-only torch: its C++ operators are declared before it is imported, once per process."""

from __future__ import annotations

import warnings

import torch

from benchmarks.torchvision_peer import declare_operators

DECLARED = declare_operators(torch)  # kept for as long as torchvision may look for them
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of torchvision's native library, which is not needed
    import torchvision  # noqa: F401

from torchvision.io import image as _image  # noqa: E402

if not hasattr(torch.ops.image, "decode_jpeg"):  # the wheel's native library asks for CUDA: Pillow decodes in its place
    from tests.takeover.image_operators import define

    IMAGE_OPERATORS = define()
    _image._has_image_ops = lambda: True

LANCZOS = "lanczos" in str(torch.nn.functional.interpolate.__doc__)  # newer releases of torch have that filter

# SPDX-License-Identifier: Apache-2.0
"""torchvision beside a CPU-only torch: its C++ operators are declared once per process, before the import."""

from __future__ import annotations

import warnings

import torch

from benchmarks.torchvision_peer import declare_operators

DECLARED = declare_operators(torch)  # keeps the declarations alive
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about torchvision's native library, which is not needed
    import torchvision  # noqa: F401

from torchvision.io import image as _image  # noqa: E402

if not hasattr(torch.ops.image, "decode_jpeg"):  # the wheel's native library requires CUDA: Pillow decodes instead
    from tests.takeover.image_operators import define

    IMAGE_OPERATORS = define()
    _image._has_image_ops = lambda: True

# newer releases of torch have a filter for this warning
LANCZOS = "lanczos" in str(torch.nn.functional.interpolate.__doc__)

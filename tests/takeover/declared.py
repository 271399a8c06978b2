# SPDX-License-Identifier: Apache-2.0
"""torchvision beside a CPU-only torch: its native library is made loadable, once per process, before the import."""

from __future__ import annotations

import warnings

import torch

from benchmarks.torchvision_peer import declare_operators
from tests.takeover import native_torchvision

# The declarations are kept alive. With the real library they would be declared twice.
DECLARED = None if native_torchvision.load() else declare_operators(torch)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about torchvision's native library, which is not needed
    import torchvision  # noqa: F401

from torchvision.io import image as _image  # noqa: E402

if not hasattr(torch.ops.image, "decode_jpeg"):  # no native library: Pillow decodes instead
    from tests.takeover.image_operators import define

    IMAGE_OPERATORS = define()
    _image._has_image_ops = lambda: True

# newer releases of torch have a filter for this warning
LANCZOS = "lanczos" in str(torch.nn.functional.interpolate.__doc__)

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

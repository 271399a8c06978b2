# SPDX-License-Identifier: Apache-2.0
"""``experimental.resize``."""

from __future__ import annotations

from .resize import Resize


class ExperimentalResize(Resize, name="experimental.resize"):
    """Change the size of images as `resize` does, under DALI's experimental name."""

# SPDX-License-Identifier: Apache-2.0
"""Conversion of any lazy object to a plain one, in place."""

from __future__ import annotations

from typing import Any

from ..pillow.image import RecordingImage
from ..tensors import lazy_base


def become_plain(x: Any) -> None:
    """Turn a lazy image or tensor into a plain one; other objects stay as they are."""
    if issubclass(type(x), lazy_base.LazyBase):
        lazy_base.become_plain(x)
    elif issubclass(type(x), RecordingImage):
        x.become_plain()

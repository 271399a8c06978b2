# SPDX-License-Identifier: Apache-2.0
"""Modules of all codecs. Written by tools/index.py."""

INDEX: dict[str, str] = {
    "jpeg": "codecs.jpeg.codec:Jpeg",
}

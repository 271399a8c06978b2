# SPDX-License-Identifier: Apache-2.0
"""Search for libopus, which the native decoder of Opus files calls.

The library inside of soundfile is linked into libsndfile, without vector code, and cannot be called. PyAV's wheels
bring one of their own, and many systems have it.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path

_FUNCTIONS = ("decoder_create", "decode_float", "decoder_ctl", "decoder_destroy")


def _candidates() -> Iterator[str]:
    spec = importlib.util.find_spec("av")
    if spec is not None and spec.origin is not None:
        yield from map(str, sorted(Path(spec.origin).parents[1].glob("av.libs/libopus*.so*")))
    yield from ("libopus.so.0", "libopus.so")


@functools.cache
def libopus() -> bytes:
    """Return the path or name of the library, or nothing if there is none: libsndfile decodes Opus then."""
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        if all(hasattr(library, f"opus_multistream_{function}") for function in _FUNCTIONS):
            return name.encode()
    return b""

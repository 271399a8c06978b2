# SPDX-License-Identifier: Apache-2.0
"""Registry of codecs by name.

``tools/index.py`` writes the index of built-in ones; modules are imported on first use.
"""

from __future__ import annotations

import importlib

from .._import_lock import IMPORT_LOCK
from ..contract.codec import Codec
from ..contract.errors import ArgumentError, did_you_mean
from ..contract.text import brief
from ._index import INDEX

_registered: dict[str, type[Codec]] = {}


def register(codec: type[Codec]) -> type[Codec]:
    """Register a codec under its name; works as a decorator. A later class of the same name replaces it.

    Raises:
        ArgumentError: the class has no name, or the name of a built-in codec.
    """
    if not codec.name:
        raise ArgumentError(f'expected a class `class MyCodec(Codec, name="my_codec")`, got {brief(codec)}')
    if codec.name in INDEX:
        raise ArgumentError(f"the name `{codec.name}` is a built-in codec's; choose another one")
    _registered[codec.name] = codec
    return codec


def find(name: str) -> type[Codec]:
    """Return the codec called ``name``.

    Raises:
        ArgumentError: there is no such codec; the text has the nearest name.
    """
    if name in _registered:
        return _registered[name]
    if name not in INDEX:
        raise ArgumentError(f"there is no codec `{name}`; {did_you_mean(name, [*INDEX, *_registered])}".rstrip("; "))
    module, cls = INDEX[name].split(":")
    with IMPORT_LOCK:
        found: type[Codec] = getattr(importlib.import_module(f"stoker.{module}"), cls)
    return found

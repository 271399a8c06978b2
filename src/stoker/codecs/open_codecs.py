# SPDX-License-Identifier: Apache-2.0
"""Codecs of one pipeline. Each is opened when the pipeline has options for it, or when a step needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..contract.codec import Codec, CodecGpu, CodecKernel
from .registry import find

_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class OpenCodecs:
    """Codecs of one pipeline, by name.

    Args:
        gpu: the pipeline's GPU, if it has one.
        options: options of codecs, by name. These codecs are opened immediately, because plans depend on their index.

    Raises:
        ArgumentError: a codec cannot meet an option.
    """

    def __init__(
        self, gpu: CodecGpu | None = None, options: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    ) -> None:
        self._gpu = gpu
        self._options = options
        self._opened: dict[str, Codec] = {}
        for name in options:
            self.get(name)

    def get(self, name: str) -> Codec:
        """Return the codec called ``name``, and open it if needed."""
        if name not in self._opened:
            self._opened[name] = find(name)(self._gpu, self._options.get(name, _NO_OPTIONS))
        return self._opened[name]

    @property
    def indexed_codecs(self) -> frozenset[str]:
        """Return the names of codecs that keep an index of files."""
        return frozenset(name for name, codec in self._opened.items() if codec.keeps_index)

    def report(self, kernels: Sequence[CodecKernel]) -> dict[str, Any]:
        """Return the sections of the run report, by codec.

        Args:
            kernels: kernels of the running plan.
        """
        names = dict.fromkeys(kernel.codec for kernel in kernels)
        sections = ((name, self.get(name).report([k for k in kernels if k.codec == name])) for name in names)
        return {name: section for name, section in sections if section is not None}

    def close(self) -> None:
        """Let every codec save its index; idempotent."""
        for codec in self._opened.values():
            codec.close()

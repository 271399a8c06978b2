# SPDX-License-Identifier: Apache-2.0
"""A stage with a fault that a tool must report: ``python -m tests.gpu.planted memcheck``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from stoker.contract import pixel as px
from stoker.contract.types import DType
from stoker.native import _native

FAULTS = {
    "nothing": "",
    "memcheck": "reinterpret_cast<volatile int*>(slots)[1 << 12] = 1;",  # after the row descriptions
    "racecheck": "__shared__ volatile int x[64]; x[threadIdx.x % 64] = x[(threadIdx.x + 33) % 64] + threadIdx.x;",
    "synccheck": "if (threadIdx.x % 2) __syncwarp(0x55555555u);",  # of lanes that do not arrive
    "initcheck": "++*reinterpret_cast<volatile int*>(output);",  # which no kernel has written
}
SOURCE = """#include "shared/stage_slot.hpp"
STOKER_KERNEL stoker_stage(unsigned long long slots) {
  const auto* ports = reinterpret_cast<const stoker::stage::Port*>(slots + sizeof(stoker::stage::Slot));
  const unsigned long long output = ports[1].data;
  FAULT
}
"""


def main(fault: str) -> None:
    sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("cuda", "native")]
    import emulated_stages as st
    from test_stages import compiled

    library = st.CudaLibrary()
    library.device.separate_allocations = True
    stage = compiled([[px.load(DType.UINT8)]], [DType.UINT8])
    function = library.gpu.load(SOURCE.replace("FAULT", FAULTS[fault])).function("stoker_stage")
    kernel = _native.gpu.stage(*stage.arguments(), [function], list(stage.source().uniforms))
    x = np.ones((64, 64), np.uint8)
    st.run(stage, kernel, [st.Row([], [x], [x.shape])], library.device)


if __name__ == "__main__":
    main(sys.argv[1])

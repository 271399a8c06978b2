# SPDX-License-Identifier: Apache-2.0
"""Kernels of the JPEG decoder compile for every architecture, without spills and within limits of their launches."""

from __future__ import annotations

import re

import pytest
from kept_reports import report_of

from stoker.codecs.jpeg.codec import SUFFIXES, sources_for
from tests.complete import COMPLETE

# The largest number of registers per kernel at which a multiprocessor holds as many threads as its launches assume.
MAX_REGISTERS = {
    "unstuff": 64, "clear": 32, "entropy": 64, "prepare": 64, "guess": 64, "synchronise": 64, "write": 64,
    "transform": 64, "pixels": 64, "pixels_u16": 64, "pixels_f32": 64,
}  # fmt: skip


@pytest.mark.parametrize("architecture", [80, 90, 100] if COMPLETE else [90])
def test_jpeg_kernels_compile_without_spills(architecture):
    texts = dict.fromkeys(text for dtype in SUFFIXES for _, text in sources_for(dtype))
    report = "".join(report_of(source, architecture) for source in texts)
    spills = r"(\d+) bytes spill stores, (\d+) bytes spill loads"
    pattern = rf"entry function 'stoker_jpeg_(\w+)'.*?{spills}.*?Used (\d+) registers"
    kernels = re.findall(pattern, report, re.DOTALL)
    found = {name: (int(stores) + int(loads), int(registers)) for name, stores, loads, registers in kernels}
    assert found.keys() == MAX_REGISTERS.keys(), report
    for name, (spilled, registers) in found.items():
        assert spilled == 0 and registers <= MAX_REGISTERS[name], (name, spilled, registers)

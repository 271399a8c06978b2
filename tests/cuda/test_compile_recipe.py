# SPDX-License-Identifier: Apache-2.0
"""The recipe kernel compiles for every architecture, within the limits of its launch, and without spills."""

from __future__ import annotations

import re

import pytest
from kept_reports import report_of

from stoker.ops.image.recipe import SOURCES
from tests.complete import COMPLETE

MAX_REGISTERS = 64  # two blocks of 512 threads on a multiprocessor


@pytest.mark.parametrize("architecture", [80, 90, 100] if COMPLETE else [90])
def test_the_kernel_of_recipes_compiles(architecture):
    ((_, source),) = SOURCES
    report = report_of(source, architecture)
    (registers,) = re.findall(r"Used (\d+) registers", report)
    spills = [int(n) for n in re.findall(r"(\d+) bytes spill stores", report)]
    assert int(registers) <= MAX_REGISTERS
    assert len(spills) > 20 and not any(spills)  # of the kernel, and of every phase that it calls

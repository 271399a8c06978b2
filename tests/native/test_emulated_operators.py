# SPDX-License-Identifier: Apache-2.0
"""Operators on emulated processors without AVX-512 and without AVX: the short form of ``make test-processors``.

A processor that has an instruction hides that it must not be used on others.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.idle_clock import HANG_S

ROOT = Path(__file__).parents[2]
OPERATORS = (  # at least one for each table of kernels of native code
    "resize", "warp_affine", "crop_mirror_normalize", "brightness", "hsv", "gaussian_blur", "experimental.median_blur",
    "debayer", "clahe", "reductions.sum", "reductions.max", "decoders.image", "spectrogram", "convolve",
    "noise.gaussian",
)  # fmt: skip


@pytest.mark.parametrize(("processor", "isa"), [("max", "avx2"), ("Nehalem", "plain")])
def test_operators_need_no_instruction_that_the_processor_lacks(processor: str, isa: str) -> None:
    emulator = shutil.which("qemu-x86_64")
    if emulator is None or platform.machine() != "x86_64":
        pytest.skip("needs an x86-64 machine with qemu-x86_64 (Debian: qemu-user)")
    command = [emulator, "-cpu", processor, sys.executable, "-m", "tests.native.emulated_operators", *OPERATORS]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{len(OPERATORS)} operators, {isa}\n"

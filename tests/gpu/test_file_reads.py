# SPDX-License-Identifier: Apache-2.0
"""Large files that are read into a GPU's memory, through bounce buffers and by cuFile.

Without NVIDIA's driver for GPUDirect Storage, cuFile copies through host memory, if the file system allows that.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stoker import DeviceError
from stoker.device.file_reads import find_library
from tests.idle_clock import HANG_S

READ = """
import sys
import numpy as np
from stoker import DeviceError, fn, pipeline_def

setting, files = sys.argv[1], sys.argv[2:]
FORMS = {
    "whole": ({}, np.s_[:]), "rows": ({"roi_start": [13], "roi_axes": [0]}, np.s_[13:]),
    "columns": ({"roi_start": [1], "roi_shape": [20], "roi_axes": [1]}, np.s_[:, 1:21]),
}

def check(name):
    region, part = FORMS[name]

    @pipeline_def(batch_size=5, num_threads=4, device_id=0, seed=1)
    def arrays():
        return fn.readers.numpy(files=files, device="gpu", **region)

    with arrays() as pipe:
        kept = [pipe.run()[0] for _ in range(6)]
        for number, batch in enumerate(kept):
            for row, one in enumerate(batch.as_cpu()):
                want = np.load(files[(5 * number + row) % len(files)])[part]
                assert np.array_equal(one, want) and one.dtype == want.dtype.newbyteorder("="), (name, number, row)
        found = pipe.report().file_reads
    print(name, found)
    if name == "columns":
        return
    if setting == "off":
        assert found.way == "off" and found.staged > 0, found
    if setting == "on":
        assert found.way == "direct" and found.direct > 0, found

for name in FORMS:
    try:
        check(name)
    except DeviceError as error:
        assert setting == "on" and "GPUDirect Storage: a file cannot be" in str(error), error
        print("REFUSED", error)
"""


@pytest.mark.parametrize("setting", ["on", "auto", "off"])
@pytest.mark.parametrize("dtype", ["u1", "<f2", "<i4", "<f8", "?"])
def test_bytes_are_those_of_the_files(tmp_path: Path, setting: str, dtype: str) -> None:
    """One file in five is in Fortran order, and one is short."""
    if setting != "off":
        try:
            find_library()
        except DeviceError as missing:
            pytest.skip(str(missing))
    files = []
    for i in range(10):
        array = np.random.default_rng(i).integers(0, 2, (300 if i % 5 == 4 else 4000 + i, 25, 16)).astype(dtype)
        files.append(str(tmp_path / f"{i}.npy"))
        np.save(files[-1], np.asfortranarray(array) if i % 5 == 1 else array)
    environment = {**os.environ, "STOKER_GDS": setting, "CUFILE_ALLOW_COMPAT_MODE": "true"}
    done = subprocess.run(
        [sys.executable, "-c", READ, setting, *files], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    if "REFUSED" in done.stdout:
        pytest.skip(f"cuFile cannot read files of this file system, which is an error here: {done.stdout}")

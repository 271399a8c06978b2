# SPDX-License-Identifier: Apache-2.0
"""Processes that are forked while pipelines use a GPU, as the workers of a data loader are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import gc, os, sys
from stoker import DeviceError, fn, pipeline_def
from stoker.device.gpu import Gpu

gc.disable()  # so that only the child's collector finds the released objects

@pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=1, gpu_jpeg_index=1 << 20)
def chain():
    files, labels = fn.readers.file(file_root=sys.argv[1])
    return fn.resize(fn.decoders.image(files, device="mixed"), size=(16, 16)), labels.gpu()

pipe = chain()
pipe.build()
last = pipe.run()
child = os.fork()
if child == 0:
    message = ""
    del pipe, last
    gc.collect()
    try:
        Gpu.open(0)
    except DeviceError as error:
        message = str(error)
    os._exit(0 if "was forked from one that had used CUDA" in message else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
pipe.run()
pipe.close()
"""


def test_a_child_that_collects_garbage(jpegs: Path) -> None:
    """The child neither crashes nor disturbs its parent, and its error explains that it cannot open a GPU."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM, str(jpegs)],  # warnings about forks
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")

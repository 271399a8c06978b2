# SPDX-License-Identifier: Apache-2.0
"""Triton server of the package nvidia-pytriton on the loopback device."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytriton

DISTRIBUTION = Path(pytriton.__file__).parent / "tritonserver"
START_S = 60.0


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextlib.contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run a server with the models in ``folder / "models"``; give its address."""
    shutil.copytree(DISTRIBUTION / "backends", folder / "backends")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    shutil.copy(
        DISTRIBUTION / "python_backend_stubs" / version / "triton_python_backend_stub", folder / "backends/python"
    )
    libraries = [str(DISTRIBUTION.parent.parent / "nvidia_pytriton.libs"), str(sysconfig.get_config_var("LIBDIR"))]
    http, grpc = free_port(), free_port()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [
                DISTRIBUTION / "bin/tritonserver", f"--model-repository={folder / 'models'}",
                f"--backend-directory={folder / 'backends'}", "--http-address=127.0.0.1", f"--http-port={http}",
                "--grpc-address=127.0.0.1", f"--grpc-port={grpc}", "--allow-metrics=false",
            ],
            stdout=log, stderr=log,
            # The backend takes the packages of the first Python on PATH.
            env={
                **os.environ, "LD_LIBRARY_PATH": os.pathsep.join(libraries),
                "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            },
        )  # fmt: skip
        try:
            _await(process, http, folder / "log")
            yield f"127.0.0.1:{http}"
        finally:
            process.terminate()
            process.wait(timeout=60)


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_S
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=1).close()
            return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start:\n{log.read_text()}") from None
            time.sleep(0.1)

# SPDX-License-Identifier: Apache-2.0
"""What all tests share: a small data set that they make themselves, and a guard against leaks."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from photographs import write_photographs
from sharing import folder_of_all, share

_SETTLE_S = 3.0  # how long threads that were told to end may take on a busy machine


def pytest_configure(config: pytest.Config) -> None:
    # torch's pool of threads, which it starts on first use and keeps, would look like a leak.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # A shell that starts the tests in the background has Ctrl-C ignored, and so would the programs that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    share(config)


@pytest.fixture(scope="session")
def jpegs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few dozen JPEG files in three classes; tests only read it."""
    return write_photographs(tmp_path_factory.mktemp("jpegs"))


@pytest.fixture(scope="session")
def images(jpegs: Path) -> Path:
    """The folder that ``STOKER_DATA`` names (class folders of JPEG files), or the self-made one."""
    given = os.environ.get("STOKER_DATA")
    return Path(given) if given else jpegs


@pytest.fixture(scope="session")
def kernel_folder(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Path]:
    """Where kernels that were compiled for their emulation are kept, for the tests of all processes."""
    made = folder_of_all(pytestconfig, tmp_path_factory.getbasetemp()) / "kernels"
    made.mkdir(exist_ok=True)
    yield made
    for path in made.glob("*.gch"):  # large
        path.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def gpu_in_use(pytestconfig: pytest.Config) -> bool:
    """Whether there is a GPU. All are open then, by torch too: the driver's threads and files are no leak of a test."""
    from stoker.native import _native

    count = _native.gpu.count_cuda()
    if pytestconfig.pluginmanager.hasplugin("tests.gpu.watched"):  # no leaks are counted there
        return count > 0
    for number in range(count):
        import torch

        from stoker.device.gpu import Gpu

        torch.ones(8, device=f"cuda:{number}").sum().item()
        Gpu.open(number)
    return count > 0


def _threads() -> set[str]:
    return set(os.listdir("/proc/self/task"))


def _descriptors() -> set[tuple[str, str]]:
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.add((fd, os.readlink(f"/proc/self/fd/{fd}")))
        except OSError:  # the descriptor of this listing itself
            continue
    return {item for item in found if item[0] != _tracker()}


def _tracker() -> str | None:
    """The pipe to multiprocessing's helper process, which lives as long as this process."""
    module = sys.modules.get("multiprocessing.resource_tracker")
    return str(module._resource_tracker._fd) if module is not None else None


@pytest.fixture(autouse=True)
def no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test leaves no thread and no open file behind. ``@pytest.mark.leaks("why")`` excuses one."""
    if not os.path.isdir("/proc/self/task") or request.node.get_closest_marker("leaks"):
        yield
        return
    threads, descriptors = _threads(), _descriptors()
    yield
    deadline = time.monotonic() + _SETTLE_S
    while left := [*sorted(_threads() - threads), *sorted(_descriptors() - descriptors)]:
        if time.monotonic() > deadline:
            pytest.fail(f"the test left threads or open files behind: {left}")
        gc.collect()  # may itself end something that takes seconds, such as torch's workers: then look again
        time.sleep(0.02)

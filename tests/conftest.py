# SPDX-License-Identifier: Apache-2.0
"""Shared fixtures: a small synthetic data set, and a guard against leaks."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from idle_clock import IdleClock
from photographs import write_photographs
from sharing import share

from tests.forked import ForkServer

_SETTLE_S = 3.0  # time for stopped threads to end on an idle machine

# torch reads these variables when it is imported, which conftest.py of a folder may do. It starts its thread pool on
# first use and keeps it, which would look like a leak.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads of tests with more would keep a core busy while idle

# All runs use the same examples, and no example fails because a busy machine is slow. To search for new examples:
# pytest --hypothesis-profile=search
_SLOW = [HealthCheck.too_slow]
settings.register_profile("steady", derandomize=True, deadline=None, database=None, suppress_health_check=_SLOW)
settings.register_profile("search", deadline=None, suppress_health_check=_SLOW)
settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    # A shell that starts the tests in the background ignores Ctrl-C, and child processes would inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    share(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collections, then exempt all collected objects from later ones.

    The collected tests, their parameters and torch are a million objects that live to the end. A collection that
    traverses them takes a second.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def jpegs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a few dozen JPEG files in three classes. Tests only read it."""
    return write_photographs(tmp_path_factory.mktemp("jpegs"))


@pytest.fixture(scope="session")
def images(jpegs: Path) -> Path:
    """Return the folder in ``STOKER_DATA`` (class folders of JPEG files), or the synthetic one."""
    path = os.environ.get("STOKER_DATA")
    return Path(path) if path else jpegs


@pytest.fixture(scope="session")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Return a server of programs that find torch and torchvision imported."""
    with ForkServer(tmp_path_factory.mktemp("forked")) as server:
        yield server


@pytest.fixture(scope="session")
def kernel_folder(pytestconfig: pytest.Config) -> Path:
    """Return the folder of kernels compiled for the emulation, shared by all test processes and later runs."""
    from emulated_stages import kept_folder

    return kept_folder(pytestconfig.rootpath / "build" / "emulated")


@pytest.fixture(scope="session")
def gpu_in_use(pytestconfig: pytest.Config) -> bool:
    """Return whether there is a GPU. If so, open it, in torch too: its driver's threads and files are no leak."""
    from stoker.native import _native

    count = _native.gpu.count_cuda()
    if pytestconfig.pluginmanager.hasplugin("tests.gpu.watched"):  # This check ignores leaks.
        return count > 0
    for number in range(count):
        import torch

        from stoker.device.gpu import Gpu

        torch.ones(8, device=f"cuda:{number}").sum().item()
        Gpu.open(number)
    return count > 0


def _close_idle_gpus() -> None:
    """End the thread that closes released GPUs after some seconds."""
    native = sys.modules.get("stoker.native._native")
    if native is not None:
        native.gpu.close_idle()


def _threads() -> set[str]:
    return set(os.listdir("/proc/self/task"))


def _descriptors() -> set[tuple[str, str]]:
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.add((fd, os.readlink(f"/proc/self/fd/{fd}")))
        except OSError:  # the descriptor of this listing
            continue
    return {item for item in found if item[0] != _tracker()}


def _tracker() -> str | None:
    """Return the pipe to multiprocessing's helper process, which lives as long as this process."""
    module = sys.modules.get("multiprocessing.resource_tracker")
    return str(module._resource_tracker._fd) if module is not None else None


@pytest.fixture(autouse=True)
def no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that a test ends all its threads and closes all its files. ``@pytest.mark.leaks("why")`` exempts one."""
    if not os.path.isdir("/proc/self/task") or request.node.get_closest_marker("leaks"):
        yield
        return
    threads, descriptors = _threads(), _descriptors()
    yield
    clock = IdleClock()
    while left := [*sorted(_threads() - threads), *sorted(_descriptors() - descriptors)]:
        if clock.tick() > _SETTLE_S:
            pytest.fail(f"the test left threads or open files: {left}")
        gc.collect()  # Ending torch's workers may take seconds: check again.
        _close_idle_gpus()
        time.sleep(0.02)

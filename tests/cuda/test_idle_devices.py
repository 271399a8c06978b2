# SPDX-License-Identifier: Apache-2.0
"""Open devices between the pipelines of a process: reused whole, closed after some seconds, never after a failure."""

from __future__ import annotations

import pytest
from test_driver import run
from test_driver import with_driver as with_driver

BEGIN = """
import collections, ctypes, gc, os, sys, threading, time
import numpy as np
from stoker import DeviceError, ResourceError, fn, pipeline_def
from stoker.device.gpu import Gpu
from stoker.native import _native

gc.disable()  # a device is released with the last reference to its pipeline
driver = ctypes.CDLL("libcuda.so.1")
driver.fake_noted.restype = ctypes.c_char_p
Gpu.compiled = lambda self, source: b"a kernel"

def pipeline(number=1, **settings):
    @pipeline_def(batch_size=4, num_threads=1, device_id=0, **settings)
    def numbers():
        x = fn.external_source(source=lambda: [np.zeros((6, 7), np.uint8)] * 4)
        return fn.reductions.mean(x.gpu() + number, axes=0)
    return numbers()

def run(**settings):
    pipe = pipeline(**settings)
    pipe.build()
    for _ in range(2):
        out, = pipe.run()
    np.asarray(out.as_cpu()[0])
    pipe.close()

def calls_of(function):
    driver.fake_note(1)
    function()
    driver.fake_note(0)
    return collections.Counter(driver.fake_noted().decode().split())

def wait_until(condition):
    end = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)

def native_threads():
    return len(os.listdir("/proc/self/task"))
"""

# Calls that take or release something.
LASTING = {
    "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuMemAlloc_v2", "cuMemHostAlloc", "cuMemFree_v2",
    "cuMemFreeHost", "cuStreamCreateWithPriority", "cuStreamDestroy_v2", "cuEventCreate", "cuEventDestroy_v2",
    "cuModuleLoadData", "cuModuleUnload",
}  # fmt: skip

REUSED = """
first = calls_of(run)
for _ in range(3):  # how many batches are prefetched at the end differs
    run()
alive = driver.fake_alive()
second = calls_of(run)
assert driver.fake_alive() == alive
assert _native.gpu.close_idle() and driver.fake_alive() == 0
assert not _native.gpu.close_idle()
print(*sorted(first))
print(*sorted(second))
"""


def test_a_pipeline_takes_the_device_of_the_one_before(with_driver: dict[str, str]) -> None:
    """It opens, loads and allocates nothing, and needs no garbage collector for it."""
    first, second = (set(line.split()) for line in run(BEGIN + REUSED, with_driver).stdout.splitlines())
    taken = {name for name in LASTING if "Release" not in name and "Free" not in name and "Destroy" not in name}
    assert taken - {"cuModuleUnload"} <= first, "the first one does"
    assert not LASTING & second


CLOSED = """
_native.gpu.set_idle_seconds(0.3)
run()
assert driver.fake_alive() > 0
threads = native_threads()  # with that which closes it
began = time.monotonic()
wait_until(lambda: driver.fake_alive() == 0)
assert time.monotonic() - began > 0.1
wait_until(lambda: native_threads() < threads)  # the thread ends
run()  # and another one starts
assert driver.fake_alive() > 0
wait_until(lambda: driver.fake_alive() == 0)
_native.gpu.end_idle()
assert native_threads() <= threads
run()
print(driver.fake_alive())
"""


def test_an_idle_device_is_closed_after_some_seconds(with_driver: dict[str, str]) -> None:
    """So does the end of the process, whose devices are closed when they are released."""
    assert run(BEGIN + CLOSED, with_driver).stdout.split() == ["0"]


CONCURRENT = """
pipes = [pipeline() for _ in range(6)]
streams = set()
for pipe in pipes:
    pipe.build()
    pipe.run()
    streams.add(pipe.execution.gpu.device.order_stream)
assert len(streams) == 6, "pipelines that run together share no stream"
for pipe in pipes:
    pipe.close()
del pipe
destroyed = calls_of(pipes.clear)["cuStreamDestroy_v2"]
device = _native.gpu.open_cuda(0)
assert device.order_stream in streams
del device
_native.gpu.close_idle()
print(destroyed, driver.fake_alive())
"""


def test_concurrent_pipelines_have_devices_of_their_own(with_driver: dict[str, str]) -> None:
    """Four devices at most remain open."""
    destroyed, alive = map(int, run(BEGIN + CONCURRENT, with_driver).stdout.split())
    assert destroyed == 2 * 6
    assert alive == 0


MODULES = """
gpus = [Gpu.open(0), Gpu.open(0)]
loads = calls_of(lambda: [gpu.load("the same source") for gpu in gpus])
assert loads["cuModuleLoadData"] == 1
functions = [gpu.load("the same source").function("name", 100_000 + 8 * n) for n, gpu in enumerate(gpus)]
fewer = calls_of(lambda: gpus[0].load("the same source").function("name", 60_000))
assert "cuFuncSetAttribute" not in fewer, "a smaller maximum would refuse launches of other pipelines"
del gpus[0], functions[0]
gpu = gpus.pop()
for n in range(100):
    gpu.load(f"source {n}")
del functions
unloaded = calls_of(lambda: globals().pop("gpu"))["cuModuleUnload"]
gpu = Gpu.open(0)
assert "cuModuleLoadData" not in calls_of(lambda: gpu.load("source 99"))
assert "cuModuleLoadData" in calls_of(lambda: gpu.load("source 0"))
del gpu
_native.gpu.close_idle()
print(unloaded, driver.fake_alive())
"""


def test_kernels_are_loaded_once(with_driver: dict[str, str]) -> None:
    """An idle device keeps the 64 that were used last."""
    unloaded, alive = map(int, run(BEGIN + MODULES, with_driver).stdout.split())
    assert unloaded == 100 - 64, "the other idle device has the first kernel"
    assert alive == 0


FAILED = """
run()
for calls_before in range(60):  # the batch that is in flight then differs
    pipe = pipeline()
    pipe.build()
    pipe.run()
    driver.fake_break_after(calls_before % 6, 719)
    for _ in range(4):
        try:
            pipe.run()
        except DeviceError as error:
            assert "CUDA error 719" in str(error), error
    pipe.close()
    del pipe
    gc.collect()  # errors have references to their frames
    driver.fake_fail_after(1 << 30, 999)
    calls = calls_of(run)
    _native.gpu.close_idle()
    assert driver.fake_alive() == 0, (calls_before, driver.fake_alive())
print(calls["cuDevicePrimaryCtxRetain"], calls["cuModuleLoadData"] > 0, driver.fake_alive())
"""


def test_no_pipeline_gets_a_device_that_has_failed(with_driver: dict[str, str]) -> None:
    """The context ends with its last device, and the driver makes another one."""
    assert run(BEGIN + FAILED, with_driver).stdout.split() == ["1", "True", "0"]


RESET = """
run()
driver.fake_reset()  # every handle of the device is invalid, and it has one context
calls = calls_of(run)
assert not [name for name in calls if "Destroy" in name or "Unload" in name], calls
_native.gpu.close_idle()
print(calls["cuDevicePrimaryCtxRetain"], driver.fake_alive())
"""


def test_a_reset_of_the_device_ends_idle_ones(with_driver: dict[str, str]) -> None:
    assert run(BEGIN + RESET, with_driver).stdout.split() == ["1", "0"]


MEMORY = """
run()
device = _native.gpu.open_cuda(0)  # the idle one
other = _native.gpu.open_cuda(0)
del other
before = driver.fake_alive()
driver.fake_fail_after(0, 2)
array = _native.gpu.upload(device, np.zeros(1 << 20, np.uint8), 1)  # refused once, and again after memory was released
assert driver.fake_alive() < before
del array, device
driver.fake_fail_after(1 << 30, 999)
_native.gpu.close_idle()
print(driver.fake_alive())
"""


def test_a_request_that_finds_no_memory_gets_that_of_idle_devices(with_driver: dict[str, str]) -> None:
    assert run(BEGIN + MEMORY, with_driver).stdout.split() == ["0"]


FORKED = """
run()
child = os.fork()
if child == 0:
    alive, message = driver.fake_alive(), ""
    try:
        Gpu.open(0)
    except DeviceError as error:
        message = str(error)
    assert not _native.gpu.close_idle()
    _native.gpu.end_idle()
    os._exit(0 if "was forked from one that had used CUDA" in message and driver.fake_alive() == alive else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert "cuStreamCreateWithPriority" not in calls_of(run)
_native.gpu.close_idle()
print(driver.fake_alive())
"""


def test_a_forked_child_finds_no_device(with_driver: dict[str, str]) -> None:
    assert run(BEGIN + FORKED, with_driver).stdout.split() == ["0"]


@pytest.mark.parametrize("end", ["", "pipe = pipeline(); pipe.build(); pipe.run()", "sys.exit(0)", "os._exit(0)"])
def test_a_process_ends_with_an_idle_device(with_driver: dict[str, str], end: str) -> None:
    assert run(f"{BEGIN}\nrun()\n{end}\n", with_driver).stderr == ""


THREADS = """
_native.gpu.set_idle_seconds(0.002)
failures = []

def use(number):
    try:
        for n in range(25):
            run(number=number)
            if n % 5 == number:
                _native.gpu.close_idle()
            if n % 7 == 0:
                time.sleep(0.003)
    except BaseException as error:
        failures.append(error)

threads = [threading.Thread(target=use, args=(number,)) for number in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failures, failures
wait_until(lambda: driver.fake_alive() == 0)
print(driver.fake_in_flight())
"""


def test_threads_open_and_release_devices(with_driver: dict[str, str]) -> None:
    assert run(BEGIN + THREADS, with_driver).stdout.split() == ["0"]

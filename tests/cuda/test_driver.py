# SPDX-License-Identifier: Apache-2.0
"""Failures at any call of the driver leak nothing: streams, events, memory, or work on a lost batch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.idle_clock import HANG_S

OPEN = """
import ctypes, sys
from stoker.native import _native

driver = ctypes.CDLL("libcuda.so.1")
assert _native.gpu.count_cuda() == 1
failed = 0
while True:
    driver.fake_fail_after(failed, 999)
    try:
        device = _native.gpu.open_cuda(0, int(sys.argv[1]))
        break
    except _native.gpu.DeviceFailure as failure:
        assert "the injected failure (CUDA error 999)" in str(failure), failure
    assert driver.fake_alive() == 0, (failed, driver.fake_alive())
    failed += 1
assert driver.fake_alive() > 5
del device
_native.gpu.close_idle()
print(failed, driver.fake_alive())
"""

RUN = """
import ctypes, gc, sys
from stoker import DeviceError, ResourceError, fn, pipeline_def, types
from stoker.device.gpu import Gpu
from stoker.native import _native

driver = ctypes.CDLL("libcuda.so.1")
driver.fake_failed.restype = ctypes.c_char_p
Gpu.compiled = lambda self, source: b"a kernel"
folder, synchronous, with_status = sys.argv[1], sys.argv[2] == "here", int(sys.argv[3])

@pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=1, prefetch_queue_depth=1, gpu_decoder_load=1.0,
              exec_async=not synchronous, gpu_jpeg_index=1 << 20)
def chain():
    files, labels = fn.readers.file(file_root=folder)
    x = fn.decoders.image_random_crop(files, device="mixed")
    x = fn.resize(x, size=[16, 16])
    mean = fn.reductions.mean(x, axes=[0, 1])
    return fn.crop_mirror_normalize(x, mean=[1.0], std=[2.0], dtype=types.FLOAT16), mean, labels.gpu()

pipe = chain()
pipe.build()
calls, messages = set(), set()
for skipped in range(4):  # the first batches take memory
    pipe.run()
for n in range(400):
    driver.fake_fail_after(n % 80, with_status)
    try:
        pipe.run()
    except (ResourceError, DeviceError) as error:
        assert isinstance(error, ResourceError if with_status == 2 else DeviceError), error
        messages.add(str(error))
        calls.add(driver.fake_failed().decode())
        assert driver.fake_in_flight() == 0, (n, driver.fake_in_flight(), driver.fake_failed(), str(error))
driver.fake_fail_after(1 << 30, 999)
for _ in range(3):
    pipe.run()
pipe.close()
del pipe
gc.collect()
_native.gpu.close_idle()
print(driver.fake_alive(), *sorted(calls))
print("\\n".join(sorted(messages)), file=sys.stderr)
"""


BROKEN = """
import ctypes, gc, sys
from stoker import DeviceError, fn, pipeline_def
from stoker.device.gpu import Gpu
from stoker.native import _native

driver = ctypes.CDLL("libcuda.so.1")
driver.fake_failed.restype = ctypes.c_char_p
Gpu.compiled = lambda self, source: b"a kernel"
calls = set()
for n in range(0, 80, 2):
    @pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=1, prefetch_queue_depth=1, gpu_decoder_load=1.0,
                  exec_async=sys.argv[2] == "threads")
    def chain():
        files, labels = fn.readers.file(file_root=sys.argv[1])
        return fn.decoders.image(files, device="mixed"), labels.gpu()

    pipe = chain()
    pipe.build()
    driver.fake_break_after(n, 719)
    for _ in range(4):
        try:
            pipe.run()
        except DeviceError as error:
            assert "the injected failure (CUDA error 719)" in str(error), error
            calls.add(driver.fake_failed().decode())
    pipe.close()
    del pipe
    gc.collect()
    driver.fake_fail_after(1 << 30, 999)
_native.gpu.close_idle()
print(driver.fake_alive(), *sorted(calls))
"""

PLANES = """
import ctypes, sys
from stoker import fn, pipeline_def
from stoker.device.gpu import Gpu

driver = ctypes.CDLL("libcuda.so.1")
Gpu.compiled = lambda self, source: b"a kernel"

@pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=1, gpu_decoder_load=1.0)
def chain():
    files, labels = fn.readers.file(file_root=sys.argv[1])
    x = fn.decoders.image(files, device="mixed")
    return fn.resize(x, size=[32, 32])

pipe = chain()
pipe.build()
for _ in range(4):
    pipe.run()
pipe.close()
print("done")
"""

CALLS = """
import collections, ctypes, sys
import numpy as np
from stoker import fn, pipeline_def, types
from stoker.device.gpu import Gpu

driver = ctypes.CDLL("libcuda.so.1")
driver.fake_noted.restype = ctypes.c_char_p
Gpu.compiled = lambda self, source: b"a kernel"
WARM, BATCHES, ROWS = 8, 16, 4

class GpuArray:
    __cuda_array_interface__ = {"shape": (ROWS, 40, 56, 3), "typestr": "|u1", "data": (4096, False), "version": 3}
    ndim = 4

@pipeline_def(batch_size=ROWS, device_id=0, seed=1, prefetch_queue_depth=1, gpu_decoder_load=1.0)
def decoded():
    files, labels = fn.readers.file(file_root=sys.argv[1], random_shuffle=True)
    x = fn.decoders.image_random_crop(files, device="mixed")
    return fn.crop_mirror_normalize(fn.resize(x, size=[16, 16]), mean=[1.0], std=[2.0], dtype=types.FLOAT16), labels

@pipeline_def(batch_size=ROWS, device_id=0, seed=1, prefetch_queue_depth=1)
def gpu_arrays():
    some = [GpuArray()] * (WARM + BATCHES + 4)
    x = fn.external_source(source=some, device="gpu", no_copy=True, layout="HWC", cycle="no")
    x = fn.rotate(fn.random_resized_crop(x, size=(16, 16)), angle=10.0, keep_size=True, fill_value=0)
    return fn.crop_mirror_normalize(x, mean=[1.0], std=[2.0], dtype=types.FLOAT16)

pipe = {"decoded": decoded, "gpu arrays": gpu_arrays}[sys.argv[2]](num_threads=int(sys.argv[3]))
pipe.build()
for _ in range(WARM):  # the first batches take memory
    pipe.run()
driver.fake_note(1)
for _ in range(BATCHES):
    pipe.run()
driver.fake_note(0)
calls = collections.Counter(driver.fake_noted().decode().split())
while pipe.next("stop") is not None:
    pass
print(driver.fake_in_flight(), *(f"{name}={round(count / BATCHES)}" for name, count in sorted(calls.items())))
pipe.close()
"""

FORKED = """
import ctypes, gc, os, sys
from stoker import fn, pipeline_def
from stoker.device.gpu import Gpu
from stoker.native import _native

driver = ctypes.CDLL("libcuda.so.1")
driver.fake_noted.restype = ctypes.c_char_p
Gpu.compiled = lambda self, source: b"a kernel"
gc.disable()

@pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=1, gpu_decoder_load=1.0, exec_async=False,
              gpu_jpeg_index=1 << 20)
def chain():
    files, labels = fn.readers.file(file_root=sys.argv[1])
    return fn.decoders.image(files, device="mixed"), labels.gpu()

pipe = chain()
pipe.build()
last = pipe.run()
alive = driver.fake_alive()
driver.fake_note(1)
child = os.fork()
if child == 0:
    message = ""
    del pipe, last
    gc.collect()
    try:
        _native.gpu.open_cuda(0)
    except _native.gpu.DeviceFailure as failure:
        message = str(failure)
    is_unchanged = driver.fake_alive() == alive and driver.fake_noted() == b""
    os._exit(0 if is_unchanged and "was forked from one that had used CUDA" in message else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
pipe.run()
pipe.close()
del pipe, last
gc.collect()
_native.gpu.close_idle()
print(driver.fake_alive())
"""


WAITING = """
import ctypes, sys, threading, time
from stoker import fn, pipeline_def, types
from stoker.device.gpu import Gpu

driver = ctypes.CDLL("libcuda.so.1")
Gpu.compiled = lambda self, source: b"a kernel"
ROWS, BATCHES = 4, 3

class GpuArray:
    __cuda_array_interface__ = {"shape": (ROWS, 40, 56, 3), "typestr": "|u1", "data": (4096, False), "version": 3}
    ndim = 4

@pipeline_def(batch_size=ROWS, num_threads=2, device_id=0, seed=1, prefetch_queue_depth=1,
              exec_async=sys.argv[1] == "threads")
def gpu_arrays():
    x = fn.external_source(source=[GpuArray()] * 20, device="gpu", no_copy=True, layout="HWC", cycle="no")
    return fn.crop_mirror_normalize(fn.resize(x, size=[16, 16]), mean=[1.0], std=[2.0], dtype=types.FLOAT16)

over = False

def signal():
    while not over:
        driver.fake_signal()
        time.sleep(0.0005)

signalling = threading.Thread(target=signal)
signalling.start()
pipe = gpu_arrays()
pipe.build()
driver.fake_pause(1)
batches = [pipe.run() for _ in range(BATCHES)]
driver.fake_pause(0)
over = True
signalling.join()
pipe.close()
print(driver.fake_paused(), driver.fake_stuck())
"""


RECOVERED = """
import ctypes, sys
import numpy as np
from stoker import DeviceError, Operator, Spec, fn, pipeline_def, register
from stoker.contract.types import DType
from stoker.device.gpu import Gpu

driver = ctypes.CDLL("libcuda.so.1")
Gpu.compiled = lambda self, source: b"a kernel"

class Count(Operator, name="test_count"):
    "The number of rows so far."

    stateful = True

    def infer(self, c, x):
        return Spec(DType.UINT8, (4, 2))

    def init(self):
        return {"rows": 0}

    def reference(self, row, x):
        row.state["rows"] += 1
        return np.full((4, 2), row.state["rows"], np.uint8)

register(Count)

@pipeline_def(batch_size=2, num_threads=2, device_id=0, seed=1, prefetch_queue_depth=1,
              exec_async=sys.argv[1] == "threads")
def chain():
    x = fn.external_source(source=lambda info: np.zeros((4, 2), np.uint8), batch=False)
    return fn.cast(fn.test_count(x).gpu() * 2, dtype=np.int16)

pipe = chain()
pipe.build()
pipe.run()
failures = 0
driver.fake_break_after(0, 719)
for _ in range(4):
    try:
        pipe.run()
    except DeviceError as error:
        assert "the injected failure (CUDA error 719)" in str(error), error
        failures += 1
driver.fake_fail_after(1 << 30, 999)
delivered = 0
for _ in range(6):
    try:
        pipe.run()
        delivered += 1
    except DeviceError:
        failures += 1  # a batch in flight
pipe.close()
print(failures, delivered)
"""


EXCHANGE = """
import contextlib, ctypes, gc, sys
from types import SimpleNamespace
from stoker import DeviceError, ResourceError, fn, pipeline_def
from stoker.device.gpu import Gpu
from stoker.frontends.dali import array_functions
from stoker.native import _native
from stoker.ops.generic import jax_gpu_function

driver = ctypes.CDLL("libcuda.so.1")
driver.fake_failed.restype = driver.fake_noted.restype = ctypes.c_char_p
Gpu.compiled = lambda self, source: b"a kernel"
own = ctypes.c_void_p()  # the stream of the library
assert driver.cuStreamCreateWithPriority(ctypes.byref(own), 1, 0) == 0

class Array:  # in JAX's place
    def __init__(self, inner):
        self.inner, self.shape, self.capsule = inner, inner._array.shape, inner.__dlpack__(stream=own.value)
    def devices(self):
        return {"gpu"}
    def astype(self, dtype):
        return self
    def __dlpack__(self, stream):
        assert stream not in (None, own.value)
        return self.inner._array.__dlpack__(stream=stream)

jax = SimpleNamespace(
    numpy=SimpleNamespace(asarray=lambda x: x), dlpack=SimpleNamespace(from_dlpack=Array),
    default_device=contextlib.nullcontext, device_put=lambda x, device: x,
)
jax_gpu_function.jax_module = lambda: jax
array_functions._require = lambda *_: None
function = array_functions.jax_function(lambda x: x, device="gpu")

@pipeline_def(batch_size=4, num_threads=2, device_id=0, prefetch_queue_depth=1)
def chain():
    x = fn.external_source(source=lambda: [b"0123456789abcdef"] * 4).gpu()
    return function(x + 1) * 2

pipe = chain()
pipe.build()
for _ in range(4):
    pipe.run()
driver.fake_note(1)
for _ in range(3):  # a prefetched batch may be issued before the first run or after the last one
    pipe.run()
driver.fake_note(0)
print(driver.fake_noted().decode().count("cuMemcpyDtoDAsync"))
calls = set()
for n in range(240):
    driver.fake_fail_after(n % 60, int(sys.argv[1]))
    try:
        pipe.run()
    except (ResourceError, DeviceError):
        calls.add(driver.fake_failed().decode())
driver.fake_fail_after(1 << 30, 999)
for _ in range(3):
    pipe.run()
pipe.close()
del pipe, function
gc.collect()
_native.gpu.close_idle()
print(driver.fake_alive(), *sorted(calls))
"""


@pytest.fixture(scope="module")
def with_driver(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a process whose CUDA driver is `fake_driver.cpp`."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    source = Path(__file__).with_name("fake_driver.cpp")
    library = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    options = ["-std=c++20", "-shared", "-fPIC", "-O0", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([compiler, *options, str(source), "-o", str(library)], check=True, timeout=HANG_S)
    return {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}


def run(program: str, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True, check=False,
        timeout=HANG_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("multiprocessors", ["0", "20"])
def test_a_device_that_cannot_be_opened_leaves_nothing(with_driver: dict[str, str], multiprocessors: str) -> None:
    failed, alive = map(int, run(OPEN, with_driver, multiprocessors).stdout.split())
    assert failed >= 8, "every call failed once"
    assert alive == 0


def photographs(folder: Path, count: int, height: int = 40, width: int = 56, **options: bool) -> None:
    rng = np.random.default_rng(count)
    folder.mkdir()
    for i in range(count):
        Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(folder / f"{i}.jpg", **options)


# Each takes some microseconds of one thread, for every batch.
COPIES = {"cuMemcpyHtoDAsync_v2": 2, "cuMemcpyDtoHAsync_v2": 1, "cuStreamWaitEvent": 1}
ORDER = {"cuEventRecord": 2, "cuStreamWaitEvent": 1}  # one event for the end of a batch, one for the order of batches
EXPECTED = {
    "decoded": {**COPIES, "cuEventRecord": 2, "cuEventSynchronize": 1},
    "gpu arrays": {**ORDER, "cuMemcpyHtoDAsync_v2": 1, "cuEventSynchronize": 1},
}


@pytest.mark.parametrize("threads", [2, 6], ids=["files in small blocks", "files in one block"])
@pytest.mark.parametrize("chain", EXPECTED)
def test_the_calls_of_a_batch(with_driver: dict[str, str], tmp_path: Path, chain: str, threads: int) -> None:
    """A batch needs at most these calls. When a batch is delivered, all of its copies are complete."""
    photographs(tmp_path / "a", 40)
    in_flight, *counted = run(CALLS, with_driver, str(tmp_path), chain, str(threads)).stdout.split()
    calls = {name: int(count) for name, count in (t.split("=") for t in counted)}
    launches = calls.pop("cuLaunchKernel")
    assert 3 <= launches <= 10, launches
    assert calls.pop("cuEventQuery") >= 1  # as often as there is time for until the batch is complete
    assert {name: count for name, count in calls.items() if count} == EXPECTED[chain]
    assert in_flight == "0"


@pytest.mark.parametrize("status", ["999", "2"], ids=["failure", "no memory"])
@pytest.mark.parametrize("where", ["threads", "here"])
def test_a_partially_issued_batch_is_awaited(
    with_driver: dict[str, str], tmp_path: Path, where: str, status: str
) -> None:
    """Other batches get the memory of the batch as soon as its error has been raised."""
    photographs(tmp_path / "a", 9)
    done = run(RUN, with_driver, str(tmp_path), where, status)
    alive, *calls = done.stdout.split()
    assert alive == "0"
    assert "cuLaunchKernel" in calls
    if where == "here":  # elsewhere the order of prefetching is random
        assert {"cuMemcpyHtoDAsync_v2", "cuStreamWaitEvent", "cuEventRecord"} <= set(calls), calls
    expected = "there is not enough memory" if status == "2" else "the injected failure (CUDA error 999)"
    for line in done.stderr.splitlines():
        assert expected in line
        assert "— a batch of 4, made at <string>:" in line
        assert "— sample" not in line


@pytest.mark.parametrize("where", ["threads", "here"])
def test_a_device_that_fails_permanently_is_an_error_each_time(
    with_driver: dict[str, str], tmp_path: Path, where: str
) -> None:
    """The error repeats whatever a batch was about to do, including new allocations for the next one."""
    # Coefficients of several scans: more than the first block of pinned memory holds.
    photographs(tmp_path / "a", 5, 640, 720, progressive=True)
    alive, *calls = run(BROKEN, with_driver, str(tmp_path), where).stdout.split()
    assert alive == "0"
    assert {"cuMemAlloc_v2", "cuMemHostAlloc"} <= set(calls), calls


def test_a_batch_of_progressive_files_in_planes_needs_no_memory(with_driver: dict[str, str], tmp_path: Path) -> None:
    """Their coefficients come from the host, and a stage reads the samples before they are pixels."""
    photographs(tmp_path / "a", 5, 640, 720, progressive=True)
    assert run(PLANES, with_driver, str(tmp_path)).stdout.split() == ["done"]


@pytest.mark.parametrize("where", ["threads", "here"])
def test_batches_continue_after_some_could_not_start(with_driver: dict[str, str], where: str) -> None:
    """A batch that the device does not take fails as a whole. It takes no turn at stateful operators."""
    failures, delivered = map(int, run(RECOVERED, with_driver, where).stdout.split())
    assert failures >= 3  # the batch that was prefetched may be complete by then
    assert delivered >= 4


@pytest.mark.parametrize("where", ["threads", "here"])
def test_other_python_threads_run_while_the_driver_works(with_driver: dict[str, str], where: str) -> None:
    """A driver call may take as long as the device does, or wait for a lock whose owner waits for the GIL."""
    paused, stuck = map(int, run(WAITING, with_driver, where).stdout.split())
    assert paused > 10
    assert stuck == 0


def test_a_forked_child_leaves_the_driver_alone(with_driver: dict[str, str], tmp_path: Path) -> None:
    """The garbage collector of a child finds the parent's objects, and the driver does not work in a child."""
    photographs(tmp_path / "a", 9)
    assert run(FORKED, with_driver, str(tmp_path)).stdout.split() == ["0"]


@pytest.mark.parametrize("status", ["999", "2"], ids=["failure", "no memory"])
def test_an_exchange_with_a_librarys_stream_leaks_nothing(with_driver: dict[str, str], status: str) -> None:
    """`jax_function` on a GPU: a batch of 4 rows is copied to an array and back; failures of any call are errors."""
    copies, last = run(EXCHANGE, with_driver, status).stdout.splitlines()
    alive, *calls = last.split()
    assert int(copies) >= 8
    assert alive == "1", "the stream of the library alone"
    assert "cuMemcpyDtoDAsync_v2" in calls and "cuStreamWaitEvent" in calls

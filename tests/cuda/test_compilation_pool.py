# SPDX-License-Identifier: Apache-2.0
"""Parallel compilation of kernels: the wait of a plan, a failing compilation, a process that ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import emulated_stages
import numpy as np
import pytest
from idle_clock import HANG_S

from stoker import fn, pipeline_def
from stoker.codecs.jpeg.codec import sources_for
from stoker.contract.types import DType
from stoker.device import compile as compiling
from stoker.device.compilation_pool import CompilationPool
from stoker.device.gpu import Gpu


def test_sources_compile_in_parallel_and_once_each():
    meeting, lock, running, most, sources_compiled = threading.Barrier(3), threading.Lock(), 0, 0, []

    def compiled(source):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            sources_compiled.append(source)
        meeting.wait(HANG_S)  # every thread ends
        with lock:
            running -= 1
        return source.encode()

    pool = CompilationPool(3)
    names = [str(n) for n in range(9)]
    for name in (*names, *names):
        pool.begin(name, compiled)
    assert [pool.result(name, compiled) for name in names] == [name.encode() for name in names]
    assert most == 3 and sorted(sources_compiled) == names


def test_a_failing_source_does_not_affect_others():
    def compiled(source):
        if source == "bad":
            raise RuntimeError("NVRTC refused a kernel")
        return b"code"

    pool = CompilationPool(2)
    for name in ("bad", "good"):
        pool.begin(name, compiled)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="NVRTC refused"):
            pool.result("bad", compiled)
    assert pool.result("good", compiled) == b"code"


def test_compilations_without_a_waiter_do_not_delay_the_exit():
    program = (
        "import threading, time\nfrom stoker.device.compilation_pool import CompilationPool\n"
        "started = threading.Event()\n"
        "def compiled(source):\n    print(source, flush=True)\n    started.set()\n    time.sleep(0.2)\n    return b''\n"
        "pool = CompilationPool(1)\nfor n in range(50): pool.begin(str(n), compiled)\nstarted.wait()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_S)
    assert ended.returncode == 0 and not ended.stderr
    assert 1 <= len(ended.stdout.split()) < 50


def test_the_interpreter_runs_while_the_compiler_works():
    """Without this, compiling in threads would be useless."""
    pool, compiled = CompilationPool(2), lambda source: compiling._compile(source, 90, None)
    sources = list(dict.fromkeys(text for _, text in sources_for(DType.UINT8)))
    for source in sources:
        pool.begin(source, compiled)
    turns = 0
    while any(not pool._begun[source].done() for source in sources):
        time.sleep(0.001)
        turns += 1
    assert turns > 20  # one to three if it held the GIL
    assert all(pool.result(source, compiled).startswith(b"\x7fELF") for source in sources)


@pipeline_def(batch_size=2, num_threads=1)
def two_stages():
    x = fn.external_source(source=lambda info: np.full((9, 8, 3), info.idx_in_epoch, np.uint8), batch=False)
    x = fn.resize(x, resize_x=5, resize_y=4, device="gpu")
    return fn.cast(x + 1, dtype=np.int16), fn.rotate(x, angle=10.0)


class Meeting(emulated_stages.EmulatedGpu):
    """Compiler that compiles nothing before this many sources have started."""

    def __init__(self, folder, sources):
        super().__init__(folder)
        self.complete = threading.Barrier(sources)
        self.started_sources: list[str] = []

    def compiled(self, source):
        self.started_sources.append(source)
        self.complete.wait(HANG_S)
        return super().compiled(source)


def test_a_plan_starts_all_compilations_before_it_waits(folder, monkeypatch):
    monkeypatch.setenv("STOKER_NUM_THREADS", "16")
    sources = 1
    for _ in range(2):  # the number of sources; then all of them together
        gpu = Meeting(folder, sources)
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, memory_limit=None, gpu=gpu: gpu))
        with two_stages(device_id=0) as pipe:
            first, _ = pipe.run()
            assert (first.as_cpu()[1] == 2).all()
        sources = len(gpu.started_sources)
    assert sources == gpu.complete.parties >= 5  # two stages or more, weights, the intermediate image, warps
    assert not [t for t in threading.enumerate() if t.name == "stoker-nvrtc"]


def test_a_kernel_that_does_not_compile_fails_the_build(folder, monkeypatch):
    class Refusing(emulated_stages.EmulatedGpu):
        def compiled(self, source):
            if "STOKER_STAGE" in source:
                raise RuntimeError("NVRTC refused a kernel for sm_90: why")
            return super().compiled(source)

    monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, memory_limit=None: Refusing(folder)))
    with two_stages(device_id=0) as pipe, pytest.raises(RuntimeError, match="NVRTC refused a kernel for sm_90: why"):
        pipe.run()

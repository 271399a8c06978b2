# SPDX-License-Identifier: Apache-2.0
"""Walk over all operators with hostile values: ``python -m tests.hostile.walk --seconds 3600 --jobs 4``.

Every call must give a result or raise a StokerError. Calls run in a process of their own, so that a crash, an endless
loop or a hunger for memory is seen, and is reported with the operator, the argument and the value. Several jobs walk
with consecutive seeds. On an extension with sanitizers, their findings are crashes of the process.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import os
import random
import re
import resource
import select
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stoker.native import _native
from stoker.ops.audio._wav import write_wav
from tests.clips import write_video
from tests.hostile.cases import Case, draw, targets
from tests.idle_clock import HANG_S

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))  # the walk runs as a module, without the paths of the tests
import containers  # noqa: E402

_SLOWDOWN = 4 if _native.sanitized else 1
_CPU_S = 40.0 * _SLOWDOWN  # of processor time for a call that returns: 2**31 random numbers take half
_SANITIZER_REPORT = re.compile("^.*(runtime error|ERROR: AddressSanitizer): .*$", re.MULTILINE)
_LARGEST_REQUEST = 256 << 20  # bytes that one allocation may have wanted when it failed
LOST = "SystemError of a process that has reached its limit of memory: the interpreter lost an exception"
_SHOWN_PER_KIND = 3  # faults of one kind that are printed
# Sanitizers reserve terabytes of address space, so they limit each allocation instead. One that they refuse fails as
# on a machine without memory: 2**31 elements do, because that many random numbers take minutes under sanitizers.
_SANITIZER_OPTIONS = "detect_leaks=0:alloc_dealloc_mismatch=0:allocator_may_return_null=1:max_allocation_size_mb=1536"


def write_images(folder: Path) -> Path:
    """Write six small JPEG files into a folder alone in ``folder``. Return it."""
    from PIL import Image

    files = folder / "data" / "class"
    files.mkdir(parents=True)
    drawn = np.random.default_rng(0)
    for i in range(6):
        pixels = drawn.integers(0, 256, (9 + i, 13 - i, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((40 + i, 30)).save(files / f"{i}.jpg")
    return files


def write_files(folder: Path) -> Path:
    """Write the files of `write_images`, and a list of them. Return their folder.

    Containers with the same files, and an array, are in ``folder``.
    """
    files = write_images(folder)
    drawn = np.random.default_rng(1)
    contents = [path.read_bytes() for path in sorted(files.glob("*.jpg"))]
    records = [containers.example({"image": c, "label": [i]}) for i, c in enumerate(contents)]
    (folder / "a.tfrecord").write_bytes(containers.tfrecord(records))
    images = [containers.image_record(float(i), c) for i, c in enumerate(contents)]
    (folder / "a.rec").write_bytes(containers.recordio(images)[0])
    (folder / "a.tar").write_bytes(containers.tar((f"{i}.jpg", c) for i, c in enumerate(contents)))
    (folder / "a.zip").write_bytes(containers.stored_zip((f"class/{i}.jpg", c) for i, c in enumerate(contents)))
    (folder / "a.bag").write_bytes(containers.bagz(contents))
    containers.tables(folder, "a", contents, [i % 2 for i in range(len(contents))], ["even", "odd"])
    (folder / "lmdb").mkdir()
    data = {b"%d" % i: containers.datum(data=c, label=i) for i, c in enumerate(contents)}
    (folder / "lmdb" / "data.mdb").write_bytes(containers.lmdb(data))
    (folder / "caffe2").mkdir()
    data = {
        b"%d" % i: containers.tensors(containers.tensor(c, 4), containers.tensor([i], 2))
        for i, c in enumerate(contents)
    }
    (folder / "caffe2" / "data.mdb").write_bytes(containers.lmdb(data))
    samples = [{"image": c, "label": i.to_bytes(8, "little")} for i, c in enumerate(contents)]
    containers.mds(folder / "mds", samples, {"image": ("jpeg", None), "label": ("int", 8)}, per_shard=4)
    annotations = containers.coco_annotations(files, sorted(files.glob("*.jpg")), ["class"])
    (folder / "a.json").write_text(json.dumps(annotations))
    np.save(folder / "a.npy", drawn.integers(0, 256, (4, 6), dtype=np.uint8))
    (folder / "a.wav").write_bytes(bytes(write_wav(drawn.integers(-999, 999, (50, 2)).astype(np.int16), 8000)))
    (folder / "speech.json").write_text(json.dumps({"audio_filepath": "a.wav", "duration": 0.002, "text": "a"}))
    write_video(folder / "a.mp4", "mpeg4", frames=9, size=(16, 32))
    (folder / "list.txt").write_text("".join(f"class/{i}.jpg {i}\n" for i in range(6)))
    return files


@dataclass(frozen=True)
class Fault:
    """A call that did not end as it must."""

    number: int
    call: str
    kind: str  # equal for faults of one cause
    text: str

    def __str__(self) -> str:
        begin = max(0, len(self.text) - 1500)
        if report := _SANITIZER_REPORT.search(self.text):
            begin = min(begin, report.start())
        return f"[{self.number}] {self.call}\n    {self.kind}\n    {self.text[begin : begin + 3000]}"


# ---- the process that calls ----


def _judge(case: Case) -> tuple[str, str] | None:
    """Make a call. Return the kind of its fault and a text; None if it ended as it must."""
    from stoker import StokerError

    begin = time.process_time()
    try:
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            case.call()
    except StokerError as error:
        if len(str(error)) < 20:
            return f"text of {type(error).__name__}", repr(str(error))
        if "\x1b" in str(error):
            return "text with an escape character", repr(str(error))
    except (KeyboardInterrupt, GeneratorExit, SystemExit):
        raise
    except BaseException as error:
        if is_lost_for_want_of_memory(error):
            return LOST, "".join(traceback.format_exception(error, limit=-8))
        if any(note.startswith("in the source of ") for note in getattr(error, "__notes__", ())):
            return None  # a drawn function was called as the caller's source, and its error is the caller's
        return _kind(error), "".join(traceback.format_exception(error, limit=-8))
    # Stoker's own warnings name a line of the caller.
    inside = [w for w in issued if "stoker" in Path(w.filename).parts[-5:]]
    if inside:
        return f"{inside[0].category.__name__} at {inside[0].filename}:{inside[0].lineno}", str(inside[0].message)
    used = time.process_time() - begin
    return ("processor time", f"{used:.0f} s") if used > _CPU_S else None


def is_lost_for_want_of_memory(error: BaseException) -> bool:
    """Return whether the interpreter itself lost an exception, in a process that has reached its limit of memory.

    CPython 3.11 needs memory for every frame that an exception leaves. Without any, it may clear the exception
    (`take_ownership` in Python/frame.c) and raise this error in the caller.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if type(error) is not SystemError or "without exception set" not in str(error) or limit == resource.RLIM_INFINITY:
        return False
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmPeak:"))
    return peak > limit - _LARGEST_REQUEST


def _crash(code: int, text: str) -> str:
    """Return the kind of a crash: the exit code, and the first line of a sanitizer's report without addresses."""
    report = _SANITIZER_REPORT.search(text)
    reason = ": " + re.sub("0x[0-9a-f]+|==[0-9]+==", "", report[0]).strip() if report else ""
    return f"crash: the process ended with {code}{reason}"


def _kind(error: BaseException) -> str:
    """Return the error's type and the line of the library that it passed last."""
    where = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if "stoker" in Path(frame.filename).parts:
            where = f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno} {frame.name}"
    return f"{type(error).__name__} at {where}"


def _serve(folder: Path, options: argparse.Namespace) -> None:
    """Make one call after the other, and write the beginning and end of each to stdout."""
    out = os.dup(1)
    os.dup2(2, 1)  # calls may print
    faulthandler.enable()
    module, _, function = options.targets.partition(":")
    found = getattr(importlib.import_module(module), function)(folder)
    os.chdir(tempfile.mkdtemp(dir=folder))  # `dump_image` writes into the current folder
    if options.memory_gib:
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + int(options.memory_gib * 2**30),) * 2)
    for number in range(options.first, options.last):
        try:
            case = draw(found, options.seed, number)
            _say(out, {"begin": number, "call": case.text})
            fault = _judge(case)
        except BaseException as error:  # the walk's own fault, which it reports like others
            fault = (f"the walk itself: {type(error).__name__}", traceback.format_exc())
        _say(out, {"end": number, "fault": fault})


def _say(out: int, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(out, data) :]


# ---- the process that watches ----


@dataclass
class Limits:
    """Limits of a call.

    Attributes:
        cpu_s: processor time of a call that does not return.
        hang_s: wall time in which a call uses no processor time; only a deadlock takes as long.
        memory_gib: address space in addition to the libraries'; 0: no limit, as for sanitizers.
    """

    cpu_s: float = 60.0 * _SLOWDOWN
    hang_s: float = HANG_S
    memory_gib: float = 0.0 if _native.sanitized else 3.0


class Walk:
    """Walk over the cases from ``first`` to ``last``, in child processes.

    Args:
        seed, first, last: the cases.
        folder: folder of JPEG files, alone in its parent.
        source: function that returns the targets, as "module:function".
    """

    def __init__(
        self, seed: int, first: int, last: int, folder: Path, limits: Limits | None = None,
        source: str = "tests.hostile.cases:targets",
    ) -> None:  # fmt: skip
        self.seed, self.next, self.last, self.folder = seed, first, last, folder
        self.limits = limits or Limits()
        self.source = source
        self.calls = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def stop(self) -> None:
        """End ``faults``, which another thread iterates over."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    def faults(self, seconds: float | None = None) -> Iterator[Fault]:
        """Yield the faults, until all cases are tried or the time is over."""
        until = None if seconds is None else time.monotonic() + seconds
        while self.next < self.last and not self._stopped and (until is None or time.monotonic() < until):
            yield from self._child(until)

    def _child(self, until: float | None) -> Iterator[Fault]:
        """Run one child process until it ends, and yield its faults."""
        options = [
            "--serve", str(self.folder), "--targets", self.source, "--seed", str(self.seed), "--first", str(self.next),
            "--last", str(self.last), "--memory-gib", str(self.limits.memory_gib),
        ]  # fmt: skip
        with tempfile.TemporaryFile() as errors, subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.walk", *options], stdout=subprocess.PIPE, stderr=errors,
            cwd=ROOT, env=_environment(), stdin=subprocess.DEVNULL, start_new_session=True,  # Ctrl-C is for the walk
        ) as child:  # fmt: skip
            assert child.stdout is not None
            self._process = child
            running, call, why, buffer = None, "", "", b""
            try:
                while True:
                    data, why = self._read(child, until)
                    if not data:
                        break
                    *lines, buffer = (buffer + data).split(b"\n")
                    for message in map(json.loads, lines):
                        running = message if "begin" in message else None
                        if "end" in message:
                            self.next = message["end"] + 1
                            self.calls += 1
                            if message["fault"]:
                                yield Fault(message["end"], call, *message["fault"])
                        else:
                            call = message["call"]
            finally:
                child.kill()
            code = child.wait(HANG_S)
            if why == "time" or self._stopped or (self.next >= self.last and not running):
                return
            errors.seek(0)
            text = errors.read().decode(errors="replace")
            if running is None:
                raise RuntimeError(f"the process ended between calls, with {code}: {text[-3000:]}")
            self.next = running["begin"] + 1
            self.calls += 1
            yield Fault(running["begin"], running["call"], why or _crash(code, text), text)

    def _read(self, child: subprocess.Popen[bytes], until: float | None) -> tuple[bytes, str]:
        """Return bytes that the child wrote; none at its end, or with the reason to end it."""
        assert child.stdout is not None
        begin = _cpu_seconds(child.pid)
        used, progress = begin, time.monotonic()
        while not select.select([child.stdout], [], [], 1.0)[0]:
            if until is not None and time.monotonic() > until + 60:
                return b"", "time"
            now = _cpu_seconds(child.pid)
            if now - begin > self.limits.cpu_s:
                return b"", f"endless: more than {self.limits.cpu_s:.0f} s of processor time"
            if now > used:  # it runs, if slowly on a busy machine
                used, progress = now, time.monotonic()
            if time.monotonic() - progress > self.limits.hang_s:
                return b"", f"hang: {self.limits.hang_s:.0f} s without processor time"
        if until is not None and time.monotonic() > until:
            return b"", "time"
        return os.read(child.stdout.fileno(), 1 << 16), ""


def _environment() -> dict[str, str]:
    """Return the environment of a process that calls."""
    own = {"OMP_NUM_THREADS": "1"}
    if _native.sanitized:
        own["ASAN_OPTIONS"] = f"{os.environ.get('ASAN_OPTIONS', '')}:{_SANITIZER_OPTIONS}".lstrip(":")
    return {**os.environ, **own}


class Findings:
    """Faults of several walks, counted by kind. Prints the first ones of each kind."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self._lock = threading.Lock()

    def collect(self, walk: Walk, seconds: float | None) -> None:
        """Walk to the end or until the time is over. May run in several threads."""
        try:
            for fault in walk.faults(seconds):
                self._add(fault.kind, f"seed {walk.seed} {fault}")
        except RuntimeError as error:  # the process that calls cannot start, or ends between calls
            self._add("the walk ended early", f"seed {walk.seed}: {error}")

    def _add(self, kind: str, text: str) -> None:
        with self._lock:
            self.kinds[kind] += 1
            if self.kinds[kind] <= _SHOWN_PER_KIND:
                print(text, flush=True)


def _cpu_seconds(process: int) -> float:
    """Return the processor time of a process in user space."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Run the command line. Return 1 if there was a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, help="time; by default until the last case")
    parser.add_argument("--seed", type=int, default=None, help="seed of the cases; drawn if not given")
    parser.add_argument("--jobs", type=int, default=1, help="walks at the same time, with consecutive seeds")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--last", type=int, default=1 << 62, help="number after the last case")
    parser.add_argument("--only", type=int, help="make one call again, in this process, with its traceback")
    parser.add_argument("--memory-gib", type=float, default=Limits.memory_gib, help="address space; 0: no limit")
    parser.add_argument("--targets", default="tests.hostile.cases:targets", help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        _serve(options.serve, options)
        return 0
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder))
        if options.only is not None:
            case = draw(targets(files), seed, options.only)
            print(case.text, flush=True)
            case.call()
            return 0
        limits = Limits(memory_gib=options.memory_gib)
        seeds = range(seed, seed + options.jobs)
        walks = [Walk(s, options.first, options.last, files, limits, options.targets) for s in seeds]
        return _walk_all(walks, options.seconds)


def _walk_all(walks: list[Walk], seconds: float | None) -> int:
    """Run walks at the same time and print their faults and a summary. Return 1 if there was a fault."""
    seeds = f"seed {walks[0].seed}" if len(walks) == 1 else f"seeds {walks[0].seed} to {walks[-1].seed}"
    print(f"{seeds}{', with sanitizers' if _native.sanitized else ''}", flush=True)
    findings, begin = Findings(), time.monotonic()
    with ThreadPoolExecutor(len(walks)) as pool:
        try:
            list(pool.map(lambda walk: findings.collect(walk, seconds), walks))
        except KeyboardInterrupt:
            for walk in walks:
                walk.stop()
    for kind, count in findings.kinds.most_common():
        print(f"{count:6} {kind}")
    calls, kinds = sum(walk.calls for walk in walks), findings.kinds
    print(
        f"{calls} calls in {time.monotonic() - begin:.0f} s, {kinds.total()} faults of {len(kinds)} kinds, {seeds}, "
        f"{len(walks)} processes",
        flush=True,
    )
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Data sets in containers: training from them, orders, Hugging Face, indexes, a store on loopback, and cold files."""

from __future__ import annotations

import atexit
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, repeat
from typing import Any

from benchmarks.case import IMAGES_PER_S, MIB, MS, Bar, Case, Contender, Loop, Sample, Unit
from benchmarks.cases.containers import FORMATS, RECORDS, read_images, write_container
from benchmarks.cases.training_chain import MEAN, STD
from benchmarks.data import Data
from benchmarks.library import DALI, STOKER, consume, load

ORDER = 47
BATCH = 64
CPU_MS_PER_IMAGE = Unit("CPU ms/image")
WALL_US_PER_RECORD = Unit("us/record")
MANY = 1_280_000
DELAY_S = 0.03
_BLOCK = 1 << 20  # bytes of a read of the device's own rate
_COUNTED = 1024  # images of a figure
_STORED = 5120  # images in the store
RATE = Unit("images/s", higher_is_better=True)


def _folder(name: str) -> str:
    folder = tempfile.mkdtemp(prefix=f"stoker-{name}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# ---- the training chain ----


def _chain(library: str, read: Callable[[Any], Any], **settings: Any) -> Any:
    """Return the built training chain on the encoded images that ``read(lib)`` returns."""
    lib = load(library)

    @lib.pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, seed=7, **settings)
    def training() -> Any:
        images = lib.fn.decoders.image_random_crop(read(lib), device="cpu", output_type=lib.types.RGB)
        images = lib.fn.resize(images, resize_x=224, resize_y=224)
        return lib.fn.crop_mirror_normalize(
            images, dtype=lib.types.FLOAT, output_layout="CHW", mean=MEAN, std=STD, mirror=lib.fn.random.coin_flip()
        )

    pipeline = training()
    pipeline.build()
    return pipeline


def run_chain(data: Data, *, library: str, form: str) -> Sample:
    """Return the processor time of an image, from a container or (form "files") from files."""
    if form == "files":
        files = (data.files * -(-RECORDS // len(data.files)))[:RECORDS]
        pipeline = _chain(library, lambda lib: lib.fn.readers.file(files=files, random_shuffle=True)[0])
    else:
        written = write_container(data, form, with_checksums=library == STOKER)
        pipeline = _chain(library, lambda lib: read_images(lib, library, form, written, random_shuffle=True))
    pipeline.run()

    def read() -> float:
        start, count = time.process_time(), 0
        while count < _COUNTED:
            consume(pipeline.run())
            count += BATCH
        return 1e3 * (time.process_time() - start) / count

    return Sample(read)


# ---- orders ----


def run_order(data: Data, *, form: str, shuffled: bool) -> Sample:
    """Return the wall time of a record, raw, in the order of the file or shuffled."""
    lib = load(STOKER)
    written = write_container(data, form, with_checksums=True)

    @lib.pipeline_def(batch_size=BATCH, num_threads=1, seed=7)
    def reading() -> Any:
        return read_images(lib, STOKER, form, written, random_shuffle=shuffled)

    pipeline = reading()
    pipeline.build()
    for _ in range(RECORDS // BATCH):
        pipeline.run()
    return Sample(partial(_epoch_us, pipeline))


def _epoch_us(pipeline: Any) -> float:
    start = time.perf_counter()
    for _ in range(RECORDS // BATCH):
        pipeline.run()
    return 1e6 * (time.perf_counter() - start) / RECORDS


# ---- Hugging Face ----


def _data_set(data: Data) -> Any:
    """Write a data set of encoded images and labels with the library `datasets`, and return it."""
    import datasets

    datasets.disable_progress_bars()
    contents, folder = data.read(), _folder("huggingface")
    rows = {"image": [contents[i % len(contents)] for i in range(RECORDS)], "label": list(range(RECORDS))}
    datasets.Dataset.from_dict(rows).save_to_disk(folder)
    return datasets.load_from_disk(folder)


def run_huggingface(data: Data) -> Loop:
    """Read the encoded images and labels of a data set of `datasets`, shuffled."""
    lib, rows = load(STOKER), _data_set(data)

    @lib.pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, seed=7)
    def reading() -> Any:
        found = lib.fn.readers.huggingface(rows, columns=["image", "label"], random_shuffle=True)
        return found["image"], found["label"]

    pipeline = reading()
    pipeline.build()

    def step() -> tuple[int, float]:
        images, labels = pipeline.run()
        return BATCH, _sum_of(list(zip(images, (label.item() for label in labels), strict=True)))

    return Loop(step)


def run_loader(data: Data) -> Loop:
    """Read the same with `ds[i]` in the two workers of a DataLoader."""
    from torch.utils.data import DataLoader

    rows = _data_set(data)
    loader = DataLoader(
        rows, BATCH, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True, collate_fn=_rows_of
    )
    batches = chain.from_iterable(repeat(loader))

    def step() -> tuple[int, float]:
        return BATCH, _sum_of(next(batches))

    return Loop(step)


def _rows_of(rows: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    return [(row["image"], row["label"]) for row in rows]


def _sum_of(rows: list[tuple[Any, Any]]) -> float:
    return float(sum(len(image) + int(image[-1]) + int(label) for image, label in rows))


# ---- many records ----


def _many_records() -> str:
    """Write a RecordIO file of many small records, and return its path."""
    path = os.path.join(_folder("many"), "many.rec")
    record = struct.pack("<IIIfQQ", 0xCED7230A, 24 + 4, 0, 1.0, 0, 0) + b"abcd"
    with open(path, "wb") as file:
        for _ in range(MANY // 1000):
            file.write(record * 1000)
    return path


def _open_many(path: str) -> Any:
    from stoker import fn, pipeline_def

    @pipeline_def(batch_size=BATCH, num_threads=1, seed=7)
    def reading() -> Any:
        return fn.readers.mxnet(path=[path], index_path=None, random_shuffle=True)[0]

    return reading().build()


def time_index(data: Data, *, cached: bool) -> Sample:
    """Return the milliseconds to build a pipeline on the records, with or without their index in the cache."""
    path, folder = _many_records(), _folder("index")
    os.environ["STOKER_INDEX_CACHE"] = folder
    if cached:
        _open_many(path)

    def read() -> float:
        if not cached:
            shutil.rmtree(folder, ignore_errors=True)
        start = time.perf_counter()
        _open_many(path)
        return 1e3 * (time.perf_counter() - start)

    return Sample(read)


_MEMORY = """
import sys
from benchmarks.cases.data_sets import _open_many

def used():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024

pipes = [_open_many(sys.argv[1]) for _ in range(2)]
before = used()
pipes += [_open_many(sys.argv[1]) for _ in range(4)]
print((used() - before) / 4)
"""


def memory_of_index(data: Data) -> Sample:
    """Return the memory of an index for each million records."""
    path = _many_records()
    command = [sys.executable, "-c", _MEMORY, path]

    def read() -> float:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(done.stdout) * 1e6 / MANY

    return Sample(read)


# ---- a store ----

_SERVER = """
import http.server, os, sys, time
path, delay = sys.argv[1], float(sys.argv[2])
size = os.path.getsize(path)

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass
    def answer(self, with_body):
        begin, end = 0, size - 1
        given = self.headers.get("Range")
        if given:
            begin, end = (int(x) for x in given.removeprefix("bytes=").split("-"))
            end = min(end, size - 1)
        self.send_response(206 if given else 200)
        if given:
            self.send_header("Content-Range", f"bytes {begin}-{end}/{size}")
        self.send_header("Content-Length", str(end - begin + 1))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()
        if with_body:
            with open(path, "rb") as file:
                self.wfile.flush()
                self.connection.sendfile(file, begin, end - begin + 1)
    def do_HEAD(self):
        self.answer(False)
    def do_GET(self):
        time.sleep(delay)
        self.answer(True)

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def _store(path: str) -> Iterator[str]:
    """Serve a file from another process, with a delay before each answer, and yield its address."""
    command = [sys.executable, "-c", _SERVER, path, str(DELAY_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/{os.path.basename(path)}"
        finally:
            server.terminate()


def run_store(data: Data, *, place: str) -> Sample:
    """Return the images per second of an epoch with the opening of its pipeline: the training chain on a tar file.

    Args:
        place: "local"; from a "store" with an empty cache; or from its "cache".
    """
    written = write_container(data, "tar", with_checksums=False, count=_STORED)
    address = written.path
    if place != "local":
        import obstore  # noqa: F401 - the extra `remote`; without it the contender is absent

        os.environ["STOKER_REMOTE_CACHE"] = _folder("blocks")
        os.environ["STOKER_INDEX_CACHE"] = _folder("indexes")
        context = _store(written.path)
        address = context.__enter__()
        atexit.register(context.__exit__, None, None, None)

    def read() -> float:
        if place == "store":
            shutil.rmtree(os.environ["STOKER_REMOTE_CACHE"], ignore_errors=True)
        start = time.perf_counter()
        pipeline = _chain(STOKER, lambda lib: lib.fn.readers.webdataset(paths=[address], ext=["jpg"]))
        for _ in range(_STORED // BATCH):
            consume(pipeline.run())
        pipeline.close()
        return _STORED / (time.perf_counter() - start)

    read()  # makes the index, and fills the caches
    return Sample(read)


# ---- cold files ----


def _forget(path: str) -> None:
    """Make the system drop a file's pages."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def read_cold(data: Data, *, shuffled: bool) -> Sample:
    """Return the wall time of a record at the device's own rate: large reads in order, or 8 records at a time."""
    written = write_container(data, "tar", with_checksums=False)

    def read() -> float:
        _forget(written.path)
        begin = time.perf_counter()
        descriptor = os.open(written.path, os.O_RDONLY)
        try:
            if shuffled:
                _read_shuffled(descriptor, written.ranges)
            else:
                memory = bytearray(_BLOCK)
                while os.readv(descriptor, [memory]):
                    pass
        finally:
            os.close(descriptor)
        return 1e6 * (time.perf_counter() - begin) / RECORDS

    return Sample(read)


def _read_shuffled(descriptor: int, ranges: list[tuple[int, int]]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # no reading ahead
    order = random.Random(1).sample(ranges, len(ranges))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda r: os.preadv(descriptor, [bytearray(r[1])], r[0]), order))


def run_cold(data: Data, *, library: str, shuffled: bool) -> Sample:
    """Return the wall time of a record of an epoch whose file is not in the page cache."""
    lib = load(library)
    written = write_container(data, "tar", with_checksums=False)

    @lib.pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, seed=7)
    def reading() -> Any:
        return read_images(lib, library, "tar", written, random_shuffle=shuffled)

    pipeline = reading()
    pipeline.build()
    pipeline.run()

    def read() -> float:
        _forget(written.path)
        return _epoch_us(pipeline)

    return Sample(read)


def _chain_case(form: str, name: str) -> Case:
    options = {"library": STOKER, "form": form}
    return Case(
        f"data-chain-{form}",
        f"Training chain from a {name}",
        CPU_MS_PER_IMAGE,
        (
            Contender("stoker", "run_chain", options),
            Contender("stoker, files", "run_chain", {"library": STOKER, "form": "files"}),
            Contender("DALI", "run_chain", {"library": DALI, "form": form}, "peers"),
        ),
        (
            Bar("processor time of the chain from files", "stoker", ("stoker, files",), at_most=1 / 0.97),
            Bar("processor time of DALI's", "stoker", ("DALI",), at_most=1 / 3.3, goal=0.25),
        ),
        note="Shuffled; decode a random crop, resize to 224x224, flip, normalise, float32 CHW, batches of 64, one "
        "thread.",
    )


def _cold_case(name: str, title: str, *, shuffled: bool) -> Case:
    return Case(
        f"data-cold-{name}",
        f"A tar file that is not in the page cache, {title}",
        WALL_US_PER_RECORD,
        (
            Contender("stoker", "run_cold", {"library": STOKER, "shuffled": shuffled}),
            Contender("DALI", "run_cold", {"library": DALI, "shuffled": shuffled}, "peers"),
            Contender("the device", "read_cold", {"shuffled": shuffled}),
        ),
        (
            Bar("time at the device's own rate", "stoker", ("the device",), at_most=1 / 0.9),
            Bar("time of DALI's", "stoker", ("DALI",), at_most=1.0),
        ),
        note="Pages are dropped before each epoch (POSIX_FADV_DONTNEED). The device: reads of 1 MiB in order, or those "
        "of the records, 8 at a time and without reading ahead. A virtual disk may have caches of its own.",
    )


CASES = (
    *(_chain_case(form, name) for form, name in FORMATS.items()),
    Case(
        "data-shuffled",
        "Raw records of a tar file, shuffled and in order",
        WALL_US_PER_RECORD,
        (
            Contender("shuffled", "run_order", {"form": "tar", "shuffled": True}),
            Contender("in order", "run_order", {"form": "tar", "shuffled": False}),
        ),
        (Bar("time of the order of the file", "shuffled", ("in order",), at_most=1 / 0.95),),
        note=f"{RECORDS} records in the page cache, batches of {BATCH}, one thread.",
    ),
    Case(
        "data-huggingface",
        "Rows of a data set of Hugging Face",
        IMAGES_PER_S,
        (Contender("stoker", "run_huggingface"), Contender("DataLoader", "run_loader")),
        (Bar("rate over that of ds[i] with two workers", "stoker", ("DataLoader",), at_least=3.0),),
        note=f"{RECORDS} encoded images and labels in Arrow files in the page cache, shuffled, batches of {BATCH}, two "
        "threads and two workers.",
    ),
    Case(
        "data-index",
        "Index of 1.28 million records",
        MS,
        (
            Contender("made", "time_index", {"cached": False}),
            Contender("from the cache", "time_index", {"cached": True}),
        ),
        (
            Bar("time to make it", "made", at_most=2000),
            Bar("time to read it", "from the cache", at_most=300),
        ),
        note="A RecordIO file of small records in the page cache; the time to build the pipeline.",
    ),
    Case(
        "data-index-memory",
        "Memory of an index, for a million records",
        MIB,
        (Contender("stoker", "memory_of_index"),),
        (Bar("memory for a million records", "stoker", at_most=25e6 / 2**20),),
        note="The resident memory that each further pipeline on the file adds.",
    ),
    Case(
        "data-store",
        "Training chain from a store with 30 ms of delay",
        RATE,
        (
            Contender("local", "run_store", {"place": "local"}),
            Contender("store", "run_store", {"place": "store"}),
            Contender("cache", "run_store", {"place": "cache"}),
        ),
        (
            Bar("rate over the local one", "store", ("local",), at_least=0.95),
            Bar("rate of the second epoch over the local one", "cache", ("local",), at_least=0.97),
        ),
        note=f"An epoch of {_STORED} images and the opening of its pipeline: a tar file in order, one thread. The "
        "server on loopback waits for 30 ms before each answer, and takes processor time of its own. `store`: the "
        "first epoch, with an empty cache; `cache`: the second.",
    ),
    _cold_case("in-order", "in order", shuffled=False),
    _cold_case("shuffled", "shuffled", shuffled=True),
)

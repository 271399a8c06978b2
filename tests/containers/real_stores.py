# SPDX-License-Identifier: Apache-2.0
"""Objects of stores: an S3 server, and HTTP servers that fail, on this machine: ``make test-containers``."""

from __future__ import annotations

import http.server
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import containers
from stoker import ArgumentError, DataError, fn
from stoker import tfrecord as features
from stoker.remote import block_cache, client
from stoker.remote.store import RemoteStore
from tests.containers.data import epoch, pipeline, rows
from tests.idle_clock import sampled_clock

COUNT = 24
BIG = 3 * block_cache.BLOCK_BYTES + 12345
pytestmark = pytest.mark.leaks("obstore's threads live as long as the process")


def content(i: int) -> bytes:
    return np.random.default_rng(i).bytes(i * 997 % 60_000)


class Server(http.server.ThreadingHTTPServer):
    """Server of objects with ranges and tags. ``fault(handler, path, count)`` may answer in its place."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, bytes] = {}
        self.tags: dict[str, str] = {}
        self.requests: Counter[str] = Counter()
        self.fault: Callable[[Handler, str, int], bool] = lambda handler, path, count: False
        self.delay_s = 0.0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def put(self, name: str, data: bytes, tag: str = "1") -> str:
        self.objects[f"/{name}"], self.tags[f"/{name}"] = data, f'"{tag}"'
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        time.sleep(self.server.delay_s)
        self.server.requests[self.path] += 1
        if not self.server.fault(self, self.path, self.server.requests[self.path]):
            self.answer(with_body=True)

    def fail(self, status: int) -> bool:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return True

    def answer(self, *, with_body: bool, cut: int = 0, shift: int = 0, short: int = 0) -> bool:
        data, tag = self.server.objects.get(self.path), self.server.tags.get(self.path)
        if data is None or tag is None:
            return self.fail(404)
        if self.headers.get("If-Match") not in (None, tag):
            return self.fail(412)
        size, given = len(data), self.headers.get("Range")
        self.send_response(206 if given else 200)
        if given:
            begin, end = (int(x) for x in given.removeprefix("bytes=").split("-"))
            end = min(end, size - 1) - short
            data = data[begin : end + 1]
            self.send_header("Content-Range", f"bytes {begin + shift}-{end + shift}/{size}")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", tag)
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()
        if with_body:
            self.wfile.write(data[: len(data) - cut])
            if cut:
                self.close_connection = True
                self.connection.close()
        return True


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.shutdown()
    one.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STOKER_REMOTE_CACHE", str(tmp_path / "blocks"))
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "indexes"))
    return tmp_path / "blocks"


@pytest.fixture(autouse=True)
def deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a busy machine, or one that halts this process for minutes, time to answer."""
    monkeypatch.setenv("STOKER_REMOTE_DEADLINE_S", "900")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], float]]:
    """Clock of the client's deadline that stands still while this process is halted."""
    with sampled_clock() as one:
        monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=one))
        yield one


def tfrecords() -> bytes:
    return containers.tfrecord(containers.example({"data": content(i), "n": [i]}) for i in range(COUNT))


def read_tfrecord(path: Any, **arguments: Any) -> Any:
    declared = {
        "data": features.FixedLenFeature((), features.string), "n": features.FixedLenFeature((), features.int64),
    }  # fmt: skip
    return fn.readers.tfrecord(path=path, features=declared, **arguments)


def of_tfrecord(url: Any, **settings: Any) -> list[tuple[bytes, int]]:
    return [(d.tobytes(), int(n)) for d, n in rows(lambda: read_tfrecord(url), **settings)]


WANTED = [(content(i), i) for i in range(COUNT)]


def test_records_of_all_containers(server: Server, tmp_path: Path) -> None:
    tar = containers.tar((f"{i:03}.bin", content(i)) for i in range(COUNT))
    packed = containers.stored_zip((f"c/{i:03}.jpg", content(i)) for i in range(COUNT))
    images = [containers.image_record(float(i), content(i)) for i in range(COUNT)]
    urls = {
        "tar": server.put("a b/a.tar", tar).replace(" ", "%20"), "zip": server.put("a.zip", packed),
        "bag": server.put("a.bag", containers.bagz(content(i) for i in range(COUNT))),
        "rec": server.put("a.rec", containers.recordio(images)[0]), "tfrecord": server.put("a.tfrecord", tfrecords()),
    }  # fmt: skip
    server.objects["/a%20b/a.tar"], server.tags["/a%20b/a.tar"] = tar, '"1"'
    read: dict[str, Callable[..., Any]] = {
        "tar": lambda **order: fn.readers.webdataset(paths=urls["tar"], ext="bin", **order),
        "zip": lambda **order: fn.readers.zip(paths=urls["zip"], **order)[0],
        "bag": lambda **order: fn.readers.bagz(paths=urls["bag"], **order),
        "rec": lambda **order: fn.readers.mxnet(path=urls["rec"], **order)[0],
        "tfrecord": lambda **order: read_tfrecord(urls["tfrecord"], **order)["data"],
    }
    for i in range(COUNT):
        (tmp_path / f"{i}.bin").write_bytes(content(i))
    names = [str(tmp_path / f"{i}.bin") for i in range(COUNT)]
    for kind, reader in read.items():
        for order in ({}, {"random_shuffle": True, "num_shards": 2, "shard_id": 1, "seed": 4}):
            found = rows(lambda reader=reader, order=order: reader(**order), batch_size=5)
            wanted = rows(lambda order=order: fn.readers.file(files=names, **order)[0], batch_size=5)
            assert [r[0].tobytes() for r in found] == [r[0].tobytes() for r in wanted], kind


def test_files_of_a_server_and_states(server: Server) -> None:
    urls = [server.put(f"{i}.bin", content(i)) for i in range(COUNT)]
    found = rows(lambda: fn.readers.file(files=urls, labels=range(100, 100 + COUNT)), batch_size=5)
    assert [(d.tobytes(), int(n[0]) - 100) for d, n in found] == WANTED

    def shuffled() -> Any:
        return fn.readers.file(files=urls, random_shuffle=True)

    with pipeline(shuffled, batch_size=4) as pipe:
        pipe.next()
        state = pipe.get_state()
        rest = epoch(pipe)
    with pipeline(shuffled, batch_size=7) as pipe:
        pipe.set_state(state)
        assert [int(r[1][0]) for r in epoch(pipe)] == [int(r[1][0]) for r in rest]
    assert b"127.0.0.1" not in repr(state).encode()


def test_blocks_are_fetched_once(server: Server, cache: Path) -> None:
    records = [np.random.default_rng(i).bytes(700_000) for i in range(BIG // 700_000)]
    url = server.put("a.bag", containers.bagz(records))
    for _ in range(3):
        found = rows(lambda: fn.readers.bagz(paths=url, random_shuffle=True), batch_size=4)
        assert sorted(r[0].tobytes() for r in found) == sorted(records)
    assert server.requests["/a.bag"] == -(-len(server.objects["/a.bag"]) // block_cache.BLOCK_BYTES)
    for damage in (lambda whole: whole[:-1], lambda whole: whole[:99] + bytes([whole[99] ^ 1]) + whole[100:]):
        for block in cache.glob("*/*"):  # a damaged block is fetched again
            block.write_bytes(damage(block.read_bytes()))
        found = rows(lambda: fn.readers.bagz(paths=url), batch_size=4)
        assert [r[0].tobytes() for r in found] == records


def test_the_cache_is_bounded(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_REMOTE_CACHE_MIB", "100")
    url = server.put("a.bin", b"x")
    with pytest.raises(ArgumentError, match="STOKER_REMOTE_CACHE_MIB of at least 128"):
        rows(lambda: fn.readers.file(files=[url]))
    kept = block_cache.BlockCache(cache, 8 * 1000)
    one = [block_cache.RemoteObject("http://x/y", 1000, None, f"{i:032x}") for i in range(40)]
    for i, each in enumerate(one):
        kept.write(each, 0, bytes([i]) * 1000)
        assert sum(p.stat().st_size for p in cache.glob("*/*")) <= 8500
    assert kept.read(one[39], 0, 10, 20) == bytes([39]) * 10
    assert kept.read(one[0], 0, 10, 20) is None


def test_without_a_cache_only_the_records_are_read(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_REMOTE_CACHE", "off")
    assert of_tfrecord(server.put("a.tfrecord", tfrecords()), batch_size=5) == WANTED


def close(handler: Handler) -> bool:
    handler.close_connection = True
    handler.connection.close()
    return True


FAULTS: dict[str, Callable[[Handler, str, int], bool]] = {
    "503 twice": lambda h, path, count: count <= 2 and h.fail(503),
    "429": lambda h, path, count: count == 1 and h.fail(429),
    "500": lambda h, path, count: count == 1 and h.fail(500),
    "cut body": lambda h, path, count: count == 1 and h.answer(with_body=True, cut=7),
    "closed": lambda h, path, count: count == 1 and close(h),
    "shorter range": lambda h, path, count: count == 1 and h.answer(with_body=True, short=9),
    "another range": lambda h, path, count: count == 1 and h.answer(with_body=True, shift=3),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_failures_that_pass(fault: Callable[[Handler, str, int], bool], server: Server) -> None:
    url = server.put("a.tfrecord", tfrecords())
    server.fault = fault
    assert of_tfrecord(url, batch_size=5) == WANTED
    assert server.requests["/a.tfrecord"] > 1


REFUSED = "the server refuses the request with this environment's credentials"
STAYING = {
    403: REFUSED + r" \(PermissionDeniedError\), status 403", 404: "there is no such object",
    401: REFUSED + r" \(UnauthenticatedError\), status 401",
    503: rf"status 503 \(\d+ attempts to read {len(content(4))} bytes in \d+\.\d s; STOKER_REMOTE_DEADLINE_S=3 ",
}  # fmt: skip


@pytest.mark.parametrize("status", STAYING)
def test_failures_that_stay_are_row_errors(
    status: int, server: Server, clock: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOKER_REMOTE_DEADLINE_S", "3")
    urls = [server.put(f"{i}.bin", content(i + 1)) for i in range(6)]

    def read(**policy: Any) -> Any:
        return fn.readers.file(files=urls, **policy)

    server.fault = lambda h, path, count: path == "/3.bin" and h.fail(status)
    began = clock()
    place = r"cannot read 'http://127\.0\.0\.1:\d+/3\.bin' at byte 0"
    with pytest.raises(DataError, match=f"{place}: .*{STAYING[status]}"):
        rows(read)
    assert (3 if status == 503 else 0) <= clock() - began < 60
    assert [int(r[1][0]) for r in rows(lambda: read(on_error="skip"))] == [0, 1, 2, 4, 5]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_failures_that_stay_are_not_tried_again(status: int, server: Server) -> None:
    url = server.put("3.bin", content(3))
    server.fault = lambda h, path, count: h.fail(status)
    store = RemoteStore([url])
    try:
        with pytest.raises(DataError, match="at byte 0"):
            store.read(url, 0, 2)
    finally:
        store.close()
    assert server.requests["/3.bin"] == 1


def test_pipelines_share_the_connections_to_a_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = server.put("3.bin", content(3))

    def connections(path: str) -> Any:
        return client.Client()._place(path)[0]

    shared = connections(url)
    assert connections(url) is shared
    with monkeypatch.context() as changed:
        changed.setenv("NO_PROXY", "127.0.0.1")
        assert connections(url) is not shared
    with monkeypatch.context() as forked:
        forked.setattr(client.os, "getpid", lambda: 1)
        assert connections(url) is not shared
    assert connections(url) is shared
    assert connections("s3://bucket/a") is not connections("s3://bucket/a"), "credentials may have been renewed"


def test_an_object_that_is_missing_is_refused(server: Server) -> None:
    with pytest.raises(ArgumentError, match="no such object"):
        rows(lambda: fn.readers.file(files=[server.put("0.bin", content(1)) + "x"]))


def test_an_object_that_is_replaced_is_an_error(server: Server) -> None:
    url = server.put("a.tfrecord", tfrecords())
    with pipeline(lambda: read_tfrecord(url), prefetch_queue_depth=1) as pipe:
        pipe.build()
        server.put("a.tfrecord", tfrecords()[::-1], "2")
        for block in Path(os.environ["STOKER_REMOTE_CACHE"]).glob("*/*"):
            block.unlink()  # the scan's blocks
        with pytest.raises(DataError, match="as it was when the pipeline was built, it has changed"):
            epoch(pipe)


def test_a_closed_pipeline_waits_for_nothing(
    server: Server, clock: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_FIRST_PAUSE_S", 600.0)  # the deadline and the pause before a second attempt are later
    monkeypatch.setattr(client, "_LONGEST_PAUSE_S", 600.0)
    urls = [server.put(f"{i}.bin", content(i + 1)) for i in range(40)]
    server.fault = lambda h, path, count: path != "/0.bin" and h.fail(503)
    with pipeline(lambda: fn.readers.file(files=urls)[0], batch_size=1, prefetch_queue_depth=3) as pipe:
        pipe.next()
        began = clock()
    assert clock() - began < 30


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://me:secret@127.0.0.1/a.tfrecord", "without user, password"),
        ("https://host/a.tfrecord?X-Amz-Signature=secret", "without user, password, query"),
        ("ftp://host/secret", "got ftp://"),
        ("s3://bucket", "the address of an object"),
    ],
)
def test_addresses_that_are_refused(url: str, text: str) -> None:
    with pytest.raises(ArgumentError, match=text) as error:
        of_tfrecord(url)
    assert "secret" not in str(error.value)


# ---- S3 ----


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "known-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    import boto3

    client = boto3.client("s3", region_name="us-east-1", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    client.create_bucket(Bucket="training")
    yield client
    server.stop()


def test_s3(s3: Any) -> None:
    s3.put_object(Bucket="training", Key="folder/a.tfrecord", Body=tfrecords())
    for i in range(COUNT):
        s3.put_object(Bucket="training", Key=f"files/{i}", Body=content(i))
    url = "s3://training/folder/a.tfrecord"
    assert of_tfrecord(url, batch_size=5) == WANTED
    urls = [f"s3://training/files/{i}" for i in range(COUNT)]
    assert [(d.tobytes(), int(n[0])) for d, n in rows(lambda: fn.readers.file(files=urls))] == WANTED
    with pipeline(lambda: read_tfrecord(url), prefetch_queue_depth=1) as pipe:
        pipe.next()
        shown = f"{pipe.get_state()}{pipe.report()}"
        s3.put_object(Bucket="training", Key="folder/a.tfrecord", Body=tfrecords()[:-1])
    assert "secret" not in shown and "known-key" not in shown
    with pytest.raises(ArgumentError, match=r"s3://training/none.*no such object") as error:
        of_tfrecord("s3://training/none")
    assert "secret" not in str(error.value)

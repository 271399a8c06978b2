# SPDX-License-Identifier: Apache-2.0
"""Objects of stores and of HTTP servers: ``s3://``, ``gs://``, ``az://``, ``http://``, ``https://``.

An object is read in blocks, which are kept on disk (``_block_cache.py``).

Credentials come from the environment or the machine, as the providers' own tools take them. Addresses with credentials
in them are refused, so that no message, token or report can have any.
"""

from __future__ import annotations

import datetime
import os
import random
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from ..contract.errors import ArgumentError, DataError
from ..contract.storage import ByteRange
from ..contract.text import brief
from ..settings import remote_deadline_s
from ._block_cache import BLOCK_BYTES, BlockCache, RemoteObject, identity_of
from ._extras import import_extra

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https")
_CONNECTIONS = 32
_REQUEST_S = 30  # of one request; a slower one is tried again
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0
_CLOSED = "the pipeline is closed"
Block = bytes | memoryview  # a client's answer stays in the client's memory
_PERMANENT = ("NotFoundError", "FileNotFoundError", "PermissionDeniedError", "UnauthenticatedError", "InvalidPathError",
              "NotSupportedError")  # fmt: skip
_STATUS = re.compile(r"status(?: code)?:? (\d{3})")


def is_remote(path: str) -> bool:
    """Return whether a path is the address of an object."""
    return path.partition("://")[0].lower() in SCHEMES and "://" in path


def require_address(name: str, path: str) -> None:
    """Raise ArgumentError for an address that cannot be read, or that has credentials in it."""
    scheme = path.partition("://")[0]
    if scheme.lower() not in SCHEMES:
        raise ArgumentError(
            f"expected paths of files, or addresses of {', '.join(SCHEMES)} as `{name}`, got {scheme}://..."
        )
    parts = urlsplit(path)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ArgumentError(
            f"expected an address without user, password, query and fragment as `{name}`, got one with some of them "
            f"({scheme}://{parts.hostname}/...). Credentials come from the environment, such as AWS_ACCESS_KEY_ID"
        )
    if not parts.netloc or not parts.path.strip("/"):
        raise ArgumentError(f"expected the address of an object as `{name}`, got {brief(path)}")


class RemoteStore:
    """Objects that are read in blocks, through the cache. Implements :class:`~stoker.contract.storage.Store`.

    Args:
        paths: addresses of the objects.

    Raises:
        ArgumentError: an object does not exist or cannot be read.
        UnsupportedError: obstore is not installed.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._client = _Client()
        self._cache = BlockCache.open(_CONNECTIONS)
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = ThreadPoolExecutor(_CONNECTIONS, thread_name_prefix="stoker-remote")
        self._fetched: dict[tuple[str, int], Future[Block]] = {}  # blocks in flight
        self._ended = threading.Event()
        try:
            found = list(self._pool.map(self._open, dict.fromkeys(paths)))
        except DataError as error:
            self.close()
            raise ArgumentError(str(error)) from None
        except BaseException:
            self.close()
            raise
        self.objects = {one.path: one for one in found}

    def _open(self, path: str) -> RemoteObject:
        found: RemoteObject = self._client.retried(path, 0, self._ended, lambda: self._client.head(path))
        return found

    # ---- Store ----

    def fetch(self, ranges: Sequence[ByteRange]) -> list[Future[bytes] | bytes]:
        """Begin to read byte ranges."""
        return self.fetch_objects([(self.objects[r.path], r.offset, r.length) for r in ranges])

    def fetch_objects(self, ranges: Sequence[tuple[RemoteObject, int, int]]) -> list[Future[bytes] | bytes]:
        """Begin to read (object, offset, length) of objects whose facts the caller knows."""
        return [self._begin(one, offset, length) for one, offset, length in ranges]

    def close(self) -> None:
        """End the connections; idempotent."""
        self._ended.set()
        with self._lock:
            pool, self._pool = self._pool, None
            pending, self._fetched = list(self._fetched.values()), {}
        if pool is not None:
            pool.shutdown(cancel_futures=True)
        for future in pending:
            future.cancel()

    def read_all(self, path: str, file: Any) -> None:
        """Write an object into a file, block by block.

        Raises:
            DataError: the object cannot be read, or has changed.
        """
        one = self.objects[path]
        blocks = range(-(-one.size // BLOCK_BYTES))
        ahead: list[Future[Block]] = []
        for block in blocks:
            while len(ahead) < _CONNECTIONS // 2 and block + len(ahead) < len(blocks):
                ahead.append(self._block(one, block + len(ahead)))
            file.write(ahead.pop(0).result())

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Return a byte range of an object.

        Raises:
            DataError: the object cannot be read, or has changed.
        """
        found = self._begin(self.objects[path], offset, length)
        return found.result() if isinstance(found, Future) else found

    # ---- blocks ----

    def _begin(self, one: RemoteObject, offset: int, length: int) -> Future[bytes] | bytes:
        if not length:
            return b""
        if offset + length > one.size:
            text = f"expected {length} bytes at byte {offset} of '{one.path}', got an object of {one.size} bytes"
            outside: Future[bytes] = Future()
            outside.set_exception(DataError(text))
            return outside
        if self._cache is None:
            return self._direct(one, offset, offset + length)
        kept = self._kept(one, offset, length)
        if kept is not None:
            return kept
        whole: Future[bytes] = Future()
        first, last = offset // BLOCK_BYTES, (offset + length - 1) // BLOCK_BYTES
        parts = [self._block(one, block) for block in range(first, last + 1)]
        waiting = [len(parts)]
        guard = threading.Lock()

        def arrived(_: Future[Block]) -> None:
            with guard:
                waiting[0] -= 1
                if waiting[0] or not whole.set_running_or_notify_cancel():
                    return
            try:
                begin = offset - first * BLOCK_BYTES
                pieces = []
                for number, part in enumerate(parts):
                    low = max(begin - number * BLOCK_BYTES, 0)
                    pieces.append(memoryview(part.result())[low : begin + length - number * BLOCK_BYTES])
                whole.set_result(bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces))
            except BaseException as error:  # noqa: BLE001 - the row carries it; a cancelled block too
                whole.set_exception(error if isinstance(error, Exception) else DataError(_CLOSED))

        for part in parts:
            part.add_done_callback(arrived)
        return whole

    def _kept(self, one: RemoteObject, offset: int, length: int) -> bytes | None:
        """Return a byte range from the cache; None if a block of it is missing."""
        assert self._cache is not None
        pieces: list[bytes] = []
        for block in range(offset // BLOCK_BYTES, (offset + length - 1) // BLOCK_BYTES + 1):
            first = block * BLOCK_BYTES
            begin, end = max(offset - first, 0), min(offset + length - first, BLOCK_BYTES)
            piece = self._cache.read(one, block, begin, end)
            if piece is None:
                return None
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _direct(self, one: RemoteObject, begin: int, end: int) -> Future[bytes]:
        """Begin to read a byte range without the cache."""
        with self._lock:
            if self._pool is not None:
                return self._pool.submit(self._fetch_range, one, begin, end)
        ended: Future[bytes] = Future()
        ended.set_exception(DataError(_CLOSED))
        return ended

    def _fetch_range(self, one: RemoteObject, begin: int, end: int) -> bytes:
        return bytes(self._client.retried(one.path, begin, self._ended, lambda: self._client.get(one, begin, end)))

    def _block(self, one: RemoteObject, block: int) -> Future[Block]:
        """Return the future of a block. Requests for a block in flight share it."""
        key = (one.identity, block)
        with self._lock:
            known = self._fetched.get(key)
            if known is not None:
                return known
            future: Future[Block] = Future()
            if self._pool is None:
                future.set_exception(DataError(_CLOSED))
                return future
            self._pool.submit(self._load, one, block, future)
            self._fetched[key] = future
        return future

    def _load(self, one: RemoteObject, block: int, future: Future[Block]) -> None:
        """Read a block for its future. Rows get the block before the cache does."""
        begin = block * BLOCK_BYTES
        end = min(begin + BLOCK_BYTES, one.size)
        try:
            if not future.set_running_or_notify_cancel():
                return
            try:
                content: Block | None = None if self._cache is None else self._cache.read(one, block, 0, end - begin)
                is_new = content is None
                if content is None:
                    content = self._client.retried(
                        one.path, begin, self._ended, lambda: self._client.get(one, begin, end)
                    )
            except BaseException as error:  # noqa: BLE001 - the rows of the block carry it
                future.set_exception(error)
                return
            future.set_result(content)
            if is_new and self._cache is not None:
                self._cache.write(one, block, content)
        finally:  # later requests find the block in the cache
            with self._lock:
                self._fetched.pop((one.identity, block), None)


class _Transient(Exception):
    """Failure that another attempt may not have."""


class _Client:
    """Requests to servers, with attempts until a deadline."""

    def __init__(self) -> None:
        self._obstore = import_extra("obstore", "remote", "addresses of objects")
        self._store_module = import_extra("obstore.store", "remote", "addresses of objects")
        self._stores: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._deadline_s = remote_deadline_s()

    def _place(self, path: str) -> tuple[Any, str]:
        """Return the store of an object, and the object's name in it."""
        parts = urlsplit(path)
        root = f"{parts.scheme}://{parts.netloc}"
        with self._lock:
            store = self._stores.get(root)
            if store is None:
                endpoint = os.environ.get("AWS_ENDPOINT_URL", "") if parts.scheme.startswith("s3") else root
                options: dict[str, Any] = {"timeout": f"{_REQUEST_S}s", "connect_timeout": "5s"}
                if endpoint.startswith("http://"):
                    options["allow_http"] = True
                once = {"max_retries": 0, "retry_timeout": datetime.timedelta(seconds=_REQUEST_S)}
                store = self._store_module.from_url(root, client_options=options, retry_config=once)
                self._stores[root] = store
        return store, unquote(parts.path).lstrip("/")

    def head(self, path: str) -> RemoteObject:
        store, name = self._place(path)
        found = self._obstore.head(store, name)
        version = found.get("e_tag") or str(found.get("last_modified"))
        return RemoteObject(path, int(found["size"]), found.get("e_tag"), identity_of(path, found["size"], version))

    def get(self, one: RemoteObject, begin: int, end: int) -> memoryview:
        """Return a byte range of an object, which must be the version that was opened."""
        store, name = self._place(one.path)
        options: dict[str, Any] = {"range": (begin, end)}
        if one.etag is not None and not one.etag.startswith("W/"):  # a weak tag identifies no bytes
            options["if_match"] = one.etag
        answer = self._obstore.get(store, name, options=options)
        meta = answer.meta
        if (meta.get("e_tag"), meta["size"]) != (one.etag, one.size):
            raise _changed(one.path)
        if tuple(answer.range) != (begin, end):
            raise _Transient(f"the bytes {answer.range[0]} to {answer.range[1]} in place of {begin} to {end}")
        content = memoryview(answer.bytes())
        if len(content) != end - begin:
            raise _Transient(f"{len(content)} bytes in place of {end - begin}")
        return content

    def retried(self, path: str, offset: int, ended: threading.Event, attempt: Any) -> Any:
        """Return the result of ``attempt``. Call it again after failures that may pass, until the deadline.

        Raises:
            DataError: the object does not exist, may not be read or has changed, or the deadline has passed.
        """
        deadline, pause, count = time.monotonic() + self._deadline_s, _FIRST_PAUSE_S, 0
        while True:
            count += 1
            try:
                return attempt()
            except DataError:
                raise
            except Exception as error:  # noqa: BLE001 - a client may raise anything; its text may have credentials
                reason, may_pass = _reason(error)
                if reason is None:
                    raise _changed(path) from None
                left = deadline - time.monotonic()
                if not may_pass or left <= 0 or ended.is_set():
                    tries = f" ({count} attempts in {self._deadline_s:g} s)" if may_pass else ""
                    raise DataError(f"cannot read '{path}' at byte {offset}: {reason}{tries}") from None
            ended.wait(min(pause * random.uniform(0.5, 1.0), max(left, 0.0)))
            pause = min(2 * pause, _LONGEST_PAUSE_S)


def _changed(path: str) -> DataError:
    return DataError(f"expected '{path}' as it was when the pipeline was built, it has changed")


def _reason(error: Exception) -> tuple[str | None, bool]:
    """Return the reason of a failure without its text, and whether it may pass; None if the object has changed.

    The text of a client's error is not shown: it may have parts of the request.
    """
    kind, text = type(error).__name__, str(error)
    if isinstance(error, _Transient):
        return f"the server sent {error}", True
    if kind == "PreconditionError":
        return None, False
    found = _STATUS.search(text)
    status = int(found.group(1)) if found else 0
    if kind in _PERMANENT:
        reason = {"FileNotFoundError": "there is no such object", "NotFoundError": "there is no such object"}
        shown = reason.get(kind, f"{kind}")
        return shown + (f", status {status}" if status else ""), False
    if status:
        return f"status {status}", status in (408, 425, 429) or status >= 500
    if "timed out" in text or "timeout" in text.lower():
        return f"no answer within {_REQUEST_S} s", True
    return "the connection failed, or ended within the answer", True


def sizes_of(store: RemoteStore, paths: Sequence[str]) -> Any:
    """Return the sizes of objects, uint64."""
    return np.asarray([store.objects[path].size for path in paths], np.uint64)


def open_store(paths: Sequence[str]) -> RemoteStore | None:
    """Return the store of objects; None for paths of files.

    Raises:
        ArgumentError: some are files and some objects, or an object cannot be read.
    """
    remote = [path for path in paths if is_remote(path)]
    if not remote:
        return None
    if len(remote) < len(paths):
        other = next(path for path in paths if not is_remote(path))
        raise ArgumentError(f"expected files, or addresses of objects, got both: {brief(other)} and {brief(remote[0])}")
    return RemoteStore(paths)

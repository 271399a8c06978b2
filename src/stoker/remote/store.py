# SPDX-License-Identifier: Apache-2.0
"""Objects that are read in blocks, which are kept on disk (``block_cache.py``)."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, DataError
from ..contract.storage import ByteRange
from ..contract.text import brief
from ..native import _native
from .addresses import is_remote, require_address
from .block_cache import BLOCK_BYTES, BlockCache, RemoteObject, write_pieces
from .client import Client

_CONNECTIONS = 32
# Bytes in flight for blocks that no row waits for: at first, because further blocks delay those of the first rows, and
# if more than `_ENOUGH_BYTES` have arrived.
_FIRST_BYTES, _FEW_BYTES, _ENOUGH_BYTES = 4 << 20, 8 << 20, 32 << 20
_WAIT_NS = 1_000_000  # a shorter wait of a row is no reason for more bytes in flight
_CLOSED = "the pipeline is closed"
Block = bytes | memoryview  # a client's answer stays in the client's memory
ObjectBlock = tuple[RemoteObject, int]  # a block by its number in its object


class RemoteStore:
    """Objects that are read in blocks, through the cache. Implements :class:`~stoker.contract.storage.Store`.

    Args:
        paths: addresses of the objects.
        known: facts of objects that a list has given, by their addresses. The others are asked for.
        keeps_blocks: keep blocks in the cache.

    Raises:
        ArgumentError: an object does not exist or cannot be read.
        UnsupportedError: obstore is not installed.
    """

    def __init__(
        self, paths: Sequence[str], known: Mapping[str, RemoteObject] | None = None, *, keeps_blocks: bool = True
    ) -> None:
        self._client = Client()
        self._cache = BlockCache.open(_CONNECTIONS) if keeps_blocks else None
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = ThreadPoolExecutor(_CONNECTIONS, thread_name_prefix="stoker-remote")
        self._fetched: dict[tuple[str, int], Future[Block]] = {}  # blocks in flight, and queued ones
        self._queued: dict[tuple[str, int], tuple[RemoteObject, int, Future[Block]]] = {}  # no row waits for them yet
        self._arrived: dict[tuple[str, int], int] = {}  # bytes of queued blocks that came before a row needed them
        self._arrived_bytes = self._ahead_bytes = self._ahead = 0  # of queued blocks; those in flight, and their number
        self._most_bytes = _FIRST_BYTES
        self._ended = threading.Event()
        self.objects = {path: known[path] for path in paths if path in known} if known else {}
        try:
            found = list(self._pool.map(self._open, dict.fromkeys(p for p in paths if p not in self.objects)))
        except DataError as error:
            self.close()
            raise ArgumentError(str(error)) from None
        except BaseException:
            self.close()
            raise
        self.objects |= {one.path: one for one in found}

    def _open(self, path: str) -> RemoteObject:
        found: RemoteObject = self._client.retried(path, 0, self._ended, lambda: self._client.head(path))
        return found

    # ---- Store ----

    @property
    def block_bytes(self) -> int:
        """Return the bytes of a block."""
        return BLOCK_BYTES

    def fetch(self, ranges: Sequence[ByteRange]) -> list[Future[bytes] | bytes]:
        """Begin to read byte ranges."""
        return self.fetch_objects([(self.objects[r.path], r.offset, r.length) for r in ranges])

    def fetch_objects(self, ranges: Sequence[tuple[RemoteObject, int, int]]) -> list[Future[bytes] | bytes]:
        """Begin to read (object, offset, length) of objects whose facts the caller knows."""
        return [self._begin(one, offset, length) for one, offset, length in ranges]

    @property
    def looks_ahead(self) -> bool:
        """Return whether there is a cache that :meth:`look_ahead` loads blocks into."""
        return self._cache is not None

    def look_ahead(self, ranges: Sequence[ByteRange]) -> int:
        """Begin to load the blocks of ranges that rows will ask for later, and return their bytes.

        Blocks go to the cache. Without one there is nowhere to keep them, so none is loaded.
        """
        if self._cache is None:
            return 0
        return self.look_ahead_blocks(dict.fromkeys(b for r in ranges if r.length for b in self._blocks_of(r)))

    def look_ahead_blocks(self, blocks: Iterable[ObjectBlock]) -> int:
        """Begin to load those blocks that no row has asked for yet, and return their bytes."""
        if self._cache is None:
            return 0
        begun = 0
        for one, block in blocks:
            if self._cache.expect(one, block):
                self._block(one, block, may_wait=True)
                begun += min(BLOCK_BYTES, one.size - block * BLOCK_BYTES)
        return begun

    def forget_look_ahead(self) -> None:
        """Forget which blocks rows will ask for: others come next."""
        with self._lock:
            self._arrived.clear()
            self._arrived_bytes = 0
        if self._cache is not None:
            self._cache.forget_expected()

    def kept_blocks(self, paths: Sequence[str], ranges: tuple[Any, ...]) -> _native.KeptBlocks | None:
        """Return the native reader of records out of the cache; None without a cache, or if an object is too short.

        Args:
            paths: addresses of the objects.
            ranges: (number of the object, offset, length, form) of each record.
        """
        if self._cache is None:
            return None
        objects = [self.objects[path] for path in paths]
        try:
            return self._cache.native(objects, ranges, BLOCK_BYTES)
        except ValueError:  # a record is not inside of its object: its row says so
            return None

    def kept_shards(self, table: _native.ManifestTable) -> _native.KeptBlocks | None:
        """Return the native reader of a manifest's records out of the cache; None without a cache."""
        return None if self._cache is None else self._cache.native_of_manifest(table, BLOCK_BYTES)

    def load_blocks(self, blocks: Iterable[ObjectBlock]) -> None:
        """Begin to load those blocks that the cache lacks, in this order."""
        assert self._cache is not None
        for one, block in blocks:
            with self._lock:
                self._arrived_bytes -= self._arrived.pop((one.identity, block), 0)
            if not self._cache.is_kept(one, block):
                self._block(one, block, may_wait=True)

    def release_blocks(self, blocks: Iterable[ObjectBlock]) -> None:
        """Note that the rows that needed blocks have read them."""
        assert self._cache is not None
        for one, block in blocks:
            self._cache.release(one, block)

    def note_wait(self, nanoseconds: int) -> None:
        """Note that rows have waited for blocks. Then more bytes are loaded at a time ahead of the rows.

        Few at first, because blocks that no row needs yet delay those of the first rows.
        """
        if nanoseconds >= _WAIT_NS:
            with self._lock:
                self._most_bytes = min(2 * self._most_bytes, _CONNECTIONS * BLOCK_BYTES)
                self._start_queued()

    def close(self) -> None:
        """End the connections; idempotent."""
        self._ended.set()
        with self._lock:
            pool, self._pool = self._pool, None
            self._queued.clear()
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
            write_pieces(file, ahead.pop(0).result())

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Return a byte range of an object.

        Raises:
            DataError: the object cannot be read, or has changed.
        """
        found = self._begin(self.objects[path], offset, length)
        return found.result() if isinstance(found, Future) else found

    # ---- blocks ----

    def _blocks_of(self, r: ByteRange) -> list[ObjectBlock]:
        one = self.objects[r.path]
        last = (min(r.offset + r.length, one.size) - 1) // BLOCK_BYTES
        return [(one, block) for block in range(r.offset // BLOCK_BYTES, last + 1)]

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
        content = self._client.retried(
            one.path, begin, self._ended, lambda: self._client.get(one, begin, end), length=end - begin
        )
        return bytes(content)

    def _block(self, one: RemoteObject, block: int, *, may_wait: bool = False) -> Future[Block]:
        """Return the future of a block. Requests for a block in flight share it.

        Args:
            may_wait: no row needs the block yet, so that others go first.
        """
        key = (one.identity, block)
        with self._lock:
            future = self._fetched.get(key)
            if future is None:
                future = Future()
                if self._pool is None:
                    future.set_exception(DataError(_CLOSED))
                    return future
                self._fetched[key] = future
                self._queued[key] = one, block, future
            if may_wait:
                self._start_queued()
            elif key in self._queued and self._pool is not None:
                self._pool.submit(self._load, *self._queued.pop(key))
        return future

    def _start_queued(self) -> None:
        """Begin to load queued blocks, up to the limit; the caller holds the lock."""
        limit = self._most_bytes if self._arrived_bytes < _ENOUGH_BYTES else _FEW_BYTES
        while self._queued and self._ahead < _CONNECTIONS and self._ahead_bytes < limit and self._pool is not None:
            one, block, future = self._queued.pop(next(iter(self._queued)))
            size = min(BLOCK_BYTES, one.size - block * BLOCK_BYTES)
            self._ahead += 1
            self._ahead_bytes += size
            self._pool.submit(self._load_ahead, one, block, future, size)

    def _load_ahead(self, one: RemoteObject, block: int, future: Future[Block], size: int) -> None:
        """Load a block of ``size`` bytes that was queued, then the next one."""
        try:
            self._load(one, block, future)
        finally:
            with self._lock:
                self._ahead -= 1
                self._ahead_bytes -= size
                self._arrived[one.identity, block] = size
                self._arrived_bytes += size
                self._start_queued()

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
                        one.path, begin, self._ended, lambda: self._client.get(one, begin, end), length=end - begin
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


def sizes_of(store: RemoteStore, paths: Sequence[str]) -> Any:
    """Return the sizes of objects, uint64."""
    return np.asarray([store.objects[path].size for path in paths], np.uint64)


def open_store(paths: Sequence[str], known: Mapping[str, RemoteObject] | None = None) -> RemoteStore | None:
    """Return the store of objects; None for paths of files.

    Args:
        paths: the paths.
        known: facts of objects that a list has given, by their addresses.

    Raises:
        ArgumentError: some are files and some objects, or an object cannot be read.
    """
    remote = [path for path in paths if is_remote(path)]
    if not remote:
        return None
    if len(remote) < len(paths):
        other = next(path for path in paths if not is_remote(path))
        raise ArgumentError(f"expected files, or addresses of objects, got both: {brief(other)} and {brief(remote[0])}")
    return RemoteStore(paths, known)


@functools.cache
def _client_of_process(process: int) -> Client:
    """Return the client of single requests. A process that was forked gets its own."""
    return Client()


def read_object(path: str) -> memoryview:
    """Return the bytes of an object as it is now, without the cache.

    Raises:
        ArgumentError: the address cannot be read, or has credentials in it.
        DataError: the object cannot be read.
        UnsupportedError: obstore is not installed.
    """
    require_address("path", path)
    client = _client_of_process(os.getpid())
    found: memoryview = client.retried(path, 0, threading.Event(), lambda: client.get_all(path))
    return found


def objects_below(name: str, root: str) -> dict[str, RemoteObject]:
    """Return the objects below an address, by their names relative to it.

    Args:
        name: name of the argument that has the address, for messages.
        root: the address.

    Raises:
        ArgumentError: the server gives no lists, or refuses this one.
    """
    require_address(name, root, may_be_bucket=True)
    if root.partition("://")[0].lower() in ("http", "https"):
        raise ArgumentError(
            f"expected an address of a store as `{name}`, got {brief(root)}: an HTTP server has no list of its "
            "objects. Give their addresses as `files`"
        )
    client = Client()
    try:
        found: dict[str, RemoteObject] = client.retried(root, 0, threading.Event(), lambda: client.list_below(root))
    except DataError as error:
        raise ArgumentError(str(error)) from None
    return found

# SPDX-License-Identifier: Apache-2.0
"""Requests to stores and HTTP servers, with attempts until a deadline."""

from __future__ import annotations

import datetime
import functools
import os
import random
import re
import threading
import time
from typing import Any
from urllib.parse import unquote, urlsplit

from ..contract.errors import DataError
from ..contract.extras import import_extra
from ..settings import remote_deadline_s
from .addresses import join
from .block_cache import RemoteObject, identity_of

REQUEST_S = 30  # of one request, if the deadline is not earlier; a slower one is tried again
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0
_PERMANENT = ("NotFoundError", "FileNotFoundError", "PermissionDeniedError", "UnauthenticatedError", "InvalidPathError",
              "NotSupportedError")  # fmt: skip
_REFUSED = ("PermissionDeniedError", "UnauthenticatedError")
_STATUS = re.compile(r"status(?: code)?:? (\d{3})")


class _Transient(Exception):
    """Failure that another attempt may not have."""


class Client:
    """Requests to servers, with attempts until a deadline."""

    def __init__(self) -> None:
        self._obstore = import_extra("obstore", "remote", "addresses of objects")
        self._stores: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._deadline_s = remote_deadline_s()
        self._request_s = min(REQUEST_S, self._deadline_s)

    def _place(self, path: str) -> tuple[Any, str]:
        """Return the store of an object, and the object's name in it."""
        parts = urlsplit(path)
        root = f"{parts.scheme}://{parts.netloc}"
        with self._lock:
            store = self._stores.get(root)
            if store is None:
                store = self._store_of(parts.scheme, root)
                self._stores[root] = store
        return store, unquote(parts.path).lstrip("/")

    def _store_of(self, scheme: str, root: str) -> Any:
        if scheme in ("http", "https"):  # without credentials, which might be renewed
            return _connections_to(os.getpid(), root, self._request_s, tuple(sorted(os.environ.items())))
        endpoint = os.environ.get("AWS_ENDPOINT_URL", "") if scheme.startswith("s3") else root
        # An emulator of Google's store has no certificate. These options hide obstore's own variable.
        is_emulated = scheme == "gs" and os.environ.get("GOOGLE_ALLOW_HTTP", "").lower() in ("1", "true")
        return _open_store(root, self._request_s, allows_http=endpoint.startswith("http://") or is_emulated)

    def head(self, path: str) -> RemoteObject:
        """Return an object's facts."""
        store, name = self._place(path)
        return _object_of(path, self._obstore.head(store, name))

    def list_below(self, root: str) -> dict[str, RemoteObject]:
        """Return the objects below an address, by their names relative to it."""
        store, prefix = self._place(root)
        prefix = prefix.rstrip("/")
        found: dict[str, RemoteObject] = {}
        for page in self._obstore.list(store, prefix=prefix or None, chunk_size=1000):
            for one in page:
                name = one["path"].removeprefix(prefix).lstrip("/")
                if name:  # else an object with the name of the folder
                    found[name] = _object_of(join(root, name), one)
        return found

    def get(self, one: RemoteObject, begin: int, end: int) -> memoryview:
        """Return a byte range of an object, which must be the version that was opened."""
        store, name = self._place(one.path)
        options: dict[str, Any] = {"range": (begin, end)}
        if one.etag is not None and not one.etag.startswith("W/"):  # a weak tag identifies no bytes
            options["if_match"] = one.etag
        answer = self._obstore.get(store, name, options=options)
        meta = answer.meta
        if (_tag_of(meta), meta["size"]) != (one.etag, one.size):
            raise changed_object(one.path)
        if tuple(answer.range) != (begin, end):
            raise _Transient(f"the bytes {answer.range[0]} to {answer.range[1]} in place of {begin} to {end}")
        content = memoryview(answer.bytes())
        if len(content) != end - begin:
            raise _Transient(f"{len(content)} bytes in place of {end - begin}")
        return content

    def get_all(self, path: str) -> memoryview:
        """Return the bytes of an object as it is now."""
        store, name = self._place(path)
        answer = self._obstore.get(store, name)
        content = memoryview(answer.bytes())
        if len(content) != answer.meta["size"]:
            raise _Transient(f"{len(content)} bytes in place of {answer.meta['size']}")
        return content

    def retried(self, path: str, offset: int, ended: threading.Event, attempt: Any, *, length: int = 0) -> Any:
        """Return the result of ``attempt``. Call it again after failures that may pass, until the deadline.

        Args:
            path: address of the object, for messages.
            offset: first byte that is asked for, for messages.
            ended: set when the pipeline is closed.
            attempt: the request.
            length: number of bytes that are asked for, for messages; 0: not known.

        Raises:
            DataError: the object does not exist, may not be read or has changed, or the deadline has passed.
        """
        began, pause, count = time.monotonic(), _FIRST_PAUSE_S, 0
        while True:
            count += 1
            try:
                return attempt()
            except DataError:
                raise
            except Exception as error:  # noqa: BLE001 - a client may raise anything; its text may have credentials
                reason, may_pass = _reason(error, self._request_s)
                if reason is None:
                    raise changed_object(path) from None
                spent = time.monotonic() - began
                left = self._deadline_s - spent
                if not may_pass or left <= 0 or ended.is_set():
                    tries = f" ({self._tries(count, length, spent)})" if may_pass else ""
                    raise DataError(f"cannot read '{path}' at byte {offset}: {reason}{tries}") from None
            ended.wait(min(pause * random.uniform(0.5, 1.0), max(left, 0.0)))
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _tries(self, count: int, length: int, spent: float) -> str:
        attempts = f"{count} attempt{'s' if count > 1 else ''}"
        asked = f" to read {length} bytes" if length else ""
        limit = f"STOKER_REMOTE_DEADLINE_S={self._deadline_s:g} allows no more; a greater number does"
        return f"{attempts}{asked} in {spent:.1f} s; {limit}"


def _open_store(root: str, request_s: float, *, allows_http: bool) -> Any:
    module = import_extra("obstore.store", "remote", "addresses of objects")
    options: dict[str, Any] = {"timeout": f"{request_s}s", "connect_timeout": "5s"}
    if allows_http:
        options["allow_http"] = True
    once = {"max_retries": 0, "retry_timeout": datetime.timedelta(seconds=request_s)}
    return module.from_url(root, client_options=options, retry_config=once)


@functools.lru_cache(maxsize=8)
def _connections_to(process: int, root: str, request_s: float, environment: tuple[tuple[str, str], ...]) -> Any:
    """Return the connections to an HTTP server, which all pipelines of a process share.

    To make them takes 7 ms, most of it for the system's certificates.

    Args:
        process: number of the process: a forked one gets its own.
        root: address of the server.
        request_s: longest time of a request.
        environment: variables, some of which name proxies and certificates.
    """
    return _open_store(root, request_s, allows_http=root.startswith("http://"))


def changed_object(path: str) -> DataError:
    """Return the error for an object that is not the opened version any more."""
    return DataError(f"expected '{path}' as it was when the pipeline was built, it has changed")


def _object_of(path: str, facts: Any) -> RemoteObject:
    tag, size = _tag_of(facts), int(facts["size"])
    return RemoteObject(path, size, tag, identity_of(path, size, tag or str(facts.get("last_modified"))))


def _tag_of(facts: Any) -> str | None:
    """Return the tag of an object in the form of HTTP's headers: lists of Azure leave out the quotation marks."""
    tag: str | None = facts.get("e_tag")
    return f'"{tag}"' if tag and not tag.startswith(('"', "W/")) else tag


def _reason(error: Exception, request_s: float) -> tuple[str | None, bool]:
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
        if kind in _REFUSED:
            shown = f"the server refuses the request with this environment's credentials ({kind})"
        else:
            shown = reason.get(kind, kind)
        return shown + (f", status {status}" if status else ""), False
    if status:
        return f"status {status}", status in (408, 425, 429) or status >= 500
    if "timed out" in text or "timeout" in text.lower():
        return f"no answer within {request_s:g} s", True
    return "the connection failed, or ended within the answer", True

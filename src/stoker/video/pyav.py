# SPDX-License-Identifier: Apache-2.0
"""Access to PyAV: import, opened containers, errors."""

from __future__ import annotations

import functools
import importlib
import io
import os
from typing import Any

from .._import_lock import IMPORT_LOCK
from ..contract.errors import DataError, UnsupportedError
from ..contract.text import printable

#: Options of all decoders: a damaged picture is an error. By default FFmpeg conceals it.
DECODER_OPTIONS = {"err_detect": "crccheck+explode"}
# Demuxers that open what the bytes name: playlists, descriptions of streams, numbered files. Devices, too.
_OPENING_OTHERS = frozenset(
    ("applehttp", "avisynth", "concat", "dash", "dvdvideo", "hls", "image2", "imf", "lavfi", "rtp", "rtsp", "sap",
     "sdp", "svg_pipe", "vapoursynth", "vobsub", "webm_dash_manifest", "alsa", "fbdev", "jack", "kmsgrab", "oss",
     "pulse", "v4l2", "video4linux2", "x11grab")
)  # fmt: skip


def pyav() -> Any:
    """Return the module.

    Raises:
        UnsupportedError: the package is not installed.
    """
    with IMPORT_LOCK:
        try:
            return importlib.import_module("av")
        except ImportError as error:
            raise UnsupportedError(
                "expected the package `av` (PyAV) to read videos and audio such as AAC, which is not installed "
                f"({error}). It is the extra `video`: `pip install av`"
            ) from error


Source = str | bytes | memoryview  # the path of a file, or the contents of one


def name_of(source: Source) -> str:
    """Return a text for messages."""
    return f"'{printable(source)}'" if isinstance(source, str) else f"a file of {len(source)} bytes"


def state_of(source: Source) -> tuple[int, int]:
    """Return the size of a file and its modification time in nanoseconds."""
    if not isinstance(source, str):
        return len(source), 0
    status = os.stat(source)
    return status.st_size, status.st_mtime_ns


class FileErrors:
    """Scope in which PyAV's errors about the contents of a file become DataError.

    Errors of the system pass, unless the contents are in memory, which have none. It is no generator, which would cost
    each packet two microseconds.
    """

    __slots__ = ("_source",)

    def __init__(self, source: Source) -> None:
        self._source = source

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            raise_data_error(self._source, error)


def raise_data_error(source: Source, error: BaseException) -> None:
    """Raise a DataError for an error of PyAV about the contents of a file. Return if it is another error.

    Raises:
        DataError: the error is about the contents.
    """
    if isinstance(error, (DataError, MemoryError)):
        return
    av = pyav()
    if not isinstance(error, (av.error.FFmpegError, OSError, ValueError, EOFError)):
        return
    is_of_data = isinstance(error, (av.error.InvalidDataError, ValueError)) or not isinstance(source, str)
    if isinstance(error, OSError) and not is_of_data:
        return
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    raise DataError(f"cannot read {name_of(source)}: {text}") from None


@functools.cache
def _demuxers() -> str:
    """Return the demuxers that read nothing but their file, as FFmpeg takes a list."""
    av = pyav()
    names: set[str] = set()
    for name in av.formats_available:
        try:
            names.update(av.format.ContainerFormat(name, "r").name.split(","))
        except ValueError:  # it writes alone
            continue
    return ",".join(sorted(names - _OPENING_OTHERS))


def _diagnosis(source: Source) -> str:
    """Return the likely reason for which FFmpeg does not recognize a file."""
    if isinstance(source, str):
        with open(source, "rb") as file:
            head, size = file.read(8), os.fstat(file.fileno()).st_size
    else:
        head, size = bytes(source[:8]), len(source)
    if not size:
        return "the file is empty"
    if head[4:] == b"ftyp":
        return (
            "it begins as an MP4 file, but its list of frames (the moov box) is missing or damaged. Such a file is cut "
            "off, or its writer did not finish"
        )
    return f"expected a video or audio file, got {size} bytes that begin with {head!r}"


def open_container(source: Source, form: str | None = None) -> Any:
    """Open a file or the contents of one.

    FFmpeg reads the file alone: a playlist in it, which names other files or a host, is refused.

    Args:
        source: the file.
        form: name of FFmpeg's demuxer; by default FFmpeg recognizes the file.

    Raises:
        DataError: the file is none that FFmpeg reads, or it is a playlist.
        OSError: the file cannot be read.
    """
    av = pyav()
    with FileErrors(source):
        opened: Any
        if isinstance(source, str):
            os.stat(source)
            opened, protocol = f"file:{source}", "file"
        else:
            opened, protocol = io.BytesIO(source), "none"
        options = {"format_whitelist": _demuxers(), "protocol_whitelist": protocol}
        try:
            return av.open(opened, "r", form, options=options, metadata_errors="replace")
        except av.error.InvalidDataError as error:
            raise DataError(f"cannot read {name_of(source)}: {_diagnosis(source)} ({error.strerror})") from None
        except av.error.ArgumentError:  # FFmpeg's answer to a demuxer that the list lacks
            raise DataError(
                f"expected a file with its own streams, got {name_of(source)}, which FFmpeg recognizes as a playlist "
                "or a description of streams elsewhere, or refuses for another reason. Give the files that it names"
            ) from None


def video_stream(container: Any, source: Source) -> Any:
    """Return the stream of the container that FFmpeg considers best. Cover pictures are no videos.

    Raises:
        DataError: there is none.
    """
    attached = pyav().stream.Disposition.attached_pic
    streams = [s for s in container.streams.video if not s.disposition & attached]
    if not streams:
        kinds = ", ".join(sorted({s.type for s in container.streams})) or "none at all"
        raise DataError(f"expected a video stream in {name_of(source)}, got {kinds}")
    best = container.streams.best("video")
    return best if best in streams else streams[0]

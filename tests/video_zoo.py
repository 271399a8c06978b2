# SPDX-License-Identifier: Apache-2.0
"""Made videos of many codecs, containers and structures, and a comparison of every frame number with a full decode.

make video-zoo [ZOO="h264 ts"]    # only videos whose names contain one of the words
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np

from stoker import StokerError, eager
from tests.clips import FRAMES, HEIGHT, WIDTH, jpeg_frames, picture, plain_pixels, write_video

Write = Callable[[Path], Path]
#: Videos that FFmpeg conceals damage in. Stoker must report it.
DAMAGED = {
    "joined_libx264.ts": "the counters of the second file begin again, so that a packet is marked as damaged",
    "joined_mpeg2video.ts": "likewise",
    "edit_list_libx264_0.5.mov": "pictures before the cut are missing, which commands in the first packets refer to",
}
_MAX_SINGLE = 60  # frames that are read one by one; the others are read in slices


def _made(name: str, codec: str, **more: Any) -> Write:
    return lambda folder: write_video(folder / name, codec, **more)


def _x264(parameters: str, **more: Any) -> dict[str, Any]:
    return {"options": {"preset": "veryfast", "x264-params": f"threads=1:keyint=12:{parameters}"}, **more}


def _x265(parameters: str, **more: Any) -> dict[str, Any]:
    text = f"pools=1:frame-threads=1:log-level=none:keyint=12:{parameters}"
    return {"options": {"preset": "ultrafast", "x265-params": text}, **more}


_VP9 = {"cpu-used": "8", "deadline": "realtime", "b": "1M", "threads": "1"}
_TIMES = np.cumsum([0, *np.random.default_rng(8).choice([7, 20, 33, 34, 100, 900], FRAMES - 1)]).tolist()


def _h264() -> Iterator[tuple[str, Write]]:
    structures = {
        "ip": "bframes=0", "b3": "bframes=3", "b16_pyramid": "bframes=16:b-pyramid=strict:b-adapt=0",
        "open": "bframes=3:open-gop=1", "refresh": "intra-refresh=1", "ref16": "ref=16:bframes=8:b-adapt=2",
        "all_key": "keyint=1", "one_key": "keyint=infinite", "cavlc": "cabac=0:bframes=2", "slices": "slices=4",
        "interlaced": "interlaced=1:bframes=2", "fake_interlaced": "fake-interlaced=1", "scenecut": "scenecut=90",
    }  # fmt: skip
    for (name, parameters), container in itertools.product(structures.items(), ("mp4", "mkv", "ts")):
        yield f"h264_{name}.{container}", _made(f"a.{container}", "libx264", **_x264(parameters))
    for container in ("mov", "avi", "flv", "nut", "m2ts", "h264", "3gp"):
        yield f"h264_b3.{container}", _made(f"a.{container}", "libx264", **_x264("bframes=3"))
    for pixels in ("yuv422p", "yuv444p", "yuv420p10le", "yuv422p10le", "yuv444p10le", "gray", "yuvj420p", "yuvj444p"):
        yield f"h264_{pixels}.mp4", _made("a.mp4", "libx264", **_x264("bframes=3"), pixels=pixels)
    for height, width in ((16, 16), (34, 130), (2, 48), (91, 157), (97, 161), (1, 1)):
        pixels = "yuv444p" if height % 2 else "yuv420p"
        yield (
            f"h264_{height}x{width}.mp4",
            _made(
                "a.mp4",
                "libx264",
                **_x264("bframes=3"),
                size=(height, width),
                pixels=pixels,
                make=_noise(height, width),
            ),
        )
    for frames in (1, 2, 3):
        yield f"h264_{frames}_frames.mp4", _made("a.mp4", "libx264", **_x264("bframes=3"), frames=frames)
    for degrees in (90, 180, 270):
        yield f"h264_turned_{degrees}.mp4", _made("a.mp4", "libx264", **_x264("bframes=3"), rotation=degrees)
    for container in ("mp4", "mkv", "ts", "flv", "nut"):
        yield f"h264_variable.{container}", _made(f"a.{container}", "libx264", **_x264("bframes=3"), times=_TIMES)
        if container != "nut":
            yield f"h264_audio.{container}", _made(f"a.{container}", "libx264", **_x264("bframes=3"), audio=True)
    forms = {
        "fragments": {"movflags": "frag_keyframe+empty_moov"}, "dash": {"movflags": "dash+frag_every_frame"},
        "faststart": {"movflags": "faststart"}, "negative_offsets": {"movflags": "negative_cts_offsets"},
        "no_edit_list": {"use_editlist": "0"}, "timescale": {"video_track_timescale": "2147483647"},
        "late": {"output_ts_offset": "36000"},
    }  # fmt: skip
    for name, options in forms.items():
        yield f"h264_{name}.mp4", _made("a.mp4", "libx264", **_x264("bframes=3"), container_options=options)
    late = {"output_ts_offset": "95443.2", "mpegts_copyts": "1"}  # the counter of 33 bits begins again in between
    yield "h264_wrapped.ts", _made("a.ts", "libx264", **_x264("bframes=3"), container_options=late)
    yield (
        "h264_m2ts_mode.ts",
        _made("a.ts", "libx264", **_x264("bframes=3"), container_options={"mpegts_m2ts_mode": "1"}),
    )
    yield (
        "h264_clusters.mkv",
        _made("a.mkv", "libx264", **_x264("bframes=3"), container_options={"cluster_time_limit": "50"}),
    )


def _other_codecs() -> Iterator[tuple[str, Write]]:
    structures = {
        "closed": "open-gop=0", "open": "open-gop=1:radl=0", "radl": "open-gop=0:radl=2:bframes=4", "ip": "bframes=0",
        "one_key": "keyint=-1", "all_key": "keyint=1", "slices": "slices=3",
        "b8": "bframes=8:b-adapt=0:rc-lookahead=12",
    }  # fmt: skip
    for (name, parameters), container in itertools.product(structures.items(), ("mp4", "mkv", "ts")):
        yield f"hevc_{name}.{container}", _made(f"a.{container}", "libx265", **_x265(parameters))
    yield "hevc_closed.hevc", _made("a.hevc", "libx265", **_x265("open-gop=0"))
    for pixels in ("yuv420p10le", "yuv422p", "yuv444p", "yuv422p10le", "yuv420p12le"):
        yield f"hevc_{pixels}.mp4", _made("a.mp4", "libx265", **_x265("bframes=3"), pixels=pixels)
    for name, options in (("plain", {}), ("alt_ref", {"auto-alt-ref": "1", "lag-in-frames": "16", "deadline": "good"})):
        for container in ("webm", "mp4", "mkv", "ivf"):
            yield f"vp9_{name}.{container}", _made(f"a.{container}", "libvpx-vp9", options={**_VP9, **options})
        yield f"vp8_{name}.webm", _made("a.webm", "libvpx", options={"b": "1M", "threads": "1", **options})
    for pixels, profile in (("yuv444p", "1"), ("yuv420p10le", "2")):
        options = {**_VP9, "profile": profile}
        yield f"vp9_{pixels}.webm", _made("a.webm", "libvpx-vp9", options=options, pixels=pixels)
    yield "vp9_odd.webm", _made("a.webm", "libvpx-vp9", options=_VP9, size=(91, 157))
    for encoder, options in (("libsvtav1", {"preset": "12"}), ("libaom-av1", {"cpu-used": "10", "usage": "realtime"})):
        for container in ("mp4", "mkv", "webm", "ivf"):
            yield f"{encoder}.{container}", _made(f"a.{container}", encoder, options=options)
    many = [
        ("mpeg4", ("mp4", "avi", "mkv", "mov"), {"bf": "2"}, "yuv420p"),
        ("mpeg2video", ("ts", "mpg", "mkv"), {"bf": "2"}, "yuv420p"),
        ("mpeg1video", ("mpg", "mkv"), {"bf": "2"}, "yuv420p"),
        ("mjpeg", ("avi", "mov", "mkv"), {}, "yuvj420p"),
        ("ffv1", ("mkv", "avi"), {"g": "1"}, "yuv420p"),
        ("huffyuv", ("avi",), {}, "yuv422p"),
        ("prores_ks", ("mov",), {}, "yuv422p10le"),
        ("flv", ("flv", "avi"), {}, "yuv420p"),
        ("wmv2", ("asf", "avi"), {}, "yuv420p"),
        ("msmpeg4", ("avi",), {}, "yuv420p"),
        ("rawvideo", ("avi", "nut", "mkv"), {}, "yuv420p"),
        ("png", ("mov",), {}, "rgb24"),
        ("qtrle", ("mov",), {}, "rgb24"),
        ("libtheora", ("ogv",), {}, "yuv420p"),
        ("gif", ("gif",), {}, "rgb8"),
        ("utvideo", ("avi",), {}, "yuv420p"),
        ("cinepak", ("avi",), {}, "rgb24"),
        ("dirac", ("mkv",), {}, "yuv420p"),
    ]
    for encoder, containers, options, pixels in many:
        for container in containers:
            rate = {} if encoder in ("gif", "png", "rawvideo", "qtrle") else {"b": "4M"}
            yield f"{encoder}.{container}", _made(f"a.{container}", encoder, options={**rate, **options}, pixels=pixels)


def _noise(height: int, width: int) -> Callable[[int], Any]:
    """Return pictures for sizes that have no room for a barcode."""
    return lambda number: np.roll(np.resize(picture(number), (height, width, 3)), number, 1)


def _edited() -> Iterator[tuple[str, Write]]:
    """Videos that are cut and joined without encoding."""
    for container, encoder, more in (
        ("mp4", "libx264", _x264("bframes=3")), ("mov", "libx264", _x264("bframes=3:open-gop=1")),
        ("mp4", "libx265", _x265("open-gop=1:radl=0")), ("mp4", "mpeg4", {"options": {"bf": "2", "b": "2M"}}),
    ):  # fmt: skip
        for cut in (0.3, 0.5, 0.9):
            name = f"edit_list_{encoder}_{cut}.{container}"
            yield name, lambda f, e=encoder, m=more, c=container, at=cut: _cut(f, e, m, c, at)  # type: ignore[misc]
    for container, encoder, more in (
        ("ts", "libx264", _x264("bframes=3")), ("ts", "mpeg2video", {"options": {"bf": "2"}}),
        ("h264", "libx264", _x264("bframes=3")), ("hevc", "libx265", _x265("open-gop=0")),
    ):  # fmt: skip
        yield f"joined_{encoder}.{container}", lambda f, e=encoder, m=more, c=container: _joined(f, e, m, c)  # type: ignore[misc]
    yield "cover.mp4", _with_cover
    yield "two_streams.mkv", _two_streams


def _cut(folder: Path, encoder: str, more: dict[str, Any], container: str, seconds: float) -> Path:
    """Write the video from a time on: the packets from the key packet before, of which an edit list hides the first."""
    whole = write_video(folder / f"whole.{container}", encoder, **more)
    path = folder / f"cut.{container}"
    options = {"avoid_negative_ts": "disabled"}
    with av.open(str(whole)) as source, av.open(str(path), "w", options=options) as file:
        stream = source.streams.video[0]
        source.seek(round(seconds / stream.time_base), stream=stream, backward=True)
        copy = file.add_stream_from_template(stream)
        shift = round(seconds / stream.time_base)
        for packet in source.demux(stream):
            if packet.dts is not None and packet.size:
                packet.pts, packet.dts, packet.stream = packet.pts - shift, packet.dts - shift, copy
                file.mux(packet)
    return path


def _joined(folder: Path, encoder: str, more: dict[str, Any], container: str) -> Path:
    """Write two videos one after the other, so that times occur twice."""
    parts = [write_video(folder / f"{k}.{container}", encoder, frames=n, **more) for k, n in enumerate((FRAMES, 20))]
    path = folder / f"joined.{container}"
    path.write_bytes(b"".join(p.read_bytes() for p in parts))
    return path


def _with_cover(folder: Path) -> Path:
    """Write a video with a cover picture, which is a stream of its own."""
    video = write_video(folder / "v.mp4", "libx264", **_x264("bframes=3"))
    cover = write_video(folder / "c.avi", "mjpeg", pixels="yuvj420p", frames=1, size=(64, 64), make=_noise(64, 64))
    path = folder / "cover.mp4"
    with av.open(str(cover)) as one, av.open(str(video)) as two, av.open(str(path), "w") as file:
        picture_stream = file.add_stream_from_template(one.streams.video[0])
        picture_stream.disposition = av.stream.Disposition.attached_pic
        copy = file.add_stream_from_template(two.streams.video[0])
        for source, stream in ((one, picture_stream), (two, copy)):
            for packet in source.demux(video=0):
                if packet.size:
                    packet.stream = stream
                    file.mux(packet)
    return path


def _two_streams(folder: Path) -> Path:
    """Write a small and a large stream, of which FFmpeg considers the large one best."""
    sources = [
        write_video(folder / f"{k}.mp4", "libx264", **_x264("bframes=3"), size=size, make=_noise(*size))
        for k, size in enumerate(((48, 64), (HEIGHT, WIDTH)))
    ]
    path = folder / "two.mkv"
    with av.open(str(sources[0])) as one, av.open(str(sources[1])) as two, av.open(str(path), "w") as file:
        copies = [file.add_stream_from_template(s.streams.video[0]) for s in (one, two)]
        packets = [(p, copy) for s, copy in zip((one, two), copies, strict=True) for p in s.demux(video=0) if p.size]
        for packet, copy in sorted(packets, key=lambda item: item[0].dts):
            packet.stream = copy
            file.mux(packet)
    return path


def videos() -> dict[str, Write]:
    """Return the functions that write the videos, by name."""
    return dict([*_h264(), *_other_codecs(), *_edited()])


def full_decode(path: Path) -> list[Any]:
    """Return all frames that FFmpeg gives for the stream that it considers best, turned as the file says.

    Those of Motion JPEG are Pillow's.
    """
    attached = av.stream.Disposition.attached_pic
    with av.open(str(path)) as file:
        best = file.streams.best("video")
        if best.disposition & attached:
            best = next(s for s in file.streams.video if not s.disposition & attached)
        if best.codec_context.name == "mjpeg":
            return jpeg_frames(file, best)
        return [np.rot90(plain_pixels(frame), frame.rotation // 90 % 4) for frame in file.decode(best)]


def faults(path: Path, expected: Sequence[Any]) -> list[str]:
    """Compare all frames by number. Return descriptions of those that differ."""
    found: list[str] = []
    draws = random.Random(path.name)
    for source in (path, path.read_bytes()):
        kind = "path" if source is path else "bytes"
        try:
            with eager.video.open(source) as video:
                if len(video) != len(expected):
                    found.append(f"{kind}: {len(expected)} frames expected, got {len(video)}")
                count = min(len(video), len(expected))
                numbers = draws.sample(range(count), min(count, _MAX_SINGLE))
                wrong = [n for n in numbers if not np.array_equal(video[n], expected[n])]
                several = draws.choices(range(count), k=12)
                batch = video[several]
                wrong += [n for n, frame in zip(several, batch, strict=True) if not np.array_equal(frame, expected[n])]
                wrong += [n for n, frame in enumerate(video) if n < count and not np.array_equal(frame, expected[n])]
                if wrong:
                    found.append(f"{kind}: wrong frames {sorted(set(wrong))}")
        except (StokerError, OSError) as error:
            found.append(f"{kind}: {error}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Compare all videos, print a line each, and return 1 if a frame of one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only videos whose names contain one of these")
    words = parser.parse_args(argv).words
    bad = frames = compared = 0
    begin = time.perf_counter()
    for name, write in videos().items():
        if words and not any(word in name for word in words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                path = write(Path(folder))
            except BaseException as error:  # pytest's skip too: an encoder or muxer is missing
                print(f"{name:<36} left out: {type(error).__name__}: {str(error).splitlines()[0][:70]}")
                continue
            expected = full_decode(path)
            wrong = faults(path, expected)
            if name in DAMAGED:
                is_reported = any("eager.video" in text for text in wrong)
                wrong = [] if is_reported else [f"expected an error: {DAMAGED[name]}"]
        frames, compared, bad = frames + len(expected), compared + 1, bad + bool(wrong)
        print(f"{name:<36} {len(expected):>4} frames  {'; '.join(wrong) or 'equal'}", flush=True)
    print(f"{compared} videos, {frames} frames, {bad} videos with faults, {time.perf_counter() - begin:.0f} s")
    return int(bad > 0 or not compared)


if __name__ == "__main__":
    sys.exit(main())

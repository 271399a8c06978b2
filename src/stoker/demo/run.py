# SPDX-License-Identifier: Apache-2.0
"""``stoker demo``: the whole demonstration on a folder of photographs, in two minutes, without torch."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from stoker import DataError, Pipeline, StokerError

from .._image_formats import open_image
from ..contract.text import printable
from ..inspection.progress import progress_bar
from ..inspection.survey import FolderUnusable, Survey, list_files, survey
from . import chain, checks, dataset, detection, messages, photos, sheet

BATCH = 64
SEED = 7
_KINDS = ("images", "detection", "video", "audio")
_SURVEY_LIMIT = 20_000
_COMPARE_LIMIT, _COMPARE_SECONDS = 2_000, 20.0
_TRAIN_SECONDS, _PILLOW_SECONDS = 2.0, 6.0
_RESUME_BATCHES, _RESUME_BATCH = 8, 32
_SHEET_ROWS = 6
_MAX_BAD_BATCHES = 20

T = TypeVar("T")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration and return the exit status."""
    arguments = parser().parse_args(argv)
    out = arguments.out.expanduser().absolute()
    try:
        if arguments.kind == "video":
            return _show_videos(arguments.data, out)
        if arguments.kind == "audio":
            return _show_audio(arguments.data, out)
        if arguments.kind == "detection":
            _draw_detection(arguments.data, arguments.annotations, out)
        else:
            _run(arguments.data, out, arguments.seconds)
    except (FolderUnusable, dataset.FolderTaken, photos.PhotosMissing) as error:
        print(f"stoker demo: {printable(str(error))}", file=sys.stderr)
        return 2
    except StokerError as error:
        print(f"stoker demo: {printable(str(error))}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.filename is None:  # the output's own failure, which ends every command in one way
            raise
        print(f"stoker demo: {printable(str(error.filename))}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    text = (
        "The ImageNet training chain over a folder, the operators of detection on boxes and masks, made videos "
        "whose barcodes prove that each frame is the one that was asked for (the extra `video`), or the front end of a "
        "speech model over made clips."
    )
    made = argparse.ArgumentParser(prog="stoker demo", description=text)
    made.add_argument("kind", nargs="?", choices=_KINDS, default="images", help="default: images")
    made.add_argument("--data", type=Path, help="folder of JPEG photographs, flat or nested; default: synthetic ones")
    text = "detection: annotations of --data in COCO's form; default: annotations.json in the folder"
    made.add_argument("--annotations", type=Path, help=text)
    made.add_argument("--out", type=Path, default=Path("stoker-demo"), help="where to write; default: ./stoker-demo")
    made.add_argument("--seconds", type=float, default=20.0, help="run the chain at most so long; default: 20")
    return made


def _show_videos(data: Path | None, out: Path) -> int:
    """Return the exit status: 1 if a frame was wrong."""
    if data is not None:
        raise FolderUnusable("expected no --data with `video`: the barcodes are in clips that it makes itself")
    from . import video  # with PyAV

    return int(not video.run(out, dataset.available_cpus()))


def _show_audio(data: Path | None, out: Path) -> int:
    """Return the exit status: 1 if bits were different."""
    if data is not None:
        raise FolderUnusable("expected no --data with `audio`: the demonstration makes its clips itself")
    from . import audio

    return int(not audio.run(out, dataset.available_cpus()))


def _draw_detection(data: Path | None, annotations: Path | None, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    folder = None if data is None else data.expanduser().absolute()
    file = None if annotations is None else annotations.expanduser().absolute()
    messages.sheet(detection.run(folder, file, out))


def _run(data: Path | None, out: Path, seconds: float) -> None:
    out.mkdir(parents=True, exist_ok=True)
    found = _make_data(out) if data is None else _look_through(data.expanduser().absolute())
    threads = dataset.available_cpus()
    rate = _train(found, threads, seconds)
    _compare_rates(found, rate, threads)
    _compare_bits(found, threads)
    _stop_and_resume(found, threads)
    _draw_sheet(found, out, synthetic=data is None)
    messages.snippet(_reader_arguments(found, out), threads)


def _make_data(out: Path) -> Survey:
    root = out / "data"
    data = dataset.find(root)
    if data is None:
        with progress_bar(dataset.DEFAULT_COUNT, "photographs") as bar:
            data = dataset.make(root, progress=bar.update)
    photos = survey(root)
    photos.left_out.clear()  # the data set's own manifest and note
    messages.data(
        f"{data.count} JPEG files in {len(photos.classes)} classes, {data.size_bytes / 1e6:.0f} MB, in {root}",
        "SYNTHETIC: cropped, turned, re-encoded copies of a few freely licensed photographs",
        "that scikit-image ships. Try your own with --data FOLDER (make demo DATA=FOLDER).",
    )
    return photos


def _look_through(root: Path) -> Survey:
    total = min(len(list_files(root)), _SURVEY_LIMIT)
    with progress_bar(total, "files", "files") as bar:
        found = survey(root, limit=_SURVEY_LIMIT, progress=bar.update)
    messages.survey(found)
    return found


def _train(found: Survey, threads: int, seconds: float) -> float:
    """Run one epoch of the training chain (more if short, less if the time is up) and return images per second."""
    total, done, started = len(found.files), 0, time.perf_counter()
    with chain.training(found.files, found.labels, batch_size=BATCH, threads=threads, seed=SEED) as pipeline:
        batches = _good_batches(pipeline, found)
        with progress_bar(total, "training") as bar:
            while done < total and time.perf_counter() - started < seconds:
                count = next(batches)
                bar.update(min(count, total - done))
                done += count
        while time.perf_counter() - started < min(seconds, _TRAIN_SECONDS):
            done += next(batches)
        rate = done / (time.perf_counter() - started)
        report = pipeline.report()
    part = f"{done // total} epoch{'s' if done >= 2 * total else ''}" if done >= total else f"{done} of {total} images"
    messages.training(rate, threads, part)
    messages.limit(report.limit, [(stage.name, stage.ms_per_row, stage.share) for stage in report.stages])
    return rate


def _good_batches(pipeline: Pipeline, found: Survey) -> Iterator[int]:
    """Run a pipeline endlessly and yield the number of images of each batch. A batch with a bad sample is reported."""
    failures = 0
    while True:
        try:
            yield len(pipeline.run()[0])
        except DataError as error:
            failures += 1
            messages.bad_sample(str(error))
            if failures == _MAX_BAD_BATCHES:
                raise FolderUnusable(f"{found.root}: {failures} batches hold files that cannot be decoded.") from None


def _compare_rates(found: Survey, rate: float, threads: int) -> None:
    plain = chain.PillowChain(SEED)
    done, started = 0, time.perf_counter()
    files = _spread(found.files, _COMPARE_LIMIT)
    with progress_bar(len(files), "Pillow") as bar:
        for file in files:
            try:
                plain.load(file)
            except (OSError, SyntaxError, ValueError):
                continue
            done += 1
            bar.update()
            if time.perf_counter() - started > _PILLOW_SECONDS:
                break
    messages.pillow(done / (time.perf_counter() - started), rate, threads)


def _compare_bits(found: Survey, threads: int) -> None:
    files = _spread(found.files, _COMPARE_LIMIT)
    with progress_bar(len(files), "comparing") as bar:
        result = checks.compare_with_pillow(files, seconds=_COMPARE_SECONDS, threads=threads, progress=bar.update)
    messages.comparison(result.equal, result.compared, result.different, result.failed)


def _stop_and_resume(found: Survey, threads: int) -> None:
    batch = min(_RESUME_BATCH, max(1, len(found.files) // 4))
    count = min(len(found.files), batch * _RESUME_BATCHES)
    files, labels = _spread(found.files, count), _spread(found.labels, count)
    result = checks.stop_and_resume(
        lambda: chain.training(files, labels, batch_size=batch, threads=threads, seed=SEED), max(2, count // batch)
    )
    messages.resumption(result.stopped_after, result.batches, result.whole, result.resumed)


def _draw_sheet(found: Survey, out: Path, *, synthetic: bool) -> None:
    files = _pick(found)
    with chain.augmentations(files, seed=SEED) as pipeline:
        outputs = pipeline.run()
    rows = [
        sheet.Row(file.parent.name, file.name, outputs[0][i], [output[i] for output in outputs[1:]])
        for i, file in enumerate(files)
    ]
    kind = "synthetic photographs" if synthetic else "photographs"
    text = f"{len(files)} of {len(found.files)} {kind}. Random crops to {chain.SIZE}x{chain.SIZE}, seed {SEED}."
    path = out / "sheet.png"
    sheet.draw_sheet(rows, "Stoker: what a training loop gets to see", text, chain.SHEET_COLUMNS).save(path)
    messages.sheet(path)


def _reader_arguments(found: Survey, out: Path) -> str:
    """Return arguments of `readers.file` for the same files: the folder itself, or a list of its usable files."""
    root = f"file_root={str(found.root)!r}"
    whole = not found.left_out and not found.skipped
    if whole and all("/" not in name and name != "." for name in found.classes):
        return root
    listing = out / "files.txt"
    names = [file.relative_to(found.root).as_posix() for file in found.files]
    listing.write_text("".join(f"{name} {label}\n" for name, label in zip(names, found.labels, strict=True)))
    return f"{root},\n{' ' * 36}file_list={str(listing)!r}"


def _pick(found: Survey) -> list[Path]:
    """Return photographs for the sheet: in colour if there are enough, of different classes if there are enough."""
    candidates = _spread(found.files, 40 * _SHEET_ROWS)
    colour = [file for file in candidates if _mode(file) != "L"] or candidates
    by_class: dict[Path, list[Path]] = {}
    for file in colour:
        by_class.setdefault(file.parent, []).append(file)
    groups = list(by_class.values())
    turns = [group[turn] for turn in range(max(map(len, groups))) for group in groups if turn < len(group)]
    return turns[:_SHEET_ROWS]


def _mode(file: Path) -> str:
    with open_image(file) as image:
        return image.mode


def _spread(items: Sequence[T], count: int) -> list[T]:
    """Return at most `count` of the items, evenly spread."""
    return list(items) if len(items) <= count else [items[i * len(items) // count] for i in range(count)]


if __name__ == "__main__":
    sys.exit(main())

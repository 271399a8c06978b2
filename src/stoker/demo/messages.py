# SPDX-License-Identifier: Apache-2.0
"""Output of the demonstration: a short label on the left, the finding on the right."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..contract.text import printable
from ..inspection.survey import Finding, Survey

_WORD = 12
_LISTED = 8

_SNIPPET = """
from stoker import fn, pipeline_def, types
from stoker.torch import Loader

@pipeline_def(batch_size=128, num_threads={threads}, device_id=None, seed=7)
def training(crop_size):
    jpegs, labels = fn.readers.file({arguments}, random_shuffle=True, name="Reader")
    images = fn.decoders.image_random_crop(jpegs, device="cpu", output_type=types.RGB)
    images = fn.resize(images, resize_x=crop_size, resize_y=crop_size)
    images = fn.crop_mirror_normalize(images, mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
                                      std=[0.229 * 255, 0.224 * 255, 0.225 * 255], mirror=fn.random.coin_flip())
    return images, labels

for x, y in Loader(training(224)):      # x float32 (128, 3, 224, 224), y int64 (128,)
    ...
"""


def _print(word: str, *lines: str) -> None:
    for index, line in enumerate(lines):
        print(f"{word if index == 0 else '':<{_WORD}}{printable(line)}", flush=True)


def lines(word: str, *texts: str) -> None:
    """Print lines with a label."""
    _print(word, *texts)


def data(*lines: str) -> None:
    """Print the origin of the images."""
    _print("Data", *lines)


def survey(photos: Survey) -> None:
    """Print the contents of a folder, with the files left out and the reasons."""
    classes = f" in {len(photos.classes)} folders" if len(photos.classes) > 1 else ""
    _print("Data", f"{len(photos.files)} usable JPEG files{classes}, of {photos.total} files in {photos.root}")
    if photos.skipped:
        _print("", f"{photos.skipped} more files were not looked at")
    _list("used, with a remark", photos.unusual, photos.root)
    _list("left out", photos.left_out, photos.root)


def _list(title: str, findings: Sequence[Finding], root: Path) -> None:
    if not findings:
        return
    counts = Counter(finding.remark for finding in findings)
    _print("", f"{title}: " + ", ".join(f"{count} {remark}" for remark, count in counts.most_common()))
    width = shutil.get_terminal_size((100, 24)).columns - _WORD - 2
    for finding in findings[:_LISTED]:
        detail = f" ({finding.detail})" if finding.detail else ""
        _print("", f"  {Path(finding.path).relative_to(root)}: {finding.remark}{detail}"[:width])
    if len(findings) > _LISTED:
        _print("", f"  and {len(findings) - _LISTED} more")


def bad_sample(text: str) -> None:
    """Print a batch that failed."""
    _print("", f"  skipped a batch: {text}")


def training(rate: float, threads: int, part: str) -> None:
    """Print the rate of the training chain."""
    _print(
        "Training",
        f"{rate:,.0f} images/s on {threads} thread{'s' if threads > 1 else ''}, {part}: read, decode a random crop,",
        "resize to 224x224, flip, normalise, float32 batches of 64",
    )


def limit(text: str, stages: Sequence[tuple[str, float, float]]) -> None:
    """Print the bottleneck, and the time of each stage."""
    width = max((len(name) for name, _, _ in stages), default=0)
    table = [f"  {name:<{width}}  {ms:6.3f} ms per image  {share:4.0%}" for name, ms, share in stages]
    _print("Limited by", text, *table)


def pillow(plain: float, rate: float, threads: int) -> None:
    """Print the same chain's rate on Pillow."""
    _print(
        "Pillow",
        f"{plain:,.0f} images/s for the same chain on Pillow and NumPy in one process:",
        f"Stoker is {rate / plain:.1f} times as fast on {threads} thread{'s' if threads > 1 else ''}",
    )


def comparison(equal: int, total: int, different: Sequence[Path], failed: Sequence[tuple[Path, str]]) -> None:
    """Print the number of decoded images that are equal."""
    _print("Exact", f"{equal} of {total} decoded images equal Pillow's bit for bit")
    for path in different[:_LISTED]:
        _print("", f"  differs: {path}")
    for path, reason in failed[:_LISTED]:
        _print("", f"  not compared: {path}: {reason}")


def resumption(stopped_after: int, batches: int, whole: int, resumed: int) -> None:
    """Print the checksums with and without a stop."""
    verdict = "the same" if whole == resumed else "NOT THE SAME"
    _print(
        "Resume",
        f"{batches} batches in one go:           checksum {whole:08x}",
        f"stopped after {stopped_after}, resumed by token: checksum {resumed:08x}, {verdict}",
    )


def sheet(path: Path) -> None:
    """Print the path of the contact sheet."""
    _print("Look at", str(path))


def snippet(reader_arguments: str, threads: int) -> None:
    """Print a training loop for the user's own files, ready to paste."""
    print("\nPaste this into a training script (it needs torch):")
    print(_SNIPPET.format(threads=threads, arguments=reader_arguments))

# SPDX-License-Identifier: Apache-2.0
"""Files and arguments of the readers of LMDB environments, annotations, sequences and manifests, for DALI's values.

``tests.containers.dali_values`` records what DALI returns for these cases.
"""

from __future__ import annotations

import io
import json
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from containers import datum, lmdb, tensor, tensors

SIZES = {7: (20, 30), 3: (11, 40), 12: (25, 25), 5: (8, 9)}  # by number of the image: height, width
CATEGORIES = [90, 5, 17]


def write_files(folder: Path) -> None:
    """Write LMDB environments, annotations with their images, frames, and manifests with their audio."""
    _write_caffe(folder)
    _write_caffe2(folder)
    _write_coco(folder)
    _write_frames(folder / "frames")
    _write_speech(folder)


def _environment(path: Path, records: dict[bytes, bytes]) -> None:
    path.mkdir()
    (path / "data.mdb").write_bytes(lmdb(records))


def _write_caffe(folder: Path) -> None:
    # The keys are not in their numbers' order as bytes; a large value has pages of its own; a record lacks its label.
    encoded = {
        b"%d" % i: datum(data=b"image %d" % i * (300 if i == 8 else 1), label=None if i == 3 else 5 * i - 9,
                         encoded=True if i % 2 else None)
        for i in range(1, 13)
    }  # fmt: skip
    _environment(folder / "caffe", encoded)
    pixels = {b"%d" % i: datum(data=bytes(range(i, i + 24)), label=i, shape=(3, 2, 4), encoded=False) for i in range(4)}
    _environment(folder / "caffe.pixels", pixels)
    _environment(folder / "caffe.more", {b"a%d" % i: datum(data=b"more %d" % i, label=100 + i) for i in range(3)})


def _write_caffe2(folder: Path) -> None:
    for name, form in {"string": lambda i: tensor(b"image %d" % i, 4), "pixels": _pixels, "grey": _grey}.items():
        records = {b"%d" % i: tensors(form(i), tensor([3 * i - 4], 2)) for i in range(11)}
        _environment(folder / f"caffe2.{name}", records)
    image = tensor(b"encoded", 4)
    dense = {b"%d" % i: tensors(image, tensor([i, 2 * i, -i], 2)) for i in range(3)}
    _environment(folder / "caffe2.dense", dense)
    floats = {b"%d" % i: tensors(image, tensor([i / 4, 1.5], 1)) for i in range(3)}
    _environment(folder / "caffe2.floats", floats)
    # DALI takes a tensor after those that the arguments name for a box, so each case has its own number of tensors.
    others = {
        b"%d" % i: (image, tensor([i], 2), tensor([i + 0.5, 2.0], 1), tensor([7, i], 10), tensor([1, 2, 3, i], 2))
        for i in range(3)
    }
    _environment(folder / "caffe2.others", {key: tensors(*own[:-1]) for key, own in others.items()})
    _environment(folder / "caffe2.box", {key: tensors(*own) for key, own in others.items()})
    _environment(folder / "caffe2.labels", {b"%d" % i: tensors(tensor([i], 2)) for i in range(3)})
    _environment(folder / "caffe2.images", {b"%d" % i: tensors(tensor(b"alone %d" % i, 4)) for i in range(3)})
    _environment(folder / "caffe2.more", {b"z%d" % i: tensors(tensor(b"more %d" % i, 4)) for i in range(2)})


def _pixels(i: int) -> bytes:
    return tensor(bytes(range(i, i + 24)), 3, (2, 4, 3))


def _grey(i: int) -> bytes:
    return tensor(bytes(range(i, i + 8)), 3, (2, 4))


def _write_coco(folder: Path) -> None:
    """Write annotations with polygons, crowds, small boxes, and an image without any."""
    rng = np.random.default_rng(3)
    (folder / "coco").mkdir()
    images = [{"id": i, "file_name": f"im{i}.jpg", "height": h, "width": w} for i, (h, w) in SIZES.items()]
    for image in images:
        (folder / "coco" / str(image["file_name"])).write_bytes(b"image %d" % image["id"])
    annotations = []
    for number, image in enumerate([7, 3, 3, 12, 7, 12, 12, 7, 3]):
        h, w = SIZES[image]
        corner, extent = rng.random(2) * [w, h] / 2, rng.random(2) * [w, h] / 2
        segmentation: Any = [
            (rng.random(2 * n) * 1.2 * w - 2).round(2).tolist() for n in rng.integers(3, 7, 1 + number % 2)
        ]
        if number in (2, 5):
            cuts = np.sort(rng.integers(0, h * w, 5))
            segmentation = {"size": [h, w], "counts": np.diff(cuts, prepend=0, append=h * w).tolist()}
        annotations.append({
            "id": number, "image_id": image, "category_id": CATEGORIES[number % 3], "iscrowd": int(number in (2, 5)),
            "bbox": [round(float(v), 2) for v in (*corner, *extent)], "segmentation": segmentation,
        })  # fmt: skip
    categories = [{"id": c, "name": str(c)} for c in CATEGORIES]
    whole = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "coco.json").write_text(json.dumps(whole))
    # In DALI a run-length mask replaces the polygons of its label in an image, which Stoker does not copy.
    plain = [{**a, "category_id": 17 if a["iscrowd"] else CATEGORIES[a["id"] % 2]} for a in annotations]
    (folder / "masks.json").write_text(json.dumps({**whole, "annotations": plain}))


def _write_frames(root: Path) -> None:
    """Write streams of six, two and three frames of unlike sizes, and a file that is no image."""
    from PIL import Image

    rng = np.random.default_rng(5)
    for stream, count, size in (("b", 6, (3, 5)), ("a", 2, (4, 4)), ("c", 3, (2, 6))):
        (root / stream).mkdir(parents=True)
        for i in range(count):
            pixels = rng.integers(0, 256, (*size, 3), np.uint8)
            Image.fromarray(pixels).save(root / stream / f"{i + 8}.png")  # "10" comes before "8"
    (root / "b" / "list.txt").write_text("no image")


def _write_speech(folder: Path) -> None:
    """Write manifests with parts of files, durations, damaged lines and texts that are not ASCII."""
    rng = np.random.default_rng(6)
    (folder / "speech").mkdir()
    lines = []
    for i in range(5):
        channels, rate, count = 1 + i % 2, (8000, 4000)[i % 2], 40 + 8 * i
        file = io.BytesIO()
        with wave.open(file, "wb") as out:
            out.setnchannels(channels)
            out.setsampwidth(2)
            out.setframerate(rate)
            out.writeframes(rng.integers(-30000, 30000, (count, channels)).astype("<i2").tobytes())
        path = folder / "speech" / f"{i}.wav"
        path.write_bytes(file.getvalue())
        entry: dict[str, Any] = {"audio_filepath": str(path), "text": ("zero", "éin", "", "two words", "四")[i]}
        if i != 2:
            entry["duration"] = count / rate
        lines.append(entry)
    parts = [
        {**lines[0], "offset": 0.0025, "duration": 0.001}, {**lines[3], "offset": 0.002, "duration": 9.0},
        {**lines[1], "duration": 0.005}, {"audio_filepath": lines[2]["audio_filepath"], "offset": 0.003},
    ]  # fmt: skip
    _manifest(folder / "speech.json", lines)
    _manifest(folder / "parts.json", parts)


def _manifest(path: Path, entries: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(e, ensure_ascii=False) + "\n" for e in entries), encoding="utf-8")


SHARDS = [{"num_shards": 3, "shard_id": i, "stick_to_shard": True, "pad_last_batch": True} for i in range(3)]


def cases(types: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield name, reader and arguments of each case; paths are names in the folder of the files."""
    for reader, own in (
        ("caffe", _caffe_cases()), ("caffe2", _caffe2_cases()), ("coco", _coco_cases()),
        ("sequence", _sequence_cases(types)), ("nemo_asr", _speech_cases(types)),
    ):  # fmt: skip
        for name, arguments in own.items():
            yield f"{reader} {name}".strip(), reader, arguments


def _caffe_cases() -> dict[str, dict[str, Any]]:
    return {
        "": {"path": "caffe"}, "pixels": {"path": "caffe.pixels"}, "several": {"path": ["caffe.more", "caffe"]},
        "images": {"path": "caffe", "label_available": False}, "labels": {"path": "caffe", "image_available": False},
        **{f"shard {i}": {"path": ["caffe", "caffe.more"], **part} for i, part in enumerate(SHARDS)},
    }  # fmt: skip


def _caffe2_cases() -> dict[str, dict[str, Any]]:
    alone = {"label_type": 4}
    return {
        **{form: {"path": f"caffe2.{form}"} for form in ("string", "pixels", "grey")},
        "several": {"path": ["caffe2.more", "caffe2.images"], **alone},
        "dense": {"path": "caffe2.dense", "label_type": 2}, "dense floats": {"path": "caffe2.floats", "label_type": 2},
        "others": {"path": "caffe2.others", "additional_inputs": 2},
        "box": {"path": "caffe2.box", "additional_inputs": 2, "bbox": True},
        "labels": {"path": "caffe2.labels", "image_available": False}, "images": {"path": "caffe2.images", **alone},
        **{f"shard {i}": {"path": "caffe2.string", **part} for i, part in enumerate(SHARDS)},
    }  # fmt: skip


def _coco_cases() -> dict[str, dict[str, Any]]:
    forms: dict[str, dict[str, Any]] = {
        "": {}, "ltrb": {"ltrb": True}, "ratio": {"ratio": True}, "ltrb ratio": {"ltrb": True, "ratio": True},
        "categories": {"avoid_class_remapping": True}, "no crowds": {"include_iscrowd": False},
        "threshold": {"size_threshold": 6.0}, "threshold ratio": {"size_threshold": 4.5, "ratio": True},
        "not empty": {"skip_empty": True}, "not empty after filters": {"skip_empty": True, "size_threshold": 4.5},
        "images": {"images": ["im12.jpg", "im3.jpg", "im12.jpg"]}, "ids": {"image_ids": True},
        "polygons": {"polygon_masks": True}, "polygons ratio": {"polygon_masks": True, "ratio": True},
        "coordinates": {"masks": True}, "polygons of images": {"polygon_masks": True, "images": ["im7.jpg"]},
        "all": {"polygon_masks": True, "ltrb": True, "ratio": True, "skip_empty": True, "image_ids": True},
        **{f"shard {i}": part for i, part in enumerate(SHARDS)},
    }  # fmt: skip
    found = {name: {"file_root": "coco", "annotations_file": "coco.json", **own} for name, own in forms.items()}
    masks = {"file_root": "coco", "annotations_file": "masks.json", "pixelwise_masks": True}
    return {**found, "mask": masks, "mask ids": {**masks, "image_ids": True, "include_iscrowd": False}}


def _sequence_cases(types: Any) -> dict[str, dict[str, Any]]:
    forms: dict[str, dict[str, Any]] = {
        "": {"sequence_length": 2}, "one": {"sequence_length": 1}, "step": {"sequence_length": 2, "step": 2},
        "stride": {"sequence_length": 2, "stride": 2}, "both": {"sequence_length": 3, "step": 2, "stride": 2},
        "long step": {"sequence_length": 1, "step": 4}, "grey": {"sequence_length": 2, "image_type": types.GRAY},
        "bgr": {"sequence_length": 3, "image_type": types.BGR},
        **{f"shard {i}": {"sequence_length": 2, **part} for i, part in enumerate(SHARDS)},
    }  # fmt: skip
    return {name: {"file_root": "frames", **own} for name, own in forms.items()}


def _speech_cases(types: Any) -> dict[str, dict[str, Any]]:
    forms: dict[str, dict[str, Any]] = {
        "": {}, "int16": {"dtype": types.INT16}, "channels": {"downmix": False}, "numbers": {"read_idxs": True},
        "channels int16": {"downmix": False, "dtype": types.INT16},
        "audio": {"read_sample_rate": False, "read_text": False}, "text": {"read_sample_rate": False},
        "int32": {"dtype": types.INT32}, "rate": {"read_text": False},
        **{f"resampled {q:g}": {"sample_rate": 6000.0, "quality": q} for q in (0.0, 50.0, 100.0)},
        "resampled channels": {"sample_rate": 16000.0, "downmix": False},
        "shortest": {"min_duration": 0.0065, "read_idxs": True},
        "longest": {"max_duration": 0.0085, "read_idxs": True},
        "between": {"min_duration": 0.006, "max_duration": 0.01, "read_idxs": True},
        **{f"shard {i}": part for i, part in enumerate(SHARDS)},
        "without effect": {
            "dont_use_mmap": True, "initial_fill": 7, "lazy_init": True, "normalize_text": False, "read_ahead": True,
            "prefetch_queue_depth": 2, "skip_cached_images": True, "tensor_init_bytes": 4096,
            "shuffle_after_epoch_seed": 5,
        },
        "shuffled": {"random_shuffle": True, "seed": 4, "read_idxs": True},
        "shuffled epochs": {"shuffle_after_epoch": True, "read_idxs": True},
    }  # fmt: skip
    found = {name: {"manifest_filepaths": ["speech.json"], **own} for name, own in forms.items()}
    both = {"manifest_filepaths": ["parts.json", "speech.json"], "read_idxs": True}
    return {**found, "parts": {"manifest_filepaths": ["parts.json"]}, "several": both,
            "several filtered": {**both, "min_duration": 0.0055}}  # fmt: skip

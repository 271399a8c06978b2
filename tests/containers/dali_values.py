# SPDX-License-Identifier: Apache-2.0
"""Rows of DALI's readers of containers for the arguments on which both libraries agree.

``python -m tests.containers.dali_values`` writes them to ``dali_values.json``, in an environment with DALI (a CPU is
enough). The tests compare Stoker's rows with the record; ``make test-dali`` compares DALI's rows with it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from containers import MAGIC, example, image_record, recordio, tar, tfrecord
from tests.containers import dali_records

VALUES = Path(__file__).with_name("dali_values.json")


def write_files(folder: Path) -> None:
    """Write the containers and their index files."""
    for name, numbers in (("a", range(5)), ("b", range(5, 8))):
        records = [
            example(
                {"image": bytes([65 + i]) * (i + 1), "one": [i], "two": [i, -i], "f": [i / 2.0, 1.5, -2.0, i * 1.0]}
            )
            for i in numbers
        ]
        (folder / f"{name}.tfrecord").write_bytes(tfrecord(records))
        at, lines = 0, []
        for record in records:
            lines.append(f"{at} {len(record) + 16}\n")
            at += len(record) + 16
        (folder / f"{name}.tfrecord.idx").write_text("".join(lines))
        images = [
            image_record([1.5, float(i)] if i % 3 == 1 else float(i), b"%d" % i * 5 + b"..." * (i % 4) + b"\0")
            for i in numbers
        ]
        if name == "a":
            images[2] = image_record(9.0, b"1234" * 9 + MAGIC + b"tail")
        data, begins = recordio(images)
        (folder / f"{name}.rec").write_bytes(data)
        (folder / f"{name}.idx").write_text("".join(f"{9 - k}\t{begin}\n" for k, begin in enumerate(begins)))
    first = (folder / "a.rec").stat().st_size
    lines = (folder / "a.idx").read_text().split("\n")[:-1]
    more = [line.split("\t") for line in (folder / "b.idx").read_text().split("\n")[:-1]]
    (folder / "ab.idx").write_text("\n".join([*lines, *(f"{k}\t{int(v) + first}" for k, v in more)]) + "\n")
    members = []
    for i in range(8):
        members.append((f"d/{i}.jpg" if i % 3 else f"d/{i}.png", b"image %d" % i))
        if i % 4:
            members.append((f"d/{i}.f32", np.arange(i % 5, dtype="<f4").tobytes()))
        members.append((f"d/{i}.left.jpg", b"left"))
    members.insert(3, ("d/0.JPG", b"upper"))
    (folder / "a.tar").write_bytes(tar(members[:11]))
    (folder / "b.tar").write_bytes(tar(members[11:]))
    array = np.arange(24, dtype=np.uint8).reshape(4, 6)
    np.save(folder / "c.npy", array)
    np.save(folder / "f.npy", np.asfortranarray(array))
    dali_records.write_files(folder)


def cases(types: Any, tf: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield name, reader and arguments of each case; paths are names in the folder of the files."""
    feature = {
        "image": tf.FixedLenFeature((), tf.string, ""), "one": tf.FixedLenFeature([1], tf.int64, -1),
        "scalar": tf.FixedLenFeature((), tf.int64, -1), "two": tf.FixedLenFeature([2], tf.int64, -1),
        "square": tf.FixedLenFeature([2, 2], tf.float32, 0.0), "list": tf.VarLenFeature(tf.float32, 0.0),
        "pairs": tf.VarLenFeature([2], tf.float32, 0.0), "ints": tf.VarLenFeature(tf.int64, 0),
    }  # fmt: skip
    names = {"scalar": "one", "square": "f", "list": "f", "pairs": "f", "ints": "two"}
    for key, declared in feature.items():
        features = {names.get(key, key): declared}
        yield f"tfrecord {key}", "tfrecord", {"path": ["a.tfrecord", "b.tfrecord"], "index_path":
                                              ["a.tfrecord.idx", "b.tfrecord.idx"], "features": features}  # fmt: skip
    yield "tfrecord several", "tfrecord", {"path": "b.tfrecord", "index_path": "b.tfrecord.idx",
                                           "features": {k: feature[k] for k in ("two", "image", "one")}}  # fmt: skip
    yield "mxnet", "mxnet", {"path": ["a.rec"], "index_path": ["a.idx"]}
    yield "mxnet two files", "mxnet", {"path": ["a.rec", "b.rec"], "index_path": ["ab.idx"]}
    shards = {"paths": ["a.tar", "b.tar"]}
    for behavior in ("", "empty", "skip"):
        yield f"webdataset {behavior}", "webdataset", {**shards, "ext": ["jpg", "f32"],
                                                      "missing_component_behavior": behavior}  # fmt: skip
    yield "webdataset alternatives", "webdataset", {**shards, "ext": ["jpg;png", "left.jpg", "png"]}
    yield "webdataset types", "webdataset", {**shards, "ext": ["f32", "png"], "dtypes": [types.FLOAT, types.UINT8]}
    yield "webdataset case", "webdataset", {**shards, "ext": ["JPG"], "case_sensitive_extensions": False}
    yield "webdataset one", "webdataset", {"paths": "b.tar", "ext": "jpg"}
    regions: dict[str, dict[str, Any]] = {
        "ends": {"roi_start": [1, 2], "roi_end": [3, 5]},
        "axis": {"roi_start": [1], "roi_shape": [2], "roi_axes": [-1]},
        "relative": {"rel_roi_start": [0.3, 0.3], "rel_roi_end": [0.6, 0.8]},
        "relative shape": {"rel_roi_start": [0.375, 0.25], "rel_roi_shape": [0.5, 0.25]},
        "mixed": {"rel_roi_start": [0.3, 0.3], "roi_shape": [1, 1]}, "end alone": {"roi_end": [2, 3]},
        "share": {"rel_roi_shape": [0.5, 0.5]}, "start alone": {"roi_start": [1, 1]}, "one number": {"roi_start": 1},
        "swapped": {"roi_start": [1, 2], "roi_shape": [2, 1], "roi_axes": [1, 0]}, "none": {},
        "pad": {"roi_start": [-1, 1], "roi_end": [2, 8], "out_of_bounds_policy": "pad", "fill_value": 300.7},
        "trim": {"roi_start": [-1, 1], "roi_end": [2, 8], "out_of_bounds_policy": "trim_to_shape"},
        "beyond": {"roi_start": [5, 1], "roi_end": [7, 8], "out_of_bounds_policy": "trim_to_shape"},
    }  # fmt: skip
    for key, region in regions.items():
        yield f"numpy {key}", "numpy", {"files": ["c.npy", "f.npy"], **region}
    for shard in range(3):
        part = {"num_shards": 3, "shard_id": shard, "stick_to_shard": True, "pad_last_batch": True}
        yield f"webdataset shard {shard}", "webdataset", {**shards, "ext": ["left.jpg", "f32"], **part}
        yield f"mxnet shard {shard}", "mxnet", {"path": ["a.rec", "b.rec"], "index_path": ["ab.idx"], **part}
    yield from dali_records.cases(types)


PATHS = ("path", "index_path", "paths", "files", "file_root", "annotations_file", "manifest_filepaths")


def absolute(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the arguments with paths in the folder."""

    def moved(value: Any) -> Any:
        return [str(folder / v) for v in value] if isinstance(value, list) else str(folder / value)

    return {k: moved(v) if k in PATHS else v for k, v in arguments.items()}


def as_plain(x: Any) -> list[Any]:
    """Return type, shape and values of an array."""
    array = np.asarray(x)
    return [str(array.dtype), list(array.shape), array.tolist()]


def found_by_dali() -> dict[str, Any]:
    """Return DALI's rows of all cases."""
    from nvidia.dali import Pipeline, fn, types
    from nvidia.dali import tfrecord as tf

    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        for case, reader, arguments in cases(types, tf):
            pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
            with pipe:
                result = getattr(fn.readers, reader)(**absolute(arguments, folder), name="r")
                outputs = result.values() if isinstance(result, dict) else result
                pipe.set_outputs(*(outputs if isinstance(result, (dict, list, tuple)) else [result]))
            pipe.build()
            meta = pipe.reader_meta("r")
            count = meta["epoch_size_padded"] // meta["number_of_shards"]
            found[case] = [[as_plain(o.at(0)) for o in pipe.run()] for _ in range(count)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the record, and do not write it")
    found = found_by_dali()
    if parser.parse_args().check:
        recorded = json.loads(VALUES.read_text())
        unlike = sorted(k for k in found.keys() | recorded.keys() if found.get(k) != recorded.get(k))
        print(f"{len(found)} cases, {len(unlike)} unlike the record{''.join(f'; {k}' for k in unlike)}")
        sys.exit(bool(unlike))
    VALUES.write_text(json.dumps(found, separators=(",", ":")).replace('],"', '],\n"') + "\n")


if __name__ == "__main__":
    main()

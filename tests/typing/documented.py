# SPDX-License-Identifier: Apache-2.0
"""Documented usage for type checkers: `make check` runs `mypy --strict` on this file. No test runs it.

A line that mypy must refuse has `type: ignore`. If mypy accepted the line, it would report the comment as unused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import stoker
from stoker import BadSample, Batch, DataNode, Pipeline, eager, fn, pipeline_def, samplers, types
from stoker.readers import Bytes, DataSet, RangeStorage, SampledReader, Values, fingerprint
from stoker.torch import Loader


@pipeline_def(batch_size=128, num_threads=4, device_id=None, seed=7)
def training(data_dir: str, crop_size: int) -> tuple[DataNode, DataNode]:
    jpegs, labels = fn.readers.file(file_root=data_dir, random_shuffle=True, name="Reader")
    images = fn.decoders.image_random_crop(jpegs, device="cpu", output_type=types.RGB)
    images = fn.resize(images, resize_x=crop_size, resize_y=crop_size, interp_type=types.INTERP_CUBIC)
    mean, std = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]
    images = fn.crop_mirror_normalize(images, mean=mean, std=std, mirror=fn.random.coin_flip())
    assert_type(images, DataNode)
    return images, labels


@pipeline_def
def rows_of_their_own(data_dir: str) -> DataNode:
    jpegs, _ = fn.readers.file(file_root=data_dir)
    images = fn.decoders.image(jpegs, dtype=np.float32)
    size = fn.random.uniform(range=(160, 320))
    images = fn.resize(images, size=[size, 224], dtype="uint8")
    return (images - 128) / 64.0 > 0.5


def refused(jpegs: DataNode) -> None:
    fn.resize(jpegs, sizes=3)  # type: ignore[call-overload]
    fn.crop(jpegs, out_of_bounds_policy="wrap")  # type: ignore[arg-type]
    fn.flip(jpegs, horizontal="yes")  # type: ignore[arg-type]
    fn.cast(jpegs)  # type: ignore[call-arg]
    fn.decoders.imge(jpegs)  # type: ignore[attr-defined]


def run(data_dir: str) -> npt.NDArray[Any]:
    with training(data_dir, 224) as pipe:
        assert_type(pipe, Pipeline)
        outputs = pipe.run()
        assert_type(outputs, tuple[Batch, ...])
        token = pipe.get_state()
        pipe.set_state(token)
        print(pipe.report(), pipe.show())
    return outputs[0].as_array()


@pipeline_def(batch_size=8, on_error="replace", error_limit=0.02)
def sampled(data_dir: str, weights: list[float], of: type[samplers.Sampler] = samplers.ClassBalanced) -> DataNode:
    jpegs, _ = fn.readers.file(file_root=data_dir, sampler=samplers.Weighted(weights), on_error="skip")
    return fn.decoders.image(jpegs, on_error="raise")


@pipeline_def(batch_size=8, num_threads=2, seed=7)
def mixed(folder: str) -> tuple[DataNode, DataNode]:
    field = fn.readers.file(file_root=folder, dir_filters="field", random_shuffle=True)
    rest = fn.readers.file(file_root=folder, file_filters=["*.jpg"])
    jpegs, labels, part = fn.readers.mix([field, rest], weights=[0.75, 0.25], length="longest", num_shards=2)
    both = fn.readers.concat([field, rest], random_shuffle=True, label_offsets="disjoint")
    assert_type(both, tuple[DataNode, DataNode, DataNode])
    return jpegs, labels + part


def bad_samples(pipe: Pipeline) -> list[str]:
    assert_type(pipe.errors, list[BadSample])
    print(pipe.get_state(elastic=True), pipe.run()[0].skipped)
    return [f"{bad.path} at {bad.offset}: {bad.reason} ({bad.action})" for bad in pipe.errors]


def into_torch(data_dir: str) -> None:
    loader = Loader(training(data_dir, 224), ["image", "label"], last_batch_policy="drop")
    for epoch in range(len(loader)):
        loader.set_epoch(epoch)
        for batch in loader:
            print(batch["image"].shape)


def without_a_pipeline(image: npt.NDArray[np.uint8]) -> None:
    print(eager.resize(image, size=(224, 224)), eager.imread("photo.jpg"))
    with eager.video.open("clip.mp4") as video:
        print(video[10:50:2].shape, video.get_frame_played_at(1.5).pts_seconds, video.metadata.codec)


@stoker.register
class Posterize(stoker.Operator, name="posterize"):
    """Keep the upper bits of 8-bit pixels."""

    bits = stoker.arg("int", 4, doc="How many bits to keep.")

    def infer(self, c: Any, x: Any) -> stoker.Spec:
        return stoker.Spec(x.dtype, x.shape, x.layout)

    def reference(self, row: stoker.RowContext, x: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        return x & np.uint8(0xFF << (8 - row["bits"]) & 0xFF)


@stoker.register
class Records(SampledReader, name="my.records"):
    """Read byte ranges of a file. Outputs: the bytes, and the label."""

    outputs = 2
    path = stoker.arg("str", doc="The file.")

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        offsets, labels = np.asarray([0, 10]), np.zeros((2, 1), np.int32)
        data = RangeStorage([args["path"]], [0, 0], offsets, [10, 10])
        columns = Bytes("data", data, "float32", (2,)), Values("label", labels)
        assert_type(columns[0].row(0), npt.NDArray[Any])
        return DataSet(columns, fingerprint(offsets, labels), label="label")

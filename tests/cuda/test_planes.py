# SPDX-License-Identifier: Apache-2.0
"""Decoded images that one stage resamples: equal bits from component planes, from pixels, and on the CPU.

The GPU is emulated. A real GPU runs these tests, too.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import emulated_stages
import numpy as np
import pytest
from PIL import Image

from stoker import fn, pipeline_def, types
from stoker.graph.analysis import PASSES, PLANES

sys.path.append(str(Path(__file__).parents[1] / "native"))
import jpeg_writer as jw

PIXELS = [name for name in PASSES if name != PLANES]
ONE = [(1, 1), (1, 1)]
FULL, HALF_WIDTH, HALF_HEIGHT, HALF = ([luma, *ONE] for luma in ((1, 1), (2, 1), (1, 2), (2, 2)))
# Of these, pixels are computed first.
OTHERS = ([(4, 1), (1, 1), (1, 1)], [(2, 2), (2, 1), (1, 1)], [(1, 1), (2, 2), (2, 2)], [(1, 2), (1, 1), (1, 2)])


def write(place, name, data):
    path = place / f"{name}.jpg"
    path.write_bytes(data)
    return str(path)


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)])
def gpu(request):
    if request.param == "null":
        request.getfixturevalue("emulated_gpu")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write noise photographs: every sampling, gray, RGB, progressive, rotated, damaged, and a file that is no JPEG."""
    place, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(31)
    sizes = itertools.cycle([(41, 67), (64, 64), (90, 35), (33, 130), (17, 24)])
    names = (str(i) for i in itertools.count())
    paths = []
    for factors in (FULL, HALF_WIDTH, HALF_HEIGHT, HALF, *OTHERS, [(1, 1)]):
        for _ in range(2):
            height, width = next(sizes)
            paths.append(write(place, next(names), jw.random_file(rng, width, height, factors)))
    paths.append(write(place, next(names), jw.random_file(rng, 50, 40, FULL, app=jw.adobe(0))))
    for options in ({"progressive": True}, {"format": "PNG"}, {"progressive": True, "subsampling": 0}):
        pixels = rng.integers(0, 256, (51, 62, 3), np.uint8)
        paths.append(str(place / f"{next(names)}.jpg"))
        Image.fromarray(pixels).save(paths[-1], **{"format": "JPEG", "quality": 92, **options})
    for orientation in (2, 6, 8):
        paths.append(write(place, next(names), jw.random_file(rng, 44, 57, HALF, app=jw.exif(orientation))))
    for factors in (FULL, HALF):  # several 0xFF in a row: found while decoding, and decoded again by the CPU
        data = jw.random_file(rng, 60, 50, factors)
        at = data.index(b"\xff\x00", len(data) // 2)
        paths.append(write(place, next(names), data[:at] + b"\xff" + data[at:]))
    return paths


@pipeline_def(batch_size=6, num_threads=2, seed=8)
def resized(files, device, make, output_type=types.RGB, scale_denom=1):
    data, _ = fn.readers.file(files=files)
    return make(fn.decoders.image(data, device=device, output_type=output_type, scale_denom=scale_denom))


def run_all(pipe, batches, planes=0):
    """Return all outputs of all rows. One pipeline at a time, because the emulation is one machine."""
    with pipe:
        assert len(pipe.build().execution.plan.in_planes) == planes
        outputs = [[o.as_cpu() if pipe.device_id is not None else o for o in pipe.run()] for _ in range(batches)]
        return [[np.array(row) for row in o] for batch in outputs for o in batch], pipe.report().decoding


def check(files, make, expected=1, output_type=types.RGB, scale_denom=1, epochs=1, **options):
    """Compare all rows in three ways, and return how they were decoded for the stage that reads planes."""
    batches = epochs * -(-len(files) // 6)
    how = {"output_type": output_type, "scale_denom": scale_denom}
    want, _ = run_all(resized(files, "cpu", make, **how), batches)
    for passes, planes in ((PIXELS, 0), (list(PASSES), expected)):
        pipe = resized(files, "mixed", make, **how, device_id=0, passes=passes, **options)
        got, decoding = run_all(pipe, batches, planes)
        for one, other in zip(got, want, strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)
    return decoding


def training(x):
    x = fn.resize(x, size=(24, 40))
    mean, std = [120.0, 110.0, 100.0], [60.0, 50.0, 55.0]
    return fn.crop_mirror_normalize(x, mirror=1, mean=mean, std=std, dtype=types.FLOAT16)


@pytest.mark.parametrize("load", [1.0, 0.5])
def test_a_training_chain(gpu, files, load):
    decoding = check(files, training, gpu_decoder_load=load)
    assert decoding.rows_on_gpu > 0 and decoding.rows_on_cpu > 2


def test_windows_of_known_files(gpu, files):
    """Later epochs take random crops of files that are read in part."""

    def crops(x):
        x = fn.random_resized_crop(x, size=(31, 22), random_area=(0.1, 0.9), interp_type=types.INTERP_CUBIC)
        return fn.flip(x, horizontal=fn.random.coin_flip())

    check(files, crops, epochs=2, gpu_decoder_load=1.0, gpu_jpeg_index=1 << 20)


@pytest.mark.parametrize("scale_denom", [2, 4, 8])
def test_smaller_scales(gpu, files, scale_denom):
    """Blocks have four, two and one samples, also if the first existing one has an odd position."""

    def inner(x):
        x = fn.crop(x, crop=(0.8, 0.8), crop_pos_x=0.7, crop_pos_y=0.9) if scale_denom < 8 else x
        return fn.resize(x, size=(19, 18), antialias=False)

    check(files[::2], inner, scale_denom=scale_denom)


@pytest.mark.parametrize(("output_type", "planes"), [
    (types.BGR, 1), (types.YCbCr, 1), (types.GRAY, 0), (types.ANY_DATA, 0)
])  # fmt: skip
def test_other_colours(gpu, files, output_type, planes):
    """Images with a number of channels other than three may use pixels."""
    check(files[::2], lambda x: fn.resize(x, size=(24, 28)), planes, output_type=output_type)


@pytest.mark.parametrize("make", [
    lambda x: fn.resize(x, size=(16, 200)),  # the vertical pass first
    lambda x: fn.resize(x, size=(300, 12)),
    lambda x: fn.resize(x, size=(3, 5)),  # too many positions for one kernel
    lambda x: fn.resize(x, size=(20, 24), interp_type=types.INTERP_NN),
    lambda x: fn.rotate(fn.resize(x, size=(32, 24)), angle=30.0),
    lambda x: fn.resize(fn.slice(x, start=[3], shape=[11], axes=[0]), size=(24, 24)),
], ids=["wide", "tall", "small", "nearest", "rotated", "sliced"])  # fmt: skip
def test_stages(gpu, files, make):
    """Stages of every form are covered. Those that read no planes read pixels."""
    check(files[::2], make)


def several(x):
    return fn.resize(x, size=(9, 9)), fn.resize(x, size=(8, 30))


@pytest.mark.parametrize("make", [
    several, lambda x: x, lambda x: fn.rotate(x, angle=20.0, size=(20, 20)), lambda x: fn.cast(x, dtype=np.int16),
    lambda x: fn.resize(fn.flip(x, horizontal=1), size=(24, 24)),
], ids=["two readers", "an output", "a warp", "no interpolator", "mirrored"])  # fmt: skip
def test_uses_that_need_pixels(gpu, files, make):
    """Several stages read the image, or it is an output, or a step reads it at arbitrary positions."""

    def outputs(x):
        return make(x)

    check(files[:8], outputs, expected=0)

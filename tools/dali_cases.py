# SPDX-License-Identifier: Apache-2.0
"""Small pipelines in DALI's names that run under NVIDIA DALI and under ``stoker.dali`` alike.

``python tools/dali_cases.py (nvidia.dali|stoker.dali) INPUTS.npz OUTPUTS.npz``. See ``tools/dali_values.py``.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

Case = Callable[..., Any]  # takes the modules `fn` and `types`, and the input's node
CASES: dict[str, tuple[str, str, Case]] = {}  # name -> (group, input, definition)
WINDOW: dict[str, Any] = {"crop": (20, 28), "mean": [120.0, 110.0, 100.0], "std": [60.0, 61.0, 62.0]}


def of_types(types: Any, value: Any) -> Any:
    """Return ``value``, or the object that a string "types.X" names."""
    return getattr(types, value[6:]) if isinstance(value, str) and value.startswith("types.") else value


def on_node(operation: Callable[[Any], Any]) -> Case:
    """Add a case of arithmetic on the input."""
    return lambda fn, types, x: operation(x)


def simple(name: str, group: str, source: str = "image", **arguments: Any) -> None:
    """Add a case of one operator. Its name is ``name`` up to a blank; strings like "types.X" are looked up."""
    path = name.split()[0].rstrip(",").split(".")

    def define(fn: Any, types: Any, x: Any) -> Any:
        function = fn
        for part in path:
            function = getattr(function, part)
        return function(x, **{k: of_types(types, v) for k, v in arguments.items()})

    CASES[name] = (group, source, define)


for interpolation in ("LINEAR", "CUBIC", "LANCZOS3", "TRIANGULAR", "NN", "GAUSSIAN"):
    kind = f"types.INTERP_{interpolation}"
    simple(f"resize smaller, {interpolation}", "resize", resize_x=17, resize_y=13, interp_type=kind)
    simple(f"resize larger, {interpolation}", "resize", resize_x=61, resize_y=50, interp_type=kind)
simple("resize antialias=False", "resize", resize_x=17, resize_y=13, antialias=False)
simple("resize float32", "resize", "float", resize_x=17, resize_y=13)
simple("resize roi", "resize", resize_x=17, resize_y=13, roi_start=[3.0, 5.0], roi_end=[22.0, 27.0])
simple("resize resize_shorter", "resize", resize_shorter=21)
simple("resize mode=not_larger", "resize", size=(20, 20), mode="not_larger")
simple("resize_crop_mirror", "resize", resize_shorter=24, crop=(20, 20), mirror=1)
simple("crop_mirror_normalize float32", "crop", dtype="types.FLOAT", **WINDOW)
HALF: dict[str, Any] = {"dtype": "types.FLOAT16", "mirror": 1, "output_layout": "HWC", **WINDOW}
simple("crop_mirror_normalize mirror, HWC, float16", "crop", **HALF)
simple("crop", "crop", crop=(11, 14), crop_pos_x=0.3, crop_pos_y=0.9)
simple("crop out_of_bounds_policy=pad", "crop", crop=(60, 60), out_of_bounds_policy="pad", fill_values=7.0)
simple("slice rel", "crop", rel_start=[0.25, 0.1], rel_end=[0.75, 0.6], axis_names="HW")
simple("flip", "crop", horizontal=1, vertical=1)
simple("transpose", "crop", perm=[2, 0, 1])
simple("brightness", "colour", brightness=1.3)
simple("brightness_contrast", "colour", brightness=1.1, contrast=0.7, brightness_shift=0.1)
simple("contrast", "colour", contrast=1.6)
simple("saturation", "colour", saturation=0.5)
simple("hue", "colour", hue=40.0)
simple("hsv", "colour", hue=20.0, saturation=1.4, value=0.8)
simple("color_twist", "colour", brightness=1.1, contrast=0.8, saturation=1.3, hue=15.0)
simple("color_space_conversion to GRAY", "colour", image_type="types.RGB", output_type="types.GRAY")
simple("color_space_conversion to YCbCr", "colour", image_type="types.RGB", output_type="types.YCbCr")
simple("color_space_conversion to BGR", "colour", image_type="types.RGB", output_type="types.BGR")
simple("rotate keep_size", "rotate", angle=30.0, keep_size=True, fill_value=0.0)
simple("rotate larger canvas", "rotate", angle=-17.0, fill_value=9.0)
simple("rotate no fill_value", "rotate", angle=25.0, keep_size=True)
simple("rotate 90", "rotate", angle=90.0, fill_value=0.0)
simple("rotate NN", "rotate", angle=30.0, keep_size=True, fill_value=0.0, interp_type="types.INTERP_NN")
MATRIX = [0.9, 0.2, 1.5, -0.1, 1.1, -0.75]
simple("warp_affine", "warp", matrix=MATRIX, fill_value=9.0)
simple("warp_affine no fill_value", "warp", matrix=MATRIX)
simple("warp_affine inverse_map=False, NN", "warp", matrix=MATRIX, fill_value=0.0, inverse_map=False,
       interp_type="types.INTERP_NN")  # fmt: skip
simple("warp_affine size, float32", "warp", "float", matrix=MATRIX, fill_value=0.0, size=(20, 40))
HOMOGRAPHY = [0.9, 0.2, 1.5, -0.1, 1.1, -0.75, 0.002, 0.004, 1.0]
simple("experimental.warp_perspective", "warp", matrix=HOMOGRAPHY, fill_value=9.0)
simple("experimental.warp_perspective NN", "warp", matrix=HOMOGRAPHY, interp_type="types.INTERP_NN")
simple("experimental.warp_perspective inverse_map=False, center, NN", "warp", matrix=HOMOGRAPHY, inverse_map=False,
       pixel_origin="center", interp_type="types.INTERP_NN")  # fmt: skip
simple("experimental.warp_perspective float32", "warp", "float", matrix=HOMOGRAPHY, fill_value=9.0)
for border in ("replicate", "reflect", "reflect_101", "wrap"):
    simple(f"experimental.warp_perspective {border}", "warp", matrix=HOMOGRAPHY, border_mode=border)
simple("experimental.warp_perspective CUBIC, wrap", "warp", matrix=HOMOGRAPHY, border_mode="wrap",
       interp_type="types.INTERP_CUBIC")  # fmt: skip
simple("resize dtype=FLOAT", "resize", resize_x=17, resize_y=13, dtype="types.FLOAT")
simple("rotate dtype=FLOAT", "rotate", angle=25.0, keep_size=True, dtype="types.FLOAT")
simple("warp_affine dtype=FLOAT", "warp", matrix=MATRIX, dtype="types.FLOAT")
VOLUME = [0.9, 0.2, -0.1, 1.5, -0.1, 1.1, 0.05, -0.75, 0.02, -0.04, 1.05, 0.3]
simple("resize volume, larger", "volumes", "volume", size=(9, 21, 20))
simple("resize volume, smaller, antialias=False", "volumes", "volume", size=(4, 8, 7), antialias=False)
simple("resize volume, resize_x, resize_z", "volumes", "volume", resize_x=20, resize_z=12,
       interp_type="types.INTERP_CUBIC")  # fmt: skip
simple("rotate volume", "volumes", "volume", angle=30.0, axis=[1.0, 2.0, 3.0])
simple("rotate volume, fill_value", "volumes", "volume", angle=-77.0, axis=[0.0, 1.0, 1.0], fill_value=9.0)
simple("warp_affine volume", "volumes", "volume", matrix=VOLUME)
simple("warp_affine volume, fill_value, float", "volumes", "volume", matrix=VOLUME, fill_value=9.0, dtype="types.FLOAT")
simple("gaussian_blur volume", "volumes", "volume", sigma=[0.5, 1.0, 2.0])
simple("equalize", "filters")
simple("gaussian_blur sigma", "filters", sigma=1.3)
simple("gaussian_blur window_size", "filters", window_size=5)
simple("gaussian_blur float32", "filters", "float", sigma=[0.5, 2.0], window_size=[3, 7])
KERNEL = (np.arange(15, dtype=np.float32).reshape(3, 5) - 4) / 100
for border in ("reflect_101", "reflect_1001", "wrap", "clamp", "constant"):
    CASES[f"filter {border}"] = (
        "filters", "image", lambda fn, types, x, b=border: fn.filter(x, types.Constant(KERNEL), border=b),
    )  # fmt: skip
CASES["filter valid, float32"] = (
    "filters", "image", lambda fn, types, x: fn.filter(x, types.Constant(KERNEL), mode="valid", dtype=types.FLOAT),
)  # fmt: skip
CASES["filter anchor"] = (
    "filters", "image", lambda fn, types, x: fn.filter(x, types.Constant(KERNEL), anchor=[0, 4]),
)  # fmt: skip
for reduction in ("min", "max", "sum", "mean", "mean_square", "rms"):
    simple(f"reductions.{reduction} HW", "reductions", axis_names="HW")
    simple(f"reductions.{reduction} keep_dims", "reductions", axes=[-1], keep_dims=True)
simple("reductions.sum float32", "reductions", "float")
for reduction in ("variance", "std_dev"):
    CASES[f"reductions.{reduction} ddof"] = (
        "reductions", "image", lambda fn, types, x, r=reduction: getattr(fn.reductions, r)(
            x, fn.reductions.mean(x, axis_names="HW"), axis_names="HW", ddof=1),
    )  # fmt: skip


def transform(name: str, **arguments: Any) -> None:
    """Add a case that creates a matrix, and one that composes it with another."""
    CASES[f"transforms.{name}"] = (
        "transforms", "image", lambda fn, types, x: getattr(fn.transforms, name.split(",")[0])(**arguments),
    )  # fmt: skip
    CASES[f"transforms.{name}, after another"] = (
        "transforms", "image", lambda fn, types, x: getattr(fn.transforms, name.split(",")[0])(
            fn.transforms.translation(offset=[1.5, -2.0]), **arguments),
    )  # fmt: skip


transform("translation", offset=[3.0, -2.5])
transform("scale", scale=[2.0, 0.5], center=[4.0, 5.0])
transform("rotation", angle=30.0, center=[4.0, 5.0])
transform("shear", shear=[0.3, -0.2], center=[4.0, 5.0])
transform("shear, angles", angles=[20.0, 10.0])
transform("crop", from_start=[1.0, 2.0], from_end=[3.0, 6.0], to_end=[10.0, 20.0], reverse_order=True)
CASES["transforms.rotation in space"] = (
    "transforms", "image", lambda fn, types, x: fn.transforms.rotation(angle=50.0, axis=[1.0, 2.0, -1.0]),
)  # fmt: skip
CASES["transforms.combine"] = (
    "transforms", "image", lambda fn, types, x: fn.transforms.combine(
        fn.transforms.rotation(angle=20.0), fn.transforms.scale(scale=[2.0, 3.0]),
        fn.transforms.shear(shear=[0.1, 0.2])),
)  # fmt: skip


def augmented(name: str, **arguments: Any) -> None:
    """Add a case of an automatic augmentation at one magnitude (of ten bins, the last but two)."""

    def define(fn: Any, types: Any, x: Any) -> Any:
        one = getattr(importlib.import_module(f"{fn.__name__[:-3]}.auto_aug.augmentations"), name.split(",")[0])
        if "minus" in name:
            low, high = one.mag_range
            one = one.augmentation(mag_range=(-low, -high))
        one = one.augmentation(randomly_negate=False)
        return one(x, magnitude_bin=7, num_magnitude_bins=10, **arguments)

    CASES[f"auto_aug {name}"] = ("augmentations", "image", define)


for one in ("shear_x", "shear_y", "translate_x_no_shape", "rotate", "brightness", "contrast", "color", "sharpness"):
    augmented(one)
    augmented(f"{one}, minus")
augmented("translate_x", shape=(24, 31))
augmented("translate_y, minus", shape=(24, 31))
augmented("shear_x, fill_value=None", fill_value=None)
for one in ("posterize", "solarize", "solarize_add", "invert", "equalize", "auto_contrast", "identity"):
    augmented(one)
CASES["cast to INT32 (halves)"] = ("numbers", "halves", lambda fn, types, x: fn.cast(x, dtype=types.INT32))
CASES["cast to UINT8 (out of range)"] = ("numbers", "wide", lambda fn, types, x: fn.cast(x, dtype=types.UINT8))
for text, operation in {
    "x + 1": lambda x: x + 1, "x * 0.3": lambda x: x * 0.3, "x / 7": lambda x: x / 7, "x // 7": lambda x: x // 7,
    "x % 7": lambda x: x % 7, "x ** 2": lambda x: x**2, "-x": lambda x: -x, "x > 100": lambda x: x > 100,
    "x << 1": lambda x: x << 1, "x & 12": lambda x: x & 12,
}.items():  # fmt: skip
    CASES[f"uint8: {text}"] = ("numbers", "image", on_node(operation))
for text, operation in {
    "x // -7": lambda x: x // -7, "x % 7": lambda x: x % 7, "x ** -1": lambda x: x**-1, "x >> 1": lambda x: x >> 1,
}.items():  # fmt: skip
    CASES[f"int32: {text}"] = ("numbers", "signed", on_node(operation))
for text, operation in {
    "x // 2.0": lambda x: x // 2.0, "x % 2.5": lambda x: x % 2.5, "x * 3 + 1": lambda x: x * 3 + 1,
}.items():  # fmt: skip
    CASES[f"float32: {text}"] = ("numbers", "wide", on_node(operation))
simple("decoders.image", "decode", "jpeg")
simple("decoders.image GRAY", "decode", "jpeg", output_type="types.GRAY")
simple("decoders.image YCbCr", "decode", "jpeg", output_type="types.YCbCr")
simple("decoders.image EXIF", "decode", "exif")
simple("decoders.image progressive", "decode", "progressive")
simple("decoders.image PNG", "decode", "png")
simple("decoders.image CMYK", "decode", "cmyk")
simple("decoders.image_crop", "decode", "jpeg", crop=(20, 20))
simple("peek_image_shape", "decode", "jpeg")


def run_case(module: str, name: str, inputs: Any) -> list[Any]:
    """Return the rows of the case's output, or the text of the error that the definition or run raised."""
    dali, fn, types = (importlib.import_module(m) for m in (module, f"{module}.fn", f"{module}.types"))
    _, source, define = CASES[name]
    rows = [np.ascontiguousarray(inputs[k]) for k in sorted(inputs) if k.rsplit("_", 1)[0] == source]
    layout = {3: "HWC", 4: "DHWC"}.get(rows[0].ndim)
    pipe = dali.Pipeline(batch_size=len(rows), num_threads=1, device_id=None, seed=1)
    with pipe:
        x = fn.external_source(source=lambda: rows, layout=layout)
        pipe.set_outputs(define(fn, types, x))
    pipe.build()
    (out,) = pipe.run()
    return [np.array(out.at(i)) for i in range(len(out))]


SHARDS: dict[str, dict[str, Any]] = {
    "shards": {},
    "shards, stick_to_shard": {"stick_to_shard": True},
    'shards, sharding="contiguous" in Stoker': {},
    'shards, stick_to_shard, sharding="contiguous" in Stoker': {"stick_to_shard": True},
}
CONTIGUOUS = [name for name in SHARDS if "contiguous" in name]
DRAWS: dict[str, dict[str, Any]] = {
    "random.uniform": {"range": [-1.0, 3.0]},
    "random.normal": {"mean": 2.0, "stddev": 0.5},
    "random.coin_flip": {"probability": 0.3},
}


def run_draws(module: str, name: str) -> Any:
    """Return draws of 50 samples of 2000 numbers each."""
    dali, fn = (importlib.import_module(m) for m in (module, f"{module}.fn"))
    pipe = dali.Pipeline(batch_size=50, num_threads=1, device_id=None, seed=7)
    with pipe:
        pipe.set_outputs(getattr(fn.random, name.split(".")[1])(shape=[2000], **DRAWS[name]))
    pipe.build()
    return np.array(pipe.run()[0].as_array(), np.float32)


def refusal(error: Exception) -> str:
    """Return the first line of an error's text, without its location in the code."""
    text = str(error).strip().splitlines()[0].split(" — ")[0]
    return f"{type(error).__name__}: {text[:200]}"


def run_shards(module: str, **reader: Any) -> list[Any]:
    """Return the labels that two shards of ten files read in two epochs, batch by batch of 3."""
    dali, fn = (importlib.import_module(m) for m in (module, f"{module}.fn"))
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i in range(10):
            files.append(os.path.join(folder, f"{i}.bin"))
            with open(files[-1], "wb") as file:
                file.write(bytes([i]))
        read = []
        for shard in range(2):
            pipe = dali.Pipeline(batch_size=5, num_threads=1, device_id=None, seed=1)
            with pipe:
                _, label = fn.readers.file(
                    files=files, labels=list(range(10)), shard_id=shard, num_shards=2, name="R", **reader
                )
                pipe.set_outputs(label)
            pipe.build()
            read.append([[int(x) for x in np.array(pipe.run()[0].as_array()).ravel()] for _ in range(2)])
        return read


def main() -> None:
    module, source, target = sys.argv[1:]
    inputs = dict(np.load(source))
    results: dict[str, Any] = {}
    for name in CASES:
        try:
            for i, row in enumerate(run_case(module, name, inputs)):
                results[f"{name}|{i}"] = row
        except Exception as error:  # noqa: BLE001 - an error of either library is a result
            results[f"{name}|error"] = np.array(refusal(error))
    for name, reader in SHARDS.items():
        own = {"sharding": "contiguous"} if module.startswith("stoker") and name in CONTIGUOUS else {}
        results[f"{name}|0"] = np.array(run_shards(module, **reader, **own))
    for name in DRAWS:
        results[f"{name}|0"] = run_draws(module, name)
    np.savez_compressed(target, **results)


if __name__ == "__main__":
    main()

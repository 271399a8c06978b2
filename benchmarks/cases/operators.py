# SPDX-License-Identifier: Apache-2.0
"""Single operators on decoded photographs, one core, compared with those of other libraries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.case import MS_PER_IMAGE, Bar, Case, Contender, Loop
from benchmarks.data import Data
from benchmarks.library import DALI, STOKER, Library, load
from benchmarks.torchvision_peer import declare_operators

ORDER = 45
BATCH, HEIGHT, WIDTH = 16, 375, 500
TOP, LEFT, SIDE = 75, 138, 224
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
ANGLE = 30.0
# From output to source, with the origin in the corner of the image.
AFFINE = np.array([[1.05, 0.1, -20.0], [-0.08, 0.95, 15.0]], np.float32)
PERSPECTIVE = np.array([[1.02, 0.05, -8.0], [0.03, 0.97, 5.0], [1e-4, 5e-5, 1.0]], np.float32)
KERNELS = {
    3: np.outer([1, 2, 1], [1, 2, 1]).astype(np.float32) / 16,
    5: np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1.5]).astype(np.float32) / 264,
}

REGION = [40.0, 60.0, 100.0, 120.0]  # top, left, height, width
INVERSE = [255.0 - k for k in range(256)]
NOISE = 20.0  # standard deviation

Call = Callable[[], Any]
Calls = Mapping[str, Call]

TITLES = {
    "resize": "resize to 224x224, antialias",
    "resize-plain": "resize to 224x224, no antialias",
    "resize-up": "resize to 1000x750, linear",
    "resize-cubic": "resize to 1000x750, cubic",
    "resize-nearest": "resize to 224x224, nearest",
    "rotate": "rotate by 30 degrees, linear",
    "affine": "warp_affine, linear",
    "affine-nearest": "warp_affine, nearest",
    "perspective": "warp_perspective, linear",
    "blur-7": "gaussian_blur, sigma 1",
    "blur-19": "gaussian_blur, sigma 3",
    "filter-3": "filter, 3x3",
    "filter-5": "filter, 5x5",
    "flip-h": "flip, horizontal",
    "flip-v": "flip, vertical",
    "twist": "color_twist, four factors",
    "hue": "hue",
    "brightness": "brightness_contrast",
    "normalize": "crop_mirror_normalize to 224x224",
    "normalize-whole": "crop_mirror_normalize, whole image",
    "equalize": "equalize",
    "mean": "reductions.mean over height and width",
    "sum": "reductions.sum",
    "max": "reductions.max over height and width",
    "slice": "slice of 224x224",
    "transpose": "transpose from HWC to CHW",
    "cast": "cast to float32",
    "gray": "color_space_conversion to gray",
    "ycbcr": "color_space_conversion to YCbCr",
    "crop-resize": "random_resized_crop to 224x224",
    "arithmetic": "x * 1.5 + 10, uint8 to float32",
    "copy": "copy",
    "clahe": "clahe of the lightness, 8x8 tiles",
    "dilate-3": "experimental.dilate, 3x3",
    "dilate-15": "experimental.dilate, 15x15",
    "median-3": "experimental.median_blur, 3x3",
    "median-5": "experimental.median_blur, 5x5",
    "median-15": "experimental.median_blur, 15x15",
    "median-31": "experimental.median_blur, 31x31",
    "erode-3": "experimental.erode, 3x3",
    "erode-15": "experimental.erode, 15x15",
    "debayer": "debayer of a mosaic of one channel",
    "motion-blur": "motion_blur, 9 pixels at 30 degrees",
    "noise": "noise.gaussian",
    "erase": "erase one region",
    "lookup": "lookup_table of bytes",
    "jpeg": "jpeg_compression_distortion",
    "laplacian-3": "laplacian, 3x3",
    "laplacian-5": "laplacian, 5x5",
}


@lru_cache(maxsize=1)
def photographs(data: Data) -> list[np.ndarray]:
    """Return 16 photographs, uint8 (375, 500, 3)."""
    from PIL import Image

    images = []
    for k in range(BATCH):
        with Image.open(data.files[k % len(data.files)]) as image:
            images.append(np.asarray(image.convert("RGB").resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)))
    return images


def _mosaics(images: list[np.ndarray]) -> list[np.ndarray]:
    """Return images of one channel that count as the mosaics of a sensor."""
    return [np.ascontiguousarray(image[..., :1]) for image in images]


def _loop(call: Call) -> Loop:
    """Run the call, and read an element of its first result."""

    def step() -> tuple[int, float]:
        first = call()[0]
        return BATCH, float(np.asarray(first).reshape(-1)[0])

    return Loop(step)


def _each(images: list[Any], function: Callable[[Any], Any]) -> Call:
    return lambda: [function(image) for image in images]


def fn_calls(fn: Any, types: Any) -> dict[str, Callable[[Any], Any]]:
    """Return the operators under the names that Stoker and DALI share; the images are the argument."""
    affine = AFFINE.ravel().tolist()
    gray = {"image_type": types.RGB, "output_type": types.GRAY}
    ycbcr = {"image_type": types.RGB, "output_type": types.YCbCr}
    normal = {"mean": MEAN, "std": STD}
    return {
        "resize": lambda x: fn.resize(x, size=[SIDE, SIDE]),
        "resize-plain": lambda x: fn.resize(x, size=[SIDE, SIDE], antialias=False),
        "resize-up": lambda x: fn.resize(x, size=[2 * HEIGHT, 2 * WIDTH]),
        "resize-cubic": lambda x: fn.resize(x, size=[2 * HEIGHT, 2 * WIDTH], interp_type=types.INTERP_CUBIC),
        "resize-nearest": lambda x: fn.resize(x, size=[SIDE, SIDE], interp_type=types.INTERP_NN),
        "rotate": lambda x: fn.rotate(x, angle=ANGLE, keep_size=True, fill_value=0),
        "affine": lambda x: fn.warp_affine(x, matrix=affine, fill_value=0),
        "affine-nearest": lambda x: fn.warp_affine(x, matrix=affine, fill_value=0, interp_type=types.INTERP_NN),
        "perspective": lambda x: fn.experimental.warp_perspective(x, matrix=PERSPECTIVE.ravel().tolist()),
        "blur-7": lambda x: fn.gaussian_blur(x, sigma=1.0),
        "blur-19": lambda x: fn.gaussian_blur(x, sigma=3.0),
        "flip-h": lambda x: fn.flip(x),
        "flip-v": lambda x: fn.flip(x, horizontal=0, vertical=1),
        "twist": lambda x: fn.color_twist(x, brightness=1.1, contrast=0.9, saturation=0.8, hue=20.0),
        "hue": lambda x: fn.hue(x, hue=20.0),
        "brightness": lambda x: fn.brightness_contrast(x, brightness=1.1, contrast=0.9),
        "normalize": lambda x: fn.crop_mirror_normalize(x, crop=[SIDE, SIDE], mirror=1, **normal),
        "normalize-whole": lambda x: fn.crop_mirror_normalize(x, **normal),
        "equalize": lambda x: fn.equalize(x),
        "mean": lambda x: fn.reductions.mean(x, axes=[0, 1]),
        "sum": lambda x: fn.reductions.sum(x),
        "max": lambda x: fn.reductions.max(x, axes=[0, 1]),
        "slice": lambda x: fn.slice(x, start=[TOP, LEFT], shape=[SIDE, SIDE], axes=[0, 1]),
        "transpose": lambda x: fn.transpose(x, perm=[2, 0, 1]),
        "cast": lambda x: fn.cast(x, dtype=types.FLOAT),
        "gray": lambda x: fn.color_space_conversion(x, **gray),
        "ycbcr": lambda x: fn.color_space_conversion(x, **ycbcr),
        "crop-resize": lambda x: fn.random_resized_crop(x, size=[SIDE, SIDE]),
        "copy": lambda x: fn.copy(x),
        "clahe": lambda x: fn.clahe(x, tiles_x=8, tiles_y=8, clip_limit=2.0),
        "jpeg": lambda x: fn.jpeg_compression_distortion(x, quality=50),
        "laplacian-3": lambda x: fn.laplacian(x),
        "laplacian-5": lambda x: fn.laplacian(x, window_size=5),
        "noise": lambda x: fn.noise.gaussian(x, stddev=NOISE),
        "erase": lambda x: fn.erase(x, anchor=REGION[:2], shape=REGION[2:], axis_names="HW"),
        "lookup": lambda x: fn.lookup_table(x, keys=list(range(256)), values=INVERSE, dtype=types.UINT8),
        **{f"dilate-{n}": lambda x, n=n: fn.experimental.dilate(x, mask_size=n) for n in (3, 15)},
        **{f"erode-{n}": lambda x, n=n: fn.experimental.erode(x, mask_size=n) for n in (3, 15)},
        **{f"median-{n}": lambda x, n=n: fn.experimental.median_blur(x, window_size=n) for n in (3, 5, 15, 31)},
    }


def run_stoker(data: Data, *, operator: str) -> Loop:
    """Call the operator eagerly on the batch; arithmetic, which has no eager function, in a pipeline."""
    from stoker import eager, types

    images = photographs(data)
    if operator == "arithmetic":
        return _loop(_pipeline(load(STOKER), lambda x: x * 1.5 + 10.0, images))
    if operator.startswith("filter"):
        weights = [KERNELS[int(operator[-1])]] * BATCH
        return _loop(lambda: eager.filter(images, weights))
    if operator == "debayer":
        mosaics = _mosaics(images)
        return _loop(lambda: eager.debayer(mosaics, blue_position=[0, 0]))
    if operator == "motion-blur":
        return _loop(lambda: eager.motion_blur(images, size=9, angle=30.0))
    function = fn_calls(eager, types)[operator]
    return _loop(lambda: function(images))


def run_dali(data: Data, *, operator: str) -> Loop:
    """Run the operator in a pipeline that is fed without copies."""
    lib = load(DALI)
    calls = fn_calls(lib.fn, lib.types)
    calls["arithmetic"] = lambda x: x * 1.5 + 10.0
    for size, weights in KERNELS.items():
        calls[f"filter-{size}"] = lambda x, weights=weights: lib.fn.filter(x, weights)  # type: ignore[misc]
    return _loop(_pipeline(lib, calls[operator], photographs(data)))


def _pipeline(lib: Library, function: Callable[[Any], Any], images: list[np.ndarray]) -> Call:
    """Return a function that runs a pipeline of one operator and returns the batch's arrays."""
    fn = lib.fn

    @lib.pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def one_operator() -> Any:
        return function(fn.external_source(source=lambda: images, layout="HWC", no_copy=True))

    pipeline = one_operator()
    pipeline.build()
    return lambda: pipeline.run()[0]


def run_numpy(data: Data, *, operator: str) -> Loop:
    """Call NumPy on image after image."""
    random = np.random.default_rng(0)
    top, left, height, width = map(int, REGION)

    def noisy(x: np.ndarray) -> np.ndarray:
        noise = random.standard_normal(x.shape, np.float32)
        return np.rint(noise * np.float32(NOISE) + x).clip(0, 255).astype(np.uint8)

    def erased(x: np.ndarray) -> np.ndarray:
        y = x.copy()
        y[top : top + height, left : left + width] = 0
        return y

    table = np.array(INVERSE, np.uint8)
    calls: dict[str, Callable[[np.ndarray], Any]] = {
        "noise": noisy,
        "erase": erased,
        "lookup": lambda x: table[x],
        "flip-h": lambda x: x[:, ::-1].copy(),
        "flip-v": lambda x: x[::-1].copy(),
        "mean": lambda x: x.mean((0, 1), dtype=np.float32),
        "sum": lambda x: x.sum(),
        "max": lambda x: x.max((0, 1)),
        "slice": lambda x: x[TOP : TOP + SIDE, LEFT : LEFT + SIDE].copy(),
        "transpose": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)),
        "cast": lambda x: x.astype(np.float32),
        "arithmetic": lambda x: x * np.float32(1.5) + np.float32(10),
        "copy": lambda x: x.copy(),
    }
    return _loop(_each(photographs(data), calls[operator]))


def run_pillow(data: Data, *, operator: str) -> Loop:
    """Call Pillow on image after image."""
    from PIL import Image, ImageFilter, ImageOps

    linear, nearest = Image.Resampling.BILINEAR, Image.Resampling.NEAREST
    flat_affine, flat_perspective = AFFINE.ravel().tolist(), PERSPECTIVE.ravel().tolist()[:8]
    size, twice = (WIDTH, HEIGHT), (2 * WIDTH, 2 * HEIGHT)
    weights = {n: ImageFilter.Kernel((n, n), k.ravel().tolist(), scale=float(k.sum())) for n, k in KERNELS.items()}
    table = [min(255, round(v * 1.1 * 0.9 + 12)) for v in range(256)] * 3
    calls: dict[str, Callable[[Any], Any]] = {
        "resize": lambda x: x.resize((SIDE, SIDE), linear),
        "resize-up": lambda x: x.resize(twice, linear),
        "resize-cubic": lambda x: x.resize(twice, Image.Resampling.BICUBIC),
        "resize-nearest": lambda x: x.resize((SIDE, SIDE), nearest),
        "rotate": lambda x: x.rotate(ANGLE, linear),
        "affine": lambda x: x.transform(size, Image.Transform.AFFINE, flat_affine, linear),
        "affine-nearest": lambda x: x.transform(size, Image.Transform.AFFINE, flat_affine, nearest),
        "perspective": lambda x: x.transform(size, Image.Transform.PERSPECTIVE, flat_perspective, linear),
        "filter-3": lambda x: x.filter(weights[3]),
        "filter-5": lambda x: x.filter(weights[5]),
        "flip-h": lambda x: x.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        "flip-v": lambda x: x.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
        "brightness": lambda x: x.point(table),
        "equalize": ImageOps.equalize,
        "slice": lambda x: x.crop((LEFT, TOP, LEFT + SIDE, TOP + SIDE)),
        "lookup": lambda x: x.point([int(v) for v in INVERSE] * 3),
        "gray": lambda x: x.convert("L"),
        "ycbcr": lambda x: x.convert("YCbCr"),
        "crop-resize": lambda x: x.resize((SIDE, SIDE), linear, (70, 60, 370, 310)),
        "copy": lambda x: x.copy(),
    }
    return _loop(_each([Image.fromarray(image) for image in photographs(data)], calls[operator]))


def run_opencv(data: Data, *, operator: str) -> Loop:
    """Call OpenCV on image after image, with one thread."""
    import cv2

    cv2.setNumThreads(1)
    size, twice = (WIDTH, HEIGHT), (2 * WIDTH, 2 * HEIGHT)
    inverse = cv2.WARP_INVERSE_MAP
    rotation = cv2.getRotationMatrix2D((WIDTH / 2 - 0.5, HEIGHT / 2 - 0.5), ANGLE, 1.0)
    turn = math.radians(20.0)
    to_yiq = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
    chroma = [[1, 0, 0], [0, math.cos(turn), math.sin(turn)], [0, -math.sin(turn), math.cos(turn)]]
    hue = (np.linalg.inv(to_yiq) @ np.array(chroma) @ to_yiq).astype(np.float32)
    twist = np.hstack([hue * 0.9, np.full((3, 1), 12.0, np.float32)]).astype(np.float32)
    table = np.clip(np.rint(np.arange(256) * 1.1 * 0.9 + 12), 0, 255).astype(np.uint8)

    tiles = cv2.createCLAHE(2.0, (8, 8))

    def clahe(x: np.ndarray) -> np.ndarray:
        lab = cv2.cvtColor(x, cv2.COLOR_RGB2Lab)
        lab[..., 0] = tiles.apply(np.ascontiguousarray(lab[..., 0]))
        return cv2.cvtColor(lab, cv2.COLOR_Lab2RGB)

    def crop(x: np.ndarray) -> np.ndarray:
        return x[TOP : TOP + SIDE, LEFT : LEFT + SIDE]

    line = np.zeros((9, 9), np.float32)
    line[4] = 1 / 9
    line = cv2.warpAffine(line, cv2.getRotationMatrix2D((4, 4), 30.0, 1.0), (9, 9))
    inverse_table = np.array(INVERSE, np.uint8)
    images = photographs(data)
    if operator == "debayer":
        images = _mosaics(images)

    calls: dict[str, Callable[[np.ndarray], Any]] = {
        "resize": lambda x: cv2.resize(x, (SIDE, SIDE), interpolation=cv2.INTER_AREA),
        "resize-plain": lambda x: cv2.resize(x, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR),
        "resize-up": lambda x: cv2.resize(x, twice, interpolation=cv2.INTER_LINEAR),
        "resize-cubic": lambda x: cv2.resize(x, twice, interpolation=cv2.INTER_CUBIC),
        "resize-nearest": lambda x: cv2.resize(x, (SIDE, SIDE), interpolation=cv2.INTER_NEAREST_EXACT),
        "rotate": lambda x: cv2.warpAffine(x, rotation, size, flags=cv2.INTER_LINEAR),
        "affine": lambda x: cv2.warpAffine(x, AFFINE, size, flags=cv2.INTER_LINEAR | inverse),
        "affine-nearest": lambda x: cv2.warpAffine(x, AFFINE, size, flags=cv2.INTER_NEAREST | inverse),
        "perspective": lambda x: cv2.warpPerspective(x, PERSPECTIVE, size, flags=cv2.INTER_LINEAR | inverse),
        "blur-7": lambda x: cv2.GaussianBlur(x, (7, 7), 1.0),
        "blur-19": lambda x: cv2.GaussianBlur(x, (19, 19), 3.0),
        "filter-3": lambda x: cv2.filter2D(x, -1, KERNELS[3]),
        "filter-5": lambda x: cv2.filter2D(x, -1, KERNELS[5]),
        "flip-h": lambda x: cv2.flip(x, 1),
        "flip-v": lambda x: cv2.flip(x, 0),
        "twist": lambda x: cv2.transform(x, twist),
        "hue": lambda x: cv2.transform(x, hue),
        "brightness": lambda x: cv2.LUT(x, table),
        "normalize": lambda x: cv2.dnn.blobFromImage(cv2.flip(crop(x), 1), 1 / 57.0, (SIDE, SIDE), MEAN),
        "normalize-whole": lambda x: cv2.dnn.blobFromImage(x, 1 / 57.0, size, MEAN),
        "equalize": lambda x: cv2.merge([cv2.equalizeHist(channel) for channel in cv2.split(x)]),
        "mean": cv2.mean,
        "sum": cv2.sumElems,
        "transpose": cv2.split,
        "gray": lambda x: cv2.cvtColor(x, cv2.COLOR_RGB2GRAY),
        "ycbcr": lambda x: cv2.cvtColor(x, cv2.COLOR_RGB2YCrCb),
        "crop-resize": lambda x: cv2.resize(x[60:310, 70:370], (SIDE, SIDE), interpolation=cv2.INTER_AREA),
        "arithmetic": lambda x: cv2.addWeighted(x, 1.5, x, 0, 10, dtype=cv2.CV_32F),
        "clahe": clahe,
        "jpeg": lambda x: cv2.imdecode(cv2.imencode(".jpg", x, [cv2.IMWRITE_JPEG_QUALITY, 50])[1], 1),
        "laplacian-3": lambda x: cv2.Laplacian(x, cv2.CV_8U, ksize=3),
        "laplacian-5": lambda x: cv2.Laplacian(x, cv2.CV_8U, ksize=5),
        "debayer": lambda x: cv2.cvtColor(x, cv2.COLOR_BayerBG2RGB),
        "motion-blur": lambda x: cv2.filter2D(x, -1, line),
        "lookup": lambda x: cv2.LUT(x, inverse_table),
        **{f"dilate-{n}": lambda x, n=n: cv2.dilate(x, np.ones((n, n), np.uint8)) for n in (3, 15)},
        **{f"erode-{n}": lambda x, n=n: cv2.erode(x, np.ones((n, n), np.uint8)) for n in (3, 15)},
        **{f"median-{n}": lambda x, n=n: cv2.medianBlur(x, n) for n in (3, 5, 15, 31)},
    }
    return _loop(_each(images, calls[operator]))


def run_torchvision(data: Data, *, operator: str) -> Loop:
    """Call torchvision's functions on the batch as one tensor of planes, with one thread."""
    import torch

    declared = declare_operators(torch)
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.v2 import functional as F

    del declared
    torch.set_num_threads(1)
    stack = torch.from_numpy(np.stack(photographs(data)))
    x = stack.permute(0, 3, 1, 2).contiguous()
    linear, nearest = InterpolationMode.BILINEAR, InterpolationMode.NEAREST_EXACT
    perspective = PERSPECTIVE.ravel().tolist()[:8]
    normal = [v / 255 for v in MEAN], [v / 255 for v in STD]

    def as_floats(y: Any) -> Any:
        return F.to_dtype(y, torch.float32, scale=True)

    calls: dict[str, Call] = {
        "resize": lambda: F.resize(x, [SIDE, SIDE], antialias=True),
        "resize-plain": lambda: F.resize(x, [SIDE, SIDE], antialias=False),
        "resize-up": lambda: F.resize(x, [2 * HEIGHT, 2 * WIDTH], antialias=True),
        "resize-cubic": lambda: F.resize(x, [2 * HEIGHT, 2 * WIDTH], InterpolationMode.BICUBIC, antialias=True),
        "resize-nearest": lambda: F.resize(x, [SIDE, SIDE], nearest),
        "rotate": lambda: F.rotate(x, ANGLE, linear, fill=[0.0, 0.0, 0.0]),
        "affine": lambda: F.affine(x, 10.0, [5, 5], 1.1, [2.0, 2.0], linear),
        "affine-nearest": lambda: F.affine(x, 10.0, [5, 5], 1.1, [2.0, 2.0], InterpolationMode.NEAREST),
        "perspective": lambda: F.perspective(x, None, None, linear, coefficients=perspective),
        "blur-7": lambda: F.gaussian_blur(x, [7, 7], [1.0, 1.0]),
        "blur-19": lambda: F.gaussian_blur(x, [19, 19], [3.0, 3.0]),
        "flip-h": lambda: F.horizontal_flip(x),
        "flip-v": lambda: F.vertical_flip(x),
        "hue": lambda: F.adjust_hue(x, 20 / 360),
        "brightness": lambda: F.adjust_brightness(x, 1.1),
        "normalize": lambda: F.normalize(as_floats(F.horizontal_flip(F.center_crop(x, [SIDE, SIDE]))), *normal),
        "normalize-whole": lambda: F.normalize(as_floats(x), *normal),
        "equalize": lambda: F.equalize(x),
        "mean": lambda: x.float().mean((2, 3)),
        "sum": lambda: x.sum((1, 2, 3)),
        "max": lambda: x.amax((2, 3)),
        "slice": lambda: F.crop(x, TOP, LEFT, SIDE, SIDE).contiguous(),
        "transpose": lambda: stack.permute(0, 3, 1, 2).contiguous(),
        "cast": lambda: x.float(),
        "gray": lambda: F.rgb_to_grayscale(x),
        "arithmetic": lambda: x * 1.5 + 10,
        "copy": lambda: x.clone(),
        "noise": lambda: (torch.randn(x.shape) * NOISE + x).round_().clamp_(0, 255).to(torch.uint8),
        "erase": lambda: F.erase(x, *map(int, REGION), torch.zeros(3, 1, 1, dtype=torch.uint8)),
    }
    return _loop(calls[operator])


# Operators of each library. Those that have no equal there are left out.
_OPENCV_LACKS = {"max", "slice", "cast", "copy", "noise", "erase"}
_PILLOW_HAS = {
    "resize", "resize-up", "resize-cubic", "resize-nearest", "rotate", "affine", "affine-nearest", "perspective",
    "filter-3", "filter-5", "flip-h", "flip-v", "brightness", "equalize", "slice", "gray", "ycbcr",
    "crop-resize", "copy", "lookup",
}  # fmt: skip
# Operators that DALI has on GPUs only, or not at all; torchvision has none of them.
_DALI_LACKS = {
    "dilate-3", "dilate-15", "erode-3", "erode-15", "median-3", "median-5", "median-15", "median-31", "debayer",
    "motion-blur",
}  # fmt: skip
_TORCHVISION_LACKS = {
    "filter-3", "filter-5", "twist", "ycbcr", "crop-resize", "clahe", "jpeg", "laplacian-3", "laplacian-5",
    "lookup", *_DALI_LACKS,
}  # fmt: skip
_NUMPY_HAS = {
    "flip-h",
    "flip-v",
    "mean",
    "sum",
    "max",
    "slice",
    "transpose",
    "cast",
    "arithmetic",
    "copy",
    "noise",
    "erase",
    "lookup",
}


def _case(operator: str, title: str) -> Case:
    options = {"operator": operator}
    peers = [("DALI", "run_dali", operator not in _DALI_LACKS), ("OpenCV", "run_opencv", operator not in _OPENCV_LACKS)]
    peers += [("torchvision", "run_torchvision", operator not in _TORCHVISION_LACKS)]
    peers += [("Pillow", "run_pillow", operator in _PILLOW_HAS), ("NumPy", "run_numpy", operator in _NUMPY_HAS)]
    contenders = [Contender("stoker", "run_stoker", options, cores=1)]
    contenders += [Contender(name, function, options, "peers", cores=1) for name, function, has in peers if has]
    others = tuple(one.name for one in contenders[1:])
    bar = Bar("time of the fastest library's", "stoker", others, at_most=1.1, goal=1.0)
    return Case(
        f"operator-{operator}", f"Operator: {title}", MS_PER_IMAGE, tuple(contenders), (bar,), _NOTE, seconds=0.25
    )


_NOTE = (
    "16 photographs of 500x375, uint8 RGB, one after the other: eager calls for Stoker, a pipeline fed without copies "
    "for DALI, one tensor of planes for torchvision. Results differ between the libraries: in borders, in fixed-point "
    "arithmetic, in filters of antialiasing."
)

CASES = tuple(_case(operator, title) for operator, title in TITLES.items())

# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.operators_gpu``: single operators on a GPU, compared with DALI's and with the memory's rate.

256 images of 375x500 (or those of ``--batch`` and ``--size``) and as many clips of 16 s at 16 kHz are on the GPU before
the measurement; each operator is a pipeline of its own that is fed with them without a copy. Stoker and DALI alternate
in one process. The floor of an operator is the time that a copy between two tensors of torch takes for as many bytes as
the operator reads and writes. ``benchmarks.detection_gpu`` has the operators for detection.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .cases.operators import AFFINE, ANGLE, HEIGHT, KERNELS, SIDE, TITLES, WIDTH, fn_calls
from .gpu_pipelines import BATCH, library

RATE, SECONDS = 16_000, 16
CLASSES = 16
ROUNDS = 5

Step = Callable[[], None]
Input = tuple[Any, str]  # tensor of a batch, and the layout of its samples


def main() -> int:
    """Measure the named operators, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators_gpu", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="operators, by default all")
    parser.add_argument("--dali", type=Path, help="folder to import nvidia.dali from, if it is not installed")
    parser.add_argument("--seconds", type=float, default=0.25, help="length of a round")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--depth", type=int, default=2, help="prefetched batches, of both libraries")
    parser.add_argument("--batch", type=int, default=BATCH, help="samples of a batch")
    parser.add_argument("--size", type=int, nargs=2, default=(HEIGHT, WIDTH), help="height and width of the images")
    arguments = parser.parse_args()
    if arguments.dali:
        sys.path.insert(0, str(arguments.dali))
    import torch

    print(f"{torch.cuda.get_device_name()}, {time.strftime('%d %B %Y %H:%M', time.gmtime())} UTC", flush=True)
    bandwidth = measure_bandwidth()
    print(f"copy between tensors: {bandwidth / 1e12:.2f} TB/s, read and written\n", flush=True)
    print("| operator | per second | DALI's | ratio | part of the memory's rate |\n|---|---|---|---|---|", flush=True)
    inputs = make_inputs(arguments.batch, arguments.size)
    stoker, dali = library("stoker"), _dali()
    _compile_stages()
    ours, theirs = _calls(stoker), _calls(dali) if dali else {}
    for name in arguments.names or ours:
        if name in ours:
            fed = [inputs[kind] for kind in INPUTS.get(name, ("clips",) if name in SOUND else ("images",))]
            contenders = [Pipeline(stoker, ours[name], fed, arguments)]
            if name in theirs:
                contenders.append(Pipeline(dali, theirs[name], fed, arguments))
            compare(name, contenders, arguments.seconds, bandwidth)
    return 0


def make_inputs(batch: int, size: Sequence[int], device: str = "cuda") -> dict[str, Input]:
    """Return tensors of a batch with their layouts, by kind."""
    import torch

    height, width = size
    images = torch.randint(0, 256, (batch, height, width, 3), dtype=torch.uint8, device=device)
    rows = torch.arange(height, device=device, dtype=torch.float32)[:, None].expand(height, width)
    columns = torch.arange(width, device=device, dtype=torch.float32).expand(height, width)
    boxes = torch.rand((batch, 64, 2), device=device) / 2
    return {
        "images": (images, "HWC"),
        "mosaics": (images[:, : height // 2 * 2, : width // 2 * 2, :1].contiguous(), "HWC"),  # even: DALI's limit
        "frames": (torch.randint(0, 256, (batch, 8, 128, 160, 3), dtype=torch.uint8, device=device), "FHWC"),
        "columns": ((columns + 3 * torch.sin(rows / 20)).expand(batch, -1, -1).contiguous(), "HW"),
        "rows": ((rows + 3 * torch.sin(columns / 20)).expand(batch, -1, -1).contiguous(), "HW"),
        "boxes": (torch.cat([boxes, boxes + 0.25], -1), ""),
        "classes": (torch.randint(0, CLASSES, (batch, 64), dtype=torch.int32, device=device), ""),
        "labels": (torch.randint(0, CLASSES, (batch, 16384), dtype=torch.int32, device=device), ""),
        "points": (torch.rand((batch, 65536, 2), device=device), ""),
        "clips": (torch.randn((batch, RATE * SECONDS), device=device) / 4, ""),
        "blocks": (torch.from_numpy(lz4_block(height * width * 3)).to(device).expand(batch, -1).contiguous(), ""),
    }


def lz4_block(size: int) -> Any:
    """Return an LZ4 block of ``size`` bytes, in 16 random bytes that are repeated three times, and at last literals."""
    rng = np.random.default_rng(3)
    count = (size - 80) // 64
    groups = np.empty((count, 21), np.uint8)
    groups[:, :2] = (0xFF, 16 - 15)  # 15 literals and more, a match of 15 + 4 bytes and more
    groups[:, 2:18] = rng.integers(0, 256, (count, 16))
    groups[:, 18:] = (16, 0, 48 - 19)  # its distance and length
    last = size - 64 * count
    return np.concatenate([groups.reshape(-1), [0xF0, last - 15], rng.integers(0, 256, last)]).astype(np.uint8)


class Pipeline:
    """Pipeline of one operator, fed with the same tensors again and again.

    Attributes:
        refusal: why there is no pipeline; empty if there is one.
    """

    def __init__(
        self, lib: Any, function: Callable[..., Any], inputs: Sequence[Input], options: argparse.Namespace
    ) -> None:
        self.refusal, self.bytes = "", 0
        self.rates: list[float] = []
        self.batch = options.batch

        sizes = {"batch_size": self.batch, "num_threads": options.threads, "prefetch_queue_depth": options.depth}

        @lib.pipeline_def(device_id=0, **sizes)  # type: ignore[untyped-decorator]
        def one_operator() -> Any:
            return function(*(
                lib.fn.external_source(
                    source=_always(data), device="gpu", no_copy=True, **({"layout": layout} if layout else {})
                )
                for data, layout in inputs
            ))  # fmt: skip

        try:
            self._pipeline = one_operator()
            self._pipeline.build()
            self.bytes = sum(data.nbytes for data, _ in inputs) + _nbytes(self._pipeline.run()[0])
            for _ in range(8):
                self._pipeline.run()
        except Exception as error:  # noqa: BLE001 (the table names it)
            reason = str(error).rpartition("encountered:")[2].strip()  # DALI's texts begin with the place
            self.refusal = f"{type(error).__name__}: {reason.splitlines()[0][:200] if reason else ''}"

    def run(self, seconds: float) -> None:
        """Run one round."""
        if not self.refusal:
            self.rates.append(self.batch * _rate(lambda: self._pipeline.run(), seconds))

    def close(self) -> None:
        """Release the memory of the pipeline."""
        if not self.refusal:
            getattr(self._pipeline, "close", lambda: None)()
            del self._pipeline

    @property
    def rate(self) -> float:
        """Median of the rounds, in samples per second."""
        return statistics.median(self.rates) if self.rates else 0.0


def compare(name: str, contenders: Sequence[Pipeline], seconds: float, bandwidth: float) -> None:
    """Run the contenders in alternation and print a line of the table."""
    for turn in range(ROUNDS):
        for contender in contenders if turn % 2 == 0 else contenders[::-1]:
            contender.run(seconds)
    own, *peers = contenders
    cells = [name, own.refusal or f"{own.rate:,.0f}"]
    for peer in peers:
        cells += [peer.refusal or f"{peer.rate:,.0f}", f"{own.rate / peer.rate:.2f}" if own.rate and peer.rate else ""]
    cells += [""] * (4 - len(cells))
    cells.append(f"{own.rate / own.batch * own.bytes / bandwidth:.0%}" if own.rate else "")
    print(f"| {' | '.join(cells)} |", flush=True)
    for contender in contenders:
        contender.close()


def measure_bandwidth() -> float:
    """Return the bytes per second that a copy reads and writes."""
    import torch

    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes * max(_rate(lambda: target.copy_(source), 0.1) for _ in range(ROUNDS))


def _rate(step: Callable[[], Any], seconds: float) -> float:
    """Return steps per second. The clock stops when the device is idle."""
    import torch

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(4):
            step()
        count += 4
    torch.cuda.synchronize()
    return count / (time.perf_counter() - start)


def _always(data: Any) -> Callable[[], Any]:
    """Return a source that gives the same batch. DALI passes arguments to functions that could take some."""
    return lambda: data


def _nbytes(output: Any) -> int:
    """Return the size of a batch on the GPU, of Stoker's or DALI's."""
    import torch

    if hasattr(output, "as_tensor"):  # DALI's
        output.as_cpu()  # waits
        return sum(torch.from_dlpack(output[i]).nbytes for i in range(len(output)))
    return sum(torch.from_dlpack(output[i]).nbytes for i in range(len(output)))


def _compile_stages() -> None:
    """Compile every stage when its pipeline is built: a process would interpret the later ones at first."""
    from stoker.device.gpu import Gpu

    Gpu.compiled_first = 1 << 40


def _dali() -> Any:
    try:
        return library("dali")
    except ImportError as error:
        print(f"without DALI: {error}")
        return None


# ---- operators ----


def _mel_chain(fn: Any, x: Any) -> Any:
    y = fn.spectrogram(fn.preemphasis_filter(x), nfft=512, window_length=320, window_step=160)
    y = fn.to_decibels(fn.mel_filter_bank(y, sample_rate=float(RATE), nfilter=80), cutoff_db=-80.0)
    return fn.normalize(y, axes=[1])


SOUND: dict[str, Callable[[Any, Any], Any]] = {
    "mel chain": _mel_chain,
    "spectrogram": lambda fn, x: fn.spectrogram(x, nfft=512, window_length=320, window_step=160),
    "preemphasis_filter": lambda fn, x: fn.preemphasis_filter(x),
    "mfcc chain": lambda fn, x: fn.mfcc(
        fn.to_decibels(fn.mel_filter_bank(fn.spectrogram(x, nfft=512), sample_rate=float(RATE), nfilter=80)), n_mfcc=20
    ),
    "to_decibels": lambda fn, x: fn.to_decibels(x),
    "nonsilent_region": lambda fn, x: fn.nonsilent_region(x)[0],
    "audio_resample": lambda fn, x: fn.audio_resample(x, in_rate=RATE, out_rate=11025.0),
}


# Inputs of operators that take others than images, or than clips for sound.
INPUTS: dict[str, tuple[str, ...]] = {
    "constant": (),
    "inflate": ("blocks",),
    "debayer": ("mosaics",),
    "remap": ("images", "columns", "rows"),
    "cast_like": ("images", "points"),
    "element_extract": ("frames",),
    "sequence_rearrange": ("frames",),
    "one_hot": ("labels",),
    "coord_transform": ("points",),
    "coord_flip": ("points",),
    "bb_flip": ("boxes",),
    "box_encoder": ("boxes", "classes"),
}


def more_calls(lib: Any) -> dict[str, Callable[..., Any]]:
    """Return operators that Stoker and DALI have on GPUs and that ``benchmarks.cases.operators`` lacks."""
    fn, types = lib.fn, lib.types
    anchors = [v / 2000 for k in range(1000) for v in (k, k, k + 500, k + 500)]

    def moments(function: Any) -> Callable[[Any], Any]:
        return lambda x: function(x, fn.reductions.mean(x, axes=[0, 1], keep_dims=True), axes=[0, 1])

    def pasted(x: Any) -> Any:
        def listed(values: Any) -> Any:  # DALI takes arrays, whose first axis counts the regions
            return np.array(values, np.int32).ravel().tolist() if _is_stoker(lib) else types.Constant(np.int32(values))

        return fn.multi_paste(
            x, in_ids=listed([0, 1]), in_anchors=listed([[0, 0], [100, 100]]), shapes=listed([[200, 250]] * 2),
            out_anchors=listed([[0, 0], [170, 240]]), output_size=[HEIGHT, WIDTH],
        )  # fmt: skip

    return {
        "brightness-only": lambda x: fn.brightness(x, brightness=1.1),
        "contrast": lambda x: fn.contrast(x, contrast=0.9),
        "saturation": lambda x: fn.saturation(x, saturation=0.8),
        "hsv": lambda x: fn.hsv(x, hue=20.0, saturation=0.8, value=1.1),
        "crop": lambda x: fn.crop(x, crop=[SIDE, SIDE]),
        "slice-pad": lambda x: fn.slice(
            x, start=[-20, -20], shape=[HEIGHT, WIDTH], axes=[0, 1], out_of_bounds_policy="pad"
        ),
        "pad": lambda x: fn.pad(x, axes=[0, 1], shape=[400, 512]),
        "paste": lambda x: fn.paste(x, ratio=1.25, fill_value=0),
        "multi_paste": pasted,
        "constant": lambda: fn.constant(idata=[7], shape=[HEIGHT, WIDTH, 3], dtype=types.UINT8, device="gpu"),
        "get_property": lambda x: fn.get_property(x, key="layout"),
        "inflate": lambda x: fn.decoders.inflate(x, shape=[HEIGHT, WIDTH, 3], dtype=types.UINT8),
        "grid_mask": lambda x: fn.grid_mask(x, tile=50, ratio=0.5, angle=0.3),
        "sphere": lambda x: fn.sphere(x),
        "water": lambda x: fn.water(x),
        "jitter": lambda x: fn.jitter(x, nDegree=4),
        "remap": lambda x, columns, rows: fn.experimental.remap(x, columns, rows),
        "affine-border": lambda x: fn.warp_affine(x, matrix=AFFINE.ravel().tolist()),
        "rotate-whole": lambda x: fn.rotate(x, angle=ANGLE, fill_value=0),
        "resize-crop": lambda x: fn.resize_crop_mirror(x, resize_shorter=256, crop=[SIDE, SIDE], mirror=1),
        "tensor_resize": lambda x: fn.tensor_resize(x, axes=[0, 1], sizes=[SIDE, SIDE]),
        "experimental.resize": lambda x: fn.experimental.resize(x, size=[SIDE, SIDE]),
        "normalize-axes": lambda x: fn.normalize(x, axes=[0, 1]),
        "normalize-batch": lambda x: fn.normalize(x, axes=[0, 1], batch=True),
        "salt_and_pepper": lambda x: fn.noise.salt_and_pepper(x),
        "shot": lambda x: fn.noise.shot(x),
        "random-uniform": lambda x: fn.random.uniform(x, range=[0.0, 1.0]),
        "random-normal": lambda x: fn.random.normal(x),
        "coin_flip": lambda x: fn.random.coin_flip(x),
        "min": lambda x: fn.reductions.min(x, axes=[0, 1]),
        "mean_square": lambda x: fn.reductions.mean_square(x, axes=[0, 1]),
        "rms": lambda x: fn.reductions.rms(x, axes=[0, 1]),
        "std_dev": moments(fn.reductions.std_dev),
        "variance": moments(fn.reductions.variance),
        "cat": lambda x: fn.cat(x, x, axis=0),
        "stack": lambda x: fn.stack(x, x),
        "permute_batch": lambda x: fn.permute_batch(x, indices=[*range(1, BATCH), 0]),
        "reshape": lambda x: fn.reshape(x, shape=[-1]),
        "reinterpret": lambda x: fn.reinterpret(x, dtype=types.INT8),
        "expand_dims": lambda x: fn.expand_dims(x, axes=[0], new_axis_names="F"),
        "squeeze": lambda x: fn.squeeze(fn.expand_dims(x, axes=[0], new_axis_names="F"), axes=[0]),
        "cast_like": lambda x, like: fn.cast_like(x, like),
        "element_extract": lambda x: fn.element_extract(x, element_map=[1, 6])[0],
        "sequence_rearrange": lambda x: fn.sequence_rearrange(x, new_order=[7, 6, 5, 4, 3, 2, 1, 0]),
        "one_hot": lambda x: fn.one_hot(x, num_classes=CLASSES),
        "coord_transform": lambda x: fn.coord_transform(x, M=[0.9, 0.1, -0.1, 0.9], T=[0.1, 0.2]),
        "coord_flip": lambda x: fn.coord_flip(x, flip_x=1),
        "bb_flip": lambda x: fn.bb_flip(x, ltrb=True),
        "box_encoder": lambda boxes, classes: fn.box_encoder(boxes, classes, anchors=anchors)[0],
    }


def _is_stoker(lib: Any) -> bool:
    return str(lib.__name__) == "stoker"


def _calls(lib: Any) -> dict[str, Callable[..., Any]]:
    """Return operators by the names of ``benchmarks.cases.operators``, and the others by their own."""
    found: dict[str, Callable[..., Any]] = dict(fn_calls(lib.fn, lib.types))
    found["arithmetic"] = lambda x: x * 1.5 + 10.0
    # DALI has OpenCV's algorithms on the CPU only.
    algorithm = {} if _is_stoker(lib) else {"algorithm": "default_npp"}
    found["debayer"] = lambda x: lib.fn.debayer(x, blue_position=[0, 0], **algorithm)
    for size, weights in KERNELS.items():
        found[f"filter-{size}"] = lambda x, weights=weights: lib.fn.filter(x, weights)  # type: ignore[misc]
    if _is_stoker(lib):  # DALI has none
        found["motion-blur"] = lambda x: lib.fn.motion_blur(x, size=9, angle=30.0)
    images = {name: found[name] for name in TITLES if name in found}
    sound = {name: (lambda x, make=make: make(lib.fn, x)) for name, make in SOUND.items()}
    return {**images, **more_calls(lib), **sound}


if __name__ == "__main__":
    sys.exit(main())

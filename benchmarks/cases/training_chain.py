# SPDX-License-Identifier: Apache-2.0
"""Main case: JPEG files to training batches, float32 (64, 3, 224, 224), shuffled, epoch after epoch."""

from __future__ import annotations

from itertools import chain, repeat
from typing import Any

from benchmarks.case import IMAGES_PER_S, Bar, Case, Contender, Loop
from benchmarks.data import Data
from benchmarks.library import DALI, STOKER, consume, load
from benchmarks.torchvision_peer import image_loader

ORDER = 10
BATCH = 64
MEAN, STD = ([0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255])

# DALI's default executor, its older one, and a deeper queue; the best of them counts.
_DALI_SETTINGS: dict[str, dict[str, Any]] = {
    "": {},
    ", static executor": {"exec_dynamic": False},
    ", prefetch 3": {"prefetch_queue_depth": 3},
}


def make_pipeline(library_name: str, data: Data, *, threads: int, **settings: Any) -> Any:
    """Return the built pipeline, from the same definition for both libraries."""
    library = load(library_name)
    fn, types = library.fn, library.types

    @library.pipeline_def(batch_size=BATCH, num_threads=threads, device_id=None, seed=7, **settings)
    def training() -> Any:
        jpegs, labels = fn.readers.file(files=data.files, labels=data.labels, random_shuffle=True, name="Reader")
        images = fn.decoders.image_random_crop(jpegs, device="cpu", output_type=types.RGB)
        images = fn.resize(images, resize_x=224, resize_y=224)
        images = fn.crop_mirror_normalize(
            images, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD, mirror=fn.random.coin_flip()
        )
        return images, labels

    pipeline = training()
    pipeline.build()
    return pipeline


def run_pipeline(data: Data, *, library: str, threads: int, **settings: Any) -> Loop:
    """Take batches from a prefetching pipeline."""
    pipeline = make_pipeline(library, data, threads=threads, **settings)

    def step() -> tuple[int, float]:
        outputs = pipeline.run()
        return len(outputs[1]), consume(outputs)

    return Loop(step, warm=settings.get("prefetch_queue_depth", 2) + 1)


def run_torchvision(data: Data) -> Loop:
    """Run torchvision's transforms on Pillow images in a `DataLoader` without workers, on one thread."""
    loader = image_loader(data, BATCH)
    batches = chain.from_iterable(repeat(loader))

    def step() -> tuple[int, float]:
        images, labels = next(batches)
        return len(labels), float(images.reshape(-1)[::509].sum()) + float(labels.sum())

    return Loop(step, warm=0)


def _against_dali(threads: int) -> Case:
    plural = "s" if threads > 1 else ""
    peers = tuple(
        Contender(f"DALI{text}", "run_pipeline", {"library": DALI, "threads": threads, **settings}, "peers")
        for text, settings in _DALI_SETTINGS.items()
    )
    return Case(
        f"chain-{threads}-thread{plural}",
        f"Training chain, {threads} thread{plural}",
        IMAGES_PER_S,
        (Contender("stoker", "run_pipeline", {"library": STOKER, "threads": threads}), *peers),
        (Bar("rate over DALI's", "stoker", tuple(peer.name for peer in peers), at_least=2, goal=3),),
        note="Read, decode a random crop, resize to 224x224, flip, normalise, float32 CHW, batches of 64. Threads "
        "beyond the library's workers (reading, Python) use a free core if there is one; the CPU time shows it.",
    )


CASES = (
    _against_dali(1),
    _against_dali(2),
    Case(
        "chain-one-core",
        "Training chain, one core",
        IMAGES_PER_S,
        (
            Contender("stoker", "run_pipeline", {"library": STOKER, "threads": 1}, cores=1),
            Contender("torchvision on Pillow", "run_torchvision", environment="peers", cores=1),
        ),
        (Bar("rate over torchvision's", "stoker", ("torchvision on Pillow",), at_least=4, goal=6),),
        note="The same chain with the whole process pinned to one core. torchvision: `RandomResizedCrop`, "
        "`RandomHorizontalFlip`, `ToTensor`, `Normalize` on Pillow images in a `DataLoader` without workers.",
    ),
)

# SPDX-License-Identifier: Apache-2.0
"""Classification of motion end to end: clips of videos, augmentation, and a small R(2+1)D network.

    python examples/video/train.py            # a few minutes on two cores
    python examples/video/train.py --fast     # less data: the check of the tests

The videos are made (videos.py), so that the example needs no download. Replace the folder, with a sub-folder per class,
to train on others. It needs the extras `torch` and `video`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from stoker import fn, pipeline_def, types
from stoker.torch import Loader

sys.path.insert(0, str(Path(__file__).parent))

import model
import videos

LENGTH, STRIDE, STEP, CROP = 8, 2, 4, 40


@pipeline_def(num_threads=2, seed=1)
def clips(folder: str, training: bool) -> Any:
    """Read clips and crop them. All frames of a clip have the same window and the same colors."""
    video, label = fn.readers.video(
        file_root=folder, sequence_length=LENGTH, stride=STRIDE, step=STEP, random_shuffle=training
    )
    x = y = 0.5
    if training:
        x, y = fn.random.uniform(range=(0.0, 1.0)), fn.random.uniform(range=(0.0, 1.0))
        video = fn.brightness_contrast(
            video, brightness=fn.random.uniform(range=(0.8, 1.2)), contrast=fn.random.uniform(range=(0.7, 1.3))
        )
    video = fn.crop_mirror_normalize(  # without mirroring: it would turn left into right
        video, crop=(CROP, CROP), crop_pos_x=x, crop_pos_y=y, mean=[128.0] * 3, std=[60.0] * 3, dtype=types.FLOAT,
        output_layout="CFHW",
    )  # fmt: skip
    return video, label


def loader(folder: Path, batch: int, training: bool) -> Loader:
    """Return batches of clips: shuffled over all videos for training, else in order."""
    pipe = clips(str(folder), training, batch_size=batch)
    return Loader(pipe, ["video", "label"], last_batch_policy="partial")


def accuracy(net: torch.nn.Module, batches: Loader, still: bool = False) -> float:
    """Return the share of clips whose class is right; ``still``: all frames of a clip are its first one."""
    net.eval()
    right = total = 0
    with torch.no_grad():
        for batch in batches:
            video, label = batch["video"], batch["label"].flatten()
            if still:
                video = video[:, :, :1].expand_as(video)
            right += int((net(video).argmax(1) == label).sum())
            total += len(label)
    return right / total


def train(folder: Path, count: int, epochs: int, batch: int) -> float:
    """Train, and return the accuracy on clips of videos that training did not see."""
    torch.manual_seed(0)
    training = loader(videos.write(folder / "train", count, seed=1), batch, training=True)
    held_out = loader(videos.write(folder / "test", max(count // 4, 4), seed=2), batch, training=False)
    net = model.R2Plus1D(len(videos.MOTIONS))
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=epochs * len(training))
    loss_of = torch.nn.CrossEntropyLoss()
    found = 0.0
    for epoch in range(epochs):
        net.train()
        begin, total, shown = time.perf_counter(), 0.0, 0
        for one in training:
            loss = loss_of(net(one["video"]), one["label"].flatten().long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total, shown = total + loss.item(), shown + len(one["label"])
        seconds = time.perf_counter() - begin
        found = accuracy(net, held_out)
        print(
            f"epoch {epoch + 1}: loss {total / len(training):.3f}, right {found:.1%}, {shown / seconds:.0f} clips/s",
            flush=True,
        )
    print(f"right with still pictures: {accuracy(net, held_out, still=True):.1%}")
    training.close()
    held_out.close()
    return found


def main() -> None:
    """Train on made videos, and fail if the model has not learned their motion."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="less data and fewer epochs")
    parser.add_argument("--folder", type=Path, help="where to keep the videos; by default a temporary folder")
    args = parser.parse_args()
    size = {"count": 10, "epochs": 3, "batch": 8} if args.fast else {"count": 80, "epochs": 8, "batch": 16}
    with tempfile.TemporaryDirectory() as temporary:
        found = train(args.folder or Path(temporary), **size)
    least = 0.7 if args.fast else 0.95
    print(f"right: {found:.1%}")
    if found < least:
        sys.exit(f"expected at least {least:.0%} of the clips to be right, got {found:.1%}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Speech recognition end to end: manifest, augmentation, features, buckets of like length, and a CTC model.

    python examples/asr/train.py            # a few minutes on two cores
    python examples/asr/train.py --fast     # less data: the check of the tests

The corpus is made (corpus.py), so that the example needs no download. Replace the manifest and the tokens to train on
speech.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from stoker import fn, pipeline_def, samplers
from stoker.torch import Loader

sys.path.insert(0, str(Path(__file__).parent))

import corpus
import model

FEATURES = 40
TOKENS = torch.zeros(256, dtype=torch.int64)  # token of each byte of a text; 0 is the blank
TOKENS[list(corpus.ALPHABET.encode())] = torch.arange(1, len(corpus.ALPHABET) + 1)


@pipeline_def(num_threads=2, seed=1)
def clips(manifest: str, sampler: Any, training: bool) -> Any:
    """Read clips, and compute their features."""
    audio, _, text = fn.readers.nemo_asr(manifest_filepaths=manifest, sampler=sampler)
    if training:
        audio = fn.random_speed(audio, factors=(0.96, 1.0, 1.04))
    features = fn.features.nemo(audio, features=FEATURES)
    if training:
        features = fn.spec_augment(features, freq_masks=1, freq_width=4, time_masks=1, time_width=6)
    return features, text


def durations(manifest: Path) -> list[float]:
    """Return the durations of a manifest's entries."""
    return [json.loads(line)["duration"] for line in manifest.read_text().splitlines()]


def loader(manifest: Path, batch: int, training: bool) -> Loader:
    """Return padded batches: shuffled buckets of like length for training, else all clips by length."""
    sampler = samplers.Bucketed(durations(manifest), group=batch, buckets=8, shuffle=training)
    pipe = clips(str(manifest), sampler, training, batch_size=batch)
    return Loader(pipe, ["features", "text"], ragged="padded", last_batch_policy="partial")


def decode(scores: torch.Tensor, lengths: torch.Tensor) -> list[list[int]]:
    """Return the tokens of the most probable path of each row, without repetitions and blanks."""
    texts = []
    for row, length in zip(scores.argmax(2).T, lengths, strict=True):
        path = torch.unique_consecutive(row[:length])
        texts.append(path[path > 0].tolist())
    return texts


def distance(a: list[int], b: list[int]) -> int:
    """Return the number of insertions, deletions and substitutions between two texts (Levenshtein)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def error_rate(net: model.Jasper, batches: Loader) -> float:
    """Return the share of wrong characters."""
    net.eval()
    wrong = total = 0
    with torch.no_grad():
        for batch in batches:
            scores, lengths = net(*batch["features"])
            for found, text, n in zip(decode(scores, lengths), *batch["text"], strict=True):
                wanted = TOKENS[text[:n].long()].tolist()
                wrong += distance(found, wanted)
                total += len(wanted)
    return wrong / total


def train(folder: Path, clips: int, epochs: int, batch: int) -> float:
    """Train, and return the error rate on clips that training did not see."""
    torch.manual_seed(0)
    training = loader(corpus.write(folder / "train", clips, seed=1), batch, training=True)
    held_out = loader(corpus.write(folder / "test", clips // 5, seed=2), batch, training=False)
    net = model.Jasper(FEATURES, len(corpus.ALPHABET) + 1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=epochs * len(training))
    loss_of = torch.nn.CTCLoss(zero_infinity=True)
    rate = 1.0
    for epoch in range(epochs):
        net.train()
        begin, total, frames, padded = time.perf_counter(), 0.0, 0, 0
        for batch_ in training:
            (features, lengths), (text, sizes) = batch_["features"], batch_["text"]
            scores, lengths_out = net(features, lengths)
            loss = loss_of(scores, TOKENS[text.long()], lengths_out, sizes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
            frames, padded = frames + int(lengths.sum()), padded + features.shape[0] * features.shape[2]
        rate = error_rate(net, held_out)
        print(
            f"epoch {epoch + 1}: loss {total / len(training):.3f}, wrong characters {rate:.1%}, "
            f"padding {padded / frames - 1:.1%}, {time.perf_counter() - begin:.1f} s"
        )
    training.close()
    held_out.close()
    return rate


def main() -> None:
    """Train on a made corpus, and fail if the model has not learned."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="less data and fewer epochs")
    parser.add_argument("--folder", type=Path, help="where to keep the corpus; by default a temporary folder")
    args = parser.parse_args()
    size = {"clips": 240, "epochs": 5, "batch": 8} if args.fast else {"clips": 1500, "epochs": 10, "batch": 16}
    with tempfile.TemporaryDirectory() as temporary:
        rate = train(args.folder or Path(temporary), **size)
    limit = 0.3 if args.fast else 0.03
    print(f"wrong characters: {rate:.1%}")
    if rate > limit:
        sys.exit(f"expected at most {limit:.0%} of wrong characters, got {rate:.1%}")


if __name__ == "__main__":
    main()

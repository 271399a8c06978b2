# SPDX-License-Identifier: Apache-2.0
"""Speech recognition with a transducer (RNN-T): stacked frames of features, buckets of like length, an RNN-T model.

    python examples/asr/transducer.py            # a few minutes on two cores
    python examples/asr/transducer.py --fast     # less data: the check of the tests

The front end is that of MLPerf's RNN-T: another speed, silence cut off, log-mel features, masks, and three neighbouring
frames stacked to one, so that the encoder takes a third of the steps. The corpus is made (corpus.py).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stoker import fn, pipeline_def, samplers
from stoker.torch import Loader

sys.path.insert(0, str(Path(__file__).parent))

import corpus
import train

STACKED = 3  # frames
WIDTH = STACKED * train.FEATURES


@pipeline_def(num_threads=2, seed=1)
def clips(manifest: str, sampler: Any, training: bool) -> Any:
    """Read clips, and compute stacked frames of features, ``(frames / 3, 3 * features)``."""
    audio, _, text = fn.readers.nemo_asr(manifest_filepaths=manifest, sampler=sampler)
    if training:
        audio = fn.random_speed(audio, factors=(0.96, 1.0, 1.04))
    audio = fn.trim_silence(audio, cutoff_db=-25.0, window_length=256, margin=400)
    features = fn.features.nemo(audio, features=train.FEATURES)
    if training:
        features = fn.spec_augment(features, freq_masks=1, freq_width=4, time_masks=1, time_width=6)
    whole = features[:, : fn.shapes(features)[1] // STACKED * STACKED]
    return fn.reshape(fn.transpose(whole, perm=[1, 0]), shape=[-1, WIDTH]), text


def loader(manifest: Path, batch: int, training: bool) -> Loader:
    """Return padded batches: shuffled buckets of like length for training, else all clips by length."""
    sampler = samplers.Bucketed(train.durations(manifest), group=batch, buckets=6, shuffle=training)
    pipe = clips(str(manifest), sampler, training, batch_size=batch)
    return Loader(pipe, ["features", "text"], ragged="padded", last_batch_policy="partial")


class Transducer(nn.Module):
    """Encoder of frames, prediction network of the tokens so far, and joint network of both; token 0 is the blank."""

    def __init__(self, features: int, classes: int, hidden: int = 96) -> None:
        super().__init__()
        self.encoder = nn.LSTM(features, hidden, batch_first=True, bidirectional=True)
        self.from_frames = nn.Linear(2 * hidden, hidden)
        self.embedding = nn.Embedding(classes, 32)
        self.prediction = nn.LSTM(32, hidden, batch_first=True)
        self.joint = nn.Linear(hidden, classes)

    def encode(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        frames, _ = nn.utils.rnn.pad_packed_sequence(self.encoder(packed)[0], batch_first=True)
        encoded: torch.Tensor = self.from_frames(frames)
        return encoded

    def predict(self, tokens: torch.Tensor, state: Any = None) -> tuple[torch.Tensor, Any]:
        return self.prediction(self.embedding(tokens), state)  # type: ignore[no-any-return]

    def scores(self, frames: torch.Tensor, predicted: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.joint(torch.tanh(frames + predicted)).log_softmax(-1)
        return found

    def forward(self, x: torch.Tensor, lengths: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Return log probabilities ``(N, frames, tokens + 1, classes)``."""
        begun = nn.functional.pad(tokens, (1, 0))  # the blank begins
        predicted, _ = self.predict(begun)
        return self.scores(self.encode(x, lengths)[:, :, None], predicted[:, None])


def transducer_loss(
    scores: torch.Tensor, tokens: torch.Tensor, lengths: torch.Tensor, sizes: torch.Tensor
) -> torch.Tensor:
    """Return the mean of -log P(tokens) over all alignments (Graves, "Sequence transduction with recurrent neural
    networks", 2012).

    ``alpha[t, u]`` is the probability of having emitted u tokens before a decision at frame t. Along t it is a
    recurrence with the blanks' probabilities as factors, which a cumulative sum in the logarithmic domain solves.
    """
    blank = scores[..., 0]
    before = nn.functional.pad(blank.cumsum(1)[:, :-1], (0, 0, 1, 0))  # of the blanks at earlier frames
    alpha = before[:, :, 0]
    rows = [alpha]
    for u in range(tokens.shape[1]):
        emitted = scores[:, :, u].gather(2, tokens[:, None, u, None].expand(-1, scores.shape[1], 1))[..., 0]
        arrived = alpha + emitted
        alpha = torch.logcumsumexp(arrived - before[:, :, u + 1], 1) + before[:, :, u + 1]
        rows.append(alpha)
    at = torch.arange(len(lengths), device=scores.device)
    whole = torch.stack(rows, 2)[at, lengths - 1, sizes] + blank[at, lengths - 1, sizes]
    return -whole.mean()


def decode(net: Transducer, frames: torch.Tensor, most: int = 3) -> list[int]:
    """Return the most probable token at each decision, at most ``most`` of a frame. ``frames``: one encoded clip."""
    found: list[int] = []
    predicted, state = net.predict(torch.zeros(1, 1, dtype=torch.int64))
    for frame in frames:
        for _ in range(most):
            token = int(net.scores(frame, predicted[0, 0]).argmax())
            if token == 0:
                break
            found.append(token)
            predicted, state = net.predict(torch.tensor([[token]]), state)
    return found


def error_rate(net: Transducer, batches: Loader) -> float:
    """Return the share of wrong characters."""
    net.eval()
    wrong = total = 0
    with torch.no_grad():
        for batch in batches:
            (features, lengths), (text, sizes) = batch["features"], batch["text"]
            for frames, length, letters, size in zip(net.encode(features, lengths), lengths, text, sizes, strict=True):
                wanted = train.TOKENS[letters[:size].long()].tolist()
                wrong += train.distance(decode(net, frames[:length]), wanted)
                total += len(wanted)
    return wrong / total


def run(folder: Path, clips: int, epochs: int, batch: int) -> float:
    """Train, and return the error rate on clips that training did not see."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    training = loader(corpus.write(folder / "train", clips, seed=1), batch, training=True)
    held_out = loader(corpus.write(folder / "test", clips // 5, seed=2), batch, training=False)
    net = Transducer(WIDTH, len(corpus.ALPHABET) + 1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=epochs * len(training))
    for epoch in range(epochs):
        net.train()
        begin, total, frames, padded = time.perf_counter(), 0.0, 0, 0
        for step in training:
            (features, lengths), (text, sizes) = step["features"], step["text"]
            tokens = train.TOKENS[text.long()]
            loss = transducer_loss(net(features, lengths, tokens), tokens, lengths, sizes)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
            frames, padded = frames + int(lengths.sum()), padded + features.shape[0] * features.shape[1]
        took = time.perf_counter() - begin
        print(f"epoch {epoch + 1}: loss {total / len(training):.3f}, padding {padded / frames - 1:.1%}, {took:.1f} s")
    rate = error_rate(net, held_out)
    training.close()
    held_out.close()
    return rate


def main() -> None:
    """Train on a made corpus, and fail if the model has not learned."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="less data and fewer epochs")
    parser.add_argument("--folder", type=Path, help="where to keep the corpus; by default a temporary folder")
    args = parser.parse_args()
    size = {"clips": 240, "epochs": 12, "batch": 8} if args.fast else {"clips": 1500, "epochs": 20, "batch": 16}
    with tempfile.TemporaryDirectory() as temporary:
        rate = run(args.folder or Path(temporary), **size)
    limit = 0.3 if args.fast else 0.05
    print(f"wrong characters: {rate:.1%}")
    if rate > limit:
        sys.exit(f"expected at most {limit:.0%} of wrong characters, got {rate:.1%}")


if __name__ == "__main__":
    main()

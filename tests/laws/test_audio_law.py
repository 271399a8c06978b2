# SPDX-License-Identifier: Apache-2.0
"""The central law for chains of audio operators: random graphs have the same bytes with all passes, with none and with
single ones, on any number of threads, in batches of any size.

The graphs of ``test_central_law`` have no audio operators, because those compare with references bit by bit, and sums
of floats in NumPy's order have other bits. Here a run without passes, on one thread and of all rows, is the reference;
each operator's own tests compare it with NumPy.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from stoker import fn
from stoker.contract.config import PipelineConfig
from stoker.contract.feed import SampleInfo
from stoker.frontends.data_node import DataNode
from stoker.frontends.definition import GraphBuilder
from stoker.frontends.registry import find
from stoker.graph.node import Graph
from stoker.testing.laws import check_graph, run_graph, vary
from tests.complete import COMPLETE

BASE, GRAPHS, PARTS, ROWS, RATE = 2311, 60 if COMPLETE else 20, 4, 6, 8000
OPERATORS = {
    "preemphasis_filter", "audio_resample", "random_speed", "trim_silence", "mix_noise", "convolve",
    "loudness_normalize", "time_stretch", "pitch_shift", "spectrogram", "mel_filter_bank", "to_decibels", "mfcc",
    "spec_augment", "normalize", "power_spectrum", "stft", "istft", "nonsilent_region", "loudness",
}  # fmt: skip


class Signals:
    """Source of tones in noise with a silent beginning, of 1,500 to 2,500 samples."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, info: SampleInfo) -> Any:
        rng = np.random.default_rng((self.seed, info.idx_in_epoch))
        t = np.arange(int(rng.integers(1500, 2501))) / RATE
        x = 0.3 * np.sin(2 * np.pi * rng.uniform(100, 3000) * t) + rng.normal(0, 0.1, len(t))
        x[: int(rng.integers(0, 400))] *= 1e-5
        return x.astype(np.float32)


class Growth:
    """A random graph: signals, then operators on signals and on their spectra."""

    def __init__(self, number: int) -> None:
        self.rng = np.random.default_rng((BASE, number))
        self.builder = GraphBuilder(find)
        self.spectra: list[DataNode] = []
        self.others: list[DataNode] = []
        with self.builder:
            self.signals = [fn.external_source(source=Signals(int(self.rng.integers(1 << 30))), batch=False)]
            for _ in range(int(self.rng.integers(0, 4))):
                self.signals.append(self._signal(self._latest(self.signals)))
            self.spectra.append(self._spectrum(self._latest(self.signals)))
            for _ in range(int(self.rng.integers(1, 5))):
                self.spectra.append(self._of_spectrum(self._latest(self.spectra)))
            if self._chance(0.5):
                self.others.append(self._other(self._latest(self.signals)))

    def graph(self) -> Graph:
        """Return the graph with its last values, and some others, as outputs."""
        last = [*self.signals[-1:], *self.spectra[-1:], *self.others]
        more = [x for x in (*self.signals[:-1], *self.spectra[:-1]) if self._chance(0.2)]
        edges = tuple(x.edge for x in (*last[-2:], *more))
        return Graph(tuple(self.builder.nodes), edges, (None,) * len(edges))

    def _chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def _pick(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def _latest(self, values: list[DataNode]) -> DataNode:
        return values[-1] if self._chance(0.8) else self._pick(*values)

    def _between(self, low: float, high: float) -> Any:
        """Return a number, or a node with another one for each row."""
        return float(self.rng.uniform(low, high)) if self._chance(0.5) else fn.random.uniform(range=[low, high])

    def _signal(self, x: DataNode) -> Any:
        speed: dict[str, Any] = {"window_length": 128, "window_step": 32}
        moves = (
            lambda: fn.preemphasis_filter(
                x, preemph_coeff=self._between(0.1, 0.97), border=self._pick("clamp", "zero", "reflect")
            ),
            lambda: fn.audio_resample(x, scale=self._between(0.6, 1.5), quality=self._pick(20.0, 50.0)),
            lambda: fn.random_speed(x, factors=(0.9, 1.0, 1.2)),
            lambda: fn.trim_silence(x, cutoff_db=-40.0, window_length=64, margin=self._pick(0, 100)),
            lambda: fn.mix_noise(x, self._pick(*self.signals), snr=self._between(0, 20)),
            lambda: fn.convolve(x, self._pick(*self.signals)),
            lambda: fn.loudness_normalize(x, sample_rate=float(RATE)),
            lambda: fn.time_stretch(x, rate=self._between(0.7, 1.4), **speed),
            lambda: fn.pitch_shift(x, n_steps=self._between(-3, 3), **speed),
            lambda: fn.normalize(x),
            lambda: fn.istft(fn.stft(x, window_length=128, window_step=32), window_length=128, window_step=32),
        )
        return self._pick(*moves)()

    def _spectrum(self, x: DataNode) -> Any:
        length = self._pick(60, 128, 200)
        frame = {"window_length": length, "window_step": self._pick(32, 50), "power": self._pick(1, 2)}
        return fn.spectrogram(x, nfft=self._pick(length, 256), center_windows=self._chance(0.7), **frame)

    def _of_spectrum(self, x: DataNode) -> Any:
        if len(self.spectra) == 1 and self._chance(0.7):
            return fn.mel_filter_bank(x, nfilter=self._pick(8, 20), sample_rate=float(RATE))
        moves = (
            lambda: fn.to_decibels(x, multiplier=10.0, reference=self._pick(0.0, 1.0), cutoff_db=-80.0),
            lambda: fn.mfcc(x, n_mfcc=8, normalize=self._chance(0.5)),
            lambda: fn.normalize(x, axes=self._pick([0], [1], [0, 1])),
            lambda: fn.spec_augment(x, freq_width=4, time_width=9, fill_value=self._between(-1, 1)),
        )
        return self._pick(*moves)()

    def _other(self, x: DataNode) -> Any:
        moves = (
            lambda: fn.loudness(x, sample_rate=float(RATE)),
            lambda: fn.nonsilent_region(x, cutoff_db=-40.0, window_length=64)[0],
            lambda: fn.power_spectrum(x, power=self._pick(1, 2)),
        )
        return self._pick(*moves)()


@pytest.mark.parametrize("part", range(PARTS))
def test_chains_of_audio_have_the_same_bytes_however_they_run(part: int) -> None:
    for number in range(part, GRAPHS, PARTS):
        grown = Growth(number)
        graph, rng = grown.graph(), np.random.default_rng((BASE, number, 1))
        alone = PipelineConfig(batch_size=ROWS, threads=1, seed=number, depth=0, passes=frozenset(), without_gpu="cpu")
        try:
            want = run_graph(graph, alone, ROWS)
            assert all(np.isfinite(x).all() for x in want[0]) and not np.array_equal(want[0][0], want[0][1])
            check_graph(graph, want, number, configs=list(vary(rng, number, ROWS)))
        except Exception as error:
            error.add_note(f"graph {number}: {' '.join(node.operator.name for node in graph.nodes)}")
            raise


def test_the_graphs_use_all_operators() -> None:
    used = Counter(node.operator.name for number in range(GRAPHS) for node in Growth(number).graph().nodes)
    assert not OPERATORS - set(used), f"random graphs no longer use {OPERATORS - set(used)}"

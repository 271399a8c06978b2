# SPDX-License-Identifier: Apache-2.0
"""The controller of the split between CPU and GPU, against a model of CPU, GPU and training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from stoker.executor.split import Split, Window

US = 1e-6


@dataclass(frozen=True)
class Machine:
    """Times per row of worker threads, of GPU stages, and of a consumer that waits for both."""

    threads: float = 14
    other: float = 60 * US  # reading and describing
    cpu: float = 900 * US  # decoding on a thread
    gpu: float = 6 * US  # decoding on the GPU
    launches: float = 0.0  # time of the GPU's decoder per row of a batch, unless all rows are decoded on the CPU
    rest: float = 2 * US
    consumer: float = 100 * US  # training alone
    held_up: float = 1.5  # The training waits this much longer than the GPU works for the pipeline.
    crowded: float = 0.0  # fraction by which busy threads slow down the training
    cold: float = 0.0  # fraction by which the first windows are slower
    noise: float = 0.003

    def times(self, share: float) -> tuple[float, float]:
        """Return the times of the consumer alone and of the pipeline alone."""
        threads = (self.other + share * self.cpu) / self.threads
        gpu = self.rest + (1 - share) * self.gpu + (self.launches if share < 1 else 0.0)
        own = self.consumer + self.held_up * gpu if self.consumer else 0.0
        return own * (1 + self.crowded * min(1.0, threads / max(own, 1e-9))), max(threads, gpu)

    def row_s(self, share: float) -> float:
        return max(self.times(share))

    def window(self, share: float, rng: np.random.Generator, batches: int = 16) -> Window:
        own, pipeline = self.times(share)
        row = max(own, pipeline) * (1 + self.noise * rng.standard_normal())
        ready = float(np.clip((1.0 - pipeline / max(own, 1e-9)) * 10, 0, 1))
        waited = max(0.0, 1 - own / row) if own < pipeline else 0.003
        busy = (self.other + share * self.cpu) * (1 + self.noise * rng.standard_normal())
        return Window(256 * batches, row * 256 * batches, waited, ready, busy,
                      self.cpu * (1 + 0.02 * rng.standard_normal()) if share else 0.0, self.gpu, self.rest)  # fmt: skip

    def best(self) -> float:
        """Return the shortest time per row over all shares."""
        return min(self.row_s(s) for s in np.linspace(0, 1, 501))


def settle(machine: Machine, split: Split, windows: int = 200, seed: int = 0) -> list[float]:
    """Return the shares of all windows."""
    rng = np.random.default_rng(seed)
    shares = []
    for n in range(windows):
        window = machine.window(split.cpu_share, rng)
        slow = 1 + machine.cold * 0.7**n
        shares.append(split.cpu_share)
        split.observe(replace(window, seconds=window.seconds * slow, waited=window.waited / slow))
    return shares


MACHINES = {
    "ShuffleNet": Machine(),
    "ResNet-18": Machine(consumer=77 * US),
    "ResNet-50": Machine(consumer=210 * US),
    "few threads": Machine(threads=6),
    "two cores": Machine(threads=2, other=44 * US),
    "two cores, slow training": Machine(threads=2, other=44 * US, consumer=700 * US),
    "crowded": Machine(crowded=0.08, held_up=0.4),
    "launches that wait for a core": Machine(crowded=1.0, held_up=0.4, cold=1.5),
    "no consumer": Machine(consumer=0.0),
    "no consumer, many cores": Machine(consumer=0.0, threads=64),
    "a slow GPU": Machine(gpu=60 * US, rest=20 * US),
    "a slow GPU, no consumer": Machine(gpu=60 * US, rest=20 * US, consumer=0.0),
    "noise": Machine(noise=0.02),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("seed", range(5))
def test_the_share_converges_to_the_best_one(name: str, seed: int) -> None:
    machine = MACHINES[name]
    split = Split(machine.threads, None)
    shares = settle(machine, split, 300, seed)
    late = np.mean([machine.row_s(s) for s in shares[100:]])  # including the cost of trials
    plain = machine.row_s(0.0)
    assert late <= max(1.015 * machine.best(), 0.4 * machine.best() + 0.6 * plain) + 0.01 * plain, (shares, split.why)
    assert late <= 1.01 * plain, "never much worse than without the CPU"
    moves = sum(abs(a - b) > 0.02 for a, b in pairwise(shares[200:]))
    assert moves <= 30, shares[200:]


def test_rows_go_to_the_cpu_where_that_leaves_the_gpu_to_the_training() -> None:
    split = Split(14, None)
    shares = settle(MACHINES["ShuffleNet"], split)
    assert np.mean(shares[100:]) > 0.6
    assert "on the CPU" in split.why


def test_all_rows_go_to_the_cpu_where_only_that_gains() -> None:
    machine = Machine(consumer=210 * US, cpu=700 * US, gpu=0.5 * US, launches=2.5 * US, held_up=1.0, crowded=0.004)
    assert machine.row_s(0.5) > 0.998 * machine.row_s(0.0) > machine.row_s(1.0)
    shares = settle(machine, Split(machine.threads, None), 400)
    assert np.mean(np.array(shares[50:]) == 1.0) > 0.8, shares


def test_a_consumer_that_waits_for_the_cpu_keeps_its_cores() -> None:
    shares = settle(MACHINES["launches that wait for a core"], Split(14, None), 400)
    assert np.mean(np.array(shares[100:]) > 0.02) < 0.05, shares


def test_the_share_follows_a_training_that_changes() -> None:
    training, validation = MACHINES["a slow GPU"], replace(MACHINES["a slow GPU"], consumer=30 * US)
    split, rng = Split(14, None), np.random.default_rng(0)
    for machine in (training, validation, training, validation):
        rates = []
        for _ in range(400):
            rates.append(machine.row_s(split.cpu_share))
            split.observe(machine.window(split.cpu_share, rng))
        assert np.mean(rates[200:]) <= 1.1 * machine.best()


def test_random_machines_are_not_made_slower() -> None:
    rng = np.random.default_rng(1)
    for seed in range(200):
        machine = Machine(
            threads=float(rng.choice([1, 2, 4, 14, 30])), other=float(rng.uniform(10, 200)) * US,
            cpu=float(rng.uniform(100, 3000)) * US, gpu=float(rng.uniform(2, 60)) * US,
            rest=float(rng.uniform(1, 20)) * US, consumer=float(rng.choice([0, 5, 50, 500])) * US,
            held_up=float(rng.uniform(0, 2)), crowded=float(rng.uniform(0, 0.5)), noise=float(rng.uniform(0, 0.01)),
        )  # fmt: skip
        shares = settle(machine, Split(machine.threads, None), 300, seed)
        late = np.mean([machine.row_s(s) for s in shares[100:]])
        assert late <= 1.012 * machine.row_s(0.0), (machine, shares)


def test_a_fixed_load_never_changes() -> None:
    split = Split(14, 0.75)
    assert set(settle(MACHINES["ShuffleNet"], split, 20)) == {0.25}


def test_the_gpus_time_is_bounded() -> None:
    machine = MACHINES["a slow GPU, no consumer"]
    split = Split(machine.threads, None, utilization=0.5)
    settle(machine, split)
    own = machine.rest + (1 - split.cpu_share) * machine.gpu
    assert own / machine.row_s(split.cpu_share) <= 0.55
    assert "gpu_utilization" in split.why

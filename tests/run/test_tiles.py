# SPDX-License-Identifier: Apache-2.0
"""Chains of audio kernels that run part by part: the same bits as one kernel after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stoker import fn, pipeline_def, types
from stoker.contract.errors import StokerError
from stoker.graph.analysis import PASSES
from stoker.native import _native

SIZES = (4000, 1, 2, 37, 333, 1601)
ISAS = ("avx512", "avx2", "plain")
Define = Callable[[Any], Any]


def clips(sizes: tuple[int, ...] = SIZES) -> list[Any]:
    return [np.random.default_rng(n).normal(0, 0.1, n).astype(np.float32) for n in sizes]


def run(define: Define, fused: bool, inputs: list[Any]) -> list[Any]:
    """Return the rows of an output, with the pass or without."""

    @pipeline_def(batch_size=len(inputs), num_threads=2)
    def pipe() -> Any:
        return define(fn.external_source(source=lambda: inputs))

    passes = PASSES if fused else frozenset(PASSES) - {"tiles"}
    with pipe(passes=frozenset(passes)) as made:
        made.build()
        (rows,) = made.run()
        return [np.asarray(row) for row in rows]


def kernels(define: Define) -> str:
    """Return the steps of a plan as text."""

    @pipeline_def(batch_size=1)
    def pipe() -> Any:
        return define(fn.external_source(source=lambda: clips()[:1], dtype=types.FLOAT, ndim=1))

    with pipe() as made:
        made.build()
        return str(made.show()).partition("\nplan")[2]


def mel(x: Any, **more: Any) -> Any:
    return fn.mel_filter_bank(fn.spectrogram(x, **more), nfilter=10, sample_rate=16000.0)


def decibels(x: Any) -> Any:
    return fn.to_decibels(x, reference=1.0, cutoff_db=-80.0)


FRAME: dict[str, Any] = {"nfft": 64, "window_length": 50, "window_step": 20}
CHAINS: dict[str, Define] = {
    "mel": lambda x: mel(x, **FRAME),
    "all": lambda x: fn.mfcc(decibels(mel(fn.preemphasis_filter(x), **FRAME)), n_mfcc=5),
    "by time": lambda x: fn.mfcc(
        decibels(mel(fn.preemphasis_filter(x, border="zero"), layout="tf", **FRAME)), n_mfcc=7, axis=1
    ),
    "reflected": lambda x: decibels(fn.spectrogram(fn.preemphasis_filter(x, border="reflect"), power=1, **FRAME)),
    "zeros": lambda x: decibels(mel(fn.preemphasis_filter(x), reflect_padding=False, **FRAME)),
    "normalized": lambda x: fn.normalize(decibels(mel(fn.preemphasis_filter(x), **FRAME)), axes=[1], epsilon=1e-5),
    "normalized by time": lambda x: fn.normalize(decibels(mel(x, layout="tf", **FRAME)), axes=[0], scale=2.0),
    "normalized as a whole": lambda x: fn.normalize(fn.spectrogram(x, **FRAME), ddof=1, shift=1.0),
    "far apart": lambda x: decibels(fn.spectrogram(fn.preemphasis_filter(x), window_length=40, window_step=90)),
    "odd": lambda x: mel(fn.preemphasis_filter(x), window_length=45, window_step=7),
    "chirp": lambda x: mel(fn.preemphasis_filter(x), window_length=46, window_step=7),
    "one channel": lambda x: mel(fn.preemphasis_filter(fn.stack(x, axis=1)), **FRAME),
}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_has_the_bits_of_its_kernels(chain: str, isa: str) -> None:
    before = _native.get_isa()
    define = CHAINS[chain]
    wanted = run(define, False, clips())
    try:
        _native.set_isa(isa)
    except ValueError:
        pytest.skip(f"this processor lacks the instructions of the {isa} form")
    try:
        for got, want in zip(run(define, True, clips()), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
    finally:
        _native.set_isa(before)


def test_the_planner_joins_what_fits() -> None:
    assert "tiled(" in kernels(CHAINS["all"])
    assert all(name not in kernels(CHAINS["all"]) for name in ("preemphasis(", "decibels(", "project("))
    for name in ("normalized", "normalized by time", "normalized as a whole"):
        assert "normalize_floats(" not in kernels(CHAINS[name])
    # Nothing can follow a kernel that gives the whole.
    after = kernels(lambda x: fn.mfcc(fn.normalize(mel(x, **FRAME), axes=[1]), n_mfcc=5))
    assert "tiled(" in after
    assert "project(" in after
    # The largest value of a row is known only at its end.
    assert "decibels(" in kernels(lambda x: fn.to_decibels(mel(x, **FRAME)))
    # A cosine transform over time needs all columns.
    assert "project(" in kernels(lambda x: fn.mfcc(mel(x, **FRAME), n_mfcc=1, axis=1))


def test_a_value_with_another_reader_stays() -> None:
    def define(x: Any) -> Any:
        spectrum = fn.spectrogram(x, **FRAME)
        louder = fn.mel_filter_bank(spectrum, nfilter=33, sample_rate=16000.0)
        return fn.cat(spectrum, louder, axis=0)

    text = kernels(define)
    assert "spectrogram(" in text
    for got, want in zip(run(define, True, clips()), run(define, False, clips()), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_chain_fails_as_its_kernels_do() -> None:
    for fused in (True, False):
        with pytest.raises(StokerError, match="expected a signal with samples"):
            run(CHAINS["all"], fused, [np.zeros(0, np.float32)])


def test_a_chain_checks_what_it_gets() -> None:
    make = _native.kernels.tiled
    spectrogram = (b"spectrogram", (64, 20, True, False, False), 3, 2)
    make(1, (spectrogram, (b"project", (0,), 1, 0)))
    for axis, links, text in (
        (2, (spectrogram, spectrogram), "axis 0 or 1"),
        (1, (spectrogram,), "2 to 8 kernels"),
        (1, (spectrogram, spectrogram), "does not take the parts"),
        (1, (spectrogram, (b"project", (0,), 4, 0)), "expected 1 inputs"),
        (1, ((b"spectrogram", (64, 20, True, False, False), 3, 1), (b"project", (0,), 1, 0)), "expected 2 numbers"),
        (1, (spectrogram, (b"reduce", (0, 1), 0, 1)), "cannot run in a chain"),
        (1, (spectrogram, (b"normalize_floats", (0, 1), 0, 4), (b"project", (0,), 1, 0)), "does not take the parts"),
        (1, (spectrogram, (b"normalize_floats", (0, 0), 0, 4)), "some axes"),
        (1, ((b"preemphasis", (0,), 1, 1), (b"normalize_floats", (0, 1), 0, 4)), "does not take the parts"),
    ):
        with pytest.raises(ValueError, match=text):
            make(axis, links)
    with pytest.raises(TypeError):
        make(1, (spectrogram, (b"project", (0, 1, 2), 1, 0)))

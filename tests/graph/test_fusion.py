# SPDX-License-Identifier: Apache-2.0
"""Fusion: steps that become one stage, and steps that must not."""

from __future__ import annotations

from typing import Any

from stoker import fn
from stoker.contract.step import Native, Stage, View
from stoker.contract.types import DType
from stoker.frontends.conditionals import BranchRuntime
from stoker.graph.verify import verify_steps
from tests.graph.small_graphs import ALL, Maker, kinds, stages, steps_of, training_chain


def test_resize_and_normalize_are_one_stage() -> None:
    def define(m: Maker) -> Any:
        x = fn.resize(m.image(), size=(8, 9))
        return fn.crop_mirror_normalize(x, mean=[1.0, 2.0, 3.0], std=2.0, mirror=m.number(DType.INT32))

    steps = steps_of(define, *ALL)
    assert [type(s.body) for s in steps.steps] == [Stage]
    body = steps.steps[0].body
    assert isinstance(body, Stage)
    assert body.interpolator is not None
    assert body.channels == 3


def test_the_training_chain_is_decode_and_one_stage() -> None:
    steps = steps_of(training_chain, *ALL)
    assert len(kinds(steps, Stage)) == 1
    assert not kinds(steps, View)
    assert [s.body.kernel for s in kinds(steps, Native) if isinstance(s.body, Native)] == ["peek", "decode"]


def test_five_pointwise_operators_are_one_stage() -> None:
    def define(m: Maker) -> Any:
        x = fn.brightness(m.image(), brightness=1.5)
        x = fn.contrast(x, contrast=m.number())
        x = fn.cast(x + 7, dtype=DType.FLOAT)
        return fn.cast(x * 0.5, dtype=DType.UINT8)

    assert stages(define) == 1


def test_stages_of_videos_fuse() -> None:
    def define(m: Maker) -> Any:
        x = fn.resize(m.image(layout="FHWC"), size=(8, 9))
        return fn.crop_mirror_normalize(x, mean=[1.0, 2.0, 3.0], std=2.0)

    def per_frame(m: Maker) -> Any:
        angles = fn.per_frame(m.fed(DType.FLOAT, (None,)))
        x = fn.rotate(m.image(layout="FHWC"), angle=angles, keep_size=True)
        return fn.brightness(x, brightness=angles)

    assert stages(define) == 1
    assert stages(per_frame) == 1


def test_divisions_that_may_fail_are_the_last_of_their_stage() -> None:
    """An error of a kernel names the last of the nodes that its step was joined from."""

    def constant(m: Maker) -> Any:
        return fn.cast(m.image() // 2 % 7, dtype=DType.FLOAT) * 0.5

    def by_data(m: Maker) -> Any:
        return fn.cast(100 // m.image(), dtype=DType.FLOAT) * 0.5

    def resized(m: Maker) -> Any:
        return fn.resize(m.image(), size=(8, 9)) // m.number(DType.INT32)

    def flipped(m: Maker) -> Any:
        return fn.flip(100 // m.image(), horizontal=m.number(DType.INT32))

    assert stages(constant) == 1
    assert stages(by_data) == 2
    assert stages(resized) == 1
    assert len(kinds(steps_of(flipped, *ALL), View)) == 1


def test_two_consumers_are_not_fused() -> None:
    def define(m: Maker) -> Any:
        x = fn.resize(m.image(), size=(8, 9))
        return x + 1, x * 2.0

    assert stages(define) == 3


def test_one_consumer_that_reads_twice_is_not_fused() -> None:
    def define(m: Maker) -> Any:
        x = fn.resize(m.image(), size=(8, 9))
        return x * x

    assert len(kinds(steps_of(define, *ALL), Stage)) <= 2


def test_outputs_are_not_fused_away() -> None:
    def define(m: Maker) -> Any:
        x = fn.resize(m.image(), size=(8, 9))
        return x, x + 1

    steps = steps_of(define, *ALL)
    assert len(kinds(steps, Stage)) == 2
    assert len(set(steps.outputs)) == 2


def test_values_that_numbers_are_read_from_are_not_fused_away() -> None:
    def define(m: Maker) -> Any:
        angle = m.fed(DType.FLOAT, (1,)) * 2.0
        return fn.rotate(m.image(), angle=angle), angle + m.fed(DType.FLOAT, (4,))

    verify_steps(steps_of(define, *ALL))


def test_a_second_interpolator_is_a_second_stage() -> None:
    def define(m: Maker) -> Any:
        return fn.rotate(fn.resize(m.image(), size=(8, 9)), angle=10.0)

    assert stages(define) == 2


def test_windows_are_not_pushed_through_stages() -> None:
    """A crop discards elements. The stage before it would compute them in vain, but the result must be the same."""

    def define(m: Maker) -> Any:
        return fn.crop(fn.resize(m.image(), size=(8, 9)), crop=(3, 3))

    steps = steps_of(define, *ALL)
    assert len(kinds(steps, View)) == 1


def test_branches_of_a_condition_are_not_fused_with_outer_steps() -> None:
    def define(m: Maker) -> Any:
        x = m.image() + 1
        return BranchRuntime(lambda f: f).choose(m.number(DType.BOOL), lambda: x * 2, lambda: x * 3)

    steps = steps_of(define, *ALL)
    assert sorted(len(s.guards) for s in kinds(steps, Stage)) == [0, 1, 1]


def test_stages_inside_of_a_branch_fuse() -> None:
    def define(m: Maker) -> Any:
        x = m.image(DType.FLOAT)
        return BranchRuntime(lambda f: f).choose(m.number(DType.BOOL), lambda: (x + 1.0) * 2.0, lambda: x)

    guarded = [s for s in kinds(steps_of(define, *ALL), Stage) if s.guards]
    assert len(guarded) == 1


def test_long_chains_are_cut_where_registers_end() -> None:
    def define(m: Maker) -> Any:
        x = m.image(DType.FLOAT)
        for i in range(400):
            x = x * (1.0 + i / 512) if i % 2 else x + float(i)
        return x

    assert 2 <= stages(define) <= 8


def test_many_inputs_are_cut_where_ports_end() -> None:
    def define(m: Maker) -> Any:
        return sum((m.image(DType.FLOAT) for _ in range(20)), m.image(DType.FLOAT))

    steps = steps_of(define, *ALL)
    assert all(len(s.inputs) <= 8 for s in steps.steps)

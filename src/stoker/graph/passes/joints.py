# SPDX-License-Identifier: Apache-2.0
"""Joints: neighbouring kernels on a GPU share a launch, so that no intermediate result goes through the GPU's memory.

The pass uses two traits, ``Native.tiles``, by which the kernels form a chain, and ``Native.joint``: one kernel of the
chain can do the work of the step before it and of the step after it. All compute what they compute alone.
"""

from __future__ import annotations

from ...contract.expr import Scalar
from ...contract.step import Joint, Native, Step, StepList, Tiles
from .tiles import Chain, find_chains, replace_chain, tiles_of, with_steps


def join_launches(steps: StepList) -> StepList:
    """Join all kernels on a GPU that can share launches."""
    result: list[Step | None] = list(steps.steps)
    for chain in find_chains(steps, _joinable):
        joints = [_joint_of(steps.steps[number]) for number in chain.members]
        core = next((i for i, joint in enumerate(joints) if joint.launches is not None), None)
        if core is None or chain.axis is None:
            continue
        launches, name = joints[core].launches, joints[core].name
        assert launches is not None
        begin = core - 1 if core > 0 and joints[core - 1].name == name else core
        end = core + 2 if core + 1 < len(joints) and joints[core + 1].name == name else core + 1
        if end - begin == 1:
            continue
        elements: Scalar = 0
        if end > core + 1:
            elements = steps.values[steps.steps[chain.members[core + 1]].outputs[0]].shape[1 - chain.axis]
        part = Chain(chain.members[begin:end], chain.axis)
        replace_chain(result, steps, part, launches(begin < core, elements))
    return with_steps(steps, result)


def _joinable(step: Step, steps: StepList) -> Tiles | None:
    """Return the trait of a step on a GPU that may share a launch."""
    body = step.body
    if not step.on_gpu or not isinstance(body, Native) or body.joint is None:
        return None
    return tiles_of(step, steps)


def _joint_of(step: Step) -> Joint:
    assert isinstance(step.body, Native) and step.body.joint is not None
    return step.body.joint

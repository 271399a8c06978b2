# SPDX-License-Identifier: Apache-2.0
"""First extents that a kernel on a GPU counts: which values have one, and which steps may follow.

The run loop describes all steps of a batch before the GPU begins. It knows the upper bound of such an extent then, and
the extent itself when the batch is done.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...contract.expr import identity, parts
from ...contract.pixel import tables_of
from ...contract.step import Native, Stage, Step, Value, View


class CountsOnGpu:
    """Values in a GPU's memory whose first extent is counted there.

    Args:
        values: the values of the steps. Those that share a count with an input are replaced.
    """

    def __init__(self, values: dict[int, Value]) -> None:
        self._values = values
        self._counted: set[int] = set()

    def add(self, step: Step, *, on_gpu: bool) -> int | None:
        """Take the next step. Return a value whose extent the step needs before it is known, or None.

        A step that makes each element of the elements at the same place runs over all that is reserved. Its outputs
        share the count of its input. So do those of a kernel that makes an element for each of one input's
        (``GpuForm.follows``), whose own numbers are those of the bound. A kernel may take the bound as extent
        (``GpuForm.takes_bound``).
        """
        counted = [v for v in step.inputs if v in self._counted]
        body = step.body
        follows = on_gpu and self._follows(step, counted)
        shares = follows or (bool(counted) and on_gpu and self._is_elementwise(step))
        if shares:
            for v in step.outputs:
                self._values[v] = replace(self._values[v], counted=self._values[counted[0]].counted)
        elif counted and on_gpu and not (isinstance(body, Native) and body.gpu and body.gpu.takes_bound):
            return counted[0]
        if self._counted:
            bound = identity(self._values[counted[0]].shape[0]) if follows else None
            scalars: list[Any] = [x for x in body.expressions if bound is None or not self._reads_only(x, bound)]
            scalars.append(step.frames)
            for check in step.checks:
                scalars += [check.condition, *check.values]
            for v in step.outputs:
                scalars += self._values[v].shape[shares:]  # without the axis that is the input's
            read = next((extent for scalar in scalars for extent in self._extents(scalar)), None)
            if read is not None:
                return int(read.args[0])
        if on_gpu:
            self._counted.update(v for v in step.outputs if self._values[v].counted is not None)
        return None

    def _extents(self, scalar: Any) -> list[Any]:
        """Return the parts of a scalar that are extents counted on the GPU."""
        firsts = [p for p in parts(scalar) if p.op == "count" or (p.op == "dim" and p.args[1] == 0)]
        return [p for p in firsts if p.args[0] in self._counted]

    def _reads_only(self, scalar: Any, extent: Any) -> bool:
        """Whether a scalar reads no other counted extent than ``extent``."""
        return all(identity(read) == extent for read in self._extents(scalar))

    def _follows(self, step: Step, counted: list[int]) -> bool:
        """Whether a kernel makes an element for each element of its only counted input."""
        form = step.body.gpu if isinstance(step.body, Native) else None
        if form is None or form.follows is None or counted != [step.inputs[form.follows]]:
            return False
        extent = identity(self._values[counted[0]].shape[0])
        outputs = [self._values[v] for v in step.outputs]
        return all(x.rank > 0 and identity(x.shape[0]) == extent for x in outputs)

    def _is_elementwise(self, step: Step) -> bool:
        """Whether a step with counted inputs makes each element of those at the same place."""
        body, outputs = step.body, [self._values[v] for v in step.outputs]
        inputs = [(n, self._values[v]) for n, v in enumerate(step.inputs) if v in self._counted]
        ranks = {x.rank for x in (*outputs, *(x for _, x in inputs))}
        if step.frames is not None or len(ranks) != 1 or 0 in ranks:
            return False
        if len({identity(x.shape[0]) for x in (*outputs, *(x for _, x in inputs))}) != 1:
            return False
        if isinstance(body, View):
            return not body.ops
        if not isinstance(body, Stage) or body.interpolator is not None:
            return False
        tables = tables_of([x for port in body.program for x in port])
        return not any(body.post) and not any(body.pre[n] or n in tables for n, _ in inputs)

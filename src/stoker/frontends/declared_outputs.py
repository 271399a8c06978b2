# SPDX-License-Identifier: Apache-2.0
"""Check of a pipeline's outputs against their declared types, ranks and layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..contract.errors import ArgumentError
from ..contract.text import brief
from ..contract.types import DType
from ..contract.whole_number import as_whole_number

if TYPE_CHECKING:  # the planner is imported when the first pipeline is built
    from ..graph.plan import Plan


def _is_dtype(value: Any) -> bool:
    try:
        return value is None or DType.of(value) in DType
    except TypeError:
        return False


_FORMS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("output_dtype", _is_dtype, "an element type"),
    ("output_ndim", lambda value: value is None or as_whole_number(value) is not None, "a number of axes"),
    ("output_layout", lambda value: value is None or isinstance(value, str), "names of axes"),
)


class DeclaredOutputs:
    """Declared ``output_dtype``, ``output_ndim`` and ``output_layout``: one value for all outputs, or a list with one
    (or None) each.

    Attributes:
        is_satisfied: whether nothing is left to compare.
    """

    KEYS = frozenset({"output_dtype", "output_ndim", "output_layout"})

    def __init__(self, settings: Mapping[str, Any]) -> None:
        for key, fits, form in _FORMS:
            value = settings.get(key)
            if value is not None and not all(map(fits, value if isinstance(value, (list, tuple)) else [value])):
                raise ArgumentError(f"`Pipeline`: expected {form} as `{key}`, or one per output, got {brief(value)}")
        self._asked = {key: settings[key] for key in sorted(self.KEYS & set(settings)) if settings[key] is not None}
        self.is_satisfied = not self._asked

    def of(self, key: str, outputs: int) -> list[Any]:
        """Return the declared values, one per output, or None."""
        asked = self._asked.get(key)
        return list(asked) if isinstance(asked, (list, tuple)) else [asked] * outputs

    def require(self, plan: Plan | None, outputs: int) -> None:
        """Compare the declarations with the plan, once there is one.

        Args:
            outputs: number of outputs that the user sees; the plan may have more.

        Raises:
            ArgumentError: an output differs, or a list has another length than ``outputs``.
        """
        if self.is_satisfied or plan is None:
            return
        for key in self._asked:
            wanted = self.of(key, outputs)
            if len(wanted) != outputs:
                raise ArgumentError(f"`Pipeline`: expected {outputs} of `{key}`, got {len(wanted)}")
            for number, (want, output) in enumerate(zip(wanted, plan.outputs, strict=False)):
                facts = {"output_dtype": output.dtype, "output_ndim": output.rank, "output_layout": output.layout}
                want = DType.of(want) if key == "output_dtype" and want is not None else want
                if want is not None and want != facts[key]:
                    asked = want if key == "output_dtype" else brief(want)
                    raise ArgumentError(f"`Pipeline`: expected output {number} with `{key}` {asked}, got {facts[key]}")
        self.is_satisfied = True

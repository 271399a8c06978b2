# SPDX-License-Identifier: Apache-2.0
"""What an operator is. One operator is one class in one file: its arguments, its meaning, its fast form, its cases.

A class declares its qualified name and arguments, and then *one* of

* ``lower(c, *inputs)``: builds steps with the :class:`~stoker.contract.lowering.Lowering` (its output's symbolic
  shapes and types are what ``infer`` gives);
* ``compose(c, *inputs)``: expands to other operators;
* ``infer`` and ``reference``: Python code, run in a segment of its own (users' operators).

``reference`` is the meaning in plain NumPy for one row; for a composite it follows from its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .argument import COMMON, REQUIRED, SEED, Argument
from .errors import ArgumentError, UnsupportedError, did_you_mean
from .random import Stream
from .types import DType

if TYPE_CHECKING:  # who only imports the package pays for no steps
    from .step import Value


class RowContext:
    """What a reference gets besides its inputs: arguments and draws of one row.

    Arguments are Python values (constants) or NumPy arrays (per row); ``row.number("angle")`` gives a float.
    """

    def __init__(
        self,
        args: Mapping[str, Any],
        *,
        layouts: tuple[str, ...] = (),
        stream: Stream | None = None,
        state: Any = None,
        place: tuple[int, int] = (0, 1),
    ) -> None:
        self.args = args
        self.layouts = layouts
        self._stream = stream
        self.state = state
        self.place = place  # number of the row in its batch, and how many rows that has; for scope = "batch"

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def number(self, name: str, index: int = 0) -> float:
        """Element ``index`` of an argument; one element stands for all."""
        value = np.asarray(self.args[name], dtype=np.float64).reshape(-1)
        return float(value[index if len(value) > 1 else 0])

    @property
    def stream(self) -> Stream:
        """The row's random numbers; ArgumentError if the operator's class has `draws = 0`."""
        if self._stream is None:
            raise ArgumentError("this operator declares no draws (`draws = 0`)")
        return self._stream

    @property
    def layout(self) -> str:
        """The first input's axes; HWC for an unnamed image."""
        return self.layouts[0] if self.layouts else ""


class Operator:
    """Base class of all operators. Subclass with ``class Flip(Operator, name="flip")``.

    Class attributes:
        inputs: how many inputs (minimum, maximum).
        positional: names of arguments that may also be given by position, for operators without inputs.
        outputs: how many outputs; may be a function of the constants (:meth:`count_outputs`).
        kind: pointwise, gather, reduce, general, source or composite (documentation and passes' trait).
        scope: "row", or "batch" if a row's result depends on other rows.
        draws: how many random streams the operator uses.
        pure: False if calls have effects (or hidden state) and must happen once per row, in order.
        stateful: the operator keeps state between rows: ``init``, ``get_state``, ``set_state``; its rows run in order.
        exactness: "exact", or what bounds the error.
        version: raise it when results change.
        whole_sources: arguments that take what calls of other sources returned, in a list; they become
            :class:`~stoker.contract.reader.Part`.
        devices: what ``device`` may place it on; where that is the CPU alone, what it gives is sent to a GPU.
        incidental: arguments that decide where or when rows are made but not what they are; a state may be restored
            with others.
        gives_bfloat16: bfloat16 may be asked for as the output's type.
        takes_bfloat16: inputs may be bfloat16. What is computed from them is computed in float32 and rounded once.
        cases: what tests, documentation and benchmarks run: dictionaries of arguments.
    """

    name: ClassVar[str] = ""
    arguments: ClassVar[dict[str, Argument]] = {}
    inputs: ClassVar[tuple[int, int]] = (1, 1)
    positional: ClassVar[tuple[str, ...]] = ()
    outputs: ClassVar[int] = 1
    kind: ClassVar[str] = "general"
    scope: ClassVar[str] = "row"
    draws: ClassVar[int] = 0
    pure: ClassVar[bool] = True
    stateful: ClassVar[bool] = False
    devices: ClassVar[tuple[str, ...]] = ("cpu", "gpu")
    exactness: ClassVar[str] = "exact"
    version: ClassVar[int] = 1
    whole_sources: ClassVar[tuple[str, ...]] = ()
    incidental: ClassVar[tuple[str, ...]] = ()
    gives_bfloat16: ClassVar[bool] = False
    takes_bfloat16: ClassVar[bool] = False
    hidden: ClassVar[bool] = False
    _all_arguments: ClassVar[dict[str, Argument]]
    cases: ClassVar[tuple[dict[str, Any], ...]] = ()

    def __init_subclass__(cls, name: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not name:
            return
        cls.name = name
        cls.arguments = cls.declared()
        missing = [
            what
            for what, there in (
                ("a docstring", bool(cls.__doc__) and cls.__doc__ is not Operator.__doc__),
                ("`lower`, `compose` or `infer`", cls._overrides("lower", "compose", "infer")),
                ("`reference`", cls._overrides("reference", "compose") or cls.kind == "source"),
            )
            if not there
        ]
        if missing:
            raise TypeError(f"operator {name!r} lacks {', '.join(missing)}")

    @classmethod
    def _overrides(cls, *methods: str) -> bool:
        return any(getattr(cls, m) is not getattr(Operator, m) for m in methods)

    @classmethod
    def declared(cls) -> dict[str, Argument]:
        """The arguments that the class and its bases declare."""
        return {k: v for base in reversed(cls.__mro__) for k, v in vars(base).items() if isinstance(v, Argument)}

    @classmethod
    def is_composite(cls) -> bool:
        """Whether it is made of other operators."""
        return cls._overrides("compose")

    @classmethod
    def is_python(cls) -> bool:
        """Whether the operator has no native form: its reference runs in a Python segment."""
        return not cls._overrides("lower", "compose")

    @classmethod
    def all_arguments(cls) -> dict[str, Argument]:
        """Its own, ``seed`` if it draws, and those that all operators take, by name."""
        known = cls.__dict__.get("_all_arguments")
        if known is None:
            known = {**cls.arguments, **({"seed": SEED} if cls.draws else {}), **COMMON}
            cls._all_arguments = known
        return known

    @classmethod
    def bind(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Constants by name, converted and with defaults; ArgumentError for unknown or ill-typed ones."""
        known = cls.all_arguments()
        values: dict[str, Any] = {}
        for key, value in given.items():
            if key not in known:
                hint = did_you_mean(key, known) or f"it takes {', '.join(known)}"
                raise ArgumentError(f"`{cls.name}`: unknown argument `{key}`; {hint}")
            try:
                values[key] = known[key].convert(value)
            except (TypeError, ValueError, OverflowError) as error:
                raise ArgumentError(f"`{cls.name}`: argument `{key}`: {error}") from None
            if known[key].kind == "dtype" and values[key] == DType.BFLOAT16 and not cls.gives_bfloat16:
                raise UnsupportedError(
                    f"`{cls.name}`: it does not give bfloat16. Cast what it gives (`fn.cast(x, dtype=types.BFLOAT16)`)"
                )
        return values

    @classmethod
    def complete(cls, values: Mapping[str, Any], edges: Mapping[str, Any]) -> dict[str, Any]:
        """``values`` with defaults; ArgumentError if a required argument is neither in them nor in ``edges``."""
        full = dict(values)
        for key, argument in cls.all_arguments().items():
            if key in full or key in edges:
                continue
            if argument.default is REQUIRED:
                raise ArgumentError(
                    f"`{cls.name}`: expected the argument `{key}` ({argument.doc.rstrip('.')}), got none"
                )
            full[key] = argument.convert(argument.default)
        return full

    @classmethod
    def subject(cls, args: Mapping[str, Any]) -> str:
        """What messages call the operator; one that stands for several may go by its arguments."""
        return cls.name

    def validate(self, args: Mapping[str, Any]) -> None:
        """Raise ArgumentError or UnsupportedError for constants that do not fit together, where the node is made."""

    @classmethod
    def unheeded(cls, args: Mapping[str, Any]) -> tuple[str, ...]:
        """What constants ask for that is not done, though they are accepted, and how to get the like.

        Whoever makes a node in a pipeline is warned of it. Not of what changes neither results nor, by much, speed.
        """
        return ()

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        """How many outputs it has with these constant arguments."""
        return self.outputs

    def returns_tuple(self, args: Mapping[str, Any]) -> bool:
        """Whether the call gives a tuple of nodes rather than one."""
        return self.count_outputs(args) != 1

    def runs_batches(self, args: Mapping[str, Any]) -> bool:
        """For Python operators: whether :meth:`run_rows` is called, with all rows of a batch."""
        return self.scope == "batch"

    # `c` is the :class:`~stoker.contract.lowering.Lowering`, which knows operators, so that its type is not known here.

    def lower(self, c: Any, *inputs: Any) -> Value | tuple[Value, ...]:
        """Build the operator's steps."""
        raise NotImplementedError

    def compose(self, c: Any, *inputs: Any) -> Any:
        """Expand to other operators: ``c.apply("resize", x, size=...)``; arguments by ``c.pass_on("mirror")``."""
        raise NotImplementedError

    def infer(self, c: Any, *inputs: Any) -> Any:
        """For Python operators: the output's ``Spec`` (or a tuple of them), or None if only running it tells."""
        raise NotImplementedError

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        """The meaning for one row in plain NumPy."""
        raise NotImplementedError

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """All rows of a batch at once, if :meth:`runs_batches`; results (or exceptions) per row."""
        return [self.reference(row, *x) for row, x in zip(rows, inputs, strict=True)]

    @classmethod
    def damage_offset(cls, read: Callable[[], bytes]) -> int | None:
        """Where the data that ``read`` gives are damaged, at which a row failed here; None if that cannot be told."""
        return None

    def init(self) -> Any:
        """The state that a stateful operator starts with; ``row.state`` holds it, the operator changes it."""
        return None

    def get_state(self, state: Any) -> Any:
        """``state`` as something that JSON can hold; it travels with every delivered batch."""
        return state

    def set_state(self, saved: Any) -> Any:
        """The state that :meth:`get_state` saved."""
        return saved


@dataclass(frozen=True)
class Spec:
    """Type of a Python operator's output. ``shape`` may have None for extents that only running tells."""

    dtype: DType
    shape: tuple[Any, ...]
    layout: str = ""

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

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .errors import ArgumentError, UnsupportedError, did_you_mean
from .random import Stream
from .types import DType, ImageType, InterpType

if TYPE_CHECKING:  # who only imports the package pays for no steps
    from .step import Value


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


@dataclass(frozen=True)
class Argument:
    """One declared argument.

    Attributes:
        kind: int, float, bool, str, dtype, image_type, interp, or object.
        many: a list is taken as well as a single value (stored as a tuple).
        per_row: may be a node of the graph: another value for every row (or frame).
        default: the value if it is not given; ``REQUIRED`` if it must be.
    """

    kind: str
    doc: str
    default: Any = REQUIRED
    many: bool = False
    per_row: bool = False
    choices: tuple[Any, ...] = ()

    def convert(self, value: Any) -> Any:
        """``value`` in this argument's type; TypeError or ValueError if it does not fit."""
        if value is None or self.kind == "object":
            return value
        if self.many and isinstance(value, (list, tuple, np.ndarray)):
            return tuple(self._one(v) for v in value)
        one = self._one(value)
        return (one,) if self.many and self.kind in ("int", "float", "str") else one

    def convert_default(self) -> Any:
        """The default as it is stored; None if there is none."""
        return None if self.default is REQUIRED else self.convert(self.default)

    def _one(self, value: Any) -> Any:
        one = _CONVERT[self.kind](value)
        if self.choices and one not in self.choices:
            raise ValueError(f"expected one of {', '.join(map(repr, self.choices))}, got {value!r}")
        return one


def arg(
    kind: str,
    default: Any = REQUIRED,
    *,
    doc: str,
    many: bool = False,
    per_row: bool = False,
    choices: tuple[Any, ...] = (),
) -> Any:
    """Declare an argument of an operator (see :class:`Argument`)."""
    return Argument(kind, doc, default, many, per_row, choices)


def _to_int(value: Any) -> int:
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    if not whole and not isinstance(value, (bool, np.bool_, int, np.integer)):
        raise TypeError(f"expected an integer, got {value!r}")
    if not -(1 << 63) <= int(value) < 1 << 64:
        raise ValueError("expected an integer of at most 64 bits")
    return int(value)


def _to_float(value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"expected a number, got {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"expected a number, got {value!r}") from None


def _to_bool(value: Any) -> bool:
    if isinstance(value, (bool, int, np.bool_, np.integer)):
        return bool(value)
    raise TypeError(f"expected True or False, got {value!r}")


def _to_str(value: Any) -> str:
    if hasattr(value, "__fspath__"):
        value = value.__fspath__()
    if not isinstance(value, str):
        raise TypeError(f"expected a string, got {value!r}")
    return value


def _to_enum(cls: type[enum.IntEnum]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        if isinstance(value, enum.Enum) or (isinstance(value, str) and value in cls.__members__):
            return cls[value.name if isinstance(value, enum.Enum) else value]
        raise TypeError(f"expected one of types.{', types.'.join(cls.__members__)}, got {value!r}")

    return convert


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "int": _to_int,
    "float": _to_float,
    "bool": _to_bool,
    "str": _to_str,
    "dtype": DType.of,
    "image_type": _to_enum(ImageType),
    "interp": _to_enum(InterpType),
}

COMMON = {
    "name": Argument("str", "Name of the node, shown in errors and by which outputs and readers are found.", None),
    "device": Argument("str", "Where the operator runs.", None, choices=("cpu", "gpu", "mixed")),
    "preserve": Argument("bool", "Run the operator also if its output is not used.", False),
    "bytes_per_sample_hint": Argument("int", "Accepted for compatibility; memory is planned.", 0, many=True),
}
ON_ERROR = Argument(
    "str", "In a pipeline: what becomes of a row that fails here: raise, replace or skip; by default what the "
    "pipeline's `on_error` says.", None, choices=("raise", "replace", "skip"),
)  # fmt: skip
SEED = Argument("int", "Seed of this operator's draws; by default it follows from the pipeline's.", None)


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

# SPDX-License-Identifier: Apache-2.0
"""Base class of operators. One operator is one class in one file: arguments, meaning, fast form, cases.

A class declares its qualified name and arguments, and then *one* of

* ``lower(c, *inputs)``: builds steps with the :class:`~stoker.contract.lowering.Lowering`. The output's symbolic shapes
  and types take the role of ``infer``.
* ``compose(c, *inputs)``: expands into other operators.
* ``infer`` and ``reference``: Python code that runs in a segment of its own (users' operators).

``reference`` is the meaning in plain NumPy for one row. A composite needs none: its parts have references. An operator
whose rows depend on their batch (``scope = "batch"``) defines ``run_rows`` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .argument import COMMON, REQUIRED, SEED, Argument
from .errors import ArgumentError, UnknownArgumentError, UnsupportedError, did_you_mean
from .random import Stream
from .samples import Rows
from .types import DType

if TYPE_CHECKING:  # `import stoker` does not load the step classes
    from .step import Value
    from .streaming import StreamRule


# Values of `Operator.default_layouts`
COLOURS = ("HWC", "FHWC")
IMAGES = ("HW", *COLOURS)
IMAGES_AND_VOLUMES = (*IMAGES, "FDHWC")


class RowContext:
    """Arguments and draws of one row, for a reference.

    Arguments are Python values (constants) or NumPy arrays (per row); ``row.number("angle")`` returns a float.

    Args:
        args: values by name: constants, or arrays for arguments that differ per row.
        layouts: axis names of the inputs.
        stream: the row's random numbers; None for an operator without draws.
        state: an operator's state, if it is stateful.
        batch_position: number of the row in its batch, and number of rows of the batch.
        key: number of the row in the data set.
        epoch: number of its epoch.
        gpu: the open GPU in whose memory outputs may be (:class:`~stoker.contract.feed.GpuArray`), if there is one.
        threads: number of the pipeline's threads, for an operator that starts threads of its own; 0: unknown.
    """

    def __init__(
        self,
        args: Mapping[str, Any],
        *,
        layouts: tuple[str, ...] = (),
        stream: Stream | None = None,
        state: Any = None,
        batch_position: tuple[int, int] = (0, 1),
        key: int = 0,
        epoch: int = 0,
        gpu: Any = None,
        threads: int = 0,
    ) -> None:
        self.args = args
        self.layouts = layouts
        self._stream = stream
        self.state = state
        # Number of the row in its batch, and number of rows in the batch. Operators with scope = "batch" read it.
        self.batch_position = batch_position
        self.key, self.epoch, self.gpu = key, epoch, gpu
        self.threads = threads

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def number(self, name: str, index: int = 0) -> float:
        """Return an element of an argument as a float.

        Args:
            name: the argument.
            index: the element. An argument with one element has the same value for every index.
        """
        value = np.asarray(self.args[name], dtype=np.float64).reshape(-1)
        return float(value[index if len(value) > 1 else 0])

    @property
    def stream(self) -> Stream:
        """Return the row's random numbers.

        Raises:
            ArgumentError: the operator's class has `draws = 0`.
        """
        if self._stream is None:
            raise ArgumentError("this operator declares no draws (`draws = 0`)")
        return self._stream

    def sent_stream(self) -> Stream | None:
        """Return the row's random numbers for another process; None for an operator without draws."""
        return self._stream

    @property
    def layout(self) -> str:
        """Return the axes of the first input; HWC for an unnamed image."""
        return self.layouts[0] if self.layouts else ""


@dataclass(frozen=True)
class Isolation:
    """Way of an operator in Python to run in a process of its own.

    Attributes:
        call: function of rows and their inputs that returns the outputs of each row, or an exception. It runs in the
            other process, so that it must be picklable where processes are spawned; the rows have only the arguments
            that differ per row. It may keep no input: their memory is used again.
        time_limit_s: seconds after which a call fails and its process is ended.
    """

    call: Callable[[list[RowContext], list[tuple[Any, ...]]], list[Any]]
    time_limit_s: float


class Operator:
    """Base class of all operators. Subclass with ``class Flip(Operator, name="flip")``.

    Attributes:
        inputs: number of inputs (minimum, maximum).
        positional: names of arguments that may also be given by position, for operators without inputs.
        named_inputs: inputs that a call gives by name, with their docs (:meth:`take_named_inputs`).
        listed_inputs: those of them that take a list of inputs.
        outputs: number of outputs. :meth:`count_outputs` may compute it from the constants.
        is_source: the operator produces rows. It has no inputs and is opened before the pipeline is planned.
        scope: "row", or "batch" if a row's result depends on other rows.
        draws: number of random streams that the operator uses.
        pure: False if calls have effects (or hidden state) and must happen once per row, in order.
        stateful: the operator keeps state between rows (``init``, ``get_state``, ``set_state``). Its rows run in order.
        exactness: "exact", or the bound of the error.
        version: number to raise when results change.
        source_list_arguments: arguments that take a list of outputs of other sources. Each becomes a
            :class:`~stoker.contract.reader.SourcePart`.
        devices: devices that ``device`` may place the operator on. Outputs of a CPU-only operator are copied to a GPU.
        result_neutral: arguments that do not change the contents of rows, only where or when rows are computed. A state
            may be restored with other values of these.
        arguments_come_last: the class's own arguments follow those of its subclasses.
        writes_to_gpu: of an operator in Python: outputs may be in the memory of the GPU that :meth:`use_gpu` got.
        gives_bfloat16: the output type may be bfloat16.
        takes_bfloat16: inputs may be bfloat16. The computation is in float32, with one rounding at the end.
        default_layouts: axis names of a first input that has none, which :meth:`default_layout` chooses from.
        cases: argument dictionaries for tests, documentation and benchmarks. ``case_inputs`` returns the inputs.
    """

    name: ClassVar[str] = ""
    arguments: ClassVar[dict[str, Argument]] = {}
    inputs: ClassVar[tuple[int, int]] = (1, 1)
    positional: ClassVar[tuple[str, ...]] = ()
    named_inputs: ClassVar[dict[str, str]] = {}
    listed_inputs: ClassVar[tuple[str, ...]] = ()
    outputs: ClassVar[int] = 1
    is_source: ClassVar[bool] = False
    scope: ClassVar[str] = "row"
    draws: ClassVar[int] = 0
    pure: ClassVar[bool] = True
    stateful: ClassVar[bool] = False
    devices: ClassVar[tuple[str, ...]] = ("cpu", "gpu")
    exactness: ClassVar[str] = "exact"
    version: ClassVar[int] = 1
    source_list_arguments: ClassVar[tuple[str, ...]] = ()
    result_neutral: ClassVar[tuple[str, ...]] = ()
    writes_to_gpu: ClassVar[bool] = False
    gives_bfloat16: ClassVar[bool] = False
    takes_bfloat16: ClassVar[bool] = False
    default_layouts: ClassVar[tuple[str, ...]] = ()
    hidden: ClassVar[bool] = False
    arguments_come_last: ClassVar[bool] = False
    _all_arguments: ClassVar[dict[str, Argument]]
    _converted_defaults: ClassVar[dict[str, Any]]
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
                ("`reference`", cls._has_definition()),
            )
            if not there
        ]
        if missing:
            raise TypeError(f"operator {name!r} lacks {', '.join(missing)}")

    @classmethod
    def _has_definition(cls) -> bool:
        """Return whether the class defines its results: by `reference`, by parts, or for whole batches."""
        of_a_batch = cls.scope == "batch" and cls._overrides("run_rows")
        return of_a_batch or cls.is_source or cls._overrides("reference", "compose")

    @classmethod
    def _overrides(cls, *methods: str) -> bool:
        return any(getattr(cls, m) is not getattr(Operator, m) for m in methods)

    @classmethod
    def declared(cls) -> dict[str, Argument]:
        """Return the arguments that the class and its base classes declare."""
        bases = list(reversed(cls.__mro__))
        bases.sort(key=lambda base: bool(vars(base).get("arguments_come_last")))
        return {k: v for base in bases for k, v in vars(base).items() if isinstance(v, Argument)}

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows | None:
        """Return the test inputs for a case; None: images, uint8 HWC.

        Args:
            case: one of the ``cases``.
        """
        return None

    @classmethod
    def takes_empty_rows(cls, arguments: Mapping[str, Any]) -> bool:
        """Return whether a call with these arguments gives rows without elements shapes of their own.

        Args:
            arguments: the arguments of the call by name.
        """
        return False

    @classmethod
    def default_layout(cls, rank: int, *, per_frame: bool = False) -> str:
        """Return the axis names of a first input that has none: the first of `default_layouts` with as many axes.

        Args:
            rank: the number of axes of the input.
            per_frame: an argument has numbers for each frame, so that the input is a video.
        """
        fitting = (x for x in cls.default_layouts if len(x) == rank and (x[0] == "F" or not per_frame))
        return next(fitting, "")

    @classmethod
    def use_gpu(cls, args: Mapping[str, Any], gpu: Any) -> None:
        """Take the open GPU of a run whose GPU steps alone read the outputs (`writes_to_gpu`).

        Args:
            args: the constants of a call.
            gpu: the GPU (``contract.gpu.KernelsOnGpu``).
        """

    @classmethod
    def is_composite(cls) -> bool:
        """Return whether the operator expands into other operators."""
        return cls._overrides("compose")

    @classmethod
    def is_built_in(cls) -> bool:
        """Return whether Stoker itself has the operator."""
        return cls.__module__.startswith(("stoker.ops.", "stoker.readers."))

    @classmethod
    def is_python(cls) -> bool:
        """Return whether the operator has no native form: its reference runs in a Python segment."""
        return not cls._overrides("lower", "compose")

    @classmethod
    def all_arguments(cls) -> dict[str, Argument]:
        """Return all arguments by name: the class's own, ``seed`` if the operator draws, and the common ones."""
        known = cls.__dict__.get("_all_arguments")
        if known is None:
            known = {**cls.arguments, **({"seed": SEED} if cls.draws else {}), **COMMON}
            cls._all_arguments = known
        return known

    @classmethod
    def bind(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Convert constants and add defaults.

        Args:
            given: values by name.

        Raises:
            ArgumentError: an argument is unknown, or its value has the wrong type.
        """
        known = cls.all_arguments()
        values: dict[str, Any] = {}
        for key, value in given.items():
            if key not in known:
                hint = did_you_mean(key, known) or f"it takes {', '.join(known)}"
                raise UnknownArgumentError(f"`{cls.name}`: unknown argument `{key}`; {hint}")
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
    def take_named_inputs(cls, inputs: Sequence[Any], arguments: dict[str, Any]) -> list[Any]:
        """Return the inputs of a call, those by name after those by position.

        The argument `input_names`, which an operator with `named_inputs` declares, gets the name of each of them.

        Args:
            inputs: the inputs by position.
            arguments: the arguments by name; named inputs are removed.

        Raises:
            ArgumentError: an input that takes a list is given without one.
        """
        taken, names = list(inputs), []
        for key in cls.named_inputs:
            value = arguments.pop(key, None)
            if value is None:
                continue
            if key in cls.listed_inputs and not isinstance(value, (list, tuple)):
                raise ArgumentError(f"`{cls.name}`: expected a list as `{key}`, got {type(value).__name__}")
            values = list(value) if key in cls.listed_inputs else [value]
            taken += values
            names += [key] * len(values)
        if names:
            arguments["input_names"] = tuple(names)
        return taken

    @classmethod
    def fill_defaults(cls, values: Mapping[str, Any], edges: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``values`` with defaults added.

        Raises:
            ArgumentError: a required argument is neither in ``values`` nor in ``edges``.
        """
        full = dict(values)
        for key, default in cls._all_defaults().items():
            if key in full or key in edges:
                continue
            if default is REQUIRED:
                doc = cls.all_arguments()[key].doc.rstrip(".")
                raise ArgumentError(f"`{cls.name}`: expected the argument `{key}` ({doc}), got none")
            full[key] = default
        return full

    @classmethod
    def _all_defaults(cls) -> dict[str, Any]:
        """Return the default of each argument in its stored form; ``REQUIRED`` if it has none."""
        known: dict[str, Any] | None = cls.__dict__.get("_converted_defaults")
        if known is None:
            known = {k: v.default if v.default is REQUIRED else v.convert(v.default)
                     for k, v in cls.all_arguments().items()}  # fmt: skip
            cls._converted_defaults = known
        return known

    @classmethod
    def subject(cls, args: Mapping[str, Any]) -> str:
        """Return the operator's name for messages. One class may serve several names.

        Args:
            args: the constant arguments of a call.
        """
        return cls.name

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check at definition time that the constants fit together.

        Args:
            args: the constants by name, with defaults. Arguments that are nodes are missing.

        Raises:
            ArgumentError, UnsupportedError: the constants do not fit together.
        """

    @classmethod
    def ineffective_arguments(cls, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Return warnings for constant arguments that are accepted but have no effect, with alternatives.

        The user is warned when a pipeline adds the node. Arguments that change neither results nor, noticeably, the
        speed get no warning.

        Args:
            args: the constants by name.
        """
        return ()

    @classmethod
    def wants_origin(cls, arguments: Mapping[str, Any]) -> bool:
        """Return whether a node gets, in place of its first input, the origin of that input's rows.

        Args:
            arguments: the arguments of the call by name.
        """
        return False

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        """Return the number of outputs for these constant arguments.

        Args:
            args: the constants by name.
        """
        return self.outputs

    def count_outputs_with(self, args: Mapping[str, Any], inputs: int) -> int:
        """Return the number of outputs of a call with a number of inputs.

        Args:
            args: the constants by name.
            inputs: the number of inputs. Some operators return labels only if they get labels.
        """
        return self.count_outputs(args)

    def isolation(self, args: Mapping[str, Any]) -> Isolation | None:
        """Return how the Python code runs in a process of its own; None: it runs in this one.

        Args:
            args: the constants by name.
        """
        return None

    def returns_tuple(self, args: Mapping[str, Any]) -> bool:
        """Return whether a call returns a tuple of nodes rather than one node.

        Args:
            args: the constants by name.
        """
        return self.count_outputs(args) != 1

    def arrange_outputs(self, args: Mapping[str, Any], outputs: Sequence[Any]) -> Any:
        """Return what a call returns: a node, a tuple of nodes, or another collection of them.

        Args:
            args: the constants by name.
            outputs: the nodes of all outputs.
        """
        return tuple(outputs) if self.returns_tuple(args) else outputs[0]

    @classmethod
    def depends_on_batch(cls, args: Mapping[str, Any]) -> bool:
        """Return whether a row's result depends on the other rows of its batch.

        Args:
            args: the constants by name.
        """
        return cls.scope == "batch"

    def runs_batches(self, args: Mapping[str, Any]) -> bool:
        """Return whether a Python operator runs all rows of a batch in one call (:meth:`run_rows`).

        Args:
            args: the constants by name.
        """
        return self.scope == "batch"

    # `c` is a :class:`~stoker.contract.lowering.Lowering`. That module imports this one, so the type is Any here.

    def lower(self, c: Any, *inputs: Any) -> Value | tuple[Value, ...]:
        """Build the operator's steps.

        Args:
            c: the builder of steps, a :class:`~stoker.contract.lowering.Lowering`.
            *inputs: the input values.
        """
        raise NotImplementedError

    def compose(self, c: Any, *inputs: Any) -> Any:
        """Expand into other operators: ``c.apply("resize", x, size=...)``.

        Pass arguments on with ``c.pass_on("mirror")``.

        Args:
            c: the builder.
            *inputs: the input nodes.
        """
        raise NotImplementedError

    def infer(self, c: Any, *inputs: Any) -> Any:
        """Return the output types of a Python operator: a ``Spec``, several, or None if unknown before a run.

        Args:
            c: the builder: ``c.const("name")`` is a constant argument.
            *inputs: type and shape of each input: ``x.dtype``, ``x.shape``, ``x.layout``. Extents that are known only
                at run time are symbolic.
        """
        raise NotImplementedError

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        """Compute one row in plain NumPy. This is the operator's definition.

        Args:
            row: arguments and draws of the row.
            *inputs: a NumPy array per input, without the axis of the batch.
        """
        raise NotImplementedError

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Compute all rows of a batch (see :meth:`runs_batches`).

        Args:
            rows: arguments and draws per row.
            inputs: per row, a tuple with an array per input.

        Returns:
            A result or an exception per row.
        """
        return [self.reference(row, *x) for row, x in zip(rows, inputs, strict=True)]

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        """Return the rule by which the operator computes a signal in parts (``eager.stream``).

        Args:
            args: the constants by name, with defaults.
            x: type and shape of the input.
            axis: the axis of time of the input.

        Raises:
            UnsupportedError: the operator cannot, or not with these arguments; the text says why.
        """
        raise UnsupportedError(
            "expected an operator with a rule for parts of a signal: this one has none, because its results depend on "
            "the whole signal, or the rule is not written; apply it to what the stream gives"
        )

    @classmethod
    def damage_offset(cls, args: Mapping[str, Any], read: Callable[[], bytes]) -> int | None:
        """Return the offset of the damage in the bytes that ``read`` returns; None if it is unknown.

        Args:
            args: the node's constant arguments. A limit among them holds for this call as well.
        """
        return None

    def init(self) -> Any:
        """Return the initial state of a stateful operator.

        ``row.state`` holds the state, and the operator changes it in place.
        """
        return None

    def get_state(self, state: Any) -> Any:
        """Return ``state`` in a form that JSON can hold. The result travels with every delivered batch."""
        return state

    def set_state(self, saved: Any) -> Any:
        """Return the state that :meth:`get_state` saved.

        Args:
            saved: what :meth:`get_state` returned.
        """
        return saved


@dataclass(frozen=True)
class Spec:
    """Type of a Python operator's output.

    Attributes:
        dtype: element type.
        shape: extents. Those that are known only at run time are None.
        layout: axis names, such as "HWC"; "" without names.
        seen: extents that all rows of the first batch have; None where they differ. Empty before it.
    """

    dtype: DType
    shape: tuple[Any, ...]
    layout: str = ""
    seen: tuple[int | None, ...] = field(default=(), compare=False)

# SPDX-License-Identifier: Apache-2.0
"""``stoker.cpp.load``: operators in C++."""

from __future__ import annotations

import ctypes
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import new_class
from typing import Any

from ...contract import expr as ex
from ...contract.errors import ArgumentError, UnsupportedError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Isolation, Operator, RowContext, Spec
from ...contract.step import Value
from ...contract.text import brief
from ...contract.types import DType
from ..data_node import DataNode
from ..registry import register
from .build import HEADERS, build
from .cuda import CudaForm, parse_cuda
from .declaration import Declaration, DeclaredOutput, evaluate, parse
from .isolated import IsolatedLibrary

ABI = 1  # native/shared/stoker/op.h: ST_ABI
Reference = Callable[..., Any]


class _Declared(Operator):
    """Base class of operators in C++: types, extents and checks of the declaration."""

    declaration: Declaration
    library: bytes
    cuda: CudaForm | None
    defined_by: Reference | None

    def _names(self, c: Lowering, inputs: Sequence[Value]) -> dict[str, Any]:
        """Check the inputs and arguments, and return extents and arguments by name."""
        names = self._bound(c, inputs)
        for key, argument in self.declaration.arguments.items():
            names[key] = c.scalar(key) if argument.kind == "float" else ex.trunc(c.scalar(key))
        for condition, text in self.declaration.checks:
            c.require(evaluate(condition, names), text.replace("{", "{{").replace("}", "}}"))
        return names

    def _bound(self, c: Lowering, inputs: Sequence[Value]) -> dict[str, Any]:
        """Check the inputs and return their extents by name."""
        names: dict[str, Any] = {}
        for x, declared in zip(inputs, self.declaration.inputs, strict=True):
            kinds = ", ".join(map(str, declared.types))
            c.expect(x.dtype in declared.types, f"expected `{declared.name}` of type {kinds}, got {x.dtype}; cast it")
            if declared.extents is None:
                continue
            axes = f"({', '.join(declared.extents)})"
            c.expect(x.rank == len(declared.extents), f"expected `{declared.name}` {axes}, got {x.rank} axes")
            for axis, extent in enumerate(declared.extents):
                known = int(extent) if extent.isdigit() else names.setdefault(extent, x.shape[axis])
                if not ex.same(known, x.shape[axis]):
                    text = f"expected `{declared.name}` {axes} with {{0}} elements along axis {axis}, got {{1}}"
                    c.require(ex.equal(known, x.shape[axis]), text, known, x.shape[axis])
        return names

    @staticmethod
    def _output(
        c: Lowering, o: DeclaredOutput, inputs: Sequence[Value], names: Mapping[str, Any]
    ) -> tuple[DType, tuple[Scalar, ...], str]:
        like = inputs[max(o.like, 0)]
        dtype = like.dtype if o.dtype is None else o.dtype
        if o.extents is None:
            return dtype, like.shape, like.layout
        shape = []
        for extent in o.extents:
            n = evaluate(extent, names)
            c.require(n >= 0, "expected an output of at least 0 elements along an axis, got {0}", n)
            shape.append(n)
        return dtype, tuple(shape), like.layout if len(shape) == like.rank else ""

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        if self.defined_by is None:
            raise UnsupportedError(
                f"`{self.name}`: expected a reference in NumPy for this, got none: "
                "`stoker.cpp.load(..., reference=function)`"
            )
        values = {key: row.number(key) for key in self.declaration.arguments}
        whole = {key for key, a in self.declaration.arguments.items() if a.kind != "float"}
        return self.defined_by(*inputs, **{k: int(v) if k in whole else v for k, v in values.items()})


class _Compiled(_Declared):
    """Base class of operators in C++ that run on the worker threads, or on a GPU."""

    def lower(self, c: Lowering, *inputs: Value) -> Value | tuple[Value, ...]:
        d = self.declaration
        names = self._names(c, inputs)
        outputs = [self._output(c, o, inputs, names) for o in d.outputs]
        specs = tuple((_mask((dtype,)), len(shape), len(shape), o.like if o.extents is None else -1)
                      for (dtype, shape, _), o in zip(outputs, d.outputs, strict=True))  # fmt: skip
        ports = tuple((_mask((x.dtype,)), x.rank, x.rank, -1) for x in inputs)
        counted = d.outputs[0].counted
        attrs = (self.library, ports, specs, len(d.arguments), counted, *c.draw)
        params = tuple(names[key] for key in d.arguments)
        own = None
        if self.cuda is not None:
            counts, own = self.cuda.launches(self.name, len(params), names)
            params += counts
        if not counted:
            result = c.native("user_code", inputs, outputs, attrs=attrs, params=params, own=own)
        else:
            bounds = [shape[0] for _, shape, _ in outputs]
            same = all(ex.same(b, bounds[0]) for b in bounds)
            c.expect(same, "expected one bound of `count` for all outputs")
            open_outputs = [(dtype, (None, *shape[1:]), layout) for dtype, shape, layout in outputs]
            *found, _ = c.native("user_code", inputs, open_outputs, attrs=attrs, params=params, max_output=bounds[0])
            result = tuple(found)
        return result if len(result) > 1 else result[0]


class _Isolated(_Declared):
    """Base class of operators in C++ that run in a process of their own."""

    time_limit_s: float

    def infer(self, c: Lowering, *inputs: Value) -> tuple[Spec, ...]:
        d = self.declaration
        names = self._names(c, inputs)
        outputs = [self._output(c, o, inputs, names) for o in d.outputs]
        wide = any(t == DType.BFLOAT16 for t in (*(x.dtype for x in inputs), *(dtype for dtype, _, _ in outputs)))
        c.expect(not wide, "expected other types than bfloat16 with `isolate=True`; cast to float32")
        return tuple(
            Spec(dtype, (None, *shape[1:]) if o.counted else shape, layout)
            for (dtype, shape, layout), o in zip(outputs, d.outputs, strict=True)
        )

    def isolation(self, args: Mapping[str, Any]) -> Isolation:
        constants = {key: args[key] for key in self.declaration.arguments if key in args}
        return Isolation(IsolatedLibrary(self.library, self.declaration, constants), self.time_limit_s)


def _mask(types: Sequence[DType]) -> int:
    return sum(1 << int(t) for t in set(types))


class CompiledOperator:
    """Operator in C++: to call on nodes and on arrays.

    Attributes:
        operator: the operator class.
        library: path of the compiled library.
    """

    def __init__(self, operator: type[Operator], library: Path) -> None:
        self.operator = operator
        self.library = library
        self.__name__ = operator.name
        self.__doc__ = operator.__doc__

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Add a node if an input or argument is one, else compute arrays (``stoker.eager``)."""
        from .. import eager, fn

        module: Any = fn if any(isinstance(x, DataNode) for x in (*inputs, *arguments.values())) else eager
        function = module
        for part in self.operator.name.split("."):
            function = getattr(function, part)
        return function(*inputs, **arguments)


def load(
    source: str | os.PathLike[str],
    name: str,
    *,
    cuda: str | os.PathLike[str] | None = None,
    reference: Reference | None = None,
    cases: Sequence[Mapping[str, Any]] = ({},),
    case_inputs: Callable[[Mapping[str, Any]], Any] | None = None,
    flags: Sequence[str] = (),
    include: Sequence[str | os.PathLike[str]] = (),
    checked: bool = False,
    isolate: bool = False,
    time_limit_s: float = 60.0,
) -> CompiledOperator:
    """Compile an operator in C++ and register it: ``fn.<name>`` and ``eager.<name>``.

    The code includes ``stoker/op.h``, declares itself with ``ST_DECLARE("...")`` and computes a row in ``ST_RUN(row)``.
    It runs on the worker threads without Python's lock. The library is cached by the contents of the source.

    Args:
        source: the code, or the path of a file with it (``.cpp``, ``.cc``, ``.cxx``).
        name: name of the operator.
        cuda: the same operator in CUDA, or the path of a file with it (``.cu``, ``.cuh``). The code includes
            ``stoker/op.cuh``, and NVRTC compiles it when a pipeline places the operator on a GPU.
        reference: the same operator as a function on arrays in NumPy, for tests.
        cases: arguments for tests.
        case_inputs: function that returns the inputs of a case for tests; by default images.
        flags: further flags of the compiler, such as ``-lopencv_core``.
        include: folders of headers.
        checked: check the number of each element that the code reads and writes through ``st::Array``.
        isolate: run the code in a process of its own, which gets the rows through shared memory. A crash of the code
            (a segmentation fault, an abort, an exit), or a row that takes longer than ``time_limit_s``, fails that row
            alone; a new process computes the next rows. Rows run one at a time; eager calls have a process each.
        time_limit_s: seconds after which a row of an isolated operator fails.

    Raises:
        ArgumentError: the compiler refused the source, or its declaration is wrong.
        ResourceError: there is no compiler.
    """
    text, shown = _text_of(source, name, "C++", (".cpp", ".cc", ".cxx"))
    library = build(text, name, flags=flags, include=[os.fspath(p) for p in include], checked=checked, shown=shown)
    version = zlib.crc32(text.encode())
    if cuda is not None:
        version = zlib.crc32(_cuda_text(cuda, name)[0].encode(), version)
    return load_library(
        library, name, cuda=cuda, reference=reference, cases=cases, case_inputs=case_inputs, version=version,
        isolate=isolate, time_limit_s=time_limit_s,
    )  # fmt: skip


def load_library(
    library: str | os.PathLike[str],
    name: str,
    *,
    cuda: str | os.PathLike[str] | None = None,
    reference: Reference | None = None,
    cases: Sequence[Mapping[str, Any]] = ({},),
    case_inputs: Callable[[Mapping[str, Any]], Any] | None = None,
    version: int | None = None,
    isolate: bool = False,
    time_limit_s: float = 60.0,
) -> CompiledOperator:
    """Register the operator of a library that is already compiled.

    Args:
        library: path of the library, which must not change while the process runs.
        name: name of the operator.
        cuda: the same operator in CUDA, or the path of a file with it; see :func:`load`.
        reference: the same operator as a function on arrays in NumPy, for tests.
        cases: arguments for tests.
        case_inputs: function that returns the inputs of a case for tests; by default images.
        version: number that changes when results change. States and graphs of another version are refused. By default
            it follows from the library's contents.
        isolate: run the code in a process of its own; see :func:`load`.
        time_limit_s: seconds after which a row of an isolated operator fails.

    Raises:
        ArgumentError: the file is no library of an operator, its declaration is wrong, or ``isolate`` is given with
            ``cuda``.
    """
    if isolate and cuda is not None:
        raise ArgumentError(
            f"`{name}`: expected `isolate=True` without `cuda`: a kernel's fault ends the whole process"
        )
    if not time_limit_s > 0:
        raise ArgumentError(f"`{name}`: expected `time_limit_s` above 0, got {brief(time_limit_s)}")
    path = Path(library).resolve()
    declared = parse(_declaration_of(path, name), name)
    reserved = next((key for key in declared.arguments if hasattr(Operator, key)), None)
    if reserved is not None:
        raise ArgumentError(f"`{name}`: expected another name than `{reserved}` for an argument; operators have that")
    form = None if cuda is None else parse_cuda(*_cuda_text(cuda, name), declared)
    number = zlib.crc32(path.read_bytes()) if version is None else version
    if form is not None and version is None:
        number = zlib.crc32(form.source.encode(), number)

    def fill(namespace: dict[str, Any]) -> None:
        namespace.update(declared.arguments)
        namespace.update(
            __doc__=declared.doc, declaration=declared, library=os.fsencode(path), cuda=form,
            devices=("cpu",) if form is None else ("cpu", "gpu"),
            inputs=(len(declared.inputs),) * 2, outputs=len(declared.outputs), draws=int(declared.draws),
            cases=tuple(dict(case) for case in cases), version=number,
            defined_by=None if reference is None else staticmethod(reference), time_limit_s=float(time_limit_s),
        )  # fmt: skip
        if case_inputs is not None:
            namespace["case_inputs"] = classmethod(lambda cls, case: case_inputs(case))

    title = "".join(part.title() for part in name.replace(".", "_").split("_"))
    operator = new_class(title, (_Isolated if isolate else _Compiled,), {"name": name}, fill)
    return CompiledOperator(register(operator), path)


def header_folder() -> Path:
    """Return the folder with ``stoker/op.h``, for builds by other tools."""
    return HEADERS


def _text_of(source: Any, name: str, language: str, suffixes: tuple[str, ...]) -> tuple[str, str]:
    """Return the code, and the name of its file for messages."""
    if isinstance(source, os.PathLike) or (
        isinstance(source, str) and "\n" not in source and source.endswith(suffixes)
    ):
        path = Path(source)
        try:
            return path.read_text(encoding="utf-8"), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(f"`{name}`: the source cannot be read: {error}") from None
    if not isinstance(source, str):
        raise ArgumentError(f"`{name}`: expected {language} code or the path of a file with it, got {brief(source)}")
    return source, ""


def _cuda_text(source: Any, name: str) -> tuple[str, str, str]:
    """Return the CUDA code, the operator's name, and the name of the code's file for messages."""
    text, shown = _text_of(source, name, "CUDA", (".cu", ".cuh"))
    return text, name, shown


def _declaration_of(path: Path, name: str) -> str:
    try:
        library = ctypes.CDLL(str(path))
        version = library.st_abi()
        library.st_declare.restype = ctypes.c_char_p
        text = library.st_declare()
        has_run = hasattr(library, "st_run")
    except (OSError, AttributeError) as error:
        raise ArgumentError(
            f"`{name}`: expected a library with `ST_DECLARE(...)` and `ST_RUN(row)` of stoker/op.h: {error}"
        ) from None
    if not has_run:
        raise ArgumentError(f"`{name}`: expected `ST_RUN(row) {{ ... }}` in the source, got none")
    if not 1 <= version <= ABI:
        raise ArgumentError(
            f"`{name}`: expected a library for version 1 to {ABI} of stoker/op.h, got version {version}. Install a "
            "newer Stoker, or compile it again"
        )
    if text is None:
        raise ArgumentError(f"`{name}`: expected a declaration, got none")
    return bytes(text).decode("utf-8", "replace")

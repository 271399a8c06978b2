# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ of a stage: its register program as text in the frame of ``native/device/stage.cuh``.

The text depends on operations, types, ports, channels and the kind of interpolator, never on values. A row's numbers,
extents and strides come from its slot. Two graphs that differ only in numbers share a compiled kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..contract.errors import UnsupportedError
from ..contract.gpu import StageRows
from ..contract.pixel import Instruction

_REGISTERS = ("int32_t", "int64_t", "float", "double")
ELEMENTS = ("Bool", "U8", "U16", "U32", "U64", "I8", "I16", "I32", "I64", "F16", "F32", "F64", "BF16")
# C++ types of interpolated values, by the number of the element type.
_SAMPLED = {1: "uint8_t", 2: "uint16_t", 6: "int16_t", 7: "int32_t", 10: "float"}
_INTERPOLATORS = {"resample": "Resampled", "affine": "Warped"}
_PROJECTED = {"project_nearest": "NearestAt", "project_linear": "LinearAt", "project_cubic": "CubicAt"}  # of bytes
_BYTES = 1
_COMPARISONS = frozenset(["Eq", "Ne", "Lt", "Le", "Gt", "Ge", "ULt", "ULe", "UGt", "UGe"])
_CONVERSIONS = frozenset(["Cvt", "UCvt", "Cast", "UCast", "Wrap"])
_FROM_PORTS = frozenset(["Load", "Coordinate", "Lookup"])
_TERNARY = frozenset(["Normal", "Random", "Select"])
_DIVISIONS = frozenset(["IDiv", "IMod", "UDiv", "UMod"])
_NAMES = {"Not": "bit_not", "And": "bit_and", "Or": "bit_or", "Xor": "bit_xor"}
_UNARY = frozenset(
    [
        "Copy",
        "Neg",
        "Abs",
        "Not",
        "Floor",
        "Ceil",
        "Trunc",
        "Round",
        "Sqrt",
        "Rsqrt",
        "Cbrt",
        "Exp",
        "Log",
        "Log2",
        "Log10",
        "Sin",
        "Cos",
        "Tan",
        "Asin",
        "Acos",
        "Atan",
        "Sinh",
        "Cosh",
        "Tanh",
        "Asinh",
        "Acosh",
        "Atanh",
    ]
)
# Functions with long computations in double.
_LONG = frozenset({
    "FMod", "Pow", "Cbrt", "Exp", "Log", "Log2", "Log10", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh",
    "Tanh", "Asinh", "Acosh", "Atanh", "Atan2",
})  # fmt: skip
_FEW_PORTS, _SHORT = 4, 200
# Types of which groups of lanes saturate and pack several elements together: 1 if they are unsigned, 2 if signed.
_SATURATION = {"": 0, "U8": 1, "U16": 1, "I8": 2, "I16": 2}
_SIZES = (1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2)  # bytes of an element, by the number of its type
# Lanes of a group without an interpolator, of which four bytes are one word. Instructions and 32-bit registers limit
# how many groups a thread keeps: the inputs' words that it computes and the next ones, and half of the outputs'.
_GROUP, _GROUP_INSTRUCTIONS, _GROUP_WORDS = 4, 480, 26
_MOST_TOGETHER, _TOGETHER_INSTRUCTIONS, _TOGETHER_WORDS = 8, 60, 20
# The same limits for programs that compute terms once for the elements of a pixel. Random numbers take registers.
_SHARED_TOGETHER, _DRAWN_TOGETHER = (100, 40), (60, 20)
# Bytes of the largest access, and limits of groups of such accesses: instructions of one group and of those that a
# thread reads together, and words, of which each port after the second takes some for its addresses.
_ACCESS, _WIDE_GROUP_INSTRUCTIONS, _WIDE_INSTRUCTIONS, _WIDE_WORDS, _WIDE_WORDS_OF_PORT = 16, 640, 200, 36, 4
_TABLE_BYTES = 4  # of the largest element of a table that is copied into every bank of shared memory
_PIXEL, _POINT = 3, 2  # elements of lanes (native/shared/stage_slot.hpp)
_GROUP_BLOCKS = 3  # at most per multiprocessor, for registers: wide accesses need fewer threads to hide latency
_SHARED_INSTRUCTIONS = 16  # from which on programs of coordinates compute them once for the elements of a pixel
_GROUP_HELD = 20  # registers of uniforms and of results of them that leave enough others
_MIN_BLOCKS = 2
_LONG_INLINED = 96  # instructions
_I32 = 0


@dataclass(frozen=True)
class StageSource:
    """Kernel sources of a stage.

    Attributes:
        stage: source of ``stoker_stage``.
        interpolators: (name, source) of each interpolator kernel. All stages that sample this type share them.
        uniforms: (uniform, register type) in the order in which the stage reads them.
    """

    stage: str
    interpolators: tuple[tuple[str, str], ...]
    uniforms: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _Store:
    """Store of a value to an output.

    Attributes:
        before: the number of which the value is the rounded and saturated form, or "".
    """

    element: str
    port: int
    channel: int
    value: str
    before: str

    def text(self, saturating: Collection[int]) -> str:
        """Return the statement. Outputs in ``saturating`` take the numbers before rounding."""
        if self.port in saturating:
            return f"lane.template store_cast<{self.element}>({self.port}, {self.channel}, {self.before});"
        return f"lane.template store<{self.element}>({self.port}, {self.channel}, {self.value});"


@dataclass(frozen=True)
class ProgramSource:
    """Pixel program of an operator's own kernel.

    Attributes:
        text: the class ``stoker::own::Program``, for ``native/device/inlined_program.cuh``.
        uniforms: (uniform, register type) in the order in which the program reads them.
        is_long: the kernel needs as many registers for a thread as two blocks leave on a multiprocessor.
    """

    text: str
    uniforms: tuple[tuple[int, int], ...]
    is_long: bool


def _operands(instruction: Instruction, op: str) -> list[tuple[int, bool, int]]:
    """Return an instruction's operands: register or number of the uniform, whether it is a uniform, and its type."""
    _, kind, source, _, _, a, b, c, flags, _, _ = instruction
    if op in ("Load", "Coordinate"):
        return []
    taken = source if op in _CONVERSIONS else _I32 if op in ("Normal", "Lookup") else kind
    found = [(a, bool(flags & 1), taken)]
    if not (op in _UNARY or op in _CONVERSIONS or op == "Store"):
        found.append((b, bool(flags & 2), taken))
    if op in _TERNARY:
        found.append((c, bool(flags & 4), _I32))
    return found


def uniforms_of(code: Sequence[Instruction], op_codes: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    """Return what :attr:`StageSource.uniforms` is for a program, without its source."""
    if not any(instruction[8] for instruction in code):  # the marks of operands that are uniforms
        return ()
    names = {number: name for name, number in op_codes.items()}
    operands = [operand for instruction in code for operand in _operands(instruction, names[instruction[0]])]
    return tuple(dict.fromkeys((number, kind) for number, is_uniform, kind in operands if is_uniform))


class _Text:
    """Converter from instructions to C++ statements. Every result has a unique name.

    With ``hoists``, results of uniforms alone are members of `Numbers`, which a thread computes once for all lanes.
    """

    def __init__(self, names: Mapping[int, str], sampled: bool, *, hoists: bool) -> None:
        self.names = names
        self.sampled = sampled
        self.hoists = hoists
        self.uniforms: list[tuple[int, int]] = []
        self.once: dict[str, tuple[int, str]] = {}  # results of uniforms alone: (type, value)
        self.loads: list[str] = []
        self.computes: list[str] = []
        self.stores: list[_Store] = []
        self.is_byte: set[str] = set()  # names of numbers from 0 to 255
        self.tables: list[tuple[int, str, str]] = []  # those that bytes choose from: port, element type, length
        self.register: dict[int, str] = {}
        # Floats that were rounded to an element type: (type, name before).
        self.rounded: dict[int, tuple[str, str]] = {}
        self.bytes: dict[str, int] = {}  # channels of sampled bytes by name; interpolators also hold them as floats
        # Unsigned numbers of one or two bytes in memory, by name: arguments of the load.
        self.small: dict[str, str] = {}
        # Numbers before they were rounded and saturated to an element type of one or two bytes: (type, name before).
        self.whole: dict[int, tuple[str, str]] = {}
        self.count = 0

    def operand(self, index: int, is_uniform: bool, kind: int) -> str:
        if not is_uniform:
            return self.register[index]
        if (index, kind) not in self.uniforms:
            self.uniforms.append((index, kind))
        return f"n.u{self.uniforms.index((index, kind))}()"

    def define(self, lines: list[str], register: int, kind: int, value: str) -> None:
        name = f"r{self.count}"
        self.count += 1
        self.rounded.pop(register, None)
        self.whole.pop(register, None)
        lines.append(f"const {_REGISTERS[kind]} {name} = {value};")
        self.register[register] = name

    def compute(self, register: int, kind: int, value: str, operands: Sequence[str]) -> None:
        """Define a result that depends on nothing but its operands."""
        if not self.hoists or not all(operand.startswith("n.") for operand in operands):
            return self.define(self.computes, register, kind, value)
        name = f"k{len(self.once)}"
        self.rounded.pop(register, None)
        self.whole.pop(register, None)
        self.once[name] = kind, value
        self.register[register] = f"n.{name}"
        return None

    def load(self, dst: int, kind: int, element: str, port: int, channel: int) -> None:
        how = "sample" if self.sampled and port == 0 else "load"
        place = f"{channel}" if how == "sample" else f"{port}, {channel}"
        self.define(self.loads, dst, kind, f"lane.template {how}<{element}>({place})")
        if how == "sample" and element == "U8":
            self.bytes[self.register[dst]] = channel
        elif how == "load" and element in ("U8", "U16"):
            self.small[self.register[dst]] = f"<{element}>({place})"
        if element == "U8":
            self.is_byte.add(self.register[dst])

    def from_port(self, instruction: Instruction, op: str, element: str, arguments: Sequence[str]) -> None:
        _, kind, _, _, dst, _, _, _, flags, port, channel = instruction
        if op == "Load":
            return self.load(dst, kind, element, port, channel)
        if op == "Coordinate":
            return self.define(self.loads, dst, kind, f"lane.coordinate({port})")
        index, length = arguments
        how = "lookup"
        if index in self.is_byte and flags & 2:
            how = "lookup_byte"
            self.tables.append((port, element, length))
        return self.define(self.computes, dst, kind, f"lane.template {how}<{element}>({port}, {index}, {length})")

    def convert(self, op: str, dst: int, kind: int, source: int, element: str, first: str) -> None:
        to = _REGISTERS[kind] if op in ("Cvt", "UCvt") else element
        if to in ("float", "F32") and first in self.bytes:
            return self.define(self.computes, dst, kind, f"lane.sample_as_float({self.bytes[first]})")
        if to in ("float", "F32") and first in self.small:
            return self.define(self.computes, dst, kind, f"lane.template load_as_float{self.small[first]}")
        self.compute(dst, kind, f"op::{op.lower()}<{to}>({first})", [first])
        if op == "Cast" and element in _SATURATION and _REGISTERS[source] in ("int32_t", "float"):
            self.whole[dst] = element, first
        to_byte = op != "Cvt" and element == "U8"
        if kind == _I32 and (to_byte or first in self.is_byte) and (op, element) != ("Wrap", "I8"):
            self.is_byte.add(self.register[dst])
        if op == "Cast" and element in ("F16", "BF16") and _REGISTERS[source] == "float":
            self.rounded[dst] = element, first
        return None

    def add(self, instruction: Instruction) -> None:
        number, kind, source, dtype, dst, a, _, _, flags, port, channel = instruction
        op, element = self.names[number], ELEMENTS[dtype]
        arguments = [self.operand(*operand) for operand in _operands(instruction, op)]
        if op in _FROM_PORTS:
            return self.from_port(instruction, op, element, arguments)
        first = arguments[0]
        if op == "Store":
            # Storing rounds again without effect, so the value before the first rounding can be stored instead.
            if not flags & 1 and self.rounded.get(a, ("", ""))[0] == element:
                first = self.rounded[a][1]
            whole = ("", "") if first.startswith("n.") else self.whole.get(a, ("", ""))
            before = whole[1] if whole[0] == element else ""
            return self.stores.append(_Store(element, port, channel, first, before))
        if op in _CONVERSIONS:
            return self.convert(op, dst, kind, source, element, first)
        if op == "Copy":
            return self.compute(dst, kind, first, [first])
        if op in _DIVISIONS:
            arguments.append("fault")
        result = _I32 if op in _COMPARISONS else kind
        return self.compute(dst, result, f"op::{_NAMES.get(op, op.lower())}({', '.join(arguments)})", arguments)

    def held_words(self) -> int:
        """Return the 32-bit registers of uniforms and of results of them."""
        kinds = [kind for _, kind in self.uniforms] + [kind for kind, _ in self.once.values()]
        return sum(2 if _REGISTERS[kind] in ("int64_t", "double") else 1 for kind in kinds)

    def saturating(self) -> dict[int, str]:
        """Return the outputs all of whose elements are saturated when they are stored, and their types."""
        types = {s.port: s.element for s in self.stores}
        return {port: t for port, t in types.items() if all(s.before for s in self.stores if s.port == port)}


def _text(code: Sequence[Instruction], names: Mapping[int, str], *, sampled: bool) -> _Text:
    """Convert a program. Results of uniforms alone are kept for all lanes if the uniforms are few."""
    for hoists in (True, False):
        text = _Text(names, sampled, hoists=hoists)
        for instruction in code:
            text.add(instruction)
        if len(text.uniforms) + len(text.once) <= _HELD:
            break
    return text


_ANY_ROWS = StageRows()


def generate(
    code: Sequence[Instruction],
    op_codes: Mapping[str, int],
    channels: int,
    in_types: Sequence[int],
    out_types: Sequence[int],
    interpolator: str = "",
    *,
    coordinates: int = 0,
    rows: StageRows = _ANY_ROWS,
) -> StageSource:
    """Return the kernel sources of a stage.

    Args:
        code: result of ``compile_program``, compiled with ``op_codes``.
        channels: 0: flat, every element is a lane; otherwise the program's number of channels along the last axis.
        in_types: element types of the inputs, as numbers; ``out_types`` likewise.
        coordinates: number of the program's coordinates, which follow the inputs as ports.
        interpolator: kind of the ``contract.step.Interpolator`` of input 0, or "".
        rows: facts about the rows. A resampling of bytes reads component planes. Kernels for a few elements compile in
            a third of the time.

    Raises:
        UnsupportedError: the interpolator does not interpolate the type of input 0.
    """
    names = {number: name for name, number in op_codes.items()}
    text = _text(code, names, sampled=bool(interpolator))
    sampled = _sampled_type(interpolator, in_types[0]) if interpolator else ""
    loaded = [i[10] for i in code if names[i[0]] == "Load" and i[9] == 0]
    divides = any(names[i[0]] in _DIVISIONS for i in code)
    draws = any(names[i[0]] == "Random" for i in code)
    constants = {
        "kInputs": len(in_types) + coordinates,
        "kShared": coordinates if draws or _computes(code, names) >= _SHARED_INSTRUCTIONS else 0,
        "kPorts": len(in_types) + coordinates + len(out_types),
        "kSampled": max(loaded, default=0) + 1 if channels else 1,
        "kStored": max(i[10] for i in code if names[i[0]] == "Store") + 1,
    }
    blocks = _blocks([names[i[0]] for i in code], constants["kPorts"])
    short = str(blocks > _MIN_BLOCKS).lower()
    grouped = not interpolator and blocks > _MIN_BLOCKS and not rows.few_lanes
    title = f"// {', '.join(ELEMENTS[t] for t in in_types)} -> {', '.join(ELEMENTS[t] for t in out_types)}; "
    title += f"{channels} channels" if channels else "flat"
    # With channels, 80 registers spill on sm_100, and so does cubic sampling.
    long = interpolator in ("resample", "project_cubic")
    sampled_blocks = min(blocks, 2 if channels else 3) if long else blocks
    group = _group_lines(
        code, names, (in_types, [_I32] * coordinates, out_types), grouped=grouped, rows=None if channels else rows
    )
    saturating: dict[int, str] = {}
    only_moves = _only_moves(code, names, in_types)
    moves = len(group) > 1 and not channels and not coordinates and only_moves
    if len(group) > 1:
        many = constants["kShared"] or text.held_words() > _GROUP_HELD
        sampled_blocks = min(blocks, _MIN_BLOCKS if many else _GROUP_BLOCKS)
        saturating = text.saturating()
        kinds = [0] * constants["kInputs"] + [_SATURATION[saturating.get(o, "")] for o in range(len(out_types))]
        group.append(f"  static constexpr int saturates(int port) {{ return {_by_port(kinds)}; }}")
        group += _table_lines(text.tables)
    lines = [
        title + (f"; {interpolator}" if interpolator else ""),
        '#include "device/stage.cuh"',
        *(['#include "device/stage_project.cuh"'] if interpolator in _PROJECTED else []),
        "",
        "namespace stoker::stage {",
        "",
        "struct Program {",
        f"  using Interpolator = {_interpolator_class(interpolator, sampled)};",
        "  static constexpr int " + ", ".join(f"{name} = {value}" for name, value in constants.items()) + ";",
        f"  static constexpr bool kFlat = {str(not channels).lower()}, kDivides = {str(divides).lower()};",
        f"  static constexpr bool kShort = {short};  // so that it may be there several times",
        f"  static constexpr bool kMoves = {str(moves).lower()};",
        *group,
        *_numbers([kind for _, kind in text.uniforms], text.once),
        "  template <class Lane>",
        "  static STOKER_DEVICE void run(const Lane& lane, [[maybe_unused]] const Numbers& n,",
        "                                [[maybe_unused]] bool& fault) {",
        *(f"    {line}" for line in (*text.loads, *text.computes, *(s.text(saturating) for s in text.stores))),
        "  }",
        "};",
        "",
        "}  // namespace stoker::stage",
        "",
        "",
    ]
    frame = "\n".join(lines)
    interpolators = _interpolator_sources(interpolator, sampled)
    if interpolator == "affine" and only_moves:
        interpolators += (("stoker_shifted", '#include "device/stage_shift.cuh"\n\nSTOKER_SHIFTED\n'),)
    if sampled == "uint8_t" and constants["kSampled"] <= 3:
        interpolators += _sources_for_bytes(frame, interpolator, blocks, planar=rows.planar)
    bound = "stoker::stage::kMoveBlocks" if moves else str(sampled_blocks)
    return StageSource(f"{frame}STOKER_STAGE(stoker::stage::Program, {bound})\n", interpolators, tuple(text.uniforms))


def generate_inlined(
    code: Sequence[Instruction],
    op_codes: Mapping[str, int],
    in_types: Sequence[int],
    outputs: int,
    axes: Sequence[int],
    *,
    framed: bool = False,
) -> ProgramSource:
    """Return the class of a program that computes inputs of an operator's own kernel.

    Args:
        code: result of ``compile_program``, compiled with ``op_codes``; flat, without a division of integers.
        in_types: element types of the program's inputs, as numbers.
        outputs: number of values that the program computes.
        axes: axis of each of the program's coordinates, of F, H and W.
        framed: the values have an axis F.
    """
    names = {number: name for name, number in op_codes.items()}
    text = _text(code, names, sampled=False)
    loaded = {i[9] for i in code if names[i[0]] == "Load"}
    sizes = [_SIZES[t] if port in loaded else 0 for port, t in enumerate(in_types)] + [0] * len(axes)
    axis = [-1] * len(in_types) + list(axes)
    ops = {names[i[0]] for i in code}
    long = len(code) > _LONG_INLINED or not _LONG.isdisjoint(ops) or "Normal" in ops
    lines = [
        "namespace stoker::own {",
        "",
        "struct Program {",
        "  using Source = ProgramRow<Program>;",
        f"  static constexpr int kInputs = {len(sizes)}, kOutputs = {outputs};",
        f"  static constexpr bool kFramed = {str(framed).lower()};",
        f"  static constexpr int size([[maybe_unused]] int input) {{ return {_by_port(sizes, 'input')}; }}",
        f"  static constexpr int axis([[maybe_unused]] int input) {{ return {_by_port(axis, 'input')}; }}",
        *_numbers([kind for _, kind in text.uniforms], text.once, "ProgramRow<Program>"),
        "  template <class Lane>",
        "  static STOKER_DEVICE void run(const Lane& lane, [[maybe_unused]] const Numbers& n, bool&) {",
        *(f"    {line}" for line in (*text.loads, *text.computes, *(store.text(()) for store in text.stores))),
        "  }",
        "};",
        "",
        "}  // namespace stoker::own",
        "",
        "",
    ]
    return ProgramSource("\n".join(lines), tuple(text.uniforms), is_long=long)


def _sampled_type(interpolator: str, dtype: int) -> str:
    """Return the C++ type of interpolated values."""
    types = {_BYTES: _SAMPLED[_BYTES]} if interpolator in _PROJECTED else _SAMPLED
    if dtype not in types:
        known = ", ".join(sorted(types.values()))
        raise UnsupportedError(f"{interpolator}: expected one of {known}, got {ELEMENTS[dtype]}")
    return types[dtype]


def _interpolator_class(interpolator: str, sampled: str) -> str:
    if interpolator in _PROJECTED:
        return f"Projected<warp::{_PROJECTED[interpolator]}>"
    return f"{_INTERPOLATORS[interpolator]}<{sampled}>" if interpolator else "Unsampled"


def _blocks(ops: Sequence[str], ports: int) -> int:
    """Return the number of blocks of 256 threads per multiprocessor: 2 leave 128 registers to a thread, 3 80, 4 64."""
    if ports > _FEW_PORTS or len(ops) > _SHORT or not _LONG.isdisjoint(ops):
        return _MIN_BLOCKS
    return 4


def _computes(code: Sequence[Instruction], names: Mapping[int, str]) -> int:
    """Return the number of a program's instructions that depend on nothing but registers and uniforms."""
    return sum(names[i[0]] not in _FROM_PORTS for i in code)


def _only_moves(code: Sequence[Instruction], names: Mapping[int, str], in_types: Sequence[int]) -> bool:
    """Return whether a program stores the elements of its only input, unchanged."""
    if [names[i[0]] for i in code] != ["Load", "Store"]:
        return False
    load, store = code
    return len(in_types) == 1 and load[3] == store[3] and not store[8] & 1


def _group_lines(
    code: Sequence[Instruction],
    names: Mapping[int, str],
    ports: tuple[Sequence[int], Sequence[int], Sequence[int]],
    *,
    grouped: bool,
    rows: StageRows | None,
) -> list[str]:
    """Return the constants that ``native/device/stage_group.cuh`` uses: lanes of groups, and each port's elements.

    ``ports`` has the element types of inputs, coordinates and outputs. A port that the program neither loads nor stores
    has no channels. ``rows`` is None for programs with channels.
    """
    types = [t for some in ports for t in some]
    outputs = len(ports[0]) + len(ports[1])
    width = [0] * len(types)
    for instruction in code:
        op, port = names[instruction[0]], instruction[9]
        if op in ("Load", "Store"):
            port += outputs if op == "Store" else 0
            width[port] = max(width[port], instruction[10] + 1)
    sizes = [_SIZES[t] for t in types]
    lane_bytes = [n * size for n, size in zip(width, sizes, strict=True)]
    lanes, together = _group(len(code), lane_bytes[:outputs], lane_bytes[outputs:])
    if not grouped or lanes == 1:
        return ["  static constexpr int kGroup = 1;"]
    read = [size for n, size in zip(width[:outputs], sizes, strict=False) if n]
    written = sizes[outputs:]
    wide, wide_together = _wide(len(code), lane_bytes[:outputs], lane_bytes[outputs:], max([*read, *written]))
    inner = {}
    if rows is not None and not rows.one_axis:
        for n in (_PIXEL, _POINT) if ports[1] else (_PIXEL,):
            fits, count = _group(len(code) * n, [n * size for size in read], [n * size for size in written])
            inner[n] = count if fits > 1 else 0
    pixels = [_PIXEL * size for size in read], [_PIXEL * size for size in written]
    draws = any(names[i[0]] == "Random" for i in code)
    _, shared = _group(len(code), *pixels, *(_DRAWN_TOGETHER if draws else _SHARED_TOGETHER))
    return [
        f"  static constexpr int kGroup = {lanes}, kTogether = {together};",
        f"  static constexpr int kWide = {wide}, kWideTogether = {wide_together};",
        f"  static constexpr int kPixelsTogether = {inner.get(_PIXEL, 0)}, kPointsTogether = {inner.get(_POINT, 0)};",
        f"  static constexpr int kSharedTogether = {shared};",
        f"  static constexpr int size(int port) {{ return {_by_port(sizes)}; }}",
        f"  static constexpr int channels(int port) {{ return {_by_port(width)}; }}",
    ]


def _table_lines(tables: Sequence[tuple[int, str, str]]) -> list[str]:
    """Return the constants of the table that ``native/device/stage_group.cuh`` holds in shared memory, if any."""
    for port, element, length in tables:
        if _SIZES[ELEMENTS.index(element)] <= _TABLE_BYTES:
            return [
                f"  static constexpr int kByteTable = {port};",
                f"  using TableElement = {element};",
                "  template <class Numbers>",
                f"  static STOKER_DEVICE int32_t table_length(const Numbers& n) {{ return {length}; }}",
            ]
    return ["  static constexpr int kByteTable = -1;"]


def _by_port(values: Sequence[int], name: str = "port") -> str:
    """Return an expression of the number called ``name``; 0 if there are no values."""
    if not values:
        return "0"
    return "".join(f"{name} == {p} ? {v} : " for p, v in enumerate(values[:-1])) + str(values[-1])


def _group(
    instructions: int,
    read: Sequence[int],
    written: Sequence[int],
    together: int = _TOGETHER_INSTRUCTIONS,
    words: int = _TOGETHER_WORDS,
) -> tuple[int, int]:
    """Return the number of lanes of a group, and how many groups a thread reads before it computes the first.

    The former is 1 if the program is too long or its elements need too many registers. ``read`` and ``written`` are the
    bytes of a lane in each port. ``together`` and ``words`` are limits of instructions and words for the latter.
    """
    inputs, outputs = (sum(-(-_GROUP * n // 4) for n in some) for some in (read, written))
    if instructions * _GROUP > _GROUP_INSTRUCTIONS or inputs + outputs > _GROUP_WORDS:
        return 1, 1
    most = min(together // instructions, 2 * words // (4 * inputs + outputs))
    return _GROUP, _power_of_two(min(most, _MOST_TOGETHER))


def _wide(instructions: int, read: Sequence[int], written: Sequence[int], largest: int) -> tuple[int, int]:
    """Return the number of lanes of a group whose largest elements fill accesses, and how many groups a thread reads
    before it computes the first. The former is 1 if smaller groups do that, or the program is too long.

    ``read`` and ``written`` are the bytes of a lane in each port; ``largest`` are those of the largest element.
    """
    lanes = _ACCESS // largest
    inputs, outputs = (sum(-(-lanes * n // 4) for n in some) for some in (read, written))
    held = _WIDE_WORDS_OF_PORT * (len(read) + len(written) - 2)
    if lanes <= _GROUP or instructions * lanes > _WIDE_GROUP_INSTRUCTIONS or 2 * inputs + outputs + held > _WIDE_WORDS:
        return 1, 1
    most = min(_WIDE_INSTRUCTIONS // (instructions * lanes), (_WIDE_WORDS - outputs) // max(2 * inputs, 1))
    return lanes, _power_of_two(min(most, _MOST_TOGETHER))


def _power_of_two(limit: int) -> int:
    """Return the largest power of two up to ``limit``, at least 1."""
    return 1 << max(limit, 1).bit_length() - 1


# Up to this many uniforms and results of them stay in registers for all lanes of a thread. Other uniforms are read
# where they are used.
_HELD = 24


def _numbers(
    kinds: Sequence[int], once: Mapping[str, tuple[int, str]], row: str = "Row<Program>"
) -> list[str]:  # fmt: skip
    """Return the uniforms as a class with one function each, and the results of uniforms alone as its members.

    ``row`` is the class that the uniforms are read from.
    """
    types = [_REGISTERS[kind] for kind in kinds]
    if len(types) <= _HELD:
        members = [f"    const {t} v{i};" for i, t in enumerate(types)]
        values = ", ".join(f"v{i}(row.template uniform<{t}>({i}))" for i, t in enumerate(types))
        reads = [f"    STOKER_DEVICE {t} u{i}() const {{ return v{i}; }}" for i, t in enumerate(types)]
        start = f" : {values}" if values else ""
    else:
        members, start = [f"    const {row} row;"], " : row(row)"
        reads = [
            f"    STOKER_DEVICE {t} u{i}() const {{ return row.template uniform<{t}>({i}); }}"
            for i, t in enumerate(types)
        ]
    members += [f"    {_REGISTERS[kind]} {name};" for name, (kind, _) in once.items()]
    body = [f"      {name} = {value};" for name, (_, value) in once.items()]
    head = f"    STOKER_DEVICE explicit Numbers([[maybe_unused]] const {row}& row){start}"
    empty = [f"{head} {{}}"]
    constructor = [f"{head} {{", "      const Numbers& n = *this;", *body, "    }"] if body else empty
    return ["  struct Numbers {", *members, *constructor, *reads, "  };"]


def _sources_for_bytes(frame: str, interpolator: str, blocks: int, *, planar: bool) -> tuple[tuple[str, str], ...]:
    """Return the sources of kernels for 8-bit images of up to three channels. ``frame`` is the stage's class."""
    if interpolator == "resample":
        both = '#include "device/resample_tile.cuh"\n\nSTOKER_RESAMPLED\n'
        down = '#include "device/resample_down.cuh"\n\nSTOKER_RESAMPLED_DOWN\n'
        words = f"{frame}STOKER_WORDS(stoker::stage::Program, {blocks})\n"
        sources = (("stoker_resampled", both), ("stoker_resampled_down", down), ("stoker_words", words))
        names = ("stoker_resampled_planar", "stoker_resampled_down_planar") if planar else ()
        return *sources, *((n, f'#include "device/resample_planar.cuh"\n\n{n.upper()}\n') for n in names)
    if interpolator == "affine" and blocks > _MIN_BLOCKS:
        pairs = f'{frame}#include "device/stage_pairs.cuh"\n\nSTOKER_PAIRS(stoker::stage::Program, {blocks})\n'
        return (("stoker_pairs", pairs),)
    return ()


def _interpolator_sources(interpolator: str, sampled: str) -> tuple[tuple[str, str], ...]:
    """Return one source per kernel, for concurrent compilation. Types share the kernels that are equal for them."""
    include = '#include "device/interpolator_kernels.cuh"\n\n'
    if interpolator == "resample":
        weight = "int32_t" if sampled == "uint8_t" else "double"
        weights, between = f"{include}STOKER_WEIGHTS({weight})\n", f"{include}STOKER_BETWEEN({sampled})\n"
        return ("stoker_weights", weights), ("stoker_between", between)
    if interpolator == "affine":
        return (("stoker_walk", f"{include}STOKER_WALK\n"),)
    return ()

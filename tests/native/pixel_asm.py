# SPDX-License-Identifier: Apache-2.0
"""A small assembler for the register machine, so that tests read like the programs that they run."""

from __future__ import annotations

import numpy as np

from stoker.native import _native

DTYPES = [
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
]
TYPES = ["i32", "i64", "f32", "f64"]
OPS = _native.pixel_ops()

INSTR = np.dtype(
    [
        ("op", "u1"),
        ("type", "u1"),
        ("from", "u1"),
        ("dtype", "u1"),
        ("dst", "<u2"),
        ("a", "<u2"),
        ("b", "<u2"),
        ("c", "<u2"),
        ("uniform", "u1"),
        ("port", "u1"),
        ("channel", "u1"),
        ("unused", "u1"),
    ]
)


def type_of(dtype: str) -> str:
    if dtype in ("uint32", "uint64", "int64"):
        return "i64"
    if dtype in ("float16", "float32"):
        return "f32"
    return "f64" if dtype == "float64" else "i32"


class Uniform(int):
    """Operand that indexes the uniforms."""


class Asm:
    """Collector of instructions. Each method returns the register that it defines."""

    def __init__(self, inputs, outputs, channels: int = 0) -> None:
        self.inputs, self.outputs, self.channels = list(inputs), list(outputs), channels
        self.code: list[tuple] = []
        self.types: dict[int, str] = {}
        self.uniforms: list[float] = []
        self._program = None

    def uniform(self, value: float) -> Uniform:
        self.uniforms.append(float(value))
        return Uniform(len(self.uniforms) - 1)

    def emit(self, op, *args, type=None, source=None, dtype="uint8", port=0, channel=0, result=None) -> int:
        dst = len(self.code)
        bits = sum(1 << k for k, a in enumerate(args) if isinstance(a, Uniform))
        a, b, c = ([*list(map(int, args)), 0, 0, 0])[:3]
        self.code.append(
            (
                OPS[op],
                TYPES.index(type),
                TYPES.index(source or type),
                DTYPES.index(dtype),
                dst,
                a,
                b,
                c,
                bits,
                port,
                channel,
                0,
            )
        )
        self.types[dst] = result or type
        return dst

    def load(self, port=0, channel=0) -> int:
        dtype = self.inputs[port]
        return self.emit("Load", type=type_of(dtype), dtype=dtype, port=port, channel=channel)

    def store(self, value, port=0, channel=0) -> None:
        dtype = self.outputs[port]
        self.emit("Store", value, type=type_of(dtype), dtype=dtype, port=port, channel=channel)

    def op(self, name, *args, type=None) -> int:
        if type is None:
            type = next(self.types[a] for a in args if not isinstance(a, Uniform))
        compares = name.lstrip("U") in ("Eq", "Ne", "Lt", "Le", "Gt", "Ge")
        return self.emit(name, *args, type=type, result="i32" if compares else type)

    def cvt(self, value, to, unsigned=False) -> int:
        if self.types[value] == to:
            return value
        return self.emit("UCvt" if unsigned else "Cvt", value, type=to, source=self.types[value])

    def cast(self, value, dtype, unsigned=False) -> int:
        return self.emit(
            "UCast" if unsigned else "Cast", value, type=type_of(dtype), source=self.types[value], dtype=dtype
        )

    def wrap(self, value, dtype) -> int:
        return self.emit("Wrap", value, type=type_of(dtype), source=self.types[value], dtype=dtype)

    def program(self):
        if self._program is None:
            code = np.array(self.code, dtype=INSTR).tobytes()
            self._program = _native.PixelProgram(
                code,
                self.channels,
                [DTYPES.index(d) for d in self.inputs],
                [DTYPES.index(d) for d in self.outputs],
                len(self.uniforms),
            )
        return self._program

    def run(self, inputs, outputs) -> bool:
        return self.program().run(self.uniforms, list(inputs), list(outputs))

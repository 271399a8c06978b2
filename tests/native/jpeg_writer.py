# SPDX-License-Identifier: Apache-2.0
"""A small sequential JPEG writer for layouts that Pillow cannot write.

It supports all sampling factors, scans, quantizers (8 or 16 bits), restart intervals, component ids and markers.
Coefficients are inputs, or come from a floating-point DCT. The Huffman tables are the standard's, or flat ones that
can code every symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

EOI = b"\xff\xd9"


def _zigzag() -> np.ndarray:
    order = sorted(((r, c) for r in range(8) for c in range(8)), key=lambda p: (sum(p), p[sum(p) % 2 == 0]))
    return np.array([8 * r + c for r, c in order])


ZIGZAG = _zigzag()
_K = np.arange(8)
_DCT = np.cos((2 * _K[None, :] + 1) * _K[:, None] * np.pi / 16) * np.where(_K[:, None] == 0, np.sqrt(1 / 8), 0.5)


@dataclass
class Table:
    """A Huffman table: 16 counts and the symbols in code order."""

    counts: list[int]
    symbols: list[int]

    def codes(self) -> dict[int, tuple[int, int]]:
        out, code, at = {}, 0, 0
        for length, count in enumerate(self.counts, 1):
            for symbol in self.symbols[at : at + count]:
                out[symbol] = (code, length)
                code += 1
            at += count
            code <<= 1
        return out


def flat_dc() -> Table:
    """Return a table of all 16 sizes, in 5 bits: 14 codes of 4 bits would leave no room for an unused all-ones code."""
    return Table([0] * 4 + [16] + [0] * 11, list(range(16)))


def flat_ac() -> Table:
    """Return a table of every symbol: short codes for small sizes, 9 to 16 bits for the rest, so that all occur."""
    short = [0x00, 0x01, 0x02, 0x11, 0xF0]
    rest = [s for s in range(256) if s not in short]
    counts = [0] * 16
    counts[2] = len(short)
    counts[8], counts[9], counts[15] = 40, 80, len(rest) - 120
    return Table(counts, short + rest)


@dataclass
class Component:
    """One component: its blocks as an integer array (rows, columns, 8, 8) of quantised coefficients."""

    blocks: np.ndarray
    h: int = 1
    v: int = 1
    id: int = 1
    quantiser: int = 0
    table: int = 0


@dataclass
class Layout:
    """Parts of a file besides the components."""

    width: int
    height: int
    quantisers: dict[int, np.ndarray]  # natural order, 8x8
    wide: bool = False  # 16-bit quantisers
    scans: Sequence[Sequence[int]] = ()  # component indices; default: one scan with all components
    restart: int = 0
    dc: Table = field(default_factory=flat_dc)
    ac: Table = field(default_factory=flat_ac)
    app: bytes = b""  # further marker segments, for example from `adobe`
    sof: int = 0xC0
    write_tables: bool = True
    idle_runs: bool = False  # write runs of 16 zeros before the end of a block as well


def segment(marker: int, payload: bytes) -> bytes:
    return bytes([0xFF, marker]) + (len(payload) + 2).to_bytes(2, "big") + payload


def adobe(transform: int) -> bytes:
    return segment(0xEE, b"Adobe" + bytes([0, 100, 0, 0, 0, 0, transform]))


def exif(orientation: int, order: str = "little") -> bytes:
    def number(value: int, size: int) -> bytes:
        return value.to_bytes(size, order)  # type: ignore[arg-type]

    head = (b"II" if order == "little" else b"MM") + number(42, 2) + number(8, 4)
    entry = number(0x0112, 2) + number(3, 2) + number(1, 4) + number(orientation, 2) + b"\0\0"
    return segment(0xE1, b"Exif\0\0" + head + number(1, 2) + entry + number(0, 4))


class _Bits:
    def __init__(self) -> None:
        self.out, self.value, self.length = bytearray(), 0, 0

    def put(self, bits: int, length: int) -> None:
        self.value = self.value << length | bits
        self.length += length
        while self.length >= 8:
            self.length -= 8
            byte = self.value >> self.length & 255
            self.out += b"\xff\0" if byte == 255 else bytes([byte])
        self.value &= (1 << self.length) - 1

    def flush(self) -> bytes:
        if self.length:
            self.put((1 << (8 - self.length)) - 1, 8 - self.length)
        data, self.out = bytes(self.out), bytearray()
        return data


def _put_value(bits: _Bits, value: int, size: int) -> None:
    bits.put(value if value >= 0 else value + (1 << size) - 1, size)


def _put_block(bits: _Bits, zz: np.ndarray, difference: int, dc: dict, ac: dict, idle_runs: bool = False) -> None:
    size = abs(difference).bit_length()
    bits.put(*dc[size])
    _put_value(bits, difference, size)
    run = 0
    for value in (int(v) for v in zz[1:]):
        if value == 0:
            run += 1
            continue
        for _ in range(run // 16):
            bits.put(*ac[0xF0])
        size = abs(value).bit_length()
        bits.put(*ac[run % 16 << 4 | size])
        _put_value(bits, value, size)
        run = 0
    if run:
        for _ in range(run // 16 if idle_runs else 0):
            bits.put(*ac[0xF0])
        bits.put(*ac[0])


def _mcu_blocks(scan: Sequence[Component], layout: Layout, everything: Sequence[Component]):
    """Yield, MCU by MCU, lists of (component, row, column)."""
    h_max, v_max = max(c.h for c in everything), max(c.v for c in everything)
    if len(scan) == 1:
        c = scan[0]
        columns = -(-layout.width * c.h // (8 * h_max))
        rows = -(-layout.height * c.v // (8 * v_max))
        for i in range(rows * columns):
            yield [(c, i // columns, i % columns)]
        return
    columns, rows = -(-layout.width // (8 * h_max)), -(-layout.height // (8 * v_max))
    for y in range(rows):
        for x in range(columns):
            yield [(c, y * c.v + j, x * c.h + i) for c in scan for j in range(c.v) for i in range(c.h)]


def _scan_data(scan: Sequence[Component], layout: Layout, everything: Sequence[Component]) -> bytes:
    dc, ac, bits = layout.dc.codes(), layout.ac.codes(), _Bits()
    out, last = b"", {id(c): 0 for c in scan}
    for n, mcu in enumerate(_mcu_blocks(scan, layout, everything)):
        if layout.restart and n and n % layout.restart == 0:
            out += bits.flush() + bytes([0xFF, 0xD0 + (n // layout.restart - 1) % 8])
            last = dict.fromkeys(last, 0)
        for c, row, column in mcu:
            zz = c.blocks[row, column].reshape(64)[ZIGZAG]
            _put_block(bits, zz, int(zz[0]) - last[id(c)], dc, ac, layout.idle_runs)
            last[id(c)] = int(zz[0])
    return out + bits.flush()


def write(components: Sequence[Component], layout: Layout) -> bytes:
    out = b"\xff\xd8" + layout.app
    for index, q in layout.quantisers.items():
        values = q.reshape(64)[ZIGZAG]
        payload = values.astype(">u2").tobytes() if layout.wide else values.astype(np.uint8).tobytes()
        out += segment(0xDB, bytes([layout.wide << 4 | index]) + payload)
    frame = b"\x08" + layout.height.to_bytes(2, "big") + layout.width.to_bytes(2, "big") + bytes([len(components)])
    out += segment(layout.sof, frame + b"".join(bytes([c.id, c.h << 4 | c.v, c.quantiser]) for c in components))
    if layout.write_tables:
        for kind, table in ((0, layout.dc), (0x10, layout.ac)):
            out += segment(0xC4, bytes([kind]) + bytes(table.counts) + bytes(table.symbols))
    if layout.restart:
        out += segment(0xDD, layout.restart.to_bytes(2, "big"))
    for indices in layout.scans or [range(len(components))]:
        scan = [components[i] for i in indices]
        head = bytes([len(scan)]) + b"".join(bytes([c.id, c.table << 4 | c.table]) for c in scan)
        out += segment(0xDA, head + b"\x00\x3f\x00") + _scan_data(scan, layout, components)
    return out + EOI


def random_blocks(rng: np.random.Generator, rows: int, columns: int, size: int = 40, keep: float = 0.3) -> np.ndarray:
    """Return coefficients that decrease with frequency, many of them zero, with DC over the whole range."""
    scale = size / (1 + np.add.outer(np.arange(8), np.arange(8)))
    blocks = np.rint(rng.normal(size=(rows, columns, 8, 8)) * scale).astype(int)
    blocks *= rng.random((rows, columns, 8, 8)) < keep * rng.random((rows, columns, 1, 1)) * 2
    blocks[:, :, 0, 0] = rng.integers(-60, 60, (rows, columns))
    return blocks


def dct_blocks(plane: np.ndarray, quantiser: np.ndarray) -> np.ndarray:
    """Return the quantized coefficients of a plane of samples whose sides are multiples of 8."""
    h, w = plane.shape
    tiles = plane.reshape(h // 8, 8, w // 8, 8).swapaxes(1, 2).astype(float) - 128
    return np.rint(_DCT @ tiles @ _DCT.T / quantiser).astype(int)


def random_components(
    rng: np.random.Generator, width: int, height: int, factors: Sequence[tuple[int, int]], **options
) -> tuple[list[Component], Layout]:
    """Return random coefficients with the given (h, v) sampling factors."""
    ids = options.pop("ids", (1, 2, 3, 4))
    quantisers = options.pop("quantisers", {0: np.full((8, 8), 4)})
    size, keep = options.pop("size", 40), options.pop("keep", 0.3)
    h_max, v_max = max(h for h, _ in factors), max(v for _, v in factors)
    columns, rows = -(-width // (8 * h_max)), -(-height // (8 * v_max))
    single = len(factors) == 1
    components = [
        Component(
            random_blocks(rng, rows * v * (2 if single else 1), columns * h * (2 if single else 1), size, keep),
            h, v, ids[i],
        )
        for i, (h, v) in enumerate(factors)
    ]  # fmt: skip
    return components, Layout(width, height, quantisers, **options)


def random_file(
    rng: np.random.Generator, width: int, height: int, factors: Sequence[tuple[int, int]], **options
) -> bytes:
    """Return a sequential file of random coefficients with the given (h, v) sampling factors."""
    return write(*random_components(rng, width, height, factors, **options))


def unsynchronised(rng: np.random.Generator, height: int, width: int) -> bytes:
    """Return a gray file of random blocks in which a decoder never synchronizes: a valid file that is slow on purpose.

    Every code of seven bits has the same meaning, so a code always takes eight bits, or nine if the decoder takes it
    for the first value of a block. A decoder that starts at a wrong block number stays wrong forever. There are no long
    runs of ones, which are no code.
    """
    blocks = -(-height // 8) * -(-width // 8)
    assert blocks % 8 == 0, "the data end with a whole byte"
    first = rng.integers(0, 2, (blocks, 9), np.uint8) * np.array([0, 1, 1, 1, 0, 1, 1, 0, 1], np.uint8)
    others = rng.integers(0, 2, (blocks, 63, 8), np.uint8) * np.array([0, 1, 1, 1, 0, 1, 1, 1], np.uint8)
    bits = np.concatenate([first, others.reshape(blocks, -1)], 1)
    counts = bytes([0] * 6 + [127] + [0] * 9)
    tables = b"\x00" + counts + b"\x02" * 127 + b"\x10" + counts + b"\x01" * 127
    frame = b"\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big") + b"\x01\x01\x11\x00"
    head = segment(0xDB, b"\x00" + b"\x01" * 64) + segment(0xC0, frame) + segment(0xC4, tables)
    return b"\xff\xd8" + head + segment(0xDA, b"\x01\x01\x00\x00\x3f\x00") + np.packbits(bits).tobytes() + b"\xff\xd9"

# SPDX-License-Identifier: Apache-2.0
"""Writer of progressive files with any script of scans, which Pillow cannot write; the companion of `jpeg_writer`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import jpeg_writer as jw
import numpy as np

# (component indices, first and last zig-zag position, bits missing before and after)
ScanScript = tuple[Sequence[int], int, int, int, int]


def full_script(components: int) -> list[ScanScript]:
    """Return the script that encoders commonly write: half precision first, then the last bits."""
    everything = range(components)
    script: list[ScanScript] = [(everything, 0, 0, 0, 1)]
    script += [((c,), 1, 5, 0, 2) for c in everything] + [((c,), 6, 63, 0, 2) for c in everything]
    script += [((c,), 1, 63, 2, 1) for c in everything] + [(everything, 0, 0, 1, 0)]
    return script + [((c,), 1, 63, 1, 0) for c in everything]


def random_script(rng: np.random.Generator, components: int) -> list[ScanScript]:
    """Return a complete script with random bands and precisions, in a random legal order."""
    chains: list[list[ScanScript]] = []
    groups = [list(range(components))] if rng.random() < 0.5 else [[c] for c in range(components)]
    for group in groups:
        top = int(rng.integers(0, 5))
        chains.append([(group, 0, 0, 0 if a == top else a + 1, a) for a in range(top, -1, -1)])
    for c in range(components):
        cuts = sorted({1, 64, *(int(k) for k in rng.integers(2, 64, rng.integers(0, 4)))})
        for first, end in pairwise(cuts):
            top = int(rng.integers(0, 4))
            chains.append([((c,), first, end - 1, 0 if a == top else a + 1, a) for a in range(top, -1, -1)])
    script: list[ScanScript] = []
    if rng.random() < 0.9:  # DC first; otherwise libjpeg only warns
        for chain in chains[: len(groups)]:
            script.append(chain.pop(0))
    chains = [chain for chain in chains if chain]
    while chains:
        at = int(rng.integers(len(chains)))
        script.append(chains[at].pop(0))
        if not chains[at]:
            del chains[at]
    return script


class _Band:
    """Encoder of an AC scan of one component. It splits runs of ended blocks at random, so that every length occurs."""

    def __init__(self, bits: jw._Bits, codes: dict[int, tuple[int, int]], rng: np.random.Generator) -> None:
        self.bits, self.codes, self.rng = bits, codes, rng
        self.run, self.pending = 0, list[int]()
        self.longest = int(rng.choice([1, 3, 40, 32767]))

    def flush(self) -> None:
        if self.run:
            extra = self.run.bit_length() - 1
            self.bits.put(*self.codes[extra << 4])
            self.bits.put(self.run - (1 << extra), extra)
        self._put_bits(self.pending)
        self.run, self.pending = 0, []

    def _put_bits(self, bits: Sequence[int]) -> None:
        for bit in bits:
            self.bits.put(bit, 1)

    def _end(self, corrections: Sequence[int]) -> None:
        self.run += 1
        self.pending += corrections
        if self.run >= self.longest:
            self.flush()

    def first(self, values: Sequence[int]) -> None:
        run = 0
        for value in values:
            if value == 0:
                run += 1
                continue
            self.flush()
            for _ in range(run // 16):
                self.bits.put(*self.codes[0xF0])
            size = abs(value).bit_length()
            self.bits.put(*self.codes[run % 16 << 4 | size])
            jw._put_value(self.bits, value, size)
            run = 0
        if run:
            self._end([])

    def refine(self, values: Sequence[int]) -> None:
        new = [k for k, value in enumerate(values) if abs(value) == 1]
        last = new[-1] if new else -1
        run, corrections = 0, list[int]()
        for k, value in enumerate(values):
            if value == 0:
                run += 1
                continue
            while run > 15 and k <= last:
                self.flush()
                self.bits.put(*self.codes[0xF0])
                self._put_bits(corrections)
                run, corrections = run - 16, []
            if abs(value) > 1:
                corrections.append(abs(value) & 1)
                continue
            self.flush()
            self.bits.put(*self.codes[run << 4 | 1])
            self._put_bits([int(value > 0), *corrections])
            run, corrections = 0, []
        if run or corrections:
            self._end(corrections)


def _shifted(value: int, shift: int) -> int:
    return value >> shift if value >= 0 else -(-value >> shift)


def _scan_data(
    script: ScanScript, layout: jw.Layout, components: Sequence[jw.Component], rng: np.random.Generator
) -> bytes:
    indices, first, last, before, shift = script
    scan, bits = [components[i] for i in indices], jw._Bits()
    dc, band = layout.dc.codes(), _Band(bits, layout.ac.codes(), rng)
    out, previous = b"", {id(c): 0 for c in scan}
    for n, mcu in enumerate(jw._mcu_blocks(scan, layout, components)):
        if layout.restart and n and n % layout.restart == 0:
            band.flush()
            out += bits.flush() + bytes([0xFF, 0xD0 + (n // layout.restart - 1) % 8])
            previous = dict.fromkeys(previous, 0)
        for c, row, column in mcu:
            zz = c.blocks[row, column].reshape(64)[jw.ZIGZAG]
            if first:
                values = [_shifted(int(v), shift) for v in zz[first : last + 1]]
                (band.refine if before else band.first)(values)
            elif before:
                bits.put(int(zz[0]) >> shift & 1, 1)
            else:
                value = int(zz[0]) >> shift
                size = abs(value - previous[id(c)]).bit_length()
                bits.put(*dc[size])
                jw._put_value(bits, value - previous[id(c)], size)
                previous[id(c)] = value
    band.flush()
    return out + bits.flush()


def write(
    components: Sequence[jw.Component], layout: jw.Layout, script: Sequence[ScanScript], rng: np.random.Generator
) -> bytes:
    """Return the file. `layout.scans` is ignored; the tables of a scan are those of its components."""
    empty = jw.write(components, replace(layout, sof=0xC2, scans=[()]))
    out = empty[: empty.rindex(b"\xff\xda")]
    for scan in script:
        indices, first, last, before, shift = scan
        head = bytes([len(indices)])
        head += b"".join(bytes([components[i].id, components[i].table << 4 | components[i].table]) for i in indices)
        out += jw.segment(0xDA, head + bytes([first, last, before << 4 | shift]))
        out += _scan_data(scan, layout, components, rng)
    return out + jw.EOI


def random_file(
    rng: np.random.Generator,
    width: int,
    height: int,
    factors: Sequence[tuple[int, int]],
    script: Sequence[ScanScript] | None = None,
    **options: object,
) -> bytes:
    """Return a progressive file of random coefficients with the given (h, v) sampling factors."""
    components, layout = jw.random_components(rng, width, height, factors, **options)
    return write(components, layout, script or random_script(rng, len(factors)), rng)

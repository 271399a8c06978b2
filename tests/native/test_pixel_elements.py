# SPDX-License-Identifier: Apache-2.0
"""Random bits and lookups in the register machine, on every instruction set."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pixel_asm import DTYPES, Asm, type_of
from pixel_values import same, values


def drawn(element: Any, key: int, stream: int) -> Any:
    asm = Asm(["int32"], ["int32"])
    asm.store(asm.emit("Random", asm.load(), asm.uniform(key), asm.uniform(stream), type="i32"))
    out = np.empty(element.shape, np.int32)
    assert asm.run([element.view(np.int32)], [out])
    return out.view(np.uint32)


def block(element: Any, key: int, stream: int) -> tuple[Any, Any]:
    """Return the two words of Philox2x32-10 in NumPy."""
    low, high = element.astype(np.uint64), np.uint64(stream)
    for _ in range(10):
        product = low * np.uint64(0xD256D193)
        low, high = (product >> np.uint64(32)) ^ np.uint64(key) ^ high, product & np.uint64(0xFFFFFFFF)
        key = (key + 0x9E3779B9) & 0xFFFFFFFF
    return low.astype(np.uint32), high.astype(np.uint32)


def philox(element: Any, key: int, stream: int) -> Any:
    return block(element, key, stream)[0]


@pytest.mark.parametrize(
    ("element", "key", "stream", "want"),
    [
        (0, 0, 0, 0xFF1DAE59),
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x2C3F628B),
        (0x243F6A88, 0x13198A2E, 0x85A308D3, 0xDD7CE038),
    ],
)
def test_random_bits_are_philox(element: int, key: int, stream: int, want: int, isa: str) -> None:
    """Known answers of the authors' library (Random123, kat_vectors)."""
    assert drawn(np.array([element], np.uint32), key, stream).item() == want
    assert philox(np.array([element], np.uint32), key, stream).item() == want


def test_random_bits_of_many_elements(isa: str) -> None:
    elements = values("uint32", n=4999)
    for key, stream in ((1, 2), (0x80000000, 0xFFFFFFFF), (0xDEADBEEF, 0)):
        same(drawn(elements, key, stream), philox(elements, key, stream))


def normal(element: Any, key: int, stream: int) -> Any:
    asm = Asm(["int32"], ["float32"])
    asm.store(asm.emit("Normal", asm.load(), asm.uniform(key), asm.uniform(stream), type="f32"))
    out = np.empty(element.shape, np.float32)
    assert asm.run([element.view(np.int32)], [out])
    return out


def test_normal_numbers_are_those_of_box_and_muller(isa: str) -> None:
    elements = np.arange(1 << 20, dtype=np.uint32)
    first, second = ((word >> 8).astype(np.float64) * 2.0**-24 for word in block(elements, 3, 4))
    radius, angle = np.sqrt(-2 * np.log(1 - first)), math.tau * second
    got = normal(elements, 3, 4)
    # The square root doubles the precision of small radii; the cosine's error is an absolute one.
    assert np.all(np.abs(got - radius * np.cos(angle)) <= radius * 2.5e-7)
    assert abs(got.mean()) < 0.003
    assert abs(got.std() - 1) < 0.003
    neighbours = np.corrcoef(got[:-1], got[1:])[0, 1]
    assert abs(neighbours) < 0.004


def test_normal_numbers_have_the_same_bits_with_every_instruction_set(isa: str) -> None:
    got = normal(np.arange(4999, dtype=np.uint32), 0x80000000, 0xFFFFFFFF)
    assert hashlib.sha256(got.tobytes()).hexdigest()[:16] == "d28f52c6248998ba"


def looked_up(index: Any, table: Any, dtype: str, length: float) -> Any:
    asm = Asm([str(index.dtype), dtype], [dtype])
    entry = asm.emit("Lookup", asm.load(), asm.uniform(length), type=type_of(dtype), dtype=dtype, port=1)
    asm.store(entry)
    out = np.empty(index.shape, dtype)
    assert asm.run([index, table], [out])
    return out


@pytest.mark.parametrize("length", [0, 1, 255, 300])
@pytest.mark.parametrize("dtype", DTYPES)
def test_lookups(isa: str, dtype: str, length: int) -> None:
    """Indices outside of the length, also negative ones, give 0."""
    table = values(dtype, 1)
    index = np.concatenate([np.arange(-2, 400), [2**31 - 1, -(2**31), 256]]).astype(np.int32)
    want = np.where((index >= 0) & (index < length), table[index.clip(0, len(table) - 1)], np.zeros(1, dtype))
    same(looked_up(index, table, dtype, length), want.astype(dtype))


def test_bytes_as_indices_become_a_table(isa: str) -> None:
    """A lookup by a byte runs 256 times for a large image, and gives the same."""
    index, table = values("uint8", 3, 100_000), values("float32", 4, 256)
    same(looked_up(index, table, "float32", 256), table[index])


@pytest.mark.parametrize("length", [-1, 11, 2**31])
def test_a_table_without_the_promised_elements_is_refused(length: float) -> None:
    with pytest.raises(ValueError, match="a table lacks elements"):
        looked_up(np.zeros(4, np.int32), np.zeros(10, np.float32), "float32", length)


@pytest.mark.parametrize("table", [np.zeros((3, 4), np.uint8), np.zeros(20, np.uint8)[::2]], ids=["axes", "strides"])
def test_a_table_has_one_contiguous_axis(table: Any) -> None:
    with pytest.raises(ValueError, match="a table lacks elements"):
        looked_up(np.zeros(4, np.int32), table, "uint8", 2)


def lookup_and(change: Callable[[Asm], Any]) -> Any:
    asm = Asm(["int32", "uint8"], ["uint8"])
    change(asm)
    return asm.program()


def entry(asm: Asm, length: Any) -> int:
    return asm.emit("Lookup", asm.load(), length, type="i32", dtype="uint8", port=1)


BROKEN: dict[str, tuple[Callable[[Asm], Any], str]] = {
    "an image as table": (lambda a: (a.load(1), a.store(entry(a, a.uniform(3)))), "a table and an image"),
    "a length per element": (lambda a: a.store(entry(a, a.load())), "expected a uniform as length"),
    "two lengths": (
        lambda a: a.store(a.op("Add", entry(a, a.uniform(3)), entry(a, a.uniform(4)))), "a table of two lengths",
    ),
    "no such port": (
        lambda a: a.store(a.emit("Lookup", a.load(), a.uniform(3), type="i32", dtype="uint8", port=2)), "no such port",
    ),
    "another type": (
        lambda a: a.store(a.emit("Lookup", a.load(), a.uniform(3), type="i32", dtype="int8", port=1)), "not the port's",
    ),
    "a random float": (
        lambda a: a.emit("Random", a.uniform(1), a.uniform(1), a.uniform(1), type="f32"), "not defined for this type",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_programs_that_are_refused(name: str) -> None:
    change, why = BROKEN[name]
    with pytest.raises(ValueError, match=why):
        lookup_and(change)

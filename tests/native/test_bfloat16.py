# SPDX-License-Identifier: Apache-2.0
"""Conversion to and from bfloat16: torch's bits, on every path. For arithmetic, see test_bfloat16_operators.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from stoker import eager, fn, pipeline_def, types
from stoker.ops.generic.cast import cast_array
from stoker.torch import Loader, to_torch
from stoker.types import DType

ROWS = 4


def floats() -> np.ndarray:
    """Return random bits, ties, the ends of the range, infinities and NaNs."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 60_000, np.uint32)
    ties = (bits[:10_000] & 0xFFFF0000) | rng.choice(np.uint32([0x7FFF, 0x8000, 0x8001]), 10_000)
    special = np.uint32([0, 0x80000000, 1, 0x7FFF, 0x8000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0x7F800001])
    return np.concatenate([bits, ties, special]).view(np.float32)


def torch_bits(x: np.ndarray) -> np.ndarray:
    return torch.from_numpy(x).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)


def same(bits: np.ndarray, want: np.ndarray) -> None:
    nan = lambda b: (b & 0x7FFF) > 0x7F80  # noqa: E731 - a NaN's payload is not part of a result
    np.testing.assert_array_equal(nan(bits), nan(want))
    np.testing.assert_array_equal(bits[~nan(bits)], want[~nan(want)])


def test_the_bits_are_those_of_torch(isa: str) -> None:
    x = floats()
    same(cast_array(x, DType.BFLOAT16), torch_bits(x))
    same(np.asarray(eager.cast(x, dtype=types.BFLOAT16)), torch_bits(x))


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.uint64, np.float16, np.float64])
def test_every_type_is_rounded_once(isa: str, kind: Any) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(20_000) * 3.0 ** rng.integers(-20, 20, 20_000)
    if np.dtype(kind).kind != "f":
        x = rng.integers(0, np.iinfo(kind).max, 20_000, dtype=kind)
    with np.errstate(over="ignore"):
        x = x.astype(kind)
    if kind is np.float64:  # just above a tie; rounding to float32 first would lose the difference
        x[:1000] = np.float64(1 + 2.0**-8) + 2.0**-40 * np.arange(1, 1001)
        assert (cast_array(x[:1000], DType.BFLOAT16) == 0x3F81).all()
    got = np.asarray(eager.cast(x, dtype=types.BFLOAT16))
    np.testing.assert_array_equal(got, cast_array(x, DType.BFLOAT16))


@pipeline_def(batch_size=ROWS, num_threads=2)
def normalised(dtype: Any) -> Any:
    rng = np.random.default_rng(2)
    batches = [[rng.integers(0, 256, (9, 12, 3), np.uint8) for _ in range(ROWS)]] * 3
    x = fn.external_source(source=batches, layout="HWC")
    return fn.crop_mirror_normalize(
        x, dtype=dtype, mean=[100.0, 110.0, 120.0], std=[50.0, 60.0, 70.0], mirror=fn.random.coin_flip(seed=3)
    )


def test_torch_gets_bfloat16() -> None:
    bf16, f32 = Loader(normalised(types.BFLOAT16)), Loader(normalised(types.FLOAT))
    for x, want in zip(bf16, f32, strict=True):
        assert x.dtype == torch.bfloat16
        assert torch.equal(x, want.to(torch.bfloat16))
    bf16.close()
    f32.close()


def test_a_batch_of_it() -> None:
    with normalised(types.BFLOAT16) as pipe, normalised(types.FLOAT) as plain:
        (batch,), (want,) = pipe.run(), plain.run()
        assert (batch.dtype, str(batch.dtype), batch.as_array().dtype) == (DType.BFLOAT16, "bfloat16", np.uint16)
        assert torch.equal(to_torch(batch), to_torch(want).to(torch.bfloat16))
        assert all(torch.equal(torch.from_numpy(row.view(np.int16)).view(torch.bfloat16), t)
                   for row, t in zip(batch, to_torch(batch), strict=True))  # fmt: skip
        with pytest.raises(BufferError, match="to_torch"):
            torch.from_dlpack(batch)


def test_the_type_has_many_names() -> None:
    for name in ("bfloat16", torch.bfloat16, DType.BFLOAT16, types.BFLOAT16):
        assert DType.of(name) == DType.BFLOAT16
    assert DType.of(np.uint16) == DType.UINT16
    assert DType.BFLOAT16.size == 2


@pipeline_def(batch_size=3, num_threads=2)
def copied(rows: list[np.ndarray], device: str) -> Any:
    x = fn.external_source(
        source=lambda info: rows[info.idx_in_batch], batch=False, dtype=types.BFLOAT16, layout="HWC", device=device
    )
    normal = fn.crop_mirror_normalize(x, mean=[1.5, 0.5, 2.0], std=[3.0], mirror=1, crop=(4, 5), dtype=types.FLOAT16)
    moved = fn.transpose(fn.flip(x, horizontal=0, vertical=1), perm=[2, 0, 1])
    return fn.cast(x, dtype=types.FLOAT), fn.cast(x, dtype="uint8"), normal, moved, fn.reshape(moved, shape=[-1])


def torch_rows() -> list[torch.Tensor]:
    x = torch.from_numpy(floats()[: 9 * 7 * 3 * 3].copy()).to(torch.bfloat16)
    return list(x.reshape(3, 9, 7, 3))


def test_inputs_of_it(isa: str) -> None:
    """NumPy arrays contain its bits if the source declares the type."""
    rows = torch_rows()
    with copied([x.view(torch.int16).numpy().view(np.uint16) for x in rows], "cpu") as pipe:
        wide, small, normal, moved, flat = ([np.array(row) for row in output] for output in pipe.run())
    for r, x in enumerate(rows):
        want = x.float().numpy()
        np.testing.assert_array_equal(wide[r], want)
        np.testing.assert_array_equal(small[r], cast_array(want, DType.UINT8))
        more = {"mean": [1.5, 0.5, 2.0], "std": [3.0], "mirror": 1, "crop": (4, 5), "dtype": types.FLOAT16}
        np.testing.assert_array_equal(normal[r], np.asarray(eager.crop_mirror_normalize(want, **more)))
        bits = x.view(torch.int16).numpy().view(np.uint16)
        same(moved[r], bits[::-1].transpose(2, 0, 1))
        same(flat[r], moved[r].reshape(-1))

# SPDX-License-Identifier: Apache-2.0
"""Rows of the readers of containers are those of DALI, in its order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import fn, tfrecord, types
from tests.containers.dali_values import VALUES, absolute, as_plain, cases, write_files
from tests.containers.data import rows

CASES = {case: (reader, arguments) for case, reader, arguments in cases(types, tfrecord)}
WITH_INDEX = {case: own for case, own in CASES.items() if "index_path" in own[1]}
RECORDED = json.loads(VALUES.read_text())

# DALI truncates the gray of colors in PNG files; Stoker rounds it, as both do in color_space_conversion.
TRUNCATED = "sequence grey"

# Samples that differ by rounding: of resampling, by the filter of ``stoker.dali``, and of full scale as an integer.
NEAR = {case: 1.0 if "int32" in case else 2e-3 for case in CASES if "resampled" in case or "int32" in case}

# The orders of shuffled rows differ; the rows do not.
SHUFFLED = [case for case in CASES if "shuffled" in case]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dali")
    write_files(made)
    return made


def found(reader: str, arguments: dict[str, Any]) -> list[list[Any]]:
    """Return the rows of an epoch, in the shards of DALI."""
    if "num_shards" in arguments:
        arguments = {**arguments, "sharding": "contiguous"}
    return [[as_plain(x) for x in row] for row in rows(lambda: getattr(fn.readers, reader)(**arguments), batch_size=1)]


@pytest.mark.parametrize("case", [case for case in CASES if case not in (TRUNCATED, *NEAR, *SHUFFLED)])
def test_rows_are_dalis(case: str, folder: Path) -> None:
    reader, arguments = CASES[case]
    assert found(reader, absolute(arguments, folder)) == RECORDED[case]


@pytest.mark.parametrize("case", SHUFFLED)
def test_shuffled_rows_are_dalis(case: str, folder: Path) -> None:
    reader, arguments = CASES[case]
    assert sorted(map(str, found(reader, absolute(arguments, folder)))) == sorted(map(str, RECORDED[case]))


@pytest.mark.parametrize("case", WITH_INDEX)
def test_rows_without_an_index_file_are_dalis(case: str, folder: Path) -> None:
    reader, arguments = WITH_INDEX[case]
    given = {k: v for k, v in arguments.items() if k != "index_path"}
    assert found(reader, absolute(given, folder)) == RECORDED[case]


@pytest.mark.parametrize("case", NEAR)
def test_samples_are_near_dalis(case: str, folder: Path) -> None:
    reader, arguments = CASES[case]
    got = found(reader, absolute({**arguments, "filter": "dali"}, folder))
    for ((dtype, shape, values), *others), ((*dalis, dalis_values), *dalis_others) in zip(
        got, RECORDED[case], strict=True
    ):
        assert [dtype, shape] == dalis and others == dalis_others
        np.testing.assert_allclose(values, dalis_values, rtol=0, atol=NEAR[case])


def test_gray_frames_are_rounded(folder: Path) -> None:
    reader, arguments = CASES[TRUNCATED]
    pairs = zip(found(reader, absolute(arguments, folder)), RECORDED[TRUNCATED], strict=True)
    differences = []
    for ((dtype, shape, values),), ((dalis_dtype, dalis_shape, dalis),) in pairs:
        assert (dtype, shape) == (dalis_dtype, dalis_shape)
        differences.append(np.subtract(values, dalis).ravel())
    assert set(np.concatenate(differences)) == {0, 1}


def test_every_case_is_recorded() -> None:
    assert set(CASES) == set(RECORDED) and all(RECORDED.values())

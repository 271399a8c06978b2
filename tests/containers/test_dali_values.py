# SPDX-License-Identifier: Apache-2.0
"""Rows of the readers of containers are those of DALI, in its order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stoker import fn, tfrecord, types
from tests.containers.dali_values import VALUES, absolute, as_plain, cases, write_files
from tests.containers.data import rows

CASES = {case: (reader, arguments) for case, reader, arguments in cases(types, tfrecord)}
RECORDED = json.loads(VALUES.read_text())


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_rows_are_dalis(case: str, with_index: bool, tmp_path: Path) -> None:
    write_files(tmp_path)
    reader, arguments = CASES[case]
    given = absolute(arguments, tmp_path)
    if not with_index:
        given.pop("index_path", None)
    if "num_shards" in given:
        given["sharding"] = "contiguous"

    def define() -> Any:
        return getattr(fn.readers, reader)(**given)

    assert [[as_plain(x) for x in row] for row in rows(define, batch_size=1)] == RECORDED[case]


def test_every_case_is_recorded() -> None:
    assert set(CASES) == set(RECORDED) and all(RECORDED.values())

# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: SIM108 - the statements are what is tested
"""Every operator of the library in branches of ``if``: the rows are those of the operator outside of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker.contract.errors import ArgumentError, DataError
from stoker.dali import fn, pipeline_def, types
from tests.complete import COMPLETE
from tests.hostile.cases import ROWS
from tests.hostile.walk import write_files
from tests.run.every_operator import apply, calls, sources
from tests.run.test_resume_operators import OPERATORS

CALLS = None if COMPLETE else 1  # of each operator
# Two conditions for each row of a batch: several branches, one alone, each pair of values.
MIXED = (((1, 1), (0, 1)), ((1, 0), (1, 1)), ((0, 0), (0, 0)), ((0, 1), (1, 0)))
PAIRS = ((0, 0), (0, 1), (1, 0), (1, 1))
# Refused: readers would not read in some batches, types would not be known.
REFUSED = {
    "decoders.numpy": "it ran for no row of the first batch",
    "readers.concat": "readers that read always", "readers.mix": "readers that read always",
    "readers.partner": "readers that read always",
}  # fmt: skip
# Their types are known from the first batch, or declared.
DECLARED = {
    "python_function": {"output_dtypes": [types.UINT8], "output_ndims": [3]},
    "dl_tensor_python_function": {"output_dtypes": [types.UINT8], "output_ndims": [3]},
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("every"))


def condition(which: int, pairs: Sequence[Any]) -> Any:
    def source(number: int) -> list[Any]:
        return [np.bool_(pair[which]) for pair in pairs[number % len(pairs)]]

    return fn.external_source(source=source)


def either(b: Any, make: Callable[[], Any]) -> Any:
    if b:
        y = make()
    else:
        y = make()
    return y


def chosen(a: Any, b: Any, make: Callable[[], Any]) -> Any:
    """Return a node of ``make`` from one of four branches."""
    if a and not b:
        y = make()
    elif a or b:
        y = either(b, make)
    else:
        if not b:
            y = make()
        else:
            y = make()
    return y


def rows_of(name: str, call: dict[str, Any], columns: list[Any], pairs: Sequence[Any]) -> list[Any]:
    """Return the rows of some batches for conditions of those pairs: per output type, shape and bytes."""

    @pipeline_def(batch_size=ROWS, num_threads=1, seed=3, device_id=None, enable_conditionals=True)
    def define(output: int) -> Any:
        inputs = sources(columns)
        a, b = condition(0, pairs), condition(1, pairs)
        return chosen(a, b, lambda: apply(name, call, inputs)[output])

    outputs = []
    for output in range(count_outputs(name, call, columns)):
        pipe = define(output)
        try:
            pipe.build()
            rows = [x for _ in MIXED for x in map(np.asarray, pipe.run()[0])]
        finally:
            pipe.close()
        outputs.append([(x.dtype, x.shape, x.tobytes()) for x in rows])
    return list(zip(*outputs, strict=True))


def count_outputs(name: str, call: dict[str, Any], columns: list[Any]) -> int:
    with stoker.Pipeline(batch_size=ROWS, num_threads=1, seed=3, device_id=None):
        return len(apply(name, call, sources(columns)))


def in_branches(name: str, call: dict[str, Any], columns: list[Any]) -> None:
    """Compare rows of mixed conditions with those of the same graph in which all rows take one branch."""
    pairs = PAIRS if COMPLETE else PAIRS[:1] + PAIRS[2:]  # the second takes the branch of the last
    alone = {pair: rows_of(name, call, columns, [[pair] * ROWS]) for pair in pairs}
    alone.setdefault((0, 1), alone[1, 1])
    mixed = rows_of(name, call, columns, MIXED)
    assert len(mixed) == ROWS * len(MIXED)
    for row, pair in enumerate(pair for batch in MIXED for pair in batch):
        assert mixed[row] == alone[pair][row], (name, call, row)


@pytest.mark.parametrize("name", OPERATORS)
def test_rows_of_branches_are_those_of_the_operator_on_all_rows(
    name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if other rows of the batch take other branches."""
    if name == "experimental.readers.fits":
        pytest.importorskip("astropy")
    monkeypatch.chdir(tmp_path)
    for call, columns in itertools.islice(calls(name, folder), CALLS):
        call = {**call, **DECLARED.get(name, {})}
        if name in ("batch_permutation", "permute_batch"):  # depend on the branch: tests/unit/test_random.py
            continue
        text = REFUSED.get(name)
        if text is None:
            in_branches(name, call, columns)
        else:
            with pytest.raises((ArgumentError, DataError), match=text):
                rows_of(name, call, columns, MIXED)


def test_the_branches_draw_numbers_of_their_own(folder: Path) -> None:
    """The comparison would notice the row of another branch: three of them are taken."""
    ((call, columns), *_) = calls("random.uniform", folder)
    alone = [rows_of("random.uniform", call, columns, [[pair] * ROWS]) for pair in PAIRS]
    assert all(len({str(rows[row]) for rows in alone}) == 3 for row in range(ROWS))

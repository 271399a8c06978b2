# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a pipeline with each operator of the library: the restored one gives the rest of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker.dali
from stoker.contract.errors import StateError
from stoker.frontends.dali.catalogue import NAMES
from stoker.frontends.registry import find
from tests.complete import COMPLETE
from tests.hostile.cases import ROWS
from tests.hostile.walk import write_files
from tests.run.every_operator import LEFT_OUT, all_names, apply, calls, sources

BATCHES = 4
CHECKPOINTS = (0, 1, 3) if COMPLETE else (1,)  # batches before them


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("every"))


def pipeline(name: str, call: dict[str, Any], columns: list[Any], checkpoint: bytes | None = None) -> Any:
    pipe = stoker.dali.Pipeline(
        batch_size=ROWS, num_threads=1, seed=3, device_id=None, enable_checkpointing=True, checkpoint=checkpoint
    )
    with pipe:
        pipe.set_outputs(*apply(name, call, sources(columns)))
    pipe.build()
    return pipe


def values(batches: Any) -> list[Any]:
    return [[(x.dtype, x.shape, x.tobytes()) for x in map(np.asarray, batch)] for batch in batches]


def interrupted(name: str, call: dict[str, Any], columns: list[Any]) -> list[Any]:
    """Return the rows of an uninterrupted run, after comparing those of restored pipelines."""
    pipe = pipeline(name, call, columns)
    rows, states = [], [pipe.checkpoint()]
    for _ in range(BATCHES):
        rows.append(values(pipe.run()))
        states.append(pipe.checkpoint())
    pipe.close()
    for done in CHECKPOINTS:
        other = pipeline(name, call, columns, states[done])
        assert [values(other.run()) for _ in range(done, BATCHES)] == rows[done:], (name, call, done)
        other.close()
    return rows


ARROW = pytest.mark.leaks("Arrow's own threads live as long as the process")
OPERATORS = [
    pytest.param(name, marks=ARROW) if name in ("readers.huggingface", "readers.parquet") else name
    for name in all_names()
]


@pytest.mark.parametrize("name", OPERATORS)
def test_a_restored_pipeline_gives_the_rest(
    name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "experimental.readers.fits":
        pytest.importorskip("astropy")
    monkeypatch.chdir(tmp_path)  # `dump_image` writes there
    found = [interrupted(name, call, columns) for call, columns in calls(name, folder)]
    assert found
    operator = find(name)
    if operator.draws and operator.pure and name not in ("mix_noise", "cutmix", "copy_paste"):
        assert any(rows[0] != rows[1] for rows in found), "draws differ from batch to batch"
    if operator.is_source:
        assert any(any(batch != rows[0] for batch in rows) for rows in found) or name in ONE_SAMPLE


ONE_SAMPLE = ("readers.audio", "readers.dataset", "readers.nemo_asr", "readers.numpy", "readers.video_resize")


def test_the_walk_has_every_operator_of_dali() -> None:
    assert set(all_names()) >= NAMES - set(LEFT_OUT)


def test_a_wrong_state_is_noticed(folder: Path) -> None:
    """The comparison fails if the restored pipeline is at another batch."""
    ((call, columns), *_) = calls("random.uniform", folder)
    pipe = pipeline("random.uniform", call, columns)
    pipe.run()
    state = pipe.checkpoint()
    pipe.run()
    third = values(pipe.run())
    other = pipeline("random.uniform", call, columns, state)
    assert values(other.run()) != third
    for one in (pipe, other):
        one.close()


@pytest.mark.parametrize("source", [lambda: [np.zeros(3)] * ROWS, iter([[np.zeros(3)] * ROWS] * 9)])
def test_sources_without_a_position_have_no_state(source: Any) -> None:
    pipe = pipeline("external_source", {"source": source}, [])
    pipe.run()
    with pytest.raises(StateError, match="a source that can be resumed"):
        pipe.checkpoint()
    pipe.close()

# SPDX-License-Identifier: Apache-2.0
"""Pipelines for a GPU, divided for ``stoker.ray``: one part on CPUs, the rest on the GPU, with the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run.pipelines import files_of

from stoker import Pipeline, UnsupportedError, fn, pipeline_def, types
from stoker.frameworks._ray_cut import Division

pytestmark = pytest.mark.usefixtures("emulated_gpu")


@pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=5)
def on_gpu(files: list[str]) -> Any:
    jpegs, labels = fn.readers.file(files=files, random_shuffle=True)
    images = fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(12, 16))
    images = fn.crop_mirror_normalize(images, mean=[99.0], std=[7.0], mirror=fn.random.coin_flip(), dtype=types.FLOAT16)
    return images, labels.gpu()


def test_the_rest_runs_on_the_gpu(jpegs: Path) -> None:
    files = files_of(jpegs)[:9]
    with on_gpu(files) as pipe:
        division = Division(pipe.build().execution, whole=False)
        assert [p.on_gpu for p in division.outputs] == [False, False], "as actors compute them"
        assert f"{12 * 16 * 3 + 4} bytes a row instead of {2 * 12 * 16 * 3 + 4}" in division.text
        with Pipeline.deserialize(
            division.graph.to_json(), batch_size=4, num_threads=2, device_id=None, without_gpu="cpu", seed=5
        ) as actor:
            actor.build().set_state(division.token(pipe.get_state()))
            for _ in range(2):
                whole, part = pipe.next("stop"), actor.next("stop")
                assert whole is not None and part is not None
                rest = division.compute_rest(part.outputs, whole.rows, None)
                planned = pipe.execution.plan.outputs
                for got, want in zip(
                    replace(whole, outputs=rest).batches(planned), whole.batches(planned), strict=True
                ):
                    assert got.device == want.device != "cpu"
                    np.testing.assert_array_equal(got.as_cpu().as_array(), want.as_cpu().as_array())
        division.close()
        with pytest.raises(UnsupportedError, match='got "outputs": the actors have no GPU'):
            Division(pipe.execution, whole=True)


def test_what_has_no_part_for_the_cpu_is_refused(jpegs: Path) -> None:
    with on_gpu(files_of(jpegs)[:9], on_error="skip") as pipe, pytest.raises(UnsupportedError, match="`on_error`"):
        Division(pipe.build().execution, whole=False)

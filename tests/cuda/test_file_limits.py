# SPDX-License-Identifier: Apache-2.0
"""Limits on files hold where a GPU decodes, too: on the emulated GPU, with an index, and where the CPU has a share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stoker import DataError, fn, pipeline_def
from tests.hostile_images import claiming_jpeg, with_scans
from tests.run.pipelines import files_of, labels_of

WAYS: dict[str, dict[str, Any]] = {
    "gpu": {"gpu_decoder_load": 1.0}, "cpu": {"gpu_decoder_load": 0.0}, "index": {"gpu_jpeg_index": 1 << 20},
}  # fmt: skip


@pipeline_def(batch_size=8, num_threads=2, seed=1, error_limit=1, device_id=0)
def decoding(files: list[str]) -> Any:
    data, labels = fn.readers.file(files=files, labels=list(range(len(files))))
    return fn.decoders.image(data, device="mixed"), labels


HOSTILE = {
    "pixels": (claiming_jpeg(65500, 65500), "65500 x 65500"),
    "scans": (with_scans(600, 1024), "600 .*`max_scan_pixels`"),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("way", WAYS)
def test_hostile_files_are_bad_rows(way: str, kind: str, emulated_gpu: None, jpegs: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "hostile.jpg"
    data, text = HOSTILE[kind]
    hostile.write_bytes(data)
    files = [name for good in files_of(jpegs)[:4] for name in (good, str(hostile))]
    with decoding(files, on_error="skip", **WAYS[way]) as pipe:
        for _ in range(2):
            assert labels_of([x.as_cpu() for x in pipe.run()]) == [0, 2, 4, 6]
        assert {e.path for e in pipe.errors} == {str(hostile)}
    with decoding(files, **WAYS[way]) as pipe, pytest.raises(DataError, match=r"hostile\.jpg.*") as raised:
        pipe.run()
    assert raised.match(text)

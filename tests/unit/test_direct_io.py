# SPDX-License-Identifier: Apache-2.0
"""Reading past the page cache, which no reader does, is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stoker import UnsupportedError, fn, pipeline_def
from stoker.tfrecord import FixedLenFeature
from stoker.types import DType

FEATURES = {"x": FixedLenFeature((), DType.INT64, 0)}
READERS: dict[str, Callable[..., Any]] = {
    "numpy": lambda **o: fn.readers.numpy(files=["a.npy"], **o),
    "tfrecord": lambda **o: fn.readers.tfrecord(path="a", features=FEATURES, **o)["x"],
    "io.file.read": lambda **o: fn.io.file.read(fn.readers.file(files=["a"])[0], **o),
}


@pytest.mark.parametrize("reader", READERS)
def test_direct_io_is_refused(reader: str) -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def define(direct: bool) -> Any:
        return READERS[reader](use_o_direct=direct)

    define(False)
    with pytest.raises(UnsupportedError, match=r"`use_o_direct` False, got True.*page cache"):
        define(True)

# SPDX-License-Identifier: Apache-2.0
"""The public names, and the cost and the imports of `import stoker`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker import types
from stoker.contract import errors
from stoker.frontends import registry
from stoker.native import _native
from tests.idle_clock import HANG_S

# Public names. Removing one is a breaking change; add new ones here on purpose.
PUBLIC = {
    "ArgumentError", "BadSample", "Batch", "DataError", "DataNode", "DeviceError", "GraphError", "Launch", "Operator",
    "Pipeline", "ResourceError", "RowContext", "Spec", "StateError", "StokerError", "UnsupportedError", "arg", "eager",
    "fn", "fuse", "pipeline_def", "register", "table", "types", "where",
}  # fmt: skip
PACKAGES = {
    "codecs", "command", "contract", "cpp", "cupy", "dali", "demo", "device", "display", "executor", "frameworks",
    "frontends", "graph", "inspection", "jax", "math", "mxnet", "native", "numpy", "ops", "paddle", "ray", "readers",
    "remote", "samplers", "serve", "settings", "testing", "tf", "tfrecord", "torch", "torchvision", "triton", "video",
}  # fmt: skip
TYPES = {
    "ANY_DATA", "BFLOAT16", "BGR", "BOOL", "BatchInfo", "Constant", "DALIDataType", "DALIImageType",
    "DALIInterpType", "DType",
    "FLOAT", "FLOAT16", "FLOAT32", "FLOAT64", "GRAY", "INT", "INT16", "INT32", "INT64", "INT8", "INTERP_BOX",
    "INTERP_CUBIC", "INTERP_GAUSSIAN", "INTERP_HAMMING", "INTERP_LANCZOS3", "INTERP_LINEAR", "INTERP_NN",
    "INTERP_TRIANGULAR", "ImageType", "InterpType", "RGB", "SampleInfo", "UINT", "UINT16", "UINT32", "UINT64", "UINT8",
    "YCbCr",
}  # fmt: skip
IMPORT_MS = 50
TRIES = 40


def test_public_names() -> None:
    names = {name for name in dir(stoker) if not name.startswith("_")} | {"eager", "fuse", "table", "where"}
    assert names - PACKAGES - {"TYPE_CHECKING"} == PUBLIC
    assert all(getattr(stoker, name) is not None for name in PUBLIC)


def test_public_names_of_types() -> None:
    assert {name for name in dir(types) if not name.startswith("_")} == TYPES


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'eagre'"):
        stoker.eagre  # type: ignore[attr-defined]  # noqa: B018


def test_all_errors_have_one_base() -> None:
    found = [x for x in vars(errors).values() if isinstance(x, type) and issubclass(x, Exception)]
    assert len(found) >= 6
    assert all(issubclass(x, stoker.StokerError) for x in found)
    assert issubclass(stoker.ArgumentError, ValueError)


def _run(code: str, **environment: str) -> str:
    variables = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=variables, timeout=HANG_S
    ).stdout


def test_import_brings_in_no_framework_and_no_codec() -> None:
    loaded = json.loads(_run("import stoker, sys, json; print(json.dumps(sorted(sys.modules)))"))
    packages = {name.partition(".")[0] for name in loaded}
    assert not packages & {"torch", "tensorflow", "jax", "paddle", "mxnet", "cupy", "cuda", "PIL", "tqdm", "hashlib"}
    assert "stoker.demo" not in loaded


@pytest.mark.skipif(_native.sanitized, reason="sanitizers multiply this time; `make test` bounds it without them")
def test_import_is_light(tmp_path: Path) -> None:
    # Processor time of this process only. The modules are compiled, as after an installation. The least of many
    # measurements counts: programs that share caches and cores only add to it.
    code = "import time, numpy; t = time.process_time(); import stoker; print(1e3 * (time.process_time() - t))"
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    _run(code, **compiled)
    found: list[float] = []
    while len(found) < TRIES and (not found or found[-1] > IMPORT_MS):
        found.append(float(_run(code, **compiled)))
    assert min(found) <= IMPORT_MS, found


def test_the_package_is_typed() -> None:
    root = resources.files("stoker")
    for name in ("py.typed", "frontends/fn.pyi", "native/_native/__init__.pyi"):
        assert root.joinpath(name).is_file(), name


def test_an_operator_registered_again_replaces_the_previous_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))

    def define(amount: int) -> None:
        @stoker.register
        class Add(stoker.Operator, name="test.add_amount"):
            """Operator that adds a number."""

            cases = ({},)

            def infer(self, c: Any, x: Any) -> stoker.Spec:
                return stoker.Spec(x.dtype, x.shape)

            def reference(self, row: stoker.RowContext, x: Any) -> Any:
                return x + amount

    @stoker.pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        return stoker.fn.test.add_amount(np.zeros(1, np.int32))

    for amount in (1, 2):
        define(amount)
        assert stoker.eager.test.add_amount(np.zeros(1, np.int32)).tolist() == [amount]
        with pipe() as built:
            assert np.asarray(built.run()[0][0]).tolist() == [amount]


@pytest.mark.parametrize("face", [stoker.fn, stoker.eager], ids=["fn", "eager"])
def test_groups_list_their_members(face: Any) -> None:
    assert {"image", "image_crop"} <= set(dir(face.decoders))
    assert "decoders" in dir(face) and not any("." in name for name in dir(face))
    assert all(getattr(face.decoders, name) for name in dir(face.decoders))
    assert repr(face.decoders).startswith(f"<{face.__name__.replace('frontends.', '')}.decoders: audio, image, ")
    with pytest.raises(AttributeError, match=r"no operator `decoders\.imag`; did you mean `decoders\.image`"):
        _ = face.decoders.imag

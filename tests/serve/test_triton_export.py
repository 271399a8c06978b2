# SPDX-License-Identifier: Apache-2.0
"""Models for Triton: their files, the command, and a backend that this test plays. `make test-triton` has a server."""

from __future__ import annotations

import json
import sys
import types as python_types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run.pipelines import files_of

from stoker import ArgumentError, UnsupportedError, fn, pipeline_def, types
from stoker.command import main
from stoker.dali.plugin.triton import autoserialize
from stoker.frameworks._triton import _joined
from stoker.serve import Endpoint
from stoker.triton import export, model

PIPELINE = """
from stoker import fn, pipeline_def, types
from stoker.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=8, num_threads=1)
def classify(size=24):
    images = fn.decoders.image(fn.external_source(name="image", dtype=types.UINT8, ndim=1))
    return fn.resize(images, size=(size, size)), fn.shapes(images)

@pipeline_def(batch_size=2)
def other():
    return fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
"""


@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def scale(dtype: Any = types.FLOAT) -> Any:
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=2)
    return fn.cast(x * fn.external_source(name="factor", dtype=types.FLOAT, ndim=0), dtype=dtype)


class Backend(python_types.ModuleType):
    """Triton's module for models, with lists for its objects."""

    Tensor = staticmethod(lambda name, array: (name, array))
    TritonError = staticmethod(str)

    @staticmethod
    def get_input_tensor_by_name(request: Any, name: str) -> Any:
        return python_types.SimpleNamespace(as_numpy=lambda: request[name])

    @staticmethod
    def InferenceResponse(tensors: Any = (), error: Any = None) -> Any:
        return error or dict(tensors)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", Backend("triton_python_backend_utils"))


def test_files_of_a_model(tmp_path: Path) -> None:
    with scale() as pipe:
        folder = export(pipe, tmp_path / "models", "scale", ["y"], instances=2, max_queue_delay_us=50)
    assert folder == tmp_path / "models" / "scale"
    text = (folder / "config.pbtxt").read_text()
    for line in (
        'name: "scale"', 'backend: "python"', "max_batch_size: 4", "count: 2", "max_queue_delay_microseconds: 50",
        '{ name: "x" data_type: TYPE_FP32 dims: [ -1, -1 ] }', '{ name: "factor" data_type: TYPE_FP32 dims: [ 1 ] }',
        '{ name: "y" data_type: TYPE_FP32 dims: [ -1, -1 ] }',
    ):  # fmt: skip
        assert line in text
    assert json.loads((folder / "1" / "pipeline.json").read_text())["outputs"] == ["y"]


@pytest.mark.usefixtures("backend")
def test_a_model_answers_per_request(tmp_path: Path, jpegs: Path) -> None:
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    assert main(["triton-export", str(tmp_path / "pipeline.py"), str(tmp_path / "models"), "size=16"]) == 0
    instance = model(str(tmp_path / "models" / "classify" / "1" / "model.py"))()
    instance.initialize({"model_config": json.dumps({"parameters": {"num_threads": {"string_value": "2"}}})})
    contents = [Path(f).read_bytes() for f in files_of(jpegs)[:4]]
    requests = [{"image": np.array([[c]], object)} for c in (*contents, b"bad")]
    requests.append({"image": np.array([[c] for c in contents], object)})
    answers = instance.execute(requests)
    assert "expected an image" in answers[4]
    for number in range(4):
        assert answers[number]["output_0"].shape == (1, 16, 16, 3)
        np.testing.assert_array_equal(answers[5]["output_0"][number], answers[number]["output_0"][0])
    instance.finalize()


def test_neighbours_are_joined_without_a_copy() -> None:
    batch = np.arange(4 * 2 * 3, dtype=np.float32).reshape(4, 2, 3)
    rows = list(batch)
    for some in (rows, rows[1:3], rows[2:3]):
        joined = _joined(some)
        np.testing.assert_array_equal(joined, np.stack(some))
        assert np.shares_memory(joined, batch) and joined.flags.c_contiguous
    others = [
        rows[::-1], rows[::2], [rows[0], rows[0]], [rows[0], batch[1].copy()], [x.T for x in rows],
        list(batch[:, 0, 0]), [x[:1] for x in rows], [rows[0], rows[1].view(np.int32)], list(np.zeros((2, 0))),
        [batch[0].copy()],
    ]  # fmt: skip
    for some in others:
        joined = _joined(some)
        np.testing.assert_array_equal(joined, np.stack(some))
        assert joined.dtype == np.stack(some).dtype and not np.shares_memory(joined, batch)


@pytest.mark.usefixtures("backend")
def test_rows_of_different_shapes_in_one_request(tmp_path: Path) -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def as_they_are() -> Any:
        return fn.external_source(name="x", dtype=types.FLOAT, ndim=1), fn.external_source(
            name="n", dtype=types.INT32, ndim=0
        )

    with as_they_are() as pipe:
        export(pipe, tmp_path, "plain")
    instance = model(str(tmp_path / "plain" / "1" / "model.py"))()
    instance.initialize({"model_config": "{}"})
    one, two = np.ones((2, 3), np.float32), np.ones((1, 5), np.float32)
    answers = instance.execute(
        [{"x": one, "n": np.array([[1], [2]], np.int32)}, {"x": two, "n": np.array([[3]], np.int32)}]
    )
    assert answers[0]["output_0"].shape == (2, 3) and answers[1]["output_0"].shape == (1, 5)
    assert answers[0]["output_1"].tolist() == [[1], [2]]
    (error,) = instance.execute([{"x": one, "n": np.array([[1]], np.int32)}])
    assert "one number of rows" in error
    instance.finalize()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"name": "a/b"}, "letters, digits"),
        ({"name": ".."}, "letters, digits"),
        ({"name": 3}, "letters, digits"),
        ({"folder": 3}, "folder"),
        ({"version": 0}, "version"),
        ({"instances": "2"}, "instances"),
        ({"max_queue_delay_us": -1}, "max_queue_delay_us"),
        ({"output_map": ["a", "b"]}, "output_map"),
    ],
)
def test_wrong_arguments(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    with scale() as pipe, pytest.raises(ArgumentError, match=text):
        export(pipe, **{"folder": tmp_path, "name": "scale", **options})
    assert not list(tmp_path.iterdir())


def test_a_version_is_not_overwritten(tmp_path: Path) -> None:
    with scale() as pipe:
        export(pipe, tmp_path, "scale")
        with pytest.raises(ArgumentError, match="which exists"):
            export(pipe, tmp_path, "scale")
        export(pipe, tmp_path, "scale", version=2)


def test_what_triton_lacks_is_refused(tmp_path: Path) -> None:
    with scale(types.BFLOAT16) as pipe, pytest.raises(UnsupportedError, match=r"bfloat16.*fn\.cast"):
        export(pipe, tmp_path, "scale")

    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def python() -> Any:
        x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
        return fn.python_function(x, function=np.abs, output_dtypes=[types.FLOAT], output_ndims=[1])

    with python() as pipe, pytest.raises(UnsupportedError, match="functions in Python"):
        export(pipe, tmp_path, "abs")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["none.py", "out"], "no file"),
        (["pipeline.py", "out", "--name", "x"], "found none"),
        (["pipeline.py", "out", "size"], "name=value"),
        (["pipeline.py", "out", "--outputs", "a"], "output_map"),
        (["pipeline.py", "out", "--model", "a b"], "letters"),
    ],
)
def test_wrong_commands(
    tmp_path: Path, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    monkeypatch.chdir(tmp_path)
    assert main(["triton-export", *arguments]) in (1, 2)
    assert text in capsys.readouterr().err


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    with scale() as pipe:
        folder = export(pipe, tmp_path, "scale") / "1"
    (folder / "pipeline.json").write_text('{"format": 2}')
    instance = model(str(folder / "model.py"))()
    sys.modules["triton_python_backend_utils"] = Backend("triton_python_backend_utils")
    try:
        with pytest.raises(ArgumentError, match="format 1"):
            instance.initialize({"model_config": "{}"})
    finally:
        del sys.modules["triton_python_backend_utils"]


def test_autoserialize_marks_a_function() -> None:
    assert autoserialize(scale) is scale
    with Endpoint(scale()) as endpoint:
        assert [t.name for t in endpoint.outputs] == ["output_0"]
    with pytest.raises(ArgumentError, match="pipeline function"):
        autoserialize(3)  # type: ignore[arg-type]

# SPDX-License-Identifier: Apache-2.0
"""Graph files of others: they import nothing that is not allowed, and are checked as a definition is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import Pipeline, StokerError, dali, fn
from stoker.contract.errors import ArgumentError, GraphError


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package of augmentations whose import leaves a trace."""
    name = "augmentations_of_a_test"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text(
        "import os\nfrom os import system\nopen(os.environ['TRACE'], 'w').close()\n"
        "def double(x):\n    return x * 2\n\nclass Held:\n    @staticmethod\n    def triple(x):\n        return x * 3\n"
    )
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


def doubling(function: Any = np.negative) -> str:
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        pipe.set_outputs(fn.python_function(np.int32(21), function=function))
    return pipe.serialize()


def calling(path: str) -> str:
    """A graph that calls the function of this name."""
    data = json.loads(doubling(json.dumps))
    for node in data["nodes"]:
        for key, value in node["args"].items():
            if isinstance(value, dict) and value["$"] == "import":
                node["args"][key] = {"$": "import", "v": path}
    return json.dumps(data)


SETTINGS: dict[str, Any] = {"batch_size": 1, "num_threads": 1, "seed": 1}


def test_a_function_is_not_imported_unless_it_is_allowed(package: str, tmp_path: Path) -> None:
    for allow in ((), ("json",), (f"{package}.other",), (package[:-1],), (f"{package}.doubl",)):
        with pytest.raises(GraphError, match=rf"`?allow=\['{package}.double'\]"):
            Pipeline.deserialize(calling(f"{package}:double"), allow=allow, **SETTINGS)
    assert not (tmp_path / "trace").exists() and package not in sys.modules


@pytest.mark.parametrize("path", ["pickle:loads", "os:system", "builtins:eval", "evilmod:x", "subprocess:Popen"])
def test_no_function_of_python_is_called(path: str) -> None:
    with pytest.raises(GraphError, match=f"the graph names the Python function '{path}'"):
        Pipeline.deserialize(calling(path), **SETTINGS)


def test_an_allowed_function_runs(package: str) -> None:
    for path, allow, result in (
        (f"{package}:double", f"{package}.double", 42),
        (f"{package}:double", package, 42),
        (f"{package}:Held.triple", f"{package}.Held", 63),
    ):
        for cls in (Pipeline, dali.Pipeline):
            pipe = cls.deserialize(calling(path), allow=[allow], **SETTINGS)
            assert np.asarray(pipe.run()[0].as_array() if cls is dali.Pipeline else pipe.run()[0][0]).item() == result
            pipe.close()


def test_an_allowed_package_does_not_allow_its_imports(package: str) -> None:
    for path in (f"{package}:system", f"{package}:os.system", f"{package}:os"):
        with pytest.raises(GraphError, match="expected a function that is defined as"):
            Pipeline.deserialize(calling(path), allow=[package], **SETTINGS)
    with pytest.raises(GraphError, match="cannot be imported"):
        Pipeline.deserialize(calling(f"{package}:missing"), allow=[package], **SETTINGS)
    with pytest.raises(ArgumentError, match="`allow` to be a list"):
        Pipeline.deserialize(calling(f"{package}:double"), allow=package, **SETTINGS)


def reading(**changed: Any) -> str:
    pipe = Pipeline(**SETTINGS)
    with pipe:
        _, labels = fn.readers.file(files=["a", "b"], labels=[0, 1], random_shuffle=True, name="Reader")
        pipe.set_outputs(labels)
    data = json.loads(pipe.serialize())
    reader = next(n for n in data["nodes"] if n["operator"] == "readers.file")
    reader["args"].update(changed.pop("args", {}))
    reader.update(changed)
    return json.dumps(data)


@pytest.mark.parametrize(
    "args",
    [
        {"num_shards": -1}, {"num_shards": 0}, {"shard_id": 7}, {"num_shards": "two"}, {"unknown": 1},
        {"random_shuffle": {"$": "tuple", "v": []}}, {"initial_fill": 1e300},
    ],
)  # fmt: skip
def test_arguments_are_checked_as_those_of_a_definition(args: dict[str, Any]) -> None:
    with pytest.raises(StokerError):
        Pipeline.deserialize(reading(args=args), **SETTINGS)


@pytest.mark.parametrize(
    "changed",
    [
        {"inputs": [[0, 0]]}, {"outputs": 5}, {"outputs": "two"}, {"draw": 1.5}, {"draw": True},
        {"edges": {"files": [0, 0]}},
        {"guards": [[9, 0, True]]}, {"guards": 3}, {"version": 999}, {"operator": "os.system"}, {"operator": None},
        {"args": {"files": {"$": "array", "v": [1], "dtype": "object", "shape": [1]}}},
        {"args": {"files": {"$": "array", "v": [1], "dtype": "uint8", "shape": [2**40]}}},
        {"args": {"files": {"$": "call", "v": []}}}, {"args": {"files": {"v": []}}}, {"source": ["a"]},
    ],
)  # fmt: skip
def test_invalid_nodes_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(StokerError):
        Pipeline.deserialize(reading(**changed), **SETTINGS)


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{", '{"stoker_graph": 1}', '{"stoker_graph": 1, "nodes": 3, "outputs": [], "names": []}',
        '{"stoker_graph": 2}', "[" * 100_000, '{"stoker_graph": 1, "nodes": [], "outputs": [[0, 0]], "names": [null]}',
        '{"stoker_graph": 1, "nodes": [{}], "outputs": [], "names": []}',
    ],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(GraphError):
        Pipeline.deserialize(text, **SETTINGS)


def test_none_stands_for_the_default_as_in_a_definition() -> None:
    (reader, *_) = Pipeline.deserialize(reading(args={"random_shuffle": None}), **SETTINGS).graph.nodes
    assert reader.args["random_shuffle"] is False
    pipe = Pipeline(**SETTINGS)
    with pipe:
        pipe.set_outputs(fn.decoders.image(fn.readers.file(files=["a"])[0]))
    graph = json.loads(pipe.serialize())
    decoder = next(n for n in graph["nodes"] if n["operator"] == "decoders.image")
    decoder["args"]["max_scan_pixels"] = None
    with Pipeline.deserialize(json.dumps(graph), **SETTINGS) as again:
        again.build()
    with pytest.raises(ArgumentError, match="unknown argument `unknown`"):
        Pipeline.deserialize(reading(args={"unknown": None}), **SETTINGS)


def test_a_part_of_a_joined_reader_is_checked_too() -> None:
    pipe = Pipeline(**SETTINGS)
    with pipe:
        one = fn.readers.file(files=["a"], labels=[0])
        two = fn.readers.file(files=["b"], labels=[1])
        pipe.set_outputs(*fn.readers.concat(parts=[one, two]))
    text = pipe.serialize()
    assert Pipeline.deserialize(text, **SETTINGS).graph.fingerprint() == pipe.graph.fingerprint()
    data = json.loads(text)
    joined = next(n for n in data["nodes"] if n["operator"] == "readers.concat")
    parts = next(v for v in joined["args"].values() if isinstance(v, dict) and v["$"] == "tuple")
    parts["v"][0]["v"][1]["num_shards"] = -1
    with pytest.raises(ArgumentError, match="num_shards"):
        Pipeline.deserialize(json.dumps(data), **SETTINGS)


def test_missing_arguments_of_a_graph_are_the_defaults() -> None:
    with Pipeline(**SETTINGS) as pipe:
        pipe.set_outputs(fn.random.coin_flip())
    graph = json.loads(pipe.serialize())
    for node in graph["nodes"]:
        node["args"] = {}
    with pipe, Pipeline.deserialize(json.dumps(graph), **SETTINGS) as loaded:
        assert np.array_equal(np.array(loaded.run()[0]), np.array(pipe.run()[0]))

# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments, and calls in the wrong place: refused at the user's line, with the way out."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stoker
from stoker import (
    ArgumentError,
    Pipeline,
    StateError,
    eager,
    fn,
    pipeline_def,
)
from tests.idle_clock import HANG_S

HERE = re.escape(__file__)


def graph(define: Callable[[], Any], **settings: Any) -> Pipeline:
    return pipeline_def(batch_size=1, num_threads=1, **settings)(define)()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: fn.resize(x, resize_hx=3), r"`resize`: unknown argument `resize_hx`; did you mean `resize_[xy]`\?"),
        (lambda x: fn.resize(x, zzzzzz=3), r"`resize`: unknown argument `zzzzzz`; it takes "),
        (lambda x: fn.resize(x, resize_x="wide"), r"`resize`: argument `resize_x`: expected a number, got 'wide'"),
        (lambda x: fn.flip(x, horizontal=[1]), r"`flip`: argument `horizontal`: expected .*, got \[1\]"),
        (lambda x: fn.crop(x, crop=(3, 4), device="tpu"), r"`crop`: argument `device`: expected one of 'cpu', 'gpu'"),
        (
            lambda x: fn.crop_mirror_normalize(x, dtype="string"),
            r"`dtype`: no element type for 'string'; there are types.BOOL, ",
        ),
        (lambda x: fn.resize(x, x, size=3), r"`resize`: expected 1 inputs, got 2"),
        (lambda x: fn.resize(), r"`resize`: expected 1 inputs, got 0"),
        (lambda x: fn.resize("a string", size=3), r"`resize`: expected a node, an array or a number as input, got str"),
        (lambda x: fn.readers.file(), r"`readers.file`: expected `file_root`, `file_list` or `files`, got none"),
        (lambda x: fn.readers.file(files=[]), r"`readers.file`: no file was found"),
        (lambda x: fn.readers.file(files=["a"], num_shards=2, shard_id=2), r"expected 0 <= shard_id < num_shards"),
        (
            lambda x: fn.readers.file(file_root="/no/such/folder"),
            r"`readers.file`: expected `file_root` to be a folder, there is none at '/no/such/folder'",
        ),
        (
            lambda x: fn.readers.file(file_list="/no/such/list.txt"),
            r"`readers.file`: expected `file_list` to be a file of paths, there is none at '/no/such/list.txt'",
        ),
    ],
)
def test_arguments_are_checked_at_the_call(call: Callable[[Any], Any], text: str) -> None:
    def define() -> Any:
        return call(fn.external_source(name="x", dtype=stoker.types.UINT8, layout="HWC"))

    with pytest.raises(ArgumentError, match=text) as raised:
        graph(define).build()
    assert re.search(rf"made at {HERE}:\d+", str(raised.value)), "with the user's line"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"batch_size": 0}, "`Pipeline`: expected `batch_size` >= 1, got 0"),
        ({"batch_size": "8"}, "`Pipeline`: expected `batch_size` >= 1, got '8'"),
        ({"num_threads": -1}, "`Pipeline`: expected `num_threads` >= 1, got -1"),
        ({"prefetch_queue_depth": 0}, "`Pipeline`: expected `prefetch_queue_depth` >= 1, got 0"),
        (
            {"gpu_memory_limit": "4GB"},
            r"expected a number of bytes as `gpu_memory_limit`, or None, got '4GB'. 4 GiB are",
        ),
        ({"gpu_memory_limit": 0}, "expected a number of bytes as `gpu_memory_limit`, or None, got 0"),
        ({"batchsize": 3}, r"unknown argument `batchsize`; did you mean `(max_)?batch_size`\?"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        Pipeline(**settings)


def test_names_of_passes_are_checked() -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        return fn.random.uniform(range=[0, 1])

    with pytest.raises(
        ArgumentError, match=r"expected names of passes as `passes`, got 'fusio'; did you mean `fusion`\?"
    ):
        pipe(passes=frozenset({"memory", "fusio"})).build()
    with pytest.raises(ArgumentError, match="got 'zzzzzz'; there are equal_steps, "):
        pipe(passes=frozenset({"zzzzzz"})).build()


def test_a_setting_of_the_decorator_is_checked() -> None:
    with pytest.raises(
        ArgumentError, match=r"`pipeline_def`: unknown argument `batchsize`; did you mean `(max_)?batch_size`\?"
    ):
        pipeline_def(batchsize=3)


# ---- calls in the wrong place ----


def test_an_operator_on_an_array_names_the_eager_call() -> None:
    image = np.zeros((8, 8, 3), np.uint8)
    with pytest.raises(ArgumentError, match=r"call `stoker.eager.resize\(...\)`"):
        fn.resize(image, size=(4, 4))
    with pytest.raises(ArgumentError, match=r"call `stoker.eager.decoders.image\(...\)`"):
        fn.decoders.image(b"\xff\xd8")
    assert eager.resize(image, size=(4, 4)).shape == (4, 4, 3)


def test_an_operator_outside_of_a_pipeline() -> None:
    with pytest.raises(StateError, match="adds a node to a pipeline: call it inside of a function under @pipeline_def"):
        fn.random.coin_flip()


def test_a_definition_ends_although_the_pipeline_ran_in_it() -> None:
    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        pipe.set_outputs(fn.random.coin_flip())
        with pipe:
            pipe.run()
    with pytest.raises(StateError, match="adds a node to a pipeline"):
        fn.random.coin_flip()


def test_an_operator_that_does_not_exist() -> None:
    with pytest.raises(AttributeError, match=r"there is no operator `resise`; did you mean `resize`\?"):
        fn.resise  # noqa: B018
    with pytest.raises(AttributeError, match=r"there is no operator `readers.fil`; did you mean `readers.file`\?"):
        fn.readers.fil  # noqa: B018
    with pytest.raises(
        AttributeError, match=r"there is no operator `readers.quux`.*\? `readers` has: array_record, audio, "
    ):
        fn.readers.quux  # noqa: B018


def test_a_module_that_is_imported_by_itself() -> None:
    program = "import stoker; stoker.torch.Loader"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=HANG_S)
    assert "has no attribute 'torch'; it is a module of its own: `import stoker.torch`" in done.stderr


def test_nodes_of_two_pipelines() -> None:
    with Pipeline(batch_size=1, num_threads=1):
        other = fn.random.coin_flip()

    def define() -> Any:
        return fn.stack(fn.random.coin_flip(), other)

    with pytest.raises(ArgumentError, match=r"expected a node of this pipeline, got one of another pipeline"):
        graph(define)


def test_a_function_that_returns_nothing() -> None:
    with pytest.raises(ArgumentError, match=r"`define`: expected the pipeline's outputs to be returned, got None"):

        def define() -> None:
            fn.random.coin_flip()

        graph(define)
    with pytest.raises(StateError, match="the pipeline has no outputs yet"):
        Pipeline(batch_size=1).build()

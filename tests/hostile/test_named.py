# SPDX-License-Identifier: Apache-2.0
"""Hostile values that users met, each with the text of its error."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, ResourceError, StateError, eager, fn, samplers, types
from stoker.dali import Pipeline as DaliPipeline
from stoker.native import _native
from tests.hostile import values
from tests.hostile.walk import write_files
from tests.idle_clock import HANG_S

IMAGE = np.zeros((8, 9, 3), np.uint8)


def reading(folder: Path, **settings: Any) -> Pipeline:
    pipe = Pipeline(**{"batch_size": 2, "num_threads": 1, "seed": 1, **settings})
    with pipe:
        pipe.set_outputs(*fn.readers.file(file_root=str(folder)))
    return pipe


@pytest.mark.parametrize("seed", [1.0, "x", 2**64, 1j, [1]])
def test_seeds(seed: Any) -> None:
    with pytest.raises(ArgumentError, match=r"expected a whole number below 2\*\*64 as `seed`, or None, got"):
        Pipeline(seed=seed)
    for call in (lambda: eager.random.uniform(seed=seed), lambda: samplers.Shuffled(seed)):
        with pytest.raises(ArgumentError, match=r"expected a whole number from 0 to 2\*\*64 - 1 as `seed`"):
            call()


def test_a_negative_seed_is_drawn_in_a_pipeline_alone() -> None:
    assert Pipeline(seed=-1).seed >= 0  # as in DALI
    with pytest.raises(ArgumentError, match=r"as `seed`, got -1"):
        eager.random.uniform(seed=-1)


def orders(folder: Path, join: str, seed: int | None) -> list[int]:
    """Return the labels of an epoch of a shuffled reader."""
    pipe = Pipeline(batch_size=4, num_threads=1, seed=3)
    with pipe:
        first = fn.readers.file(file_root=str(folder), random_shuffle=True, seed=seed if join == "file" else None)
        joined = {
            "file": lambda: first,
            "concat": lambda: fn.readers.concat([first[0]], random_shuffle=True, seed=seed)[:2],
            "mix": lambda: fn.readers.mix([first[0]], seed=seed)[:2],
        }
        files = joined[join]()[0]
        pipe.set_outputs(files)
    with pipe:
        return [int(np.asarray(row, np.int64).sum()) for _ in range(3) for row in pipe.run()[0]]


@pytest.mark.parametrize("join", ["file", "concat", "mix"])
def test_a_negative_seed_of_a_reader_is_the_pipelines(join: str, tmp_path: Path) -> None:
    write_files(tmp_path)
    assert orders(tmp_path / "data", join, -(1 << 31)) == orders(tmp_path / "data", join, None)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"num_threads": 2**70}, "expected `num_threads` of at most 32768, got 1180591620717411303424"),
        ({"batch_size": 2**31}, "expected `batch_size` of at most 2147483647, got 2147483648"),
        ({"prefetch_queue_depth": 2**31}, "expected `prefetch_queue_depth` of at most"),
        ({"passes": 3}, "expected a set of names as `passes`, or None, got 3"),
        ({"exec_async": np.zeros(2)}, "expected `exec_async` True or False, got array"),
        ({"without_gpu": np.zeros(2)}, 'expected `without_gpu` "error" or "cpu", got array'),
        ({"on_error": np.zeros(2)}, "expected `on_error` to be one of"),
        ({"output_dtype": types.RGB}, "expected an element type as `output_dtype`, or one per output"),
        ({"error_limit": 10**400}, "expected a number from 0 to 1 as `error_limit`"),
    ],
)
def test_settings(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        Pipeline(**settings)


def test_declarations_with_more_digits_than_python_prints() -> None:
    pipe = Pipeline(batch_size=1, num_threads=1, output_ndim=10**5000)
    with pipe:
        pipe.set_outputs(fn.external_source(source=lambda n: np.zeros((1, 3)), dtype=types.FLOAT64, ndim=1))
    with pytest.raises(ArgumentError, match=r"expected output 0 with `output_ndim` <int>, got 1"):
        pipe.build()
    with pytest.raises(ArgumentError, match=r"expected `batch_size` >= 1, got <int>"):
        DaliPipeline(batch_size=-(10**5000), num_threads=1)


def test_types_of_another_enumeration() -> None:
    with pytest.raises(ArgumentError, match=r"argument `dtype`: no element type for <ImageType.RGB: 0>"):
        eager.cast(IMAGE, dtype=types.RGB)
    with pytest.raises(ArgumentError, match=r"argument `interp_type`: expected one of types.INTERP_NN"):
        eager.resize(IMAGE, size=4, interp_type=types.RGB)


@pytest.mark.parametrize("value", [[[1], [2, 3]], [np.zeros(2), np.zeros(3)], [1, "x"], np.complex64(1j), "4", [None]])
def test_lists_that_are_no_numbers(value: Any) -> None:
    with pytest.raises(ArgumentError, match=r"`size`: expected"):
        eager.resize(IMAGE, size=value)


@pytest.mark.parametrize("dtype", ["complex64", "object", "U3", "u1,f4", "M8[s]", "longdouble"])
def test_arrays_that_are_no_numbers(dtype: str) -> None:
    x = np.zeros((8, 9, 3), dtype)
    with pytest.raises(
        ArgumentError, match=r"`eager.flip`: expected an array of numbers, a number or bytes, got an array of"
    ):
        eager.flip(x)
    pipe = Pipeline(batch_size=1, num_threads=1, exec_async=False)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda: [x]))
    with pipe, pytest.raises(DataError, match=r"expected an array of numbers"):
        pipe.run()
    with pytest.raises(ArgumentError, match=r"expected numbers or an array of numbers"):
        types.Constant(x)


def test_big_endian_arrays_are_numbers() -> None:
    x = np.arange(24).reshape(2, 4, 3).astype(">i2")
    np.testing.assert_array_equal(eager.flip(x), x[:, ::-1])
    assert types.Constant(x).value.dtype == np.int16


@pytest.mark.parametrize("batched", [False, True])
def test_unaligned_arrays_are_copied(batched: bool) -> None:
    x = np.frombuffer(b"x" + np.arange(72, dtype=np.float32).tobytes(), np.float32, offset=1).reshape(2, 2, 2, 9)
    assert not x.flags.aligned
    got = eager.reductions.mean(list(x) if batched else x)
    np.testing.assert_array_equal(got, x.mean((1, 2, 3)) if batched else x.mean())


def test_constants_keep_their_numbers() -> None:
    with pytest.raises(ArgumentError, match=r"expected numbers up to .* as float32, got 3.5e"):
        types.Constant(3.5e38)
    with pytest.raises(ArgumentError, match=r"expected numbers up to .* as float16, got 70000"):
        types.Constant(70000, dtype=types.FLOAT16)
    assert math.isinf(types.Constant(math.inf).value)
    with pytest.raises(ArgumentError, match=r"expected whole numbers as `shape`"):
        types.Constant(3, shape=(2, "x"))


def test_no_memory_for_a_contiguous_copy() -> None:
    wide = np.broadcast_to(np.array(3, ">i2"), (2**31, 2**30))
    with pytest.raises(ResourceError, match=r"`eager.flip`: expected an array that fits into memory, got >i2 of shape"):
        eager.flip(wide)


def test_a_list_of_files_ends_at_its_first_row_that_is_no_path() -> None:
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(*fn.readers.file(files=np.broadcast_to(np.array(3, ">i2"), (2**31, 2**30))))
    with pytest.raises(ArgumentError, match=r"expected a list of paths as `files`, got array"):
        pipe.build()


def test_a_header_is_read_from_bytes_alone() -> None:
    with pytest.raises(ArgumentError, match=r"expected the bytes of a file .uint8, one axis., got uint16 with 3 axes"):
        eager.peek_image_shape(IMAGE.astype(np.uint16))


@pytest.mark.parametrize("other", ["x", b"x", None, [1, 2], (1, 2)])
def test_operands(other: Any) -> None:
    pipe = Pipeline()
    with pipe:
        node = fn.random.uniform()
        with pytest.raises(ArgumentError, match=r"expected a node, a number or an array as operand, got"):
            node + other
        with pytest.raises(ArgumentError, match=r"expected a node, a number or an array as operand, got"):
            other - node


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("epoch",), 2**63), (("epoch",), 1.5), (("consumed",), -1), (("bad",), [0, []]), (("bad",), [0, 1, 2]),
        (("data",), [3]), (("data",), [["x", np.zeros(2)]]), (("contiguous",), [1.5]), (("sources",), {"x": 1}),
        (("sources",), {3: 1}), (("states",), {"-1": 1}), (("stoker_state",), np.zeros(2)), (("seed",), np.zeros(2)),
    ],
)  # fmt: skip
def test_entries_of_a_state(path: tuple[str], value: Any, tmp_path: Path) -> None:
    pipe = reading(write_files(tmp_path).parent)
    with pipe:
        pipe.run()
        token = pipe.get_state()
        with pytest.raises(StateError, match=r"expected"):
            pipe.set_state({**token, path[0]: value})
        pipe.set_state(token)
        pipe.run()


def test_positions_of_a_source() -> None:
    pipe = Pipeline(batch_size=2, num_threads=1, seed=1)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda i: [i, i]))
    with pipe:
        pipe.run()
        token = pipe.get_state()
        for wrong in (7, [1], [1, "x"], [-1, 0], [2**70, 0]):
            with pytest.raises(StateError, match=r"expected the position of a source as `get_state.*` gave it, got"):
                pipe.set_state({**token, "sources": {"0": wrong}})


@pytest.mark.parametrize("epoch", [-1, 1.5, "x", 2**63, math.inf, [0]])
def test_epochs(epoch: Any, tmp_path: Path) -> None:
    pipe = reading(write_files(tmp_path).parent)
    with pipe, pytest.raises(ArgumentError, match=r"expected the number of an epoch, from 0 on, got"):
        pipe.start_epoch(epoch)


@pytest.mark.parametrize("files", [b"a.jpg", 3, [3], [None], [b"a.jpg"]])
def test_files_that_are_no_list_of_paths(files: Any) -> None:
    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        pipe.set_outputs(*fn.readers.file(files=files))
    with pytest.raises(ArgumentError, match=r"expected a list of paths as `files`, got"):
        pipe.build()


def in_a_process(code: str) -> str:
    """Run code in a process of its own, so that a hang ends. Return what it printed."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG_S).stdout


@pytest.mark.parametrize("exec_async", [False, True])
@pytest.mark.parametrize("kind", ["source", "python_function"])
def test_a_callback_that_runs_its_own_pipeline(kind: str, exec_async: bool) -> None:
    printed = in_a_process(f"""
        from stoker import Pipeline, StokerError, fn
        pipe = Pipeline(batch_size=1, num_threads=1, seed=1, exec_async={exec_async})
        def again(*x):
            return pipe.run()
        with pipe:
            one = fn.external_source(again if {kind!r} == "source" else lambda: [1])
            pipe.set_outputs(one if {kind!r} == "source" else fn.python_function(one, function=again))
        try:
            pipe.run()
        except StokerError as error:
            print(error)
        pipe.close()
    """)
    assert "cannot request batches from it" in printed


@pytest.mark.parametrize("given", ["files", "file_root"])
def test_pipes_as_files(given: str, tmp_path: Path) -> None:
    (tmp_path / "class").mkdir()
    os.mkfifo(tmp_path / "class" / "a.jpg")
    arguments = {"files": {"files": [str(tmp_path / "class" / "a.jpg")]}, "file_root": {"file_root": str(tmp_path)}}
    printed = in_a_process(f"""
        from stoker import Pipeline, StokerError, eager, fn
        pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
        with pipe:
            pipe.set_outputs(fn.readers.file(**{arguments[given]!r})[0])
        try:
            pipe.run()
        except StokerError as error:
            print(error)
        pipe.close()
        try:
            eager.imread({str(tmp_path / "class" / "a.jpg")!r})
        except StokerError as error:
            print(error)
    """)
    assert "a.jpg" in printed.splitlines()[0]
    assert "expected a regular file" in printed


@pytest.mark.skipif(_native.sanitized, reason="a sanitizer reserves more address space than the limit")
def test_more_threads_than_the_system_gives() -> None:
    printed = in_a_process("""
        import resource
        from stoker import Pipeline, ResourceError, fn
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        pipe = Pipeline(batch_size=4, num_threads=20000, seed=1)
        with pipe:
            pipe.set_outputs(fn.random.uniform())
        try:
            pipe.run()
        except ResourceError as error:
            print("refused", error)
    """)
    assert "refused" in printed


@pytest.mark.parametrize("value", [math.nan, math.inf, (1.0, math.nan)])
def test_fills_of_a_perspective(value: Any) -> None:
    with pytest.raises(ArgumentError, match=r"expected finite numbers as `fill_value`"):
        eager.experimental.warp_perspective(IMAGE, matrix=np.eye(3).reshape(-1).tolist(), fill_value=value)


@pytest.mark.parametrize("border", ["constant", "wrap"])
def test_no_fill_of_a_perspective(border: str) -> None:
    with pytest.raises(ArgumentError, match=r"expected at least one number as `fill_value`, got an empty list"):
        eager.experimental.warp_perspective(IMAGE, matrix=np.eye(3).reshape(-1), fill_value=[], border_mode=border)


@pytest.mark.parametrize("end", [3.5e38, 1e300])
def test_anchors_beyond_float32(end: float) -> None:
    with pytest.raises(ArgumentError, match=r"expected finite `anchors`"):
        eager.box_encoder(np.zeros((1, 4), np.float32), np.zeros(1, np.int32), anchors=[0, 0.1, 0.3, end])


@pytest.mark.parametrize("scale", [-1e300, 1e300, 3.5e38, 1e-60, math.nan])
def test_scales_beyond_float32(scale: float) -> None:
    with pytest.raises(ArgumentError, match=r"expected a finite `scale` above 0"):
        eager.box_encoder(np.zeros((1, 4), np.float32), np.zeros(1, np.int32), anchors=[0, 0, 0.3, 0.4], scale=scale)


def test_elements_beyond_int64() -> None:
    for shape in ((4, 2), (None, None)):
        pipe = Pipeline(batch_size=1, num_threads=1, exec_async=False)
        with pytest.raises((ArgumentError, DataError), match=r"expected (numbers of int64 in )?`new_order`"), pipe:
            x = types.Constant(np.zeros(shape)) if shape[0] else fn.external_source(lambda: [np.zeros((4, 2))])
            pipe.set_outputs(fn.sequence_rearrange(x, new_order=[1, 2**63]))
            with pipe:
                pipe.run()


def test_more_weights_than_classes_may_be() -> None:
    with pytest.raises(ArgumentError, match=r"expected at most 256 numbers as `class_weights`, got 70000"):
        eager.segmentation.random_object_bbox(IMAGE, class_weights=[1.0] * 70000)


def test_braces_in_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"expected `output_layout` with the axes of HWC, got \{0\}"):
        eager.crop_mirror_normalize(IMAGE, output_layout="{0}")


@pytest.mark.parametrize("step", [10**5000, -(10**5000), types.BFLOAT16], ids=["huge", "minus huge", "enumeration"])
def test_steps_of_an_index(step: Any) -> None:
    pipe = Pipeline(batch_size=1, num_threads=1, exec_async=False)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda: [np.arange(40)])[::step])
    with pipe:
        (out,) = pipe.run()
    np.testing.assert_array_equal(out[0], np.arange(40)[::step])


def test_numbers_of_rows_beyond_whole_numbers() -> None:
    """The text of the error converts the number, which a sanitizer sees."""
    pipe = Pipeline(batch_size=2, num_threads=1, exec_async=False)
    with pipe:
        rows = fn.external_source(lambda: [1, 2])
        pipe.set_outputs(fn.permute_batch(rows, indices=fn.external_source(lambda: [0, 2**63 - 1])))
    with pipe, pytest.raises(DataError, match=r"row number 9223372036854775807 is outside the batch of 2 rows"):
        pipe.run()


def test_500_threads_under_a_limit_of_the_system() -> None:
    """Root has no limit of processes, so the child becomes another user first."""
    printed = in_a_process("""
        import os, resource
        from stoker import Pipeline, ResourceError, fn

        def run(threads):
            pipe = Pipeline(batch_size=4, num_threads=threads, seed=1)
            with pipe:
                pipe.set_outputs(fn.python_function(fn.random.uniform(), function=lambda x: x))
            try:
                pipe.run()
                return "ran"
            except ResourceError as error:
                return str(error)
            finally:
                pipe.close()

        print(run(1))
        if os.getuid() == 0:
            os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (100, 100))
        print(run(500))
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        print(run(1))
    """)
    before, refused, none = printed.splitlines()
    assert before == "ran"
    assert "expected to start 500 threads, got " in refused and "Lower `num_threads`, or raise the limit" in refused
    assert "Lower `num_threads`, or raise the limit" in none


class FailingPath:
    """Path whose text cannot be had."""

    def __fspath__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fn.readers.file(files=values.Failing()), "expected a list of paths as `files`"),
        (lambda: fn.readers.file(files=[FailingPath()]), "expected a list of paths as `files`"),
        (lambda: fn.readers.file(files=FailingPath()), "expected a list of paths as `files`"),
        (lambda: fn.readers.file(file_root=FailingPath()), "`file_root`: expected a string"),
        (lambda: fn.readers.numpy(files=[FailingPath()]), "expected .* as `files`"),
        (lambda: fn.readers.webdataset(paths=FailingPath(), ext="jpg"), "expected .* as `paths`"),
        (lambda: fn.readers.file(files=["a"], sampler=[values.Failing()]), "expected `sampler` to be a list of whole"),
        (lambda: eager.imread(FailingPath()), "`eager.imread`: expected the path of a file"),
        (lambda: Pipeline(gpu_jpeg_index=1 << 20, gpu_jpeg_index_path=FailingPath()), "expected the path of a folder"),
    ],
)
def test_objects_whose_methods_fail(call: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        pipe = Pipeline(batch_size=1, num_threads=1)
        with pipe:
            read = call()
            pipe.set_outputs(*(read if isinstance(read, tuple) else [read]))
        pipe.build()


def test_a_view_of_many_texts_is_refused_before_it_becomes_a_list() -> None:
    texts = np.lib.stride_tricks.as_strided(np.zeros(0), (2**40, 0))
    with Pipeline(batch_size=1, num_threads=1), pytest.raises(ArgumentError, match="one text for each of 1 files"):
        fn.readers.audio(files=["a.wav"], texts=texts)

# SPDX-License-Identifier: Apache-2.0
"""Each pass on small graphs: the rewritten steps as text, and the steps that it must not change."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import Operator, Spec, fn
from stoker.codecs.open_codecs import OpenCodecs
from stoker.contract.step import Native, Stage, StepList, View
from stoker.contract.types import DType
from stoker.executor.run import Run
from stoker.frontends.conditionals import BranchRuntime
from stoker.frontends.definition import GraphBuilder
from stoker.graph.analysis import transform
from stoker.graph.load import load
from stoker.graph.lower import lower, prune
from stoker.graph.passes.decode_window import push_windows
from stoker.graph.passes.equal_steps import merge_equal_steps
from stoker.graph.passes.fusion import fuse
from stoker.graph.planner import make_plan
from stoker.graph.show import show_steps
from stoker.graph.verify import verify_steps
from stoker.testing.reference import Fed, plain_rows
from tests.graph.small_graphs import ALL, Define, Maker, find, kinds, steps_of, training_chain

SNAPSHOTS = Path(__file__).parent / "snapshots"


# ---- snapshots ----


def equal_steps(m: Maker) -> Any:
    """Return a graph of two crops of one window, one of them flipped, and two independent draws."""
    x = m.image()
    crops = [fn.crop(x, crop=(8, 8), crop_pos_x=0.25) for _ in range(2)]
    return fn.flip(crops[0]), crops[1], fn.random.coin_flip(), fn.random.coin_flip()


def decode_window(m: Maker) -> Any:
    return fn.crop(fn.decoders.image(m.encoded()), crop=(8, 9), crop_pos_x=0.0)


def decode_window_and_stages(m: Maker) -> Any:
    x = fn.decoders.image(m.encoded(), dtype=DType.FLOAT16) * 2.0
    return fn.slice(fn.cast(x, dtype=DType.INT16), start=(1, 2, 1), shape=(8, 9, 2), axes=(0, 1, 2))


def absorbed_views(m: Maker) -> Any:
    x = fn.resize(m.image(), size=(8, 9))
    return fn.transpose(fn.flip(x, vertical=1), perm=(2, 0, 1))


def joined_stages(m: Maker) -> Any:
    x = fn.cast(m.image(), dtype=DType.FLOAT)
    return fn.cast(fn.flip(x * 2.0) + m.number(), dtype=DType.UINT8)


CASES: dict[str, tuple[Define, Callable[[StepList], StepList]]] = {
    "equal_steps": (equal_steps, merge_equal_steps),
    "decode_window": (decode_window, push_windows),
    "decode_window_and_stages": (decode_window_and_stages, push_windows),
    "fusion_absorb": (absorbed_views, fuse),
    "fusion_join": (joined_stages, fuse),
    "fusion_chain": (training_chain, fuse),
}


@pytest.mark.parametrize("name", CASES)
def test_before_and_after(name: str) -> None:
    """``STOKER_SNAPSHOTS=write`` writes the texts again; review the changes."""
    define, step_pass = CASES[name]
    maker = Maker()
    with maker.builder:
        outputs = define(maker)
    before = lower(maker.builder.graph(outputs if isinstance(outputs, tuple) else (outputs,)), find)
    after = prune(step_pass(before))
    verify_steps(after)
    text = "\n".join(["before", *show_steps(before), "", "after", *show_steps(after), ""])
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("STOKER_SNAPSHOTS") == "write":
        path.write_text(text)
    assert text == path.read_text()


# ---- decode windows ----


def decodes(steps: StepList) -> list[Native]:
    return [s.body for s in steps.steps if isinstance(s.body, Native) and s.body.window is not None]


def test_a_crop_becomes_a_decode_window() -> None:
    steps = steps_of(decode_window, *ALL)
    (decode,) = decodes(steps)
    assert len(decode.params) == 2
    assert "8" in repr(decode.params[0])  # the row at which a window of 8 rows starts
    assert "[1]" in repr(decode.params[1])  # the width of the image
    assert not kinds(steps, View)
    assert list(map(float, steps.values[steps.outputs[0]].shape)) == [8, 9, 3]


def test_windows_of_windows_add_up() -> None:
    def define(m: Maker) -> Any:
        x = fn.slice(fn.decoders.image(m.encoded()), start=(2, 3), shape=(9, 9), axes=(0, 1))
        return fn.slice(x, start=(1, 1), shape=(4, 4), axes=(0, 1))

    steps = steps_of(define, *ALL)
    assert list(map(float, decodes(steps)[0].params)) == [3, 4]
    assert not kinds(steps, View)


def test_the_rest_of_a_view_stays() -> None:
    def define(m: Maker) -> Any:
        return fn.slice(fn.decoders.image(m.encoded()), start=(2, 3, 1), shape=(9, 9, 1), axes=(0, 1, 2))

    steps = steps_of(define, *ALL)
    assert list(map(float, decodes(steps)[0].params)) == [2, 3]
    assert len(kinds(steps, View)) == 1


def test_a_second_consumer_keeps_the_whole_image() -> None:
    def two_crops(m: Maker) -> Any:
        x = fn.decoders.image(m.encoded())
        return fn.crop(x, crop=(8, 8)), fn.crop(x, crop=(4, 4))

    def an_output(m: Maker) -> Any:
        x = fn.decoders.image(m.encoded())
        return x, fn.crop(x, crop=(8, 8))

    def an_argument(m: Maker) -> Any:
        x = fn.decoders.image(m.encoded())
        return fn.crop(x, crop=(8, 8)), fn.flip(m.image(), horizontal=x)

    def a_condition(m: Maker) -> Any:
        x = fn.decoders.image(m.encoded())
        runtime = BranchRuntime(lambda f: f)
        crop = runtime.choose(m.number(DType.BOOL), lambda: fn.crop(x, crop=(8, 8)), lambda: m.image())
        return crop

    for define in (two_crops, an_output, an_argument, a_condition):
        assert [p for d in decodes(steps_of(define, *ALL)) for p in d.params] == [0, 0], define.__name__


def test_views_that_are_no_crops_become_no_windows() -> None:
    def flipped(m: Maker) -> Any:
        return fn.crop(fn.flip(fn.decoders.image(m.encoded())), crop=(8, 8))

    def strided(m: Maker) -> Any:
        return fn.decoders.image(m.encoded())[::2]

    for define in (flipped, strided):
        assert [p for d in decodes(steps_of(define, *ALL)) for p in d.params] == [0, 0], define.__name__


def test_windows_pass_through_pointwise_stages() -> None:
    def define(m: Maker) -> Any:
        x = fn.decoders.image(m.encoded(), dtype=DType.FLOAT16)
        return fn.crop(fn.crop(fn.brightness(x, brightness=0.5), crop=(8, 9)), crop=(4, 5))

    def on_a_gpu(m: Maker) -> Any:
        return fn.crop(fn.decoders.image(m.encoded(), device="mixed", dtype=DType.INT16), crop=(4, 5))

    steps = steps_of(define, *ALL)
    (decode,) = (s for s in kinds(steps, Native) if decodes(StepList([s])))
    (stage,) = kinds(steps, Stage)
    assert stage.inputs == decode.outputs and not kinds(steps, View)
    assert [list(map(float, steps.values[v].shape)) for v in (*decode.outputs, *stage.outputs)] == [[4, 5, 3]] * 2
    maker = Maker()
    with maker.builder:
        graph = maker.builder.graph((on_a_gpu(maker),))
    placed = transform(graph, find, {}, frozenset({"decode_window"}), {})
    assert [s.on_gpu for s in placed.steps if decodes(StepList([s]))] == [True]
    assert not kinds(placed, View)


def test_windows_stay_after_stages_that_need_more_than_their_window() -> None:
    def of_two(m: Maker) -> Any:
        return fn.crop(fn.decoders.image(m.encoded(), dtype=DType.FLOAT16) + m.image(DType.FLOAT16), crop=(4, 5))

    def also_used(m: Maker) -> Any:
        x = fn.decoders.image(m.encoded(), dtype=DType.FLOAT16)
        return x, fn.crop(x * 2.0, crop=(4, 5))

    def of_a_used_one(m: Maker) -> Any:
        x = fn.decoders.image(m.encoded(), dtype=DType.FLOAT16)
        return fn.crop(x, crop=(4, 5)), fn.flip(x)

    def positions(m: Maker) -> Any:
        return fn.crop(fn.noise.gaussian(fn.decoders.image(m.encoded())), crop=(4, 5))

    def may_fail(m: Maker) -> Any:
        return fn.crop(7 // fn.decoders.image(m.encoded()), crop=(4, 5))

    for define in (of_two, also_used, of_a_used_one, positions, may_fail):
        steps = steps_of(define, *ALL)
        assert [p for d in decodes(steps) for p in d.params] == [0, 0], define.__name__
        assert kinds(steps, View) or define is also_used, define.__name__


@pytest.mark.parametrize("kind", ["jpeg", "turned", "png", "tiff"])
@pytest.mark.parametrize("dtype", [DType.UINT16, DType.FLOAT, DType.FLOAT16, DType.FLOAT64, DType.INT16, DType.INT32])
def test_a_window_of_every_type_has_the_bits_of_the_image(dtype: DType, kind: str) -> None:
    rng = np.random.default_rng(3)
    if kind in ("png", "tiff"):
        image, options = Image.fromarray(rng.integers(0, 1 << 16, (30, 41)).astype(np.uint16)), {"format": kind}
    else:
        exif = Image.Exif()
        exif[0x0112] = 6 if kind == "turned" else 1
        image, options = Image.fromarray(rng.integers(0, 256, (30, 41, 3), np.uint8)), {"format": "jpeg", "exif": exif}
    content = io.BytesIO()
    image.save(content, **options)
    data = np.frombuffer(content.getvalue(), np.uint8)
    maker = Maker()
    with maker.builder:
        x = fn.decoders.image(maker.encoded(), dtype=dtype)
        graph = maker.builder.graph((fn.crop(x, crop=(13, 21), crop_pos_x=0.3, crop_pos_y=0.8),))
    results = []
    for passes in (ALL, frozenset[str]()):
        run = Run(load(make_plan(graph, find, passes=passes), codecs=OpenCodecs().get), graph, 1, 0, {})
        try:
            (output,) = run.run_inline(plain_rows(1), {(0, 0): [data]})
            results.append(np.array(output[0]))
        finally:
            run.close()
    assert results[0].dtype == dtype.numpy and results[0].shape == (13, 21, 3)
    assert results[0].any()
    np.testing.assert_array_equal(results[0], results[1])


# ---- common steps ----


def test_equal_steps_become_one_and_draws_stay_two() -> None:
    steps = steps_of(equal_steps, "equal_steps")
    assert len(kinds(steps, View)) == 2  # one crop, one flip
    assert len(kinds(steps, Native)) == 2


def test_steps_that_differ_in_a_number_stay() -> None:
    def define(m: Maker) -> Any:
        x = m.image()
        return fn.crop(x, crop=(8, 8), crop_pos_x=0.0), fn.crop(x, crop=(8, 8), crop_pos_x=-0.0)

    assert len(kinds(steps_of(define, "equal_steps"), View)) == 2


def test_steps_under_other_conditions_stay() -> None:
    def define(m: Maker) -> Any:
        x, condition = m.image(), m.number(DType.BOOL)
        return BranchRuntime(lambda f: f).choose(condition, lambda: x + 1, lambda: x + 1)

    assert len(kinds(steps_of(define, "equal_steps"), Stage)) == 2


def test_effects_are_never_merged() -> None:
    class SideEffect(Operator, name="test.side_effect"):
        """Operator with a side effect."""

        pure = False

        def infer(self, c: Any, x: Any) -> Spec:
            return Spec(x.dtype, (None, None, 3), "HWC")

        def reference(self, row: Any, x: Any) -> Any:
            return x

    def local_find(name: str) -> type[Operator]:
        return SideEffect if name == SideEffect.name else find(name)

    builder = GraphBuilder(local_find)
    spec = {"spec": Spec(DType.UINT8, (None, None, 3), "HWC")}
    x = builder.add_operator(Fed, Fed.fill_defaults(spec, {}))
    nodes = [builder.call("test.side_effect", [x], {}) for _ in range(2)]
    unused = builder.call("test.side_effect", [x], {})
    assert unused is not None
    steps = transform(builder.graph([nodes[0]]), local_find, {}, ALL, {})
    assert len(steps.steps) == 3


# ---- memory, through the plan ----


def test_sharing_memory_needs_fewer_buffers() -> None:
    def define(m: Maker) -> Any:
        x = m.image()
        for angle in range(12):
            x = fn.rotate(x, angle=float(angle + 1), keep_size=True)
        return x

    maker = Maker()
    with maker.builder:
        graph = maker.builder.graph([define(maker)])
    used = []
    for passes in (ALL, ALL - {"memory"}):
        run = Run(load(make_plan(graph, find, passes=passes)), graph, 1, 0, {})
        try:
            run.run_inline(plain_rows(1), {(0, 0): [np.zeros((100, 100, 3), np.uint8)]})
            used.append(run.scratch_bytes)
        finally:
            run.close()
    assert used[0] < 0.8 * used[1]


def test_numpy_is_not_confused_by_symbols() -> None:
    """An extent that is a NumPy integer plans like a plain number."""

    def define(m: Maker) -> Any:
        return fn.resize(m.image(), size=(np.int64(8), np.int32(9)))

    assert len(kinds(steps_of(define, *ALL), Stage)) == 1

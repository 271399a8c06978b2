# SPDX-License-Identifier: Apache-2.0
"""Every operator of DALI's is present or refused with a reason; checkpoints of every kind of state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import types
from stoker.contract.errors import StateError, UnsupportedError
from stoker.dali import Pipeline, fn, ops, pipeline_def
from stoker.frontends.dali.catalogue import ALIASES, NAMES, REASONS
from stoker.frontends.registry import names


def found(name: str) -> Any:
    target: Any = fn
    for part in name.split("."):
        target = getattr(target, part)
    return target


@pytest.mark.parametrize("name", sorted({*NAMES, *ALIASES}))
def test_every_operator_is_present_or_refused_with_a_reason(name: str) -> None:
    real = ALIASES.get(name, name)
    operator = found(name)
    if real in names():
        assert callable(operator) and operator.__doc__
        assert real not in REASONS
        return
    reason = REASONS[real]
    with pytest.raises(UnsupportedError) as caught:
        operator()
    assert reason in str(caught.value) and reason in operator.__doc__
    assert isinstance(caught.value, RuntimeError)  # what DALI's scripts catch
    assert "`" in reason, "a way out"


def test_no_reason_is_for_another_name() -> None:
    assert len(NAMES) == 138 and set(REASONS) <= NAMES and set(ALIASES.values()) <= NAMES
    with pytest.raises(UnsupportedError, match="optical flow engine"):
        _ = ops.OpticalFlow


@pytest.mark.parametrize("text", ["nonsense", "", "null", "[1]", "{}", '{"stoker_state": 7}', 5, b"bytes", [1]])
def test_a_wrong_checkpoint_is_a_runtime_error(text: Any) -> None:
    @pipeline_def(batch_size=2, num_threads=1, enable_checkpointing=True)
    def draws() -> Any:
        return fn.random.uniform(range=(0, 1))

    with pytest.raises(RuntimeError, match=r"state was saved with another format|expected as `checkpoint`"):
        draws(checkpoint=text).run()


def test_checkpoints_are_asked_for() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def draws() -> Any:
        return fn.random.uniform(range=(0, 1))

    with draws() as pipe:
        pipe.run()
        with pytest.raises(StateError, match="`enable_checkpointing=True`") as caught:
            pipe.checkpoint()
        assert isinstance(caught.value, RuntimeError)


def test_a_checkpoint_of_another_pipeline_is_a_runtime_error() -> None:
    def made(count: int, **more: Any) -> Any:
        @pipeline_def(batch_size=2, num_threads=1, enable_checkpointing=True, **more)
        def draws() -> Any:
            return tuple(fn.random.uniform(range=(0, 1)) for _ in range(count))

        return draws()

    with made(1) as pipe:
        pipe.run()
        state = pipe.checkpoint()
    with pytest.raises(RuntimeError, match="saved with another graph"):
        made(2, checkpoint=state).run()


def test_a_checkpoint_is_bytes_that_a_file_takes(tmp_path: Path) -> None:
    @pipeline_def(batch_size=2, num_threads=1, seed=3, enable_checkpointing=True)
    def draws() -> Any:
        return fn.random.uniform(range=(0, 1))

    with draws() as pipe:
        pipe.run()
        state = pipe.checkpoint(str(tmp_path / "own"))
        wanted = pipe.run()[0].as_array().tolist()
    assert isinstance(state, bytes) and (tmp_path / "own").read_bytes() == state
    (tmp_path / "users").write_bytes(state)
    for again in ((tmp_path / "users").read_bytes(), state.decode()):
        with draws(checkpoint=again) as pipe:
            assert pipe.run()[0].as_array().tolist() == wanted


def test_a_graph_is_read_into_a_pipeline_without_outputs() -> None:
    @pipeline_def(batch_size=2, num_threads=1, seed=3)
    def draws() -> Any:
        return fn.random.uniform(range=(0, 1)) + 1

    with draws() as pipe:
        text, wanted = pipe.serialize(), pipe.run()[0].as_array().tolist()
    with Pipeline(batch_size=2, num_threads=1, seed=3) as other:
        pass
    assert other.deserialize_and_build(text) is None
    assert other.run()[0].as_array().tolist() == wanted
    with pytest.raises(StateError, match="expected a pipeline without outputs"):
        other.deserialize_and_build(text)
    other.close()
    with pytest.raises(ValueError, match="expected `batch_size`, got none"):
        Pipeline()


def by_index(info: Any) -> Any:
    return np.float32([info.idx_in_epoch, info.epoch_idx])


BOX = np.float32([[0.1, 0.1, 0.6, 0.7]])


def image() -> Any:
    return types.Constant(np.arange(40 * 50 * 3, dtype=np.int64).reshape(40, 50, 3).astype(np.uint8))


def read(root: Path, **arguments: Any) -> Any:
    return fn.readers.file(file_root=str(root), name="Reader", **arguments)


def read_or_draw(root: Path) -> Any:
    """Conditions on a reader's label, on draws, and nested."""
    data, label = read(root, random_shuffle=True)
    label = fn.squeeze(label, axes=0)
    drawn = fn.random.uniform(range=(0, 1))
    if drawn > 0.5:
        value = fn.random.normal()
    elif fn.random.coin_flip() and not (label > 1):
        value = fn.random.uniform(range=(2, 3))
    else:
        value = fn.cast(label, dtype=types.FLOAT)
        if value > 0:
            value = value * 10.0
    return value, label, fn.shapes(data)


STATEFUL: dict[str, Callable[[Path], Any]] = {
    "random.uniform": lambda _: fn.random.uniform(range=(0, 1), shape=(3,)),
    "random.normal": lambda _: fn.random.normal(shape=(3,)),
    "random.coin_flip": lambda _: fn.random.coin_flip(shape=(9,)),
    "random.choice": lambda _: fn.random.choice([3, 5, 7, 9]),
    "random.beta": lambda _: fn.random.beta(alpha=2.0, beta=3.0),
    "batch_permutation": lambda _: fn.batch_permutation(),
    "roi_random_crop": lambda _: fn.roi_random_crop(crop_shape=(4, 5), roi_start=(0, 0), roi_end=(30, 40)),
    "random_resized_crop": lambda _: fn.random_resized_crop(image(), size=(6, 7)),
    "random_crop_generator": lambda _: fn.random_crop_generator(types.Constant([40, 50])),
    "noise.gaussian": lambda _: fn.noise.gaussian(image(), stddev=9.0),
    "noise.salt_and_pepper": lambda _: fn.noise.salt_and_pepper(image()),
    "noise.shot": lambda _: fn.noise.shot(image()),
    "random_bbox_crop": lambda _: tuple(fn.random_bbox_crop(
        types.Constant(BOX), scaling=[0.3, 1.0], thresholds=[0.1, 0.5], bbox_layout="xyXY"
    )[:2]),
    "external_source": lambda _: fn.external_source(by_index, batch=False),
    "readers.file": lambda root: read(root)[1],
    "readers.file shuffled": lambda root: read(root, random_shuffle=True)[1],
    "readers.file after epochs": lambda root: read(root, shuffle_after_epoch=True)[1],
    "readers.file in shards": lambda root: read(root, num_shards=2, shard_id=1, random_shuffle=True)[1],
    "decoders.image_random_crop": lambda root: fn.shapes(fn.decoders.image_random_crop(read(root)[0])),
    "conditions": read_or_draw,
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from PIL import Image

    root = tmp_path_factory.mktemp("files")
    for number in range(7):
        (root / str(number % 3)).mkdir(exist_ok=True)
        Image.new("RGB", (20 + number, 30), (number, 9, 8)).save(root / str(number % 3) / f"{number}.jpg")
    return root


@pytest.mark.parametrize("kind", STATEFUL)
def test_a_restored_pipeline_goes_on(kind: str, files: Path) -> None:
    """The state is taken in the first and in a later epoch; the rows after it are the same ones."""
    build = STATEFUL[kind]

    def made(**more: Any) -> Pipeline:
        options = {"batch_size": 3, "num_threads": 1, "seed": 11, "enable_checkpointing": True, **more}
        return pipeline_def(build, enable_conditionals=kind == "conditions", **options)(files)  # type: ignore[no-any-return]

    def rows(pipe: Pipeline) -> list[list[Any]]:
        return [[np.asarray(x).tolist() for x in output] for output in pipe.run()]

    with made() as pipe:
        before = [rows(pipe) for _ in range(2)]
        first = pipe.checkpoint()
        after = [rows(pipe) for _ in range(4)]
        second = pipe.checkpoint()
        last = rows(pipe)
    assert any(batch != before[0] for batch in (*before[1:], *after)), "the batches differ, so that a wrong one shows"
    with made(checkpoint=first) as pipe:
        assert pipe.is_restored_from_checkpoint
        assert [rows(pipe) for _ in range(4)] == after
    with made(checkpoint=second) as pipe:
        assert rows(pipe) == last

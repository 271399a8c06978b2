# SPDX-License-Identifier: Apache-2.0
"""Calls of every operator for tests that walk them all: arguments, and inputs that change from batch to batch."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import stoker
import stoker.dali
from stoker.frontends.dali.catalogue import NAMES
from stoker.frontends.registry import find
from stoker.ops._index import INDEX
from tests.hostile.cases import valid_calls, valid_inputs

# Operators without a call here, with the reason.
LEFT_OUT = {
    "experimental.inputs.video": "it has only the data that are fed: its state is refused",
    "gpu_function": "its function is on a GPU",
    "readers.array_record": "its files need a library; tests/containers/real_writers.py",
    "readers.lance": "its files need a library; tests/containers/real_writers.py",
    "readers.litdata": "its files need a library; tests/containers/real_writers.py",
    "optical_flow": "refused",
}
IN_ORDER = ("readers.parquet",)  # a shuffle of single rows has a warning
Column = list[Any]  # an array per row


def all_names() -> list[str]:
    """Return the names of the library's operators that are walked; other tests register operators of their own."""
    return [name for name in sorted(INDEX) if not name.startswith("_") and name not in LEFT_OUT]


def call_of(name: str) -> Callable[..., Any]:
    """Return the function of an operator: DALI's if DALI has the name."""
    function: Any = stoker.dali.fn if name in NAMES else stoker.fn
    for part in name.split("."):
        function = getattr(function, part)
    return function  # type: ignore[no-any-return]


def as_nodes(result: Any) -> list[Any]:
    """Return the outputs of a call as a list."""
    if isinstance(result, Mapping):
        return list(result.values())
    return list(result) if isinstance(result, (list, tuple)) else [result]


def calls(name: str, folder: Path) -> Iterator[tuple[dict[str, Any], list[Column]]]:
    """Yield arguments and inputs of valid calls. ``folder`` is that of ``tests.hostile.walk.write_files``."""
    top = folder.parents[1]
    files = sorted(map(str, folder.glob("*.jpg")))
    images = valid_inputs(find("flip"), {})
    own: dict[str, list[tuple[dict[str, Any], list[Column]]]] = {
        "decoders.numpy": [({}, [[_npy(i) for i in range(2)]])],
        "experimental.readers.fits": [({"files": _fits(top), "random_shuffle": True, "hdu_indices": [1]}, [])],
        "external_source": [
            ({"source": _Batches(), "num_outputs": 2}, []), ({"source": _sample, "batch": False}, []),
            ({"source": [[np.full(3, i), np.full(2, -i)] for i in range(9)]}, []),
        ],
        "per_frame": [({"replace": True}, images)],
        "dl_tensor_python_function": [({"function": _same}, images)],
        "python_function": [({"function": _negative}, images)],
        "permute_batch": [({"indices": [1, 0]}, images)],
        "readers.concat": [({"parts": _Parts([files[:2], files[3:]]), "random_shuffle": True}, [])],
        "readers.mix": [({"parts": _Parts([files[:2], files[2:]]), "weights": [0.5, 0.5]}, [])],
        "readers.partner": [({"reader": _Parts([files])}, [])],
        "readers.sequence": [({"file_root": _frames(top), "sequence_length": 2, "random_shuffle": True}, [])],
    }  # fmt: skip
    if name in own:
        yield from own[name]
        return
    operator = find(name)
    for call in valid_calls(operator, folder):
        if name == "readers.nemo_asr":
            call["base"] = str(top)  # DALI takes paths as they are
        yield call, valid_inputs(operator, call) if operator.inputs[1] else []
        if name not in IN_ORDER and operator.is_source and "random_shuffle" in operator.all_arguments():
            yield {**call, "random_shuffle": True}, []


def apply(name: str, call: Mapping[str, Any], inputs: list[Any]) -> list[Any]:
    """Call an operator in a pipeline's definition and return its outputs."""
    made = {key: value() if isinstance(value, _Parts) else value for key, value in call.items()}
    if name == "readers.partner":
        return as_nodes(call_of(name)(made["reader"][0]))
    return as_nodes(call_of(name)(*inputs, **made))


def sources(columns: list[Column]) -> list[Any]:
    """Return a source for each column, whose rows move by one in every batch. Its state is the batch's number."""
    return [stoker.dali.fn.external_source(source=_Turning(c), layout=_layout(c)) for c in columns]


def _layout(column: Column) -> str | None:
    x = column[0]
    is_image = isinstance(x, np.ndarray) and x.ndim in (3, 4) and x.shape[-1] == 3
    return {3: "HWC", 4: "FHWC"}[x.ndim] if is_image else None


class _Turning:
    def __init__(self, column: Column) -> None:
        self._column = column

    def __call__(self, number: int) -> Column:
        count = len(self._column)
        return [self._column[(number + k) % count] for k in range(count)]


class _Batches:
    def __call__(self, number: int) -> Any:
        return [np.full(3, number), np.full(2, number)], [np.float32(number)] * 2


class _Parts:
    """Readers that are made where the call is made."""

    def __init__(self, files: list[list[str]]) -> None:
        self._files = files

    def __call__(self) -> list[Any]:
        return [stoker.fn.readers.file(files=files, random_shuffle=True)[0] for files in self._files]


def _sample(info: Any) -> Any:
    return np.asarray([info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx])


def _same(x: Any) -> Any:
    return x


def _negative(x: Any) -> Any:
    return 255 - np.asarray(x)


def _npy(i: int) -> Any:
    file = io.BytesIO()
    np.save(file, np.full((2, 3), i, np.int16))
    return np.frombuffer(file.getvalue(), np.uint8)


def _fits(folder: Path) -> list[str]:
    """Write three files with an image of bytes each."""
    found = []
    for i in range(3):
        cards = ["SIMPLE  =                    T", "BITPIX  =                    8", "NAXIS   =                    2",
                 "NAXIS1  =                    3", "NAXIS2  =                    2", "END"]  # fmt: skip
        header = "".join(card.ljust(80) for card in cards).ljust(2880)
        path = folder / f"{i}.fits"
        path.write_bytes(header.encode() + bytes([i] * 6).ljust(2880, b"\0"))
        found.append(str(path))
    return found


def _frames(folder: Path) -> str:
    """Write six frames of one size."""
    from PIL import Image

    frames = folder / "frames" / "one"
    frames.mkdir(parents=True, exist_ok=True)
    for i in range(6):
        Image.fromarray(np.full((4, 5, 3), 40 * i, np.uint8)).save(frames / f"{i}.png")
    return str(frames.parent)

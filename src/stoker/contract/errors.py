# SPDX-License-Identifier: Apache-2.0
"""The errors, in one shape: expected, got, where, way out.

StokerError
├── ArgumentError (ValueError)    an argument is wrong; raised where the pipeline is defined or built
├── DataError (RuntimeError)      a sample is wrong; raised at its batch
├── UnsupportedError              something that Stoker does not do (yet)
├── DeviceError (RuntimeError)    a GPU is missing, or does not do what it is told
├── StateError (RuntimeError)     a call at the wrong time: a closed pipeline, a token of another graph
└── GraphError                    a graph that breaks its own rules
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Source:
    """Where in the user's code something was written."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class StokerError(Exception):
    """Base of all errors that Stoker raises on purpose."""


class ArgumentError(StokerError, ValueError):
    """An argument is wrong."""


class DataError(StokerError, RuntimeError):
    """A sample is wrong. ``row`` is its place in the batch, ``sample`` its index in the data set (or None)."""

    def __init__(self, message: str, *, row: int | None = None, sample: int | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.sample = sample


class UnsupportedError(StokerError):
    """Something that Stoker does not do."""


class DeviceError(StokerError, RuntimeError):
    """An accelerator is missing, or does not do what it is told."""


class StateError(StokerError, RuntimeError):
    """A call at the wrong time, or a state that does not fit."""


class GraphError(StokerError):
    """A graph that breaks its own rules."""


def message(subject: str, text: str, *, sample: str | None = None, source: Source | None = None, hint: str = "") -> str:
    """One error text: ```crop`: expected ..., got ... — sample 3, made at train.py:42. Way out.``"""
    where = ", ".join([*([sample] if sample else []), *([f"made at {source}"] if source else [])])
    return f"`{subject}`: {text}" + (f" — {where}" if where else "") + (f". {hint}" if hint else "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` Did you mean `x`?`` for the nearest known name, or nothing."""
    import difflib

    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else ""


def show_number(x: Any) -> str:
    """A number without a needless fraction."""
    if not isinstance(x, float):
        return str(x)
    return str(int(x)) if math.isfinite(x) and x == int(x) else f"{x:.7g}"

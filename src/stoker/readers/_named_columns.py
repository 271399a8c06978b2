# SPDX-License-Identifier: Apache-2.0
"""Base class of readers of tables: the caller chooses columns by name, and the outputs are a dict."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any

from ..contract.argument import arg
from ..contract.errors import ArgumentError
from ..contract.text import brief
from ._containers import ContainerReader, is_missing


class NamedColumnsReader(ContainerReader, ABC):
    """Reader of samples with named columns. Outputs: a dict with a node per chosen column."""

    outputs = 1  # for one column
    columns = arg("object", doc='Names of the columns to read, such as ["image", "label"].')

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        chosen_columns(args["columns"])

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return 1 if is_missing(args["columns"]) else len(chosen_columns(args["columns"]))

    def arrange_outputs(self, args: Mapping[str, Any], outputs: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(chosen_columns(args["columns"]), outputs, strict=True))


def chosen_columns(value: Any) -> list[str]:
    """Return the names of the columns to read.

    Raises:
        ArgumentError: the value is no name or list of different names.
    """
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)) or not listed or not all(isinstance(n, str) for n in listed):
        raise ArgumentError(f'expected a list of names as `columns`, such as ["image", "label"], got {brief(value)}')
    if len(set(listed)) < len(listed):
        raise ArgumentError(f"expected different names as `columns`, got {brief(value)}")
    return list(listed)


def require_columns(names: Sequence[str], known: Sequence[str]) -> None:
    """Raise ArgumentError if a name is not one of the known ones."""
    missing = next((n for n in names if n not in known), None)
    if missing is not None:
        raise ArgumentError(f"expected `columns` among {', '.join(map(repr, known))}, got {missing!r}")

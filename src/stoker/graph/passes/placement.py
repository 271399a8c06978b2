# SPDX-License-Identifier: Apache-2.0
"""Placement: on which device each node runs. There is one device for now; the seam is here."""

from __future__ import annotations

from ...contract.errors import UnsupportedError, message
from ..node import Graph, Node

DEVICES = ("cpu",)


def place(graph: Graph) -> dict[int, str]:
    """The device of every node: the one that was asked for, else the inputs'."""
    placed: dict[int, str] = {}
    for node in graph.nodes:
        device = node.device or next((placed[e.node] for e in node.inputs), "cpu")
        if device not in DEVICES:
            raise _refused(node, device)
        placed[node.id] = device
    return placed


def _refused(node: Node, device: str) -> UnsupportedError:
    return UnsupportedError(
        message(
            node.operator.name,
            f'expected device="cpu", got {device!r}: this build runs on the CPU only',
            source=node.source,
            hint='Remove `device=` or set it to "cpu"; the results will be the same bits on every device',
        )
    )

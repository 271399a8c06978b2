# SPDX-License-Identifier: Apache-2.0
"""Moves of random graphs: uses of the operators, with arguments constant and per row.

A move is user code that takes existing values and returns new ones. It may pass arguments that the operators refuse; it
is then taken back. Changing the order of the moves changes the graphs of all numbers.
"""

from __future__ import annotations

from ..graph_grower import Move, source
from . import arrays, control_flow, images

MOVES: list[tuple[float, Move]] = [(0.8, source), *images.MOVES, *arrays.MOVES, *control_flow.MOVES]

# SPDX-License-Identifier: Apache-2.0
"""The moves of random graphs: how the operators are used, with arguments constant and per row.

A move is user code: it takes values that there are and gives new ones. It need not be certain that the operators take
its arguments; what they refuse is taken back. Another order of the moves would make other graphs of the same numbers.
"""

from __future__ import annotations

from ..garden import Move, source
from . import arrays, images, ways

MOVES: list[tuple[float, Move]] = [(0.8, source), *images.MOVES, *arrays.MOVES, *ways.MOVES]

# SPDX-License-Identifier: Apache-2.0
"""The samplers that the readers share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..contract.reader import Ints
from ..native import _native


@dataclass(frozen=True)
class Ordered:
    """All samples in order, or in an order that a keyed permutation gives: random access, no state, no memory."""

    size: int
    shuffle: bool = False
    seed: int | None = None
    shuffle_from_epoch: int = 0

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        if not self.shuffle or epoch < self.shuffle_from_epoch:
            return positions
        seed = seed if self.seed is None else self.seed
        found: Ints = _native.permute(seed, epoch, self.size, positions)
        return found

    def keys(self, epoch: int, positions: Ints, indices: Ints) -> npt.NDArray[np.uint64]:
        return indices.astype(np.uint64)

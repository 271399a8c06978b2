# SPDX-License-Identifier: Apache-2.0
"""Samplers: choice and order of an epoch's samples. Usage: ``fn.readers.file(..., sampler=samplers.Weighted(w))``.

A reader's ``sampler`` may also be a sequence of numbers, or any iterable, such as a ``torch.utils.data.Sampler``.
"""

from .contract.reader import BoundSampler as BoundSampler
from .contract.reader import Sampler as Sampler
from .contract.reader import Shards as Shards
from .readers._samplers import Bucketed as Bucketed
from .readers._samplers import ClassBalanced as ClassBalanced
from .readers._samplers import Mixed as Mixed
from .readers._samplers import Sequential as Sequential
from .readers._samplers import Shuffled as Shuffled
from .readers._samplers import Weighted as Weighted
from .readers._samplers import Windowed as Windowed

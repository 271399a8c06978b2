# SPDX-License-Identifier: Apache-2.0
"""Generators and random operators (as ``nvidia.dali.experimental.dynamic.random``)."""

from typing import Any

from ....frontends.dali.dynamic.generators import RNG as RNG
from ....frontends.dali.dynamic.generators import get_default_rng as get_default_rng
from ....frontends.dali.dynamic.generators import set_seed as set_seed
from ....frontends.dali.dynamic.operators import member as _member


def __getattr__(name: str) -> Any:
    return _member(f"random.{name}")

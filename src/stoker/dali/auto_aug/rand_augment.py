# SPDX-License-Identifier: Apache-2.0
"""RandAugment (as ``nvidia.dali.auto_aug.rand_augment``)."""

from ...frontends.dali.augmenting import apply_rand_augment as apply_rand_augment
from ...frontends.dali.augmenting_policies import (
    get_rand_augment_non_monotonic_suite as get_rand_augment_non_monotonic_suite,
)
from ...frontends.dali.augmenting_policies import get_rand_augment_suite as get_rand_augment_suite
from ...frontends.dali.augmenting_policies import rand_augment as rand_augment
